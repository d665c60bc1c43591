"""Decoding state: what a decoder carries from one step to the next, passed in and returned, never hidden.

Every tensor in a state has the batch first, so that a search can keep, repeat or reorder its rows with one call.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class State:
    """The base of all states: `select(rows)` gathers the same rows from everything the state holds."""

    def select(self, rows: Tensor) -> Self:
        return replace(self, **{item.name: _gather(getattr(self, item.name), rows) for item in fields(self)})


def _gather(value: object, rows: Tensor) -> object:
    if isinstance(value, Tensor):
        return value.index_select(0, rows)
    if isinstance(value, State):
        return value.select(rows)
    if isinstance(value, tuple):
        return tuple(_gather(item, rows) for item in value)
    return value


@dataclass(frozen=True)
class KeyValue(State):
    """The keys and values that one attention has seen: (B, H, K, D) each."""

    key: Tensor
    value: Tensor

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        return KeyValue(torch.cat([self.key, key], dim=2), torch.cat([self.value, value], dim=2))
