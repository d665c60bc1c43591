"""Attention between blocks of tokens: time and memory grow with the length, not with its square.

    key blocks     0  1  2  3  4  5  6  7
    query block 0  x  x  x  x  x  x  x  x     the first and the last block see all, and are seen by all
                1  x  x  x     r        x
                2  x  x  x  x        r  x     every other sees a few: its neighbours and some drawn at random
                3  x     x  x  x  r     x
               ...

`block_attention` gathers the keys that each block sees and calls `attention`, the one softmax, on them. The same by a
mask over all keys is `attention(mask=counts > 0, bias=counts.log())` with `counts` of `seen_counts`: a block that is
named twice counts twice. A test says that both agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.attention import Score, attention, scaled_dot

NOTHING = -1
"""In the place of a block that a shorter list does not have."""

PIECE = 8
"""Blocks of queries at a time: what is gathered for them, a few times their size, stays in the cache."""


def block_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seen: Tensor,
    mask: Tensor,
    *,
    score: Score = scaled_dot,
    dropout: float = 0.0,
) -> Tensor:
    """Queries, keys and values (B, H, T, D) of N blocks, of which those between the ends see the blocks `seen`
    (H, N - 2, R); the mask (B, 1, 1, T) is that of padding: (B, H, T, D)."""
    batch, _, length, _ = query.shape
    blocks = seen.shape[1] + 2
    size = length // blocks
    assert size * blocks == length, f"{length} tokens are not {blocks} blocks"

    ends = torch.cat([query[:, :, :size], query[:, :, -size:]], dim=2)  # (B, H, 2 · size, D)
    first, last = attention(ends, key, value, mask=mask, score=score, dropout=dropout).chunk(2, dim=2)

    order = seen.transpose(0, 1)  # (N - 2, H, R)
    queries, keys, values = (_blocks(part, size) for part in (query, key, value))
    real = mask.view(batch, -1, size)
    between = [
        _between(asked, keys, values, real, some, score, dropout)
        for asked, some in zip(queries[:, :, 1:-1].split(PIECE, dim=2), order.split(PIECE), strict=True)
    ]
    return torch.cat([first, *between, last], dim=2)


def _between(
    query: Tensor, key: Tensor, value: Tensor, real: Tensor, seen: Tensor, score: Score, dropout: float
) -> Tensor:
    """Some blocks of queries (B, H, P, size, D) over the blocks that they see (P, H, R): (B, H, P · size, D)."""
    head, block = torch.arange(seen.shape[1], device=seen.device)[:, None], seen.clamp(min=0)
    near_key, near_value = (part[:, head, block].flatten(3, 4).flatten(0, 1) for part in (key, value))
    near = real[:, block] & (seen != NOTHING)[..., None]  # (B, P, H, R, size)
    looked = attention(
        query.transpose(1, 2).flatten(0, 1),  # (B · P, H, size, D)
        near_key,  # (B · P, H, R · size, D)
        near_value,
        mask=near.flatten(3, 4).flatten(0, 1)[:, :, None],
        score=score,
        dropout=dropout,
    )
    return looked.reshape(len(query), -1, *looked.shape[1:]).transpose(1, 2).flatten(2, 3)


def seen_counts(seen: Tensor, size: int, rows: Sequence[int] | None = None) -> Tensor:
    """How often each query, or each of these rows, sees each key: (H, N - 2, R) -> (H, T or rows, T)."""
    heads, between, _ = seen.shape
    blocks = between + 2
    times = F.one_hot(seen + 1, blocks + 1).sum(dim=2)[..., 1:]  # (H, N - 2, N); the first column is NOTHING
    everything = times.new_ones(heads, 1, blocks)
    counts = torch.cat([everything, times, everything], dim=1)
    rows = range(blocks * size) if rows is None else rows
    return counts[:, [row // size for row in rows]].repeat_interleave(size, dim=2)


def _blocks(tokens: Tensor, size: int) -> Tensor:
    """(B, H, T, D) -> (B, H, N, size, D)."""
    return tokens.reshape(*tokens.shape[:2], -1, size, tokens.shape[-1])
