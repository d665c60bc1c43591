"""The sides of `bench.encoders`: the same encoders in Regard, Hugging Face transformers and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Work = Callable[..., Any]
ROWS, LENGTH, VOCABULARY = 8, 128, 8000
BATCH = 32
"""Sentences of a batch, where they come in the order of the file."""
IMAGES = 4


def tokens(seed: int) -> Any:
    """(ROWS, LENGTH) without padding."""
    import torch

    return torch.randint(5, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))


def images(seed: int) -> Any:
    import torch

    return torch.randn(IMAGES, 3, 224, 224, generator=torch.Generator().manual_seed(seed))


def rounded(values: Any) -> list[float]:
    """What must be the same on every side."""
    return [round(float(value), 2) + 0.0 for value in values]  # no -0.0


def regard_bert(folder: Path) -> Work:
    import torch

    from regard.run import Run

    encoder = Run.load(folder / "bert").model.encoder  # type: ignore[union-attr]

    def encode(seed: int) -> list[float]:
        ids = tokens(seed)
        with torch.inference_mode():
            return rounded(encoder(ids, torch.zeros_like(ids))[-1, -1, :8])

    return encode


def transformers_bert(folder: Path) -> Work:
    import torch
    from transformers import BertModel

    model = BertModel.from_pretrained(folder / "bert").eval()

    def encode(seed: int) -> list[float]:
        ids = tokens(seed)
        with torch.inference_mode():
            return rounded(model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[-1, -1, :8])

    return encode


def onnxruntime_bert(folder: Path) -> Work:
    import numpy as np
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "bert.onnx"), providers=["CPUExecutionProvider"])

    def encode(seed: int) -> list[float]:
        ids = tokens(seed).numpy()
        return rounded(session.run(None, {"ids": ids, "mask": np.ones_like(ids)})[0][-1, -1, :8])

    return encode


def sentences(folder: Path) -> list[str]:
    return (folder / "sentences.txt").read_text(encoding="utf8").splitlines()


def regard_sentences(folder: Path) -> Work:
    from regard.run import Run

    run, texts = Run.load(folder / "bert"), sentences(folder)
    return lambda: rounded(run.embed(texts)[-1, :8])


def transformers_sentences(folder: Path) -> Work:
    """The usual loop: batches in the order of the file, each padded to its longest, the mean over its tokens."""
    import torch
    from transformers import AutoTokenizer, BertModel

    model, tokenizer = BertModel.from_pretrained(folder / "bert").eval(), AutoTokenizer.from_pretrained(folder / "bert")
    texts = sentences(folder)

    def vectors() -> Iterator[Any]:
        for start in range(0, len(texts), BATCH):
            inputs = tokenizer(texts[start : start + BATCH], padding=True, truncation=True, return_tensors="pt")
            hidden, real = model(**inputs).last_hidden_state, inputs["attention_mask"].unsqueeze(-1)
            yield (hidden * real).sum(dim=1) / real.sum(dim=1)

    def encode() -> list[float]:
        with torch.inference_mode():
            return rounded(torch.cat(list(vectors()))[-1, :8])

    return encode


def regard_vit(folder: Path) -> Any:
    from regard.training.memory import keep_freed_memory
    from regard.training.saved import open_saved, trained_model

    keep_freed_memory()
    return trained_model(open_saved(folder / "vit"))


def packed_vit(folder: Path) -> Any:
    """As a run that is opened for use."""
    from regard.inference import pack

    return pack(regard_vit(folder), keep=False)


def transformers_vit(folder: Path) -> Any:
    from transformers import ViTForImageClassification

    model = ViTForImageClassification.from_pretrained(folder / "vit")
    plain = model.forward
    model.forward = lambda seen: plain(seen).logits
    return model


def look(model: Any) -> Work:
    import torch

    model.eval()

    def work(seed: int) -> list[float]:
        with torch.inference_mode():
            return rounded(model(images(seed))[0, :4])

    return work


def learn(model: Any) -> Work:
    """One step of AdamW, forwards and backwards."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    model.train()

    def work(seed: int) -> list[float]:
        loss = torch.nn.functional.cross_entropy(model(images(seed)), torch.arange(IMAGES))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return [round(float(loss), 1)]

    return work


ENCODERS: dict[str, dict[str, Callable[[Path], Work]]] = {
    "bert": {"regard": regard_bert, "transformers": transformers_bert, "onnxruntime": onnxruntime_bert},
    "sentences": {"regard": regard_sentences, "transformers": transformers_sentences},
    "vit": {
        "regard": lambda folder: look(packed_vit(folder)),
        "transformers": lambda folder: look(transformers_vit(folder)),
    },
    "vit-train": {
        "regard": lambda folder: learn(regard_vit(folder)),
        "transformers": lambda folder: learn(transformers_vit(folder)),
    },
}
