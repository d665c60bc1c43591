"""Where a token stands: position encodings, added to the embeddings or concatenated with them, or to the scores.

Every encoding is a table (positions, width). One of the model's own width is added as it is; a narrower one (binary
code, normalised index) passes through a linear map. `concatenate` joins token and position and maps back to the model
width, so that the layers above never notice. `RelativeBias` knows only distances; it is added to scores.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import UserError

PositionKind = Literal["sinusoid", "sinusoid-halves", "learned", "binary", "index", "none"]
PositionJoin = Literal["add", "concatenate"]


def sinusoid(length: int, width: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/M)), PE(p, 2i+1) = cos(...)  (Vaswani 2017, section 3.5): (length, width)."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)[:, : width // 2]
    return table


def sinusoid_halves(length: int, width: int) -> Tensor:
    """The same numbers, all sines before all cosines, as tensor2tensor and Marian lay them out."""
    table = sinusoid(length, width)
    return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def binary(length: int) -> Tensor:
    """The bits of the position, the lowest first, as 0 and 1: (length, bits)."""
    bits = max(1, math.ceil(math.log2(length)))
    return ((torch.arange(length)[:, None] >> torch.arange(bits)) & 1).float()


def normalised_index(length: int) -> Tensor:
    """p / length, from 0 to 1: (length, 1). Divided by the model's limit, so that a longer sentence shifts nothing."""
    return torch.arange(length, dtype=torch.float32)[:, None] / length


TABLES: dict[PositionKind, Callable[[int, int], Tensor]] = {
    "sinusoid": sinusoid,
    "sinusoid-halves": sinusoid_halves,
    "learned": lambda length, width: torch.randn(length, width) * width**-0.5,
    "binary": lambda length, width: binary(length),
    "index": lambda length, width: normalised_index(length),
    "none": lambda length, width: torch.zeros(length, 0),
}


class Positions(nn.Module):
    """Gives embeddings (B, T, M) their positions `first`, `first` + 1, ...; position 0 is row `offset` of the table."""

    def __init__(self, kind: PositionKind, width: int, limit: int, join: PositionJoin = "add", offset: int = 0) -> None:
        super().__init__()
        self.limit, self.join, self.offset = limit, join, offset
        table = TABLES[kind](limit + offset, width)
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
        table = self.table[self.offset + first : self.offset + last]
        if self.join == "concatenate":
            assert self.map is not None, "concatenated positions are mapped back to the model width"
            joined: Tensor = self.map(torch.cat([embedded, table.expand(len(embedded), -1, -1)], dim=-1))
            return joined
        return embedded + (table if self.map is None else self.map(table))


def too_long(length: int, limit: int) -> UserError:
    return UserError(f"a sequence of {length} tokens: this model was built for at most {limit} (model.max_length)")


class RelativeBias(nn.Module):
    """A learned number for each head and distance, added to the scores (Raffel 2020, section 2.1).

    Distances share `buckets`: half of them are for the nearest, one each, the others grow logarithmically up to
    `farthest`, beyond which all are one. Where keys come after queries too (`both_ways`), they have half the buckets.
    """

    def __init__(self, heads: int, buckets: int, farthest: int, both_ways: bool) -> None:
        super().__init__()
        self.buckets, self.farthest, self.both_ways = buckets, farthest, both_ways
        self.table = nn.Parameter(torch.zeros(buckets, heads))

    def forward(self, queries: int, keys: int) -> Tensor:
        """(1, H, Q, K); the last query stands at the last key."""
        device = self.table.device
        places = torch.arange(keys - queries, keys, device=device)[:, None]
        distances = torch.arange(keys, device=device)[None, :] - places  # (Q, K), negative to the left
        return self.table[self.bucket(distances)].permute(2, 0, 1)[None]

    def bucket(self, distances: Tensor) -> Tensor:
        """The bucket of each distance, key minus query."""
        buckets = self.buckets // 2 if self.both_ways else self.buckets
        steps = distances.abs() if self.both_ways else (-distances).clamp(min=0)
        near = buckets // 2
        share = torch.log(steps.clamp(min=near).float() / near) / math.log(self.farthest / near)
        far = (near + (share * (buckets - near)).long()).clamp(max=buckets - 1)
        found = torch.where(steps < near, steps, far)
        return found + buckets * (distances > 0) if self.both_ways else found
