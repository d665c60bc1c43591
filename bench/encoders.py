"""`python -m bench.encoders`: encoders beside Hugging Face transformers and ONNX Runtime, each in its own process.

bert        BERT-base shapes, 8 x 128 tokens without padding
sentences   the same model over sentences whose lengths differ (SST-2's dev set), as `regard embed` reads them, beside
            padded batches of 32 in the order of the file
vit         ViT-B/16, 4 images, in inference
vit-train   and one step of training
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bench.__main__ import Report, equal_outputs, in_turns, installed, sides
from bench.encoder_sides import IMAGES, LENGTH, ROWS, VOCABULARY
from regard.data.files import lines

SST2 = Path(__file__).parent.parent.parent / "shared" / "data" / "sst2" / "glue" / "dev.tsv.gz"
UNITS = {"bert": ("tokens", ROWS * LENGTH), "vit": ("images", IMAGES), "vit-train": ("images", IMAGES)}


def texts(file: Path) -> list[str]:
    """The first column of a table, without its header."""
    return [line.decode().split("\t")[0] for line in lines(file)][1:]


def prepare_bert(folder: Path, read: list[str]) -> None:
    """BERT-base's shape with random weights, a tokenizer for the sentences, and the same for ONNX Runtime."""
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from regard.data.subwords import Subwords

    torch.manual_seed(0)
    config = BertConfig(vocab_size=VOCABULARY)
    model = BertModel(config, add_pooling_layer=True).eval()
    model.save_pretrained(folder / "bert")
    learned = Subwords.learn(read, kind="wordpiece", vocabulary=VOCABULARY, lowercase=True)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    fast = PreTrainedTokenizerFast(tokenizer_object=learned.inner, model_max_length=512, **special)
    fast.save_pretrained(folder / "bert")
    (folder / "sentences.txt").write_text("\n".join(read) + "\n", encoding="utf8")
    if not installed("onnxruntime"):
        return

    eager = Plain(BertModel.from_pretrained(folder / "bert", attn_implementation="eager").eval())
    ids = torch.ones((ROWS, LENGTH), dtype=torch.long)
    torch.onnx.export(
        eager, (ids, ids), str(folder / "bert.onnx"), input_names=["ids", "mask"], dynamo=False, opset_version=17
    )


class Plain(torch.nn.Module):
    """Tensors in, a tensor out, as ONNX wants it."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return hidden


def prepare_vit(folder: Path) -> None:
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    ViTForImageClassification(ViTConfig(num_labels=1000)).save_pretrained(folder / "vit")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.encoders", description=__doc__)
    parser.add_argument("work", nargs="*", default=["bert", "sentences", "vit", "vit-train"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=Path, default=SST2, help="a table whose first column is text")
    options = parser.parse_args()
    console, results = Console(), dict[str, Any]()
    console.print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as name:
        folder, read = Path(name), list[str]()
        if {"bert", "sentences"} & set(options.work):
            read = texts(options.sentences)
            prepare_bert(folder, read)
        if {"vit", "vit-train"} & set(options.work):
            prepare_vit(folder)
        for work in options.work:
            unit, count = UNITS.get(work, ("sentences", len(read)))
            with sides(work, folder) as opened:
                case = {} if work == "sentences" else {"seed": 1}
                report = Report()
                report.speeds(work, count, in_turns(opened, case, options.rounds, twice=work != "sentences"), unit)
                report.peaks(f"memory, {work}", opened)
                console.print(report.table)
                console.print(f"equal to transformers: {equal_outputs(opened)}", highlight=False)
                results |= report.results
    path = Path(__file__).parent / "results-encoders.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
