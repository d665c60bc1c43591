"""`python -m bench.language`: decoders beside Hugging Face transformers and CTranslate2, each in its own process.

shakespeare   the time to a validation loss of 1.88 on Tiny Shakespeare, nanoGPT's small setting: our recipe by our
              trainer, and the same model in transformers by a plain loop with nanoGPT's settings, in turns of 50 steps.
              Validation is not counted. CPU seconds stand beside the seconds, for a machine that others use too.
gpt2          GPT-2 124M, random weights, one prompt of 32 tokens, 32 more, greedily.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bench.__main__ import Report, Side, equal_outputs, in_turns, installed, sides
from bench.decoder_sides import NEW, ctranslate2_folder

TEXT = Path(__file__).parent.parent.parent / "shared" / "data" / "tinyshakespeare" / "input.txt"
TARGET, TURN = 1.88, 50
FIRST = {"regard": 300, "transformers": 1500}
"""The step before which no side comes near the target, and none is validated."""


def shakespeare(folder: Path, text: Path, console: Console) -> dict[str, Any]:
    shutil.copy(text, folder / "input.txt")
    spent: dict[str, dict[str, float]] = {}
    with sides("shakespeare", folder) as opened:
        going = dict(opened)
        while going:
            for name, side in list(going.items()):
                row = spent.setdefault(name, {"seconds": 0.0, "cpu": 0.0})
                side.do({"steps": TURN, "validate": row.get("step", 0) + TURN >= FIRST[name]})
                shown = side.shown
                row |= {"seconds": row["seconds"] + shown["seconds"], "cpu": row["cpu"] + shown["cpu"]}
                row |= {"step": shown["step"], "loss": shown["loss"]}
                line = f"{name}: step {row['step']:,}, loss {row['loss']:.3f}, "
                console.print(f"{line}{row['seconds']:.0f} s, {row['cpu']:.0f} CPU s", highlight=False)
                if shown["loss"] <= TARGET or shown["step"] >= 3000:
                    del going[name]
    ratios = {key: spent["regard"][key] / spent["transformers"][key] for key in ("seconds", "cpu")}
    console.print(f"regard / transformers: {ratios['seconds']:.2f} of the seconds, {ratios['cpu']:.2f} of the CPU's")
    return {**spent, "ratio": ratios}


def gpt2(folder: Path, rounds: int, report: Report) -> str:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    peer = GPT2LMHeadModel(GPT2Config()).eval()
    with torch.no_grad():
        for weight in peer.transformer.h.parameters():  # larger than fresh ones, so that outputs vary
            if weight.ndim > 1:
                weight.mul_(3)
    peer.save_pretrained(folder / "gpt2")
    if installed("ctranslate2"):
        ctranslate2_folder(peer, folder / "gpt2-ctranslate2-float32", None)
        ctranslate2_folder(peer, folder / "gpt2-ctranslate2-int8", "int8")
    del peer
    opened: dict[str, Side]
    with sides("gpt2", folder) as opened:
        report.speeds("GPT-2 124M, 1 x greedy", NEW, in_turns(opened, {"seed": 1}, rounds))
        report.peaks("memory, GPT-2 124M", opened)
        return equal_outputs(opened)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.language", description=__doc__)
    parser.add_argument("work", choices=["shakespeare", "gpt2"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--text", type=Path, default=TEXT)
    options = parser.parse_args()
    console, report = Console(), Report()
    console.print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as name:
        if options.work == "shakespeare":
            report.results["Tiny Shakespeare"] = shakespeare(Path(name), options.text, console)
        else:
            same = gpt2(Path(name), options.rounds, report)
            console.print(report.table)
            console.print(f"equal to transformers, token for token: {same}", highlight=False)
    path = Path(__file__).parent / f"results-{options.work}.json"
    path.write_text(json.dumps(report.results, indent=2) + "\n", encoding="utf8")
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
