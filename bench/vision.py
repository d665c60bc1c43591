"""`python -m bench.vision`: ViT-B/16 beside Hugging Face's, the same weights and images, in inference and in training.

Every side runs in a process of its own, one at a time, in turns; shown are the medians of the rounds, and the median
over the rounds of Regard's ratio. Outputs must be equal. On a machine that does other work, `--threads 1 --busy` counts
the processor's seconds instead of the clock's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.__main__ import Side, in_turns

Work = Callable[[int], list[float]]
"""So many images -> some numbers that must be the same on every side."""


def images(count: int) -> Any:
    import torch

    return torch.randn(count, 3, 224, 224, generator=torch.Generator().manual_seed(count))


def regard_model(folder: Path) -> Any:
    from regard.hub.published import open_published
    from regard.nn.weights import load_weights
    from regard.tasks.image import Image
    from regard.training.memory import keep_freed_memory

    keep_freed_memory()
    saved = open_published(folder)
    model = Image.build(saved.config, 0, saved.facts)
    load_weights(model, saved.weights, folder)
    return model


def transformers_model(folder: Path) -> Any:
    from transformers import ViTForImageClassification

    return ViTForImageClassification.from_pretrained(folder)


def inference(model: Any, logits: Callable[[Any], Any]) -> Work:
    import torch

    model.eval()

    def work(count: int) -> list[float]:
        with torch.inference_mode():
            return [round(float(value), 3) for value in logits(images(count))[0, :4]]

    return work


def training(model: Any, logits: Callable[[Any], Any]) -> Work:
    """One step of Adam, forwards and backwards."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    model.train()

    def work(count: int) -> list[float]:
        answers = torch.arange(count)
        loss = torch.nn.functional.cross_entropy(logits(images(count)), answers)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return [round(float(loss), 2)]

    return work


def side(name: str, folder: Path, kind: str) -> Work:
    if name == "transformers":
        model = transformers_model(folder)
        return {"inference": inference, "training": training}[kind](model, lambda seen: model(seen).logits)
    model = regard_model(folder)
    return {"inference": inference, "training": training}[kind](model, model)


def answer() -> None:
    """Be one side: a line with a case comes in, a line with its seconds goes out."""
    from bench.sides import peak_memory

    name, folder, kind, clock = sys.argv[2:]
    now = {"clock": time.perf_counter, "processor": time.process_time}[clock]
    work = side(name, Path(folder), kind)
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        began = now()
        shown = work(**json.loads(line))
        seconds = now() - began
        print(json.dumps({"seconds": seconds, "shown": shown, "peak": peak_memory()}), file=answers, flush=True)


def measure(kind: str, folder: Path, count: int, rounds: int, threads: int, clock: str) -> dict[str, dict[str, float]]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    pipe, opened = subprocess.PIPE, {}
    for name in ("regard", "transformers"):
        command = [sys.executable, "-W", "ignore", "-m", "bench.vision", "side", name, str(folder), kind, clock]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=quiet, text=True, bufsize=1, env=environment
        )
        opened[name] = Side(process)
    try:
        seconds = in_turns(opened, {"count": count}, rounds)
    finally:
        for one in opened.values():
            one.process.kill()
            one.process.wait()
    shown = [one.shown for one in opened.values()]
    if shown[0] != shown[1]:
        print(f"{kind}: outputs differ: {shown}")
    ratios = [theirs / ours for ours, theirs in zip(seconds["regard"], seconds["transformers"], strict=True)]
    return {
        name: {
            "images_per_second": count / statistics.median(values),
            "peak_mb": opened[name].peak,
            **({"ratio": statistics.median(ratios)} if name == "transformers" else {}),
        }
        for name, values in seconds.items()
    }


def main() -> None:
    import torch
    import transformers

    parser = argparse.ArgumentParser(prog="python -m bench.vision", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--kinds", nargs="+", default=["inference", "training"])
    options = parser.parse_args()
    clock = "processor" if options.busy else "clock"
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {options.threads} threads, "
          f"{options.images} images, {options.rounds} rounds, by the {clock}")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        torch.manual_seed(0)
        config = transformers.ViTConfig(num_labels=1000)
        transformers.ViTForImageClassification(config).save_pretrained(name)
        for kind in options.kinds:
            rows = measure(kind, Path(name), options.images, options.rounds, options.threads, clock)
            for side_name, row in rows.items():
                ratio = f"   Regard is {row['ratio']:.2f} x" if "ratio" in row else ""
                print(f"{kind:10} {side_name:13} {row['images_per_second']:6.2f} images/s   "
                      f"{row['peak_mb']:,.0f} MB{ratio}", flush=True)  # fmt: skip


if __name__ == "__main__":
    answer() if sys.argv[1:2] == ["side"] else main()
