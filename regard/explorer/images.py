"""Classifiers of images, as the page sees them: the picture takes the sentence's place, patches are its words."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from regard.data.images_decode import from_data_uri
from regard.errors import UserError
from regard.explorer.scene import MOST, Scene, Subject, Wish
from regard.inference.silence import without
from regard.models.base import ImageEncoder
from regard.nn.record import Axis, Recording
from regard.tasks.image_classifier import Classification, ImageClassifier

EXAMPLES = 12
"""Held-out pictures that the page offers."""


class Looked(Scene):
    """A picture that a model has classified."""

    score = None

    def __init__(self, found: Classification, classifier: ImageClassifier) -> None:
        self.found, self.classifier = found, classifier
        self.output = found.label
        self.answers = list(found.probabilities.items())[:MOST]
        pixels = found.pixels
        self.shown = classifier.framing.shown(classifier.framed(pixels)[None])
        encoder = classifier.model.encoder
        assert isinstance(encoder, ImageEncoder), "a classifier of images has an image encoder"
        rows, columns = encoder.grid_of(self.shown)
        names = classifier.tokens(self.shown)
        self.axis = Axis.plain(names)
        self.specials = frozenset(names[: len(names) - rows * columns])
        self.image = {"source": data_uri(pixels), "rows": rows, "columns": columns, "extra": len(self.specials)}

    @torch.inference_mode()
    def replay(self, recording: Recording) -> None:
        self.classifier.model(self.shown.to(self.classifier.device), record=recording)

    def axes(self, site: str) -> tuple[Axis, Axis]:
        return self.axis, self.axis

    @property
    def longest(self) -> int:
        return len(self.axis.tokens)


class Pictures(Subject):
    """A run that classifies images. `wish.text` names an example, or is a picture itself, as a data URI."""

    def __init__(
        self, name: str, kind: str, classifier: ImageClassifier, pictures: dict[str, NDArray[np.uint8]]
    ) -> None:
        self.pictures = dict(list(pictures.items())[:EXAMPLES])
        shown = {name: data_uri(pixels) for name, pixels in self.pictures.items()}
        super().__init__(name, kind, "image", classifier.model, list(shown), {"pictures": shown}, frozenset({"switch"}))
        self.classifier = classifier

    def look(self, wish: Wish) -> Scene:
        classifier = ImageClassifier(without(self.classifier.model, wish.off), self._facts())
        content = self._content(wish.text)
        (found,) = classifier.classify([content])
        if isinstance(found, UserError):
            raise found
        return Looked(found, classifier)

    def _facts(self) -> dict[str, Any]:
        return {**self.classifier.framing.facts(), "classes": self.classifier.classes}

    def _content(self, text: str) -> bytes:
        if text in self.pictures:
            return _png(self.pictures[text])
        return from_data_uri(text)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG")
    return file.getvalue()


def data_uri(pixels: NDArray[np.uint8]) -> str:
    return f"data:image/png;base64,{base64.b64encode(_png(pixels)).decode()}"
