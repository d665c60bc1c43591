"""Multi-head attention for decoding: the beams of a sentence share what they attend to.

A search asks for W rows of each sentence (its beams; 1 in greedy search), and reorders them after every token. Here
that moves no keys and values:

- what the encoder made is kept once per sentence, and the W beams are W queries of one attention;
- the keys and values of the tokens are written once, into buffers with room for more, each beam's into a slot of its
  own; `past` says which slots belong to a beam's past. Reordering the beams changes only that.

    G sentences     W beams, and slots     R = G · W rows     T tokens so far
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.inference.kernels import Seen, attend, fits, store
from regard.nn.attention import Dot, attention, look_on
from regard.nn.layers import MultiHeadAttention
from regard.nn.record import Recording
from regard.nn.state import KeyValue, State

MakeLinear = Callable[..., nn.Module]
"""(weight, bias, activation=None) -> a linear map."""

ROOM = 32
"""Tokens that fit into a new buffer; a full one is exchanged for one of twice the size."""


@dataclass(frozen=True)
class SharedMemory(KeyValue):
    """Keys and values (G, H, K, D) for R rows: the W rows of a sentence attend to the same."""

    width: int = 1

    def select(self, rows: Tensor, done: dict[Any, Any] | None = None) -> SharedMemory:
        groups, width = _grouped((rows // self.width).tolist())
        if groups == list(range(len(self.key))):
            return replace(self, width=width)
        kept = torch.tensor(groups, dtype=torch.long)
        return SharedMemory(self.key.index_select(0, kept), self.value.index_select(0, kept), width)


@dataclass(frozen=True)
class Cache(State):
    """The keys and values of the tokens so far, in `pairs` (2, G, H, room, W, D), each beam's in a slot of its own.

    `past` (G, 1, W, T' · W) is 0 where a beam may look into a slot and -inf elsewhere; None when there is one slot.
    Tokens that it does not count yet lie in the beam's own slot. All layers of a decoder share one `past`.

    `written` is one number that all states with the same buffers share: how many tokens they hold. A state that is
    shorter than that has been continued before, and continues in buffers of its own.
    """

    pairs: Tensor
    past: Tensor | None = None
    length: int = 0
    written: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def empty(cls, sentences: int, width: int, past: Tensor | None, like: Tensor) -> Cache:
        """For heads of the number, size and type of `like` (..., H, room, W, D)."""
        heads, room, _, size = like.shape[-4:]
        return cls(like.new_empty(2, sentences, heads, room, width, size), past)

    @property
    def width(self) -> int:
        return self.pairs.shape[4]

    def append(self, pairs: Tensor, quick: bool = False) -> Cache:
        """The keys and values (R, T, 2, H, D) of more tokens; more than one at a time only where there is one slot."""
        cache = self.longer(pairs.shape[1])
        if quick and pairs.shape[1] == 1 and fits(pairs) and fits(cache.pairs):
            store(pairs, cache.pairs, self.length)
        else:
            slots = pairs.view(-1, self.width, *pairs.shape[1:]).permute(3, 0, 4, 2, 1, 5)  # (2, G, H, T, W, D)
            cache.pairs[:, :, :, self.length : cache.length] = slots
        return cache

    def longer(self, tokens: int) -> Cache:
        """With places for more tokens, which the caller writes next."""
        length = self.length + tokens
        continues = self.written[0] == self.length and length <= self.pairs.shape[3]
        cache = self if continues else self._copied(self.pairs, room=2 * length)
        cache.written[0] = length
        return Cache(cache.pairs, cache.past, length, cache.written)

    def select(self, rows: Tensor, done: dict[Any, Any] | None = None) -> Cache:
        done = {} if done is None else done
        sentences, width = self.pairs.shape[1], self.width
        if self.length == 0:
            groups, width = _grouped((rows // width).tolist())
            past = done.setdefault("past", _own_slots(len(groups), width)) if width > 1 else None
            return Cache.empty(len(groups), width, past, self.pairs)
        if self.past is None:
            groups, width = _grouped(rows.tolist())
            if width > 1:  # one row of each sentence becomes several
                past = done.setdefault("past", _own_slots(len(groups), width).repeat(1, 1, 1, self.length))
                return replace(self._copied(self.pairs[:, groups].expand(-1, -1, -1, -1, width, -1)), past=past)
            return self if groups == list(range(sentences)) else self._of(rows)
        if id(self.past) not in done:
            done[id(self.past)] = self._reordered(rows)
        kept, past = done[id(self.past)]
        if past is None:
            return self._apart().select(rows)
        return replace(self if kept is None else self._of(kept), past=past)

    def looked_at(self) -> tuple[Tensor, Tensor]:
        """Keys and values (G, H, T · W, D)."""
        key, value = self.pairs[:, :, :, : self.length].flatten(3, 4)
        return key, value

    def seen(self) -> Seen:
        """As `looked_at`, for kernels."""
        _, groups, heads, _, width, size = self.pairs.shape
        half, group, head, *_ = self.pairs.stride()
        first, shape = self.pairs.data_ptr(), (groups, heads, self.length * width, size)
        return Seen(shape, first, first + 4 * half, (group, head, size))

    def full_past(self) -> Tensor | None:
        if self.past is None:
            return None
        sentences, width = self.pairs.shape[1], self.width
        missing = self.length - self.past.shape[3] // width
        if missing > 0:
            return torch.cat([self.past, *[_own_slots(sentences, width)] * missing], dim=3)
        return self.past[..., : self.length * width]

    def _reordered(self, rows: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Which sentences are kept (None: all), and `past` for the rows, the next token included; None where rows do
        not keep to their sentences."""
        width, past = self.width, self.full_past()
        assert past is not None, "there is one slot: nothing to reorder"
        owners = (rows // width).tolist()
        groups = owners[::width]
        if owners != [group for group in groups for _ in range(width)]:
            return None, None
        kept = None if groups == list(range(len(past))) else torch.tensor(groups, dtype=torch.long)
        past = past if kept is None else past[kept]
        parents = (rows % width).view(-1, 1, width, 1).expand(-1, -1, -1, past.shape[3])
        return kept, torch.cat([past.gather(2, parents), _own_slots(len(groups), width)], dim=3)

    def _of(self, sentences: Tensor) -> Cache:
        """Some sentences, in a buffer of their own; `past` is still that of all."""
        return Cache(self.pairs.index_select(1, sentences), self.past, self.length, [self.length])

    def _apart(self) -> Cache:
        """Every beam with a copy of its own past, as a sentence with one slot."""
        past = self.full_past()
        assert past is not None, "there is one slot already"
        slots = past.view(len(past), self.width, self.length, self.width).argmax(dim=-1)  # (G, W, T)
        places = slots.transpose(1, 2)[None, :, None, :, :, None].expand_as(self.pairs[:, :, :, : self.length])
        own = self.pairs[:, :, :, : self.length].gather(4, places)  # (2, G, H, T, W, D)
        return replace(self, past=None)._copied(own.permute(0, 1, 4, 2, 3, 5).flatten(1, 2).unsqueeze(4))

    def _copied(self, pairs: Tensor, room: int | None = None) -> Cache:
        """With the tokens of `pairs` in a new buffer."""
        buffer = pairs.new_empty(*pairs.shape[:3], room or self.pairs.shape[3], *pairs.shape[4:])
        buffer[:, :, :, : self.length] = pairs[:, :, :, : self.length]
        return Cache(buffer, self.past, self.length, [self.length])


class PackedAttention(nn.Module):
    """`MultiHeadAttention` with its weights packed: the queries' projection apart from the memory's. If `quick`, single
    queries are answered by our kernel."""

    def __init__(self, plain: MultiHeadAttention, linear: MakeLinear, quick: bool) -> None:
        super().__init__()
        assert isinstance(plain.score, Dot), f"scores other than dot products are not packed: {plain.score}"
        self.heads, self.joined, self.score, self.quick = plain.heads, plain.joined, plain.score, quick
        self.output = linear(plain.output.weight, plain.output.bias)
        self.pack(plain.weight, plain.bias, linear)

    def pack(self, weight: Tensor, bias: Tensor | None, linear: MakeLinear) -> None:
        queries, memory = weight.tensor_split([self.joined])
        query_bias, memory_bias = (None, None) if bias is None else bias.tensor_split([self.joined])
        self.query_projection = linear(queries, query_bias)
        self.memory_projection = linear(memory, memory_bias)

    def query(self, inputs: Tensor) -> Tensor:
        projected: Tensor = self.query_projection(inputs)
        return projected.view(*inputs.shape[:2], self.heads, -1).transpose(1, 2)

    def memory(self, inputs: Tensor) -> SharedMemory:
        pairs = self.memory_projection(inputs).view(*inputs.shape[:2], 2, self.heads, -1)
        key, value = pairs.permute(2, 0, 3, 1, 4).contiguous()  # (B, H, K, D) each
        return SharedMemory(key, value)

    def forward(
        self,
        query: Tensor,
        memory: KeyValue | Cache,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        record: Recording | None = None,
        site: str = "",
    ) -> Tensor:
        rows, _, queries, size = query.shape
        key, value = memory.looked_at() if isinstance(memory, Cache) else (memory.key, memory.value)
        width = memory.width if isinstance(memory, Cache | SharedMemory) else 1
        mask, bias = terms(memory, mask, bias)
        grouped = query if width == 1 else _together(query, width)
        if self.quick and queries == 1 and fits(query) and fits(key):
            look_on(record, site, grouped, key, value, mask, bias, self.score)
            heads = attend(query, key, value, mask, bias, self.score.scale(size))
        else:
            heads = attention(grouped, key, value, mask=mask, bias=bias, score=self.score, record=record, site=site)
            heads = heads.transpose(1, 2).reshape(rows, queries, -1)
        output: Tensor = self.output(heads)
        return output


class PackedSelfAttention(PackedAttention):
    """`SelfAttention` with its three projections packed as one."""

    def pack(self, weight: Tensor, bias: Tensor | None, linear: MakeLinear) -> None:
        self.projection = linear(weight, bias)

    def nothing(self, inputs: Tensor) -> Cache:
        like = inputs.new_empty(self.heads, ROOM, 1, self.joined // self.heads)
        return Cache.empty(len(inputs), 1, None, like)

    def query_and_memory(self, inputs: Tensor, past: Cache | None = None) -> tuple[Tensor, KeyValue | Cache]:
        parts = self.projection(inputs).view(*inputs.shape[:2], 3, self.heads, -1)
        query = parts[:, :, 0].transpose(1, 2)
        if past is not None:
            return query, past.append(parts[:, :, 1:], self.quick)
        return query, KeyValue(parts[:, :, 1].transpose(1, 2), parts[:, :, 2].transpose(1, 2))


def terms(memory: KeyValue | Cache, mask: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """A mask and a bias of rows, as those of sentences, and where the beams may look."""
    width = memory.width if isinstance(memory, Cache | SharedMemory) else 1
    past = memory.full_past() if isinstance(memory, Cache) else None
    if mask is not None:  # the beams of a sentence have the same padding
        mask = mask[::width] if past is None else mask[::width].repeat_interleave(width, dim=-1)
    if past is not None:
        bias = past if bias is None else past + bias.repeat_interleave(width, dim=-1)
    return mask, bias


def _together(query: Tensor, width: int) -> Tensor:
    """One query of each row (R, H, 1, D) -> the queries of each sentence (G, H, W, D)."""
    return query.view(-1, width, query.shape[1], query.shape[3]).transpose(1, 2)


def _own_slots(sentences: int, width: int) -> Tensor:
    """`past` of one token that every beam has written itself: (G, 1, W, W)."""
    own = torch.full((width, width), float("-inf"), dtype=torch.float32).fill_diagonal_(0.0)
    return own.expand(sentences, 1, width, width)


def _grouped(owners: list[int]) -> tuple[list[int], int]:
    """The sentences that rows belong to, as (sentences, rows of each), if all have equally many that stand together;
    else every row is a sentence of its own."""
    groups = [owner for place, owner in enumerate(owners) if place == 0 or owners[place - 1] != owner]
    width = len(owners) // max(1, len(groups))
    if owners == [group for group in groups for _ in range(width)]:
        return groups, max(1, width)
    return owners, 1
