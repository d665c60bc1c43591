"""One side of the comparisons, in a process of its own: `python -m bench.sides SIDE FOLDER WORK`.

It reads one case a line from standard input, does the work once, and answers with the seconds and the output. A
process of its own means that no side meets the threads, the memory or the settings of another.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.decoder_sides import DECODERS
from bench.encoder_sides import ENCODERS
from bench.shapes import (
    DECODE,
    DECODE_VOCABULARY,
    LENGTH,
    PAIRS,
    STEPS,
    TOKENS,
    TRAIN,
    TRAIN_VOCABULARY,
    sentences,
    transformer,
)

Work = Callable[..., Any]
"""A case's values -> what to show for it."""


def train_step(model: Any, loss: Callable[[Any, Any, Any], Any]) -> Work:
    """A few steps of Adam, one after the other as in training, on 128 pairs of 16+16 tokens."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9, fused=True)
    model.train()
    source, target = torch.tensor(sentences(PAIRS, LENGTH, 0)), torch.tensor(sentences(PAIRS, LENGTH + 1, 1))

    def steps() -> float:
        torch.manual_seed(1)
        for _ in range(STEPS):
            value = loss(source, target[:, :-1], target[:, 1:])
            value.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return float(value.detach()) / target[:, 1:].numel()

    return steps


def regard_train(folder: Path) -> Work:
    from regard.models.transformer import Transformer
    from regard.nn.loss import projected_loss
    from regard.nn.weights import load_tensors, load_weights
    from regard.training.memory import keep_freed_memory

    keep_freed_memory()
    model = Transformer(transformer(TRAIN), TRAIN_VOCABULARY)
    load_weights(model, load_tensors(folder / "train.safetensors")[0], folder)

    def loss(source: Any, seen: Any, answers: Any) -> Any:
        hidden = model(source, seen).flatten(0, 1)
        return projected_loss(hidden, model.output.weight, model.output.bias, answers.flatten(), 0.1)

    return train_step(model, loss)


def transformers_train(folder: Path) -> Work:
    import torch
    from transformers import MarianMTModel

    model = MarianMTModel.from_pretrained(folder / "train-marian")

    def loss(source: Any, seen: Any, answers: Any) -> Any:
        mask = torch.ones_like(source)
        logits = model(input_ids=source, attention_mask=mask, decoder_input_ids=seen, use_cache=False).logits
        flat = logits.flatten(0, 1), answers.flatten()
        return torch.nn.functional.cross_entropy(*flat, reduction="sum", label_smoothing=0.1)

    return train_step(model, loss)


def torch_train(folder: Path) -> Work:
    from bench.peers import TorchTransformer
    from regard.nn.loss import plain_loss

    model = TorchTransformer(transformer(TRAIN), TRAIN_VOCABULARY)

    def loss(source: Any, seen: Any, answers: Any) -> Any:
        hidden = model(source, seen).flatten(0, 1)
        return plain_loss(hidden, model.output.weight, model.output.bias, answers.flatten(), 0.1)

    return train_step(model, loss)


def joeynmt_train(folder: Path) -> Work:
    import torch

    from bench.peers import joeynmt

    model = joeynmt(transformer(TRAIN), TRAIN_VOCABULARY)

    def loss(source: Any, seen: Any, answers: Any) -> Any:
        everywhere = torch.ones(len(source), 1, LENGTH, dtype=torch.bool)
        lengths = torch.full((len(source),), LENGTH)
        return model(
            return_type="loss", src=source, src_mask=everywhere, src_length=lengths,
            trg_input=seen, trg=answers, trg_mask=everywhere,
        )[0]  # fmt: skip

    return train_step(model, loss)


def regard_decode(folder: Path, weights: str) -> Work:
    import torch

    from regard.config import SearchConfig
    from regard.data.tokenizers import BOS, EOS, PAD
    from regard.decoding import Limits, search
    from regard.inference import pack
    from regard.models.transformer import Transformer
    from regard.nn.weights import load_tensors, load_weights
    from regard.training.memory import keep_freed_memory

    model = Transformer(transformer(DECODE), DECODE_VOCABULARY)
    load_weights(model, load_tensors(folder / "decode.safetensors")[0], folder)
    model = pack(model, weights, keep=False)  # type: ignore[arg-type]
    keep_freed_memory()

    def decode(rows: int, beam: int) -> list[list[int]]:
        options = SearchConfig(method="beam" if beam > 1 else "greedy", beam=beam, min_length=TOKENS)
        limits = Limits(BOS, EOS, [TOKENS] * rows, never=(PAD,))
        found = search(model, torch.tensor(sentences(rows, TOKENS, rows)), options, limits)
        return [best[0].ids for best in found]

    return decode


def transformers_decode(folder: Path) -> Work:
    import torch
    from transformers import MarianMTModel

    from regard.data.tokenizers import PAD

    model = MarianMTModel.from_pretrained(folder / "decode-marian").eval()

    def decode(rows: int, beam: int) -> list[list[int]]:
        source = torch.tensor(sentences(rows, TOKENS, rows))
        with torch.inference_mode():
            found = model.generate(
                source, attention_mask=torch.ones_like(source), num_beams=beam, do_sample=False, early_stopping=False,
                min_new_tokens=TOKENS, max_new_tokens=TOKENS, length_penalty=1.0, bad_words_ids=[[PAD]],
            )  # fmt: skip
        ids: list[list[int]] = found[:, 1:].tolist()
        return ids

    return decode


def ctranslate2_decode(folder: Path, weights: str) -> Work:
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder / f"ctranslate2-{weights}"), compute_type=weights, intra_threads=int(os.environ["OMP_NUM_THREADS"])
    )

    def decode(rows: int, beam: int) -> list[list[int]]:
        source = [[str(token) for token in row] for row in sentences(rows, TOKENS, rows)]
        found = translator.translate_batch(
            source, beam_size=beam, min_decoding_length=TOKENS, max_decoding_length=TOKENS, length_penalty=1.0
        )
        return [[int(token) for token in one.hypotheses[0]] for one in found]

    return decode


def kept_train(folder: Path) -> Work:
    """Hugging Face's, with what Regard's loop does for memory, and its users do not have (`regard.training.memory`)."""
    from regard.training.memory import keep_freed_memory

    keep_freed_memory()
    return transformers_train(folder)


KEPT = ", our memory"

SIDES: dict[str, dict[str, Callable[[Path], Work]]] = {
    "train": {
        "regard": regard_train,
        "transformers": transformers_train,
        f"transformers{KEPT}": kept_train,
        "nn.Transformer": torch_train,
        "joeynmt": joeynmt_train,
    },
    "decode": {
        "regard": lambda folder: regard_decode(folder, "float32"),
        "transformers": transformers_decode,
        "ctranslate2": lambda folder: ctranslate2_decode(folder, "float32"),
        "regard int8": lambda folder: regard_decode(folder, "int8"),
        "ctranslate2 int8": lambda folder: ctranslate2_decode(folder, "int8"),
    },
}


def main() -> None:
    side, folder, work = sys.argv[1:]
    do = {**SIDES, **DECODERS, **ENCODERS}[work][side](Path(folder))
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no answer
    for line in sys.stdin:
        began = time.perf_counter()
        shown = do(**json.loads(line))
        seconds = time.perf_counter() - began
        print(json.dumps({"seconds": seconds, "shown": shown, "peak": peak_memory()}), file=answers, flush=True)


def peak_memory() -> float:
    """The most memory this process has held, in MB. (`getrusage` would count what the parent held at the fork.)"""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf8").splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


if __name__ == "__main__":
    main()
