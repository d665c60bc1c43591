"""Classifying images: labelled images in, a classifier out.

examples   pixels, moved, mirrored and mixed at random (`regard.data.images_augment`)
loss       cross-entropy, summed over the images; with two heads the mean of their losses (Touvron 2021, section 4)
score      accuracy on held-out images
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import Config, Settings, Values
from regard.data.folders import link_or_copy
from regard.data.images_augment import colour, cutmix, flip, mixup, rand_augment, resized_crop, shift
from regard.data.images_decode import Fit, Framing, Resample, as_tensor
from regard.data.images_prepare import Images, Wishes, prepare_images
from regard.data.prepare import Progress
from regard.errors import UserError
from regard.models import build
from regard.models.base import ImageEncoder
from regard.models.vit import VitConfig, stretched
from regard.tasks.base import Sample, Share, Task, Validation
from regard.tasks.image_classifier import TOGETHER, Example, ImageClassifier, ImageModel
from regard.tasks.image_scores import mean_loss, top
from regard.tasks.saved import Facts, Saved


class ImageOptions(Settings):
    """How images are shown to the model, and how they are changed in training."""

    crop: Literal["none", "shift", "resized"] = Field(
        default="shift", description="move each image a little, or show a part of it (for photographs)"
    )
    shift: int | None = Field(default=None, ge=0, description="pixels to move by at most; by default an eighth")
    scale: tuple[float, float] = Field(
        default=(0.35, 1.0), description="share of the area that a resized crop shows, at least and at most"
    )
    flip: bool = Field(default=True, description="exchange left and right in every second image")
    colour: float = Field(default=0.0, ge=0, le=1, description="change of brightness, contrast and saturation")
    changes: int = Field(default=0, ge=0, description="RandAugment: random changes of each image")
    magnitude: float = Field(default=0.3, ge=0, le=1, description="RandAugment: how strong they may be")
    mixup: float = Field(default=0.0, ge=0, description="alpha of blending images in pairs; 0 = never")
    cutmix: float = Field(default=0.0, ge=0, description="alpha of pasting a part of another image; 0 = never")
    fit: Fit = Field(default="crop", description="how an image becomes a square: its middle, or squashed")
    resample: Resample = Field(default="bilinear", description="how pixels are computed when an image is resized")
    stored: int | None = Field(
        default=None, ge=1, description="side of the stored squares; 8/7 of model.image if resized"
    )
    mean: list[float] | None = Field(default=None, description="of each channel; by default the training images'")
    deviation: list[float] | None = Field(default=None, description="of each channel; as mean")
    class_names: list[str] | None = Field(default=None, description="names for classes that are only numbered")

    @model_validator(mode="after")
    def _possible(self) -> ImageOptions:
        least, most = self.scale
        if not 0 < least <= most <= 1:
            raise ValueError(
                f"scale = {list(self.scale)}: must be two shares from 0 to 1, the smaller first (try [0.35, 1])"
            )
        if self.deviation is not None and min(self.deviation, default=1) <= 0:
            raise ValueError(f"deviation = {self.deviation}: must be above 0, since pixels are divided by it")
        return self


@dataclass(frozen=True)
class PictureBatch:
    images: Tensor  # (B, C, size, size)
    targets: Tensor  # (B, classes), rows that sum to 1

    @property
    def tokens(self) -> int:
        return len(self.images)

    def to(self, device: torch.device) -> PictureBatch:
        return replace(self, images=self.images.to(device), targets=self.targets.to(device))


class Rows(Sequence[Example]):
    """Some of the stored images, read when they are asked for."""

    def __init__(self, data: Images, rows: NDArray[np.int64]) -> None:
        self.data, self.rows = data, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        row = int(self.rows[place])
        return Example(self.data.names[row], self.data.pixels[row], int(self.data.labels[row]))


class Image(Task):
    promise = ImageEncoder
    default_model = "vit"
    unit = "images"
    Options = ImageOptions

    def __init__(self, config: Config, data: Images) -> None:
        self.config, self.data = config, data
        self.options = options_of(config)

    @classmethod
    def build(cls, config: Config, vocabulary: int, facts: Facts) -> nn.Module:
        model = _settings(config)
        encoder = build(model, vocabulary)
        assert isinstance(encoder, ImageEncoder), f"an image encoder is needed, not {type(encoder).__name__}"
        return ImageModel(encoder, len(facts["classes"]), 2 if model.distillation == "head" else 1)

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> ImageClassifier:
        return ImageClassifier(model, saved.facts)

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        model = _settings(config)
        if unseen := model.image % model.patch:
            raise UserError(
                f"model.patch = {model.patch}: must divide model.image = {model.image}, or the last {unseen} pixels of "
                f"each side are never seen (try model.image = {model.image - unseen})"
            )

    @classmethod
    def inherited(cls, saved: Saved, chosen: Values) -> Facts:
        """A model that is trained further is shown images as before; the border keeps its share of another size."""
        if not saved.facts.get("mean"):
            return {}
        framing, image = Framing.of(saved.facts), chosen.get("model.image")
        size = image if isinstance(image, int) else framing.size
        return {
            "fit": framing.fit,
            "resample": framing.resample,
            "stored": round(framing.stored * size / framing.size),
            "mean": list(framing.mean),
            "deviation": list(framing.deviation),
        }

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Image:
        data, options = config.data, options_of(config)
        wishes = Wishes(
            data.train, data.valid, data.test, data.columns, data.valid_count, data.test_count,
            max_bad_share=data.max_bad_share, seed=data.seed, class_names=options.class_names,
        )  # fmt: skip
        return cls(config, prepare_images(wishes, _framing(config), cache, progress))

    @classmethod
    def open(cls, config: Config, folder: Path) -> Image:
        return cls(config, Images.open(folder))

    def fitted(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Positions that were learned on another grid of patches are stretched to this one."""
        model, learned = _settings(self.config), weights.get("encoder.positions")
        extra = len(model.extra)
        if learned is None or learned.shape[1] == extra + model.grid**2:
            return weights
        if math.isqrt(learned.shape[1] - extra) ** 2 != learned.shape[1] - extra:  # it had other extra tokens
            return weights
        return {**weights, "encoder.positions": stretched(learned.float(), extra, model.grid, model.grid)}

    def keep(self, folder: Path) -> None:
        link_or_copy(self.data.folder, folder)

    @property
    def vocabulary(self) -> int:
        return 0

    @property
    def facts(self) -> Facts:
        return {"classes": self.data.classes, "labels": self.data.called, **self.data.framing.facts()}

    @property
    def summary(self) -> str:
        return self.data.summary

    @property
    def lengths(self) -> NDArray[np.int32]:
        model = _settings(self.config)
        tokens = model.grid**2 + len(model.extra)
        return np.full((len(self.data.rows["train"]), 1), tokens, np.int32)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> PictureBatch:
        generator = torch.Generator().manual_seed(seed)
        chosen = self.data.rows["train"][np.asarray(rows)]
        images = self._cropped(as_tensor(self.data.pixels[chosen]), generator)
        targets = F.one_hot(torch.from_numpy(self.data.labels[chosen]), len(self.data.classes)).float()
        images = images.float() / 255 if images.dtype == torch.uint8 else images
        options = self.options
        if options.colour:
            images = colour(images, options.colour, generator)
        if options.changes:
            images = rand_augment(images, options.changes, options.magnitude, generator)
        mixes = [(mix, alpha) for mix, alpha in ((mixup, options.mixup), (cutmix, options.cutmix)) if alpha]
        if mixes:
            mix, alpha = mixes[int(torch.randint(len(mixes), (), generator=generator))]
            images, targets = mix(images, targets, alpha, generator)
        return PictureBatch(self.data.framing.normalised(images), targets)

    def _cropped(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Stored bytes (B, C, stored, stored) -> (B, C, size, size): still bytes, but from 0 to 1 if resized."""
        options, framing = self.options, self.data.framing
        images = flip(images, generator) if options.flip else images
        if options.crop == "resized":
            return resized_crop(images.float() / 255, framing.size, options.scale, generator)
        images = framing.middle(images)
        if options.crop == "shift":
            most = max(1, framing.size // 8) if options.shift is None else options.shift
            images = shift(images, most, generator)
        return images

    def loss(self, model: nn.Module, batch: PictureBatch) -> Tensor:
        assert isinstance(model, ImageModel), f"an image classifier, not {type(model).__name__}"
        smoothing = self.config.train.label_smoothing
        losses = [
            F.cross_entropy(logits, batch.targets, reduction="sum", label_smoothing=smoothing)
            for logits in model.each(batch.images)
        ]
        return torch.stack(losses).mean()

    def validate(self, model: nn.Module, share: Share) -> Validation:
        classifier = ImageClassifier(model, self.facts)
        mine = self.data.rows["valid"][share.rank :: share.size]
        parts = (mine[first : first + TOGETHER] for first in range(0, len(mine), TOGETHER))  # not all pixels at once
        none = np.zeros((0, len(self.data.classes)), np.float32)
        found = np.concatenate([none, *(classifier.probabilities(self.data.pixels[part]) for part in parts)])
        rows = np.concatenate([self.data.rows["valid"][rank :: share.size] for rank in range(share.size)])
        probabilities, labels = np.concatenate(share.gather(found)), self.data.labels[rows]
        loss, accuracy = mean_loss(probabilities, labels), 100 * top(probabilities, labels, 1)
        samples = [
            Sample(Path(self.data.names[row]).name, self.data.classes[best], self.data.classes[label])
            for row, best, label in zip(rows[:3], probabilities.argmax(axis=1), labels, strict=False)
        ]
        return Validation(accuracy, loss, {"accuracy": accuracy}, samples)

    @property
    def tests(self) -> dict[str, Rows]:
        rows = self.data.rows.get("test", np.zeros(0, np.int64))
        return {"test": Rows(self.data, rows)} if len(rows) else {}

    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        classifier = ImageClassifier(model, self.facts)
        return {name: classifier.evaluate(rows).scores for name, rows in self.tests.items()}


def options_of(config: Config) -> ImageOptions:
    assert isinstance(config.options, ImageOptions), f"options of images, not {type(config.options).__name__}"
    return config.options


def _settings(config: Config) -> VitConfig:
    assert isinstance(config.model, VitConfig), f"settings of an image encoder, not {type(config.model).__name__}"
    return config.model


def _framing(config: Config) -> Framing:
    model, options = _settings(config), options_of(config)
    stored = options.stored or (round(model.image * 8 / 7) if options.crop == "resized" else model.image)
    if stored < model.image:
        raise UserError(f"options.stored = {stored}: must be at least model.image = {model.image}")
    for name, values in (("mean", options.mean), ("deviation", options.deviation)):
        if values is not None and len(values) != model.channels:
            raise UserError(f"options.{name} = {values}: needs a number for each of the {model.channels} channels")
    mean, deviation = tuple(options.mean or ()), tuple(options.deviation or ())
    if bool(mean) != bool(deviation):
        raise UserError("options.mean, options.deviation: give both, or neither (then they are those of the images)")
    return Framing(model.image, stored, model.channels, options.fit, options.resample, mean, deviation)
