"""Where a token stands: position encodings, added to the embeddings or concatenated with them.

Every encoding is a table (positions, width). One of the model's own width is added as it is; a narrower one (binary
code, normalised index) passes through a linear map. `concatenate` joins token and position and maps back to the model
width, so that the layers above never notice.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import UserError

PositionKind = Literal["sinusoid", "learned", "binary", "index", "none"]
PositionJoin = Literal["add", "concatenate"]


def sinusoid(length: int, width: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/M)), PE(p, 2i+1) = cos(...)  (Vaswani 2017, section 3.5): (length, width)."""
    position = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : width // 2]
    return table


def binary(length: int) -> Tensor:
    """The bits of the position, the lowest first, as 0 and 1: (length, bits)."""
    bits = max(1, math.ceil(math.log2(length)))
    return ((torch.arange(length)[:, None] >> torch.arange(bits)) & 1).float()


def normalised_index(length: int) -> Tensor:
    """p / length, from 0 to 1: (length, 1). Divided by the model's limit, so that a longer sentence shifts nothing."""
    return torch.arange(length, dtype=torch.float32)[:, None] / length


TABLES: dict[PositionKind, Callable[[int, int], Tensor]] = {
    "sinusoid": sinusoid,
    "learned": lambda length, width: torch.randn(length, width) * width**-0.5,
    "binary": lambda length, width: binary(length),
    "index": lambda length, width: normalised_index(length),
    "none": lambda length, width: torch.zeros(length, 0),
}


class Positions(nn.Module):
    """Gives embeddings (B, T, M) their positions `first`, `first` + 1, ..."""

    def __init__(self, kind: PositionKind, width: int, limit: int, join: PositionJoin = "add") -> None:
        super().__init__()
        self.limit, self.join = limit, join
        table = TABLES[kind](limit, width)
        if kind == "learned":
            self.table = nn.Parameter(table)
        else:
            self.register_buffer("table", table, persistent=False)
        self.map: nn.Linear | None = None
        if kind != "none" and join == "concatenate":
            self.map = nn.Linear(width + table.shape[1], width, bias=False)
        elif table.shape[1] not in (0, width):
            self.map = nn.Linear(table.shape[1], width, bias=False)

    def forward(self, embedded: Tensor, first: int = 0) -> Tensor:
        if self.table.shape[1] == 0:
            return embedded
        last = first + embedded.shape[1]
        if last > self.limit:
            raise too_long(last, self.limit)
        table = self.table[first:last]
        if self.join == "concatenate":
            assert self.map is not None, "concatenated positions are mapped back to the model width"
            joined: Tensor = self.map(torch.cat([embedded, table.expand(len(embedded), -1, -1)], dim=-1))
            return joined
        return embedded + (table if self.map is None else self.map(table))


def too_long(length: int, limit: int) -> UserError:
    return UserError(f"a sequence of {length} tokens: this model was built for at most {limit} (model.max_length)")
