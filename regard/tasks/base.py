"""What a task is: how examples become batches, what the loss is, how a prediction is made and how it is scored.

The training loop, the command line and the tests know tasks only through this page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Config
from regard.data.prepare import Progress


class Share(Protocol):
    """This process's part of work that is divided over several (see `regard.training.distributed`)."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def gather(self, mine: Any) -> list[Any]:
        """What each process has, in the order of their ranks, known to all."""


@dataclass(frozen=True)
class Sample:
    """One prediction to show to a person during training."""

    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Validation:
    """`score` decides which weights are kept: higher is better, ties go to the lower `loss`."""

    score: float
    loss: float
    metrics: dict[str, float]
    samples: list[Sample] = field(default_factory=list)

    @property
    def rank(self) -> tuple[float, float]:
        return self.score, -self.loss


class Task(ABC):
    """A task with its data, ready to train on or to predict with."""

    @classmethod
    @abstractmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Task:
        """Read the sources of `config`, or find in `cache` what was made of them before."""

    @classmethod
    @abstractmethod
    def open(cls, config: Config, folder: Path) -> Task:
        """From a folder that `keep` filled."""

    @abstractmethod
    def keep(self, folder: Path) -> None:
        """Put the data into a folder of the run, which then needs neither the sources nor the cache."""

    @property
    @abstractmethod
    def vocabulary(self) -> int: ...

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the data holds and what was left out, for a person."""

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int32]:
        """(examples, fields): the lengths that batches are planned by."""

    @abstractmethod
    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> Any:
        """Those training examples, padded; an object with `tokens` (what the loss is divided by) and `to(device)`."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The sum of the losses over the batch's tokens."""

    @abstractmethod
    def validate(self, model: nn.Module, share: Share) -> Validation: ...

    @abstractmethod
    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        """The scores of each held-out test set, by its name."""
