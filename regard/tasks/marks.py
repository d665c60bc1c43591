"""What stands around texts: the tokens that begin and end them, and padding.

source   before... ids </s>              `before` is what the tokenizer itself puts first: <s> in BART, nothing in T5
target   start before... ids </s>        `start` is never predicted; where it is `before` already, it stands once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import ModelConfig
from regard.data.batching import pad
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.models import MODELS
from regard.models.decoder import Decoder

Ids = Sequence[int] | NDArray[np.integer]


@dataclass(frozen=True)
class Batch:
    source: Tensor  # (B, S)
    target: Tensor  # (B, T + 1), from the start mark to the end mark
    tokens: int  # of the target that are predicted

    def to(self, device: torch.device) -> Batch:
        return replace(self, source=self.source.to(device), target=self.target.to(device))


def check_padding(tokenizer: Tokenizer, config: ModelConfig) -> None:
    """A model that takes a word for padding would not see it, and would look at what is padding.

    A decoder alone has its own: an id that is no token.
    """
    padding, alone = tokenizer.special.pad, issubclass(MODELS[config.kind].model, Decoder)
    if alone:
        return
    if padding is not None and padding == tokenizer.special.end:
        raise UserError(f"the tokenizer pads with its end mark ({padding}): a {config.kind} needs one for each")
    if padding is not None and padding != config.pad:
        raise UserError(f"model.pad = {config.pad}: the tokenizer pads with {padding}; set it to that")


@dataclass(frozen=True)
class Marks:
    pad: int
    start: int
    end: int
    before: tuple[int, ...] = ()

    @classmethod
    def of(cls, tokenizer: Tokenizer, start: int | None) -> Marks:
        """The tokenizer's own; `start` where the model has another one."""
        special = tokenizer.special
        end = special.separator if special.end is None else special.end
        if end is None:
            raise UserError("the tokenizer has no token that ends a text (such as </s>): it cannot serve this task")
        # No token, where none is for this alone.
        padding = -1 if special.pad is None or special.pad == end else special.pad
        begin = next(one for one in (special.begin, special.pad, end) if one is not None)
        return cls(padding, begin if start is None else start, end, tokenizer.before)

    @property
    def opening(self) -> tuple[int, ...]:
        """What every target begins with."""
        return () if self.before == (self.start,) else self.before

    @property
    def never(self) -> tuple[int, ...]:
        """Tokens that are no output."""
        return tuple({self.pad, self.start} - {self.end, -1})

    @property
    def room(self) -> int:
        """How many of a model's tokens the marks of one text take."""
        return len(self.before) + 1

    def source(self, ids: Ids) -> list[int]:
        return [*self.before, *ids, self.end]

    def target(self, ids: Ids) -> list[int]:
        return [self.start, *self.opening, *ids, self.end]

    def sources(self, rows: Sequence[Ids]) -> Tensor:
        """(B, S)."""
        return self._padded(self.before, rows)

    def batch(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
        first = (self.start, *self.opening)
        predicted = sum(len(row) + len(first) for row in targets)
        return Batch(self.sources(sources), self._padded(first, targets), predicted)

    def _padded(self, first: tuple[int, ...], rows: Sequence[Ids]) -> Tensor:
        begin, end = np.array(first, np.int64), np.array([self.end])
        return torch.from_numpy(
            pad([np.concatenate((begin, np.asarray(row, np.int64), end)) for row in rows], self.pad)
        )
