"""Images in, classes out, each with what the model looked at.

files -> pixels (`Framing`) -> model -> probabilities           (fused kernels, nothing recorded)
classification.attention -> the image shown once more, with a record
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import DataConfig
from regard.data.badlines import BadLines
from regard.data.files import in_letters
from regard.data.images import Content, Split, open_album
from regard.data.images_decode import Framing, Unreadable, quiet
from regard.data.images_prepare import decoded, place_of
from regard.errors import UserError
from regard.models.base import ImageEncoder
from regard.nn.layers import Stack
from regard.nn.record import AttentionRecord, Axis, Recording, records
from regard.tasks.base import Evaluation, Predictor
from regard.tasks.image_scores import scores
from regard.tasks.saved import Facts

TOGETHER = 64
"""Images shown to the model at once."""


class ImageModel(nn.Module):
    """An image encoder with a linear head on each of its summaries (Dosovitskiy 2021, section 3.1).

    A distillation token may have a head too (DeiT): each has a loss of its own, and their mean is what is used.
    """

    def __init__(self, encoder: ImageEncoder, classes: int, summaries: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = Stack[nn.Linear](nn.Linear(encoder.width, classes) for _ in range(summaries))
        for output in self.head:
            nn.init.normal_(output.weight, std=0.02)
            nn.init.zeros_(output.bias)

    def each(self, images: Tensor, record: Recording | None = None) -> list[Tensor]:
        """The logits of every head: (B, classes) each."""
        summaries = self.encoder.summaries(self.encoder(images, record=record))
        return [output(summary) for output, summary in zip(self.head, summaries, strict=True)]

    def forward(self, images: Tensor, *, record: Recording | None = None) -> Tensor:
        """(B, C, height, width) -> logits (B, classes)."""
        logits = self.each(images, record)
        return logits[0] if len(logits) == 1 else torch.stack(logits).mean(dim=0)


@dataclass(frozen=True)
class Example:
    """A labelled image, as stored: (stored, stored, channels). `label` is the number of its class."""

    name: str
    pixels: NDArray[np.uint8]
    label: int


@dataclass(frozen=True)
class Classification:
    """What an image was taken for. `probabilities` are those of all classes, the likeliest first."""

    source: str
    label: str
    probability: float
    probabilities: dict[str, float]
    pixels: NDArray[np.uint8] = field(repr=False)  # what the model saw: (size, size, channels)
    classifier: ImageClassifier = field(repr=False)

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        return {"image": self.source, "label": self.label, "probabilities": self.probabilities}

    @cached_property
    def attention(self) -> AttentionRecord:
        """All sites, heads and rows for this very image."""
        return self.look(Recording())

    def look(self, recording: Recording) -> AttentionRecord:
        """As `attention`, but only the sites, heads and rows that `recording` asks for."""
        return self.classifier.look(self.pixels, recording)


class ImageClassifier(Predictor):
    """A trained model with the names of its classes and the way it is shown images."""

    def __init__(self, model: nn.Module, facts: Facts) -> None:
        self.model = model
        self.classes: list[str] = list(facts["classes"])
        self.called: list[str] = list(facts.get("labels", map(str, range(len(self.classes)))))
        self.framing = Framing.of(facts)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def classify(self, images: Iterable[Content | str]) -> Iterator[Classification | UserError]:
        """Each image in turn: what it shows, or, for a file that holds no image, the error that says so."""
        coming = iter(images)
        while together := list(islice(coming, TOGETHER)):
            with quiet():
                read = [self._read(Path(one) if isinstance(one, str) else one) for one in together]
            seen = [one for one in read if not isinstance(one, UserError)]
            found = iter(self.probabilities(np.stack(seen)) if seen else ())
            for source, pixels in zip(together, read, strict=True):
                if isinstance(pixels, UserError):
                    yield pixels
                    continue
                yield self._named(_name(source), pixels, next(found))

    @torch.inference_mode()
    def probabilities(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Stored pixels (B, stored, stored, C) -> (B, classes)."""
        parts = [
            torch.softmax(self.model(self.framing.shown(pixels[start : start + TOGETHER]).to(self.device)), dim=-1)
            for start in range(0, len(pixels), TOGETHER)
        ]
        found: NDArray[np.float32] = torch.cat(parts).float().cpu().numpy()
        return found

    @torch.inference_mode()
    def look(self, pixels: NDArray[np.uint8], wanted: Recording) -> AttentionRecord:
        """The attention for one image, (stored, stored, C) or (size, size, C), that `wanted` asks for."""
        recording = wanted.again()
        whole = pixels if len(pixels) == self.framing.stored else self.framed(pixels)
        images = self.framing.shown(whole[None]).to(self.device)
        self.model(images, record=recording)
        axis = Axis.plain(self.tokens(images))
        (record,) = records(recording, 1, lambda site, index: (axis, axis))
        return record

    def tokens(self, images: Tensor) -> list[str]:
        """The names of what is attended to: extra tokens, then the patches by row and column."""
        encoder = self.model.encoder
        assert isinstance(encoder, ImageEncoder), "a classifier of images has an image encoder"
        rows, columns = encoder.grid_of(images)
        return [*encoder.extra_tokens, *(f"{row},{column}" for row in range(rows) for column in range(columns))]

    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Example]:
        """The images of a source of any layout that `regard train image` reads; its test split if it has one."""
        album = open_album(files, data.columns)
        order: tuple[Split, ...] = ("test", "valid", "train")
        split: Split = next((name for name in order if name in album.splits), "train")
        numbers = {label: number for number, label in enumerate(self.called)}
        if not all(label.isdecimal() for label in self.called):  # then other sources may number the classes
            numbers = {str(number): number for number in range(len(self.classes))} | numbers
        numbers |= {name: number for number, name in enumerate(self.classes)}
        examples = []
        for picture, pixels in decoded(album.read(split, bad), self.framing, bad):
            place = place_of(picture)
            if picture.label not in numbers:
                bad.add("label", place, picture.label)
                continue
            name = f"{place.path}:{place.line}" if place.line else place.path
            examples.append(Example(name, pixels, numbers[picture.label]))
        return examples

    def evaluate(self, examples: Sequence[Example]) -> Evaluation:
        found = np.concatenate(
            [
                self.probabilities(
                    np.stack([examples[row].pixels for row in range(start, min(start + 512, len(examples)))])
                )
                for start in range(0, len(examples), 512)
            ]
        )
        labels = np.array([example.label for example in examples])
        return Evaluation(scores(found, labels, self.classes), self._rows(examples, found))

    def _rows(self, examples: Sequence[Example], found: NDArray[np.float32]) -> list[dict[str, Any]]:
        rows = []
        for example, probabilities in zip(examples, found, strict=True):
            best = int(probabilities.argmax())
            rows.append(
                {
                    "image": example.name,
                    "label": self.classes[example.label],
                    "predicted": self.classes[best],
                    "probability": round(float(probabilities[best]), 4),
                    "probability_of_label": round(float(probabilities[example.label]), 4),
                }
            )
        return rows

    def _read(self, content: Content) -> NDArray[np.uint8] | UserError:
        try:
            return self.framing.pixels(content)
        except Unreadable as problem:
            return UserError(f"{_name(content)}: cannot be classified ({problem})")

    def _named(self, source: str, pixels: NDArray[np.uint8], found: NDArray[np.float32]) -> Classification:
        order = np.argsort(-found, kind="stable")
        probabilities = {self.classes[number]: float(found[number]) for number in order}
        best = self.classes[order[0]]
        return Classification(source, best, probabilities[best], probabilities, self._seen(pixels), self)

    def _seen(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        first, size = (self.framing.stored - self.framing.size) // 2, self.framing.size
        return pixels[first : first + size, first : first + size]

    def framed(self, seen: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What was seen, back in a frame of the stored size, whose border is not looked at."""
        first = (self.framing.stored - self.framing.size) // 2
        rest = self.framing.stored - self.framing.size - first
        return np.pad(seen, ((first, rest), (first, rest), (0, 0)))


def _name(source: Content | str) -> str:
    if isinstance(source, str | Path):
        return in_letters(Path(source))
    if isinstance(source, bytes):
        return f"{len(source):,} bytes"
    height, width = source.shape[:2] if isinstance(source, np.ndarray) else (source.height, source.width)
    return f"an image of {width} x {height} pixels"
