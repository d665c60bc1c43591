"""What a trained model needs to be used, wherever it comes from: a run of ours, or a published folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import Config
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError, listed

Facts = Mapping[str, Any]
"""What a task learned from its data beside the weights, as JSON: class names, thresholds, an image's mean colour."""


@dataclass(frozen=True)
class Saved:
    """A trained model at rest. `unused` are the weights of a published folder that no model of ours has."""

    path: Path
    config: Config
    weights: Mapping[str, Tensor]
    text: Tokenizer | None = None  # of a model that reads text
    facts: Facts = field(default_factory=dict)
    spare: Mapping[str, Tensor] = field(default_factory=dict)  # weights that this model has no use for, but another may
    unused: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """What a person should know when it is opened."""
        return [f"{self.path}: not used: {listed(self.unused)}"] if self.unused else []

    @property
    def all_weights(self) -> dict[str, Tensor]:
        return {**self.spare, **self.weights}

    @property
    def tokenizer(self) -> Tokenizer:
        if self.text is None:
            raise UserError(f"{self.path}: has no tokenizer; this model reads no text")
        return self.text
