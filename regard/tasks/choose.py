"""Multiple choice: which of several ways to go on is the right one (Devlin 2019, section 4.4).

Every choice is read together with the situation, gets one number from the head, and the largest wins.

loss    cross-entropy over the choices of an example
score   accuracy
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tokenizers import Encoding
from torch import Tensor, nn

from regard.config import Config, DataConfig, Values
from regard.data.badlines import BadLines, Location
from regard.data.examples import Examples
from regard.data.labelled import Choice, read_choices
from regard.errors import UserError
from regard.nn.record import AttentionRecord
from regard.tasks.encoder import FINE_TUNING, EncoderBatch, EncoderPredictor, EncoderTask, Predicted, encoder_config
from regard.tasks.reading import Inputs, pad_inputs
from regard.tasks.saved import Facts


@dataclass(frozen=True)
class Row:
    encodings: list[Encoding]
    target: int


@dataclass(frozen=True)
class Chosen:
    """The answer for one situation, with the probability of every choice."""

    context: str
    choices: list[str]
    number: int
    probabilities: list[float]
    encodings: list[Encoding]
    chooser: Chooser

    @property
    def text(self) -> str:
        return self.choices[self.number]

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        row = {"context": self.context, "number": self.number, "choice": self.text}
        return {**row, "probabilities": self.probabilities} | ({"truncated": True} if self.truncated else {})

    @property
    def truncated(self) -> bool:
        """Whether the situation with some choice was too long, and only a part of it was read."""
        return any(one.overflowing for one in self.encodings)

    @property
    def attention(self) -> AttentionRecord:
        """What every head looked at in the situation with the chosen way to go on."""
        return self.chooser.reader.look(self.encodings[self.number])


class Chooser(EncoderPredictor[Choice]):
    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Choice]:
        return [example for example, _ in read_choices(files, data.columns, bad)]

    def choose(self, contexts: Sequence[str], choices: Sequence[Sequence[str]]) -> list[Chosen]:
        for context, several in zip(contexts, choices, strict=True):
            if not several or not all(isinstance(one, str) for one in several):
                raise UserError(f"choices = {several!r}: texts are needed, at least one, to go on with {context!r}")
        flat = [(context, one) for context, several in zip(contexts, choices, strict=True) for one in several]
        rows = self.reader.tokenizer.inputs(
            [context for context, _ in flat], [one for _, one in flat], most=self.reader.most
        )
        scores = iter(zip(rows, self.reader.logits(rows), strict=True))
        found = []
        for context, several in zip(contexts, choices, strict=True):
            mine = [next(scores) for _ in several]
            probabilities = torch.softmax(torch.stack([score for _, score in mine]).flatten(), dim=0)
            number, encodings = int(probabilities.argmax()), [row for row, _ in mine]
            found.append(Chosen(context, list(several), number, probabilities.tolist(), encodings, self))
        return found

    def predict(self, examples: Sequence[Choice]) -> list[Predicted]:
        found = []
        asked = [example.context for example in examples], [example.options for example in examples]
        for example, one in zip(examples, self.choose(*asked), strict=True):
            row = {"context": example.context, "predicted": one.text, "right": example.options[example.label]}
            probabilities = [round(value, 4) for value in one.probabilities]
            loss = -float(np.log(max(one.probabilities[example.label], 1e-12)))
            found.append(Predicted(one.number, {**row, "probabilities": probabilities}, loss))
        return found

    def score(self, examples: Sequence[Choice], found: Sequence[Predicted]) -> dict[str, Any]:
        right = sum(one.output == example.label for example, one in zip(examples, found, strict=True))
        guessing = float(np.mean([1 / len(example.options) for example in examples])) if examples else 0.0
        return {"accuracy": 100 * right / max(1, len(examples)), "by_guessing": 100 * guessing}


class Choose(EncoderTask[Choice]):
    smooths = False
    head = "choice"
    kind = Chooser
    defaults: ClassVar[Values] = {**FINE_TUNING, "train.batch_tokens": 3072}

    @classmethod
    def read(cls, files: Sequence[str], data: DataConfig, bad: BadLines) -> Iterator[tuple[Choice, Location]]:
        return read_choices(files, data.columns, bad)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Choice:
        return Choice(**values)

    @classmethod
    def learn(cls, config: Config, examples: Examples[Choice]) -> Facts:
        return {"choices": max(len(example.options) for example in examples.train)}

    @classmethod
    def texts(cls, example: Choice) -> list[str]:
        return [example.context, *example.options]

    @cached_property
    def rows(self) -> list[Row]:
        train = self.examples.train
        flat = [(example.context, option) for example in train for option in example.options]
        encoded = iter(
            self.tokenizer.inputs([context for context, _ in flat], [option for _, option in flat], most=self.most)
        )
        return [Row([next(encoded) for _ in example.options], example.label) for example in train]

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        sizes = [len(row.encodings) * max(len(one.ids) for one in row.encodings) for row in self.rows]
        return np.array(sizes, np.int32).reshape(-1, 1)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> EncoderBatch:
        """Examples with fewer choices than others are filled up with choices of padding alone."""
        chosen = [self.rows[row] for row in rows]
        flat = pad_inputs([one for row in chosen for one in row.encodings], encoder_config(self.config))
        most = max(len(row.encodings) for row in chosen)
        pad = encoder_config(self.config).pad
        ids = torch.full((len(chosen), most, flat.ids.shape[1]), pad)
        segments = torch.zeros_like(ids)
        begin = 0
        for number, row in enumerate(chosen):
            end = begin + len(row.encodings)
            ids[number, : len(row.encodings)] = flat.ids[begin:end]
            segments[number, : len(row.encodings)] = flat.segments[begin:end]
            begin = end
        return EncoderBatch(Inputs(ids, segments), torch.tensor([row.target for row in chosen]), len(chosen))

    def loss(self, model: nn.Module, batch: EncoderBatch) -> Tensor:
        logits = model(batch.inputs.ids, batch.inputs.segments)  # (B, N)
        real = (batch.inputs.ids != encoder_config(self.config).pad).any(dim=-1)
        logits = logits.masked_fill(~real, torch.finfo(logits.dtype).min)
        return F.cross_entropy(logits, batch.target, reduction="sum")
