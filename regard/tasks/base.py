"""What a task is: how examples become batches, what the loss is, how a prediction is made and how it is scored.

The training loop, the command line and the tests know tasks only through this page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Config, DataConfig, Settings, Values
from regard.data.badlines import BadLines
from regard.data.prepare import Progress
from regard.errors import UserError
from regard.models import MODELS, build
from regard.models.decoder import Decoder
from regard.tasks.saved import Facts, Saved


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


@dataclass(frozen=True)
class Evaluation:
    """`scores`: numbers to print, in their order, and whatever else belongs to them (a confusion matrix, ...).

    `rows`: one JSON object for each example, with what was predicted and how probable it was.
    """

    scores: dict[str, Any]
    rows: list[dict[str, Any]]


class Predictor(ABC):
    """A trained model with its task's verb. Here is what all tasks have in common: they can be scored."""

    @abstractmethod
    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Any]:
        """The examples of files, as `evaluate` takes them."""

    @abstractmethod
    def evaluate(self, examples: Sequence[Any]) -> Evaluation: ...


class Task(ABC):
    """A task with its data, ready to train on."""

    promise: ClassVar[type[nn.Module] | tuple[type[nn.Module], ...]]
    """What a model must be to serve this task, or one of several; see `regard.models.base`."""
    default_model: ClassVar[str]
    defaults: ClassVar[Values] = {}
    """Settings of a run that are not the usual ones: `{"train.epochs": 3.0}`."""
    unit: ClassVar[str] = "tokens"
    """What a batch's loss is divided by."""
    marks: ClassVar[int] = 1
    """Tokens around an example that `data.max_length` does not count, as far as is known before a tokenizer is."""
    as_papers: ClassVar[bool] = False
    """Whether a model's family may say what is usual (`Family.usual`): its tokenizer, its noise."""
    pairs: ClassVar[bool] = False
    """Whether examples have a source and a target, which a decoder alone reads as one text."""
    Options: ClassVar[type[Settings]] = Settings
    """The task's own settings: the section `options` of a config."""

    @classmethod
    def check(cls, config: Config) -> None:
        """Settings that do not go together are said before anything is read."""
        cls.check_room(config, cls.marks)

    @classmethod
    def target_room(cls, config: Config, most: int, marks: int) -> int:
        """Of the `most` tokens that a decoder alone reads, those for the target and the marks around it."""
        return most // 2

    @classmethod
    def check_room(cls, config: Config, marks: int) -> None:
        """The longest example, with so many marks around, must not be longer than what the model reads."""
        most = config.model.longest_input
        if most is None:
            return
        together = cls.pairs and issubclass(MODELS[config.model.kind].model, Decoder)
        room = most - marks - (cls.target_room(config, most, marks) if together else 0)
        if config.data.max_length > room:
            counted = f" with {'the end mark' if marks == 1 else f'{marks} marks around'}" if marks else ""
            raise UserError(
                f"data.max_length = {config.data.max_length}: must be at most {room}, since the model reads {most}"
                + (" with source and target together" if together else counted)
            )

    @classmethod
    def build(cls, config: Config, vocabulary: int, facts: Facts) -> nn.Module:
        """The model with fresh weights; tasks that put a head on theirs do it here."""
        return build(config.model, vocabulary)

    @classmethod
    @abstractmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Any:
        """The object that has the task's verb: a `Translator`, a `Classifier`, ... (mostly a `Predictor`)."""

    @classmethod
    def inherited(cls, saved: Saved, chosen: Values) -> Facts:
        """The options that a run which begins with `saved`, and has `chosen` settings, takes over from it."""
        return {}

    @property
    def teacher(self) -> str | None:
        """A trained model to learn from, by its path."""
        return None

    def check_teacher(self, saved: Saved, model: nn.Module) -> None:
        """That it can teach this task, before anything is begun."""
        raise NotImplementedError

    def taught(self, saved: Saved, model: nn.Module, progress: Progress) -> Mapping[str, Tensor]:
        """Learn from that model from now on; the weights of it to begin with, if any."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Task:
        """Read the sources of `config`, or find in `cache` what was made of them before."""

    @classmethod
    @abstractmethod
    def open(cls, config: Config, folder: Path) -> Task:
        """From a folder that `keep` filled."""

    def fitted(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weights of a model to begin with, as this one can use them."""
        return weights

    @abstractmethod
    def keep(self, folder: Path) -> None:
        """Put the data into a folder that is there and empty: the run then needs neither the sources nor the cache."""

    @property
    @abstractmethod
    def vocabulary(self) -> int: ...

    @property
    def facts(self) -> Facts:
        """What the trained model needs beside its weights and its tokenizer."""
        return {}

    def settled(self, model: nn.Module) -> Facts:
        """`facts` once more, with what only the trained model can tell: a threshold found on the validation set."""
        return self.facts

    @property
    @abstractmethod
    def summary(self) -> str:
        """What the data holds and what was left out, for a person."""

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int32]:
        """(examples, fields): the lengths that batches are planned by."""

    @abstractmethod
    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> Any:
        """Those training examples, padded; an object with `tokens` (what the loss is divided by) and `to(device)`.

        All that is random in it (masked words, a cropped picture) follows from the seed.
        """

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The sum of the losses over the batch's tokens."""

    @abstractmethod
    def validate(self, model: nn.Module, share: Share) -> Validation: ...

    @property
    @abstractmethod
    def tests(self) -> Mapping[str, Sequence[Any]]:
        """The held-out test sets by name: examples that no choice has seen; or, of raw text, what was validated on."""

    @abstractmethod
    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        """The scores of each held-out test set, by its name."""
