"""Decoding state: what a decoder carries from one step to the next, passed in and returned, never hidden.

Every tensor in a state has the batch first, so that a search can keep, repeat or reorder its rows with one call.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class State:
    """The base of all states: `select(rows)` gathers the same rows from everything the state holds.

    `done` holds the selected form of what occurs more than once in a state, so that it still is one thing afterwards.
    """

    def select(self, rows: Tensor, done: dict[Any, Any] | None = None) -> Self:
        done = {} if done is None else done
        return replace(self, **{item.name: _gather(getattr(self, item.name), rows, done) for item in fields(self)})


def _gather(value: object, rows: Tensor, done: dict[Any, Any]) -> object:
    """The rows of a tensor, of a state, or of each item of a tuple; anything else stays as it is."""
    if isinstance(value, Tensor):
        return value.index_select(0, rows)
    if isinstance(value, State):
        if id(value) not in done:
            done[id(value)] = value.select(rows, done)
        return done[id(value)]
    if isinstance(value, tuple):
        return tuple(_gather(item, rows, done) for item in value)
    return value


@dataclass(frozen=True)
class KeyValue(State):
    """The keys and values that one attention has seen: (B, H, K, D) each."""

    key: Tensor
    value: Tensor

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        return KeyValue(torch.cat([self.key, key], dim=2), torch.cat([self.value, value], dim=2))


@dataclass(frozen=True)
class Hidden(State):
    """What a recurrent stack remembers: (B, layers, width), and for the LSTM its memory cell too."""

    hidden: Tensor
    cell: Tensor | None = None

    @property
    def top(self) -> Tensor:
        return self.hidden[:, -1]  # (B, width)
