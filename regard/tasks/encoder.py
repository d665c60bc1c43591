"""What the tasks of an encoder share: examples in memory, a head, and scores of real predictions.

files -> examples (data/labelled) -> tokens with [CLS] and [SEP] (data/subwords) -> batch -> encoder -> head -> loss
                                                                              '-> predictions -> scores

A task says how its files are read, what it must remember of them (`learn`), what a row's target is and what the loss
is; its predictor says what is predicted and how that is scored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config import Config, DataConfig, Values
from regard.data.badlines import BadLines, Location
from regard.data.examples import Example, Examples
from regard.data.prepare import Progress
from regard.data.subwords import Subwords
from regard.data.tokenizer_files import open_tokenizer
from regard.errors import UserError, listed
from regard.models.base import Encoder, EncoderConfig, HeadName
from regard.models.heads import Headed, build_headed
from regard.tasks.base import Evaluation, Predictor, Sample, Share, Task, Validation
from regard.tasks.marks import check_padding
from regard.tasks.reading import Inputs, Reader, subwords, tokenizer_for
from regard.tasks.saved import Facts, Saved

FINE_TUNING: Values = {
    "tokenizer.kind": "wordpiece",
    "train.epochs": 3.0,
    "train.batch_tokens": 1024,
    "train.optimizer": "adamw",
    "train.weight_decay": 0.01,
    "train.learning_rate": 1e-4,
    "train.schedule": "linear",
    "train.warmup": 100,
    "train.betas": (0.9, 0.999),
    "train.label_smoothing": 0.0,
    "train.average": 0.0,
    "train.validate_every": 200,
}
"""How published encoders are fine-tuned (Devlin 2019, section A.3): few epochs, a small rate that falls to zero."""


@dataclass(frozen=True)
class EncoderBatch:
    inputs: Inputs
    target: Tensor
    tokens: int  # what the loss is divided by
    expected: Tensor | None = None  # what a teacher says, if there is one

    def to(self, device: torch.device) -> EncoderBatch:
        expected = None if self.expected is None else self.expected.to(device)
        return replace(self, inputs=self.inputs.to(device), target=self.target.to(device), expected=expected)


@dataclass(frozen=True)
class Predicted:
    """What was predicted for one example; `row` is what a person reads of it. `loss` is of its true answer."""

    output: Any
    row: Mapping[str, Any]
    loss: float


P = TypeVar("P", bound="EncoderPredictor[Any]")


class EncoderPredictor(Predictor, Generic[Example]):
    """A trained encoder with its task's verb."""

    def __init__(self, reader: Reader, facts: Facts, config: Config) -> None:
        self.reader, self.facts, self.config = reader, facts, config

    @classmethod
    def of(cls: type[P], saved: Saved, model: nn.Module) -> P:
        return cls(Reader(model, saved.tokenizer, saved.config.data.max_length), saved.facts, saved.config)

    @abstractmethod
    def predict(self, examples: Sequence[Example]) -> list[Predicted]: ...

    @abstractmethod
    def score(self, examples: Sequence[Example], found: Sequence[Predicted]) -> dict[str, Any]:
        """The scores; the first of them decides which weights are kept."""

    def evaluate(self, examples: Sequence[Example]) -> Evaluation:
        found = self.predict(examples)
        return Evaluation({"examples": len(examples), **self.score(examples, found)}, [dict(one.row) for one in found])


class EncoderTask(Task, Generic[Example]):
    promise = Encoder
    default_model = "bert-tiny"
    as_papers = True
    defaults = FINE_TUNING
    marks = 0
    unit = "examples"
    smooths: ClassVar[bool] = True
    """Whether labels can be smoothed: not where every example has classes of its own."""
    head: ClassVar[HeadName]
    kind: ClassVar[type[EncoderPredictor[Any]]]

    def __init__(self, config: Config, examples: Examples[Example], tokenizer: Subwords, facts: Facts) -> None:
        self.config, self.examples, self.tokenizer = config, examples, tokenizer
        check_padding(tokenizer, encoder_config(config))
        self._facts = facts

    # What each task says about itself.

    @classmethod
    @abstractmethod
    def read(cls, files: Sequence[str], data: DataConfig, bad: BadLines) -> Iterator[tuple[Example, Location]]: ...

    @classmethod
    @abstractmethod
    def parse(cls, values: Mapping[str, Any]) -> Example:
        """An example from what JSON keeps of it."""

    @classmethod
    @abstractmethod
    def learn(cls, config: Config, examples: Examples[Example]) -> Facts:
        """What the trained model must remember of the data: class names, ..."""

    @classmethod
    @abstractmethod
    def texts(cls, example: Example) -> list[str]:
        """All text of an example, for a tokenizer to learn from."""

    @classmethod
    def classes(cls, facts: Facts) -> int:
        return 0

    @property
    @abstractmethod
    def rows(self) -> Sequence[Any]:
        """The training examples as tokens with their targets; an example may have several."""

    # What all of them have in common.

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        if config.train.label_smoothing and not cls.smooths:
            raise UserError(f"train.label_smoothing = {config.train.label_smoothing:g}: must be 0 for {config.task}")

    @classmethod
    def build(cls, config: Config, vocabulary: int, facts: Facts) -> Headed:
        return build_headed(config.model, vocabulary, cls.head, cls.classes(facts))

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Any:
        return cls.kind.of(saved, model)

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> EncoderTask[Example]:
        examples = Examples[Example].read(config.data, lambda files, bad: cls.read(files, config.data, bad))
        facts = cls.learn(config, examples)
        words = (one for example in examples.train for one in cls.texts(example))
        return cls(config, examples, tokenizer_for(config.tokenizer, words, progress), facts)

    @classmethod
    def open(cls, config: Config, folder: Path) -> EncoderTask[Example]:
        examples = Examples[Example].open(folder, cls.parse)
        tokenizer = subwords(open_tokenizer(folder / "tokenizer.json"))
        return cls(config, examples, tokenizer, cls.learn(config, examples))

    def keep(self, folder: Path) -> None:
        self.examples.save(folder)
        self.tokenizer.save(folder / "tokenizer.json")

    @property
    def vocabulary(self) -> int:
        return len(self.tokenizer)

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def summary(self) -> str:
        return self.examples.summary

    @property
    def tests(self) -> Mapping[str, Sequence[Example]]:
        return self.examples.tests

    @property
    def most(self) -> int:
        """Tokens of the longest input."""
        return min(self.config.data.max_length, self.config.model.longest_input or 10**9)

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        return np.array([[len(row.encoding.ids)] for row in self.rows], np.int32)

    def predicting(self, model: nn.Module) -> EncoderPredictor[Example]:
        return self.kind(Reader(model, self.tokenizer, self.config.data.max_length), self._facts, self.config)

    def validate(self, model: nn.Module, share: Share) -> Validation:
        examples, predictor = self.examples.valid, self.predicting(model)
        found: list[Any] = [None] * len(examples)
        for rank, part in enumerate(share.gather(predictor.predict(examples[share.rank :: share.size]))):
            found[rank :: share.size] = part
        scores = predictor.score(examples, found)
        numbers = {name: value for name, value in scores.items() if isinstance(value, float)}
        loss = float(np.mean([one.loss for one in found]))
        samples = [Sample(*map(str, list(one.row.values())[:3])) for one in found[:3]]
        return Validation(next(iter(numbers.values())), loss, numbers, samples)

    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        predictor = self.predicting(model)
        return {name: predictor.evaluate(examples).scores for name, examples in self.tests.items()}


def encoder_config(config: Config) -> EncoderConfig:
    assert isinstance(config.model, EncoderConfig), "settled before the training: the task needs an encoder"
    return config.model


def unlearnt(trained: Sequence[str], held_out: Sequence[str]) -> str:
    """A line about the labels that no training example has; none, if there are none."""
    strange = sorted(set(held_out) - set(trained))
    return f"\nwarning: only held-out examples have {listed(strange)}: cannot be learned" if strange else ""
