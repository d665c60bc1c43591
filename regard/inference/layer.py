"""A token's way through all layers of a decoder in one kernel, whose threads wait for each other between its parts.

One sentence reads the weights of a layer in a fraction of a millisecond; a dozen calls from Python would add half of
that, and one call for each layer still a sixth.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.inference.attention import Cache, PackedAttention, PackedSelfAttention, terms
from regard.inference.kernels import CODES, KINDS, about_attention, about_token, fits, room_to_round, run, seen
from regard.inference.linear import FEW, Panels
from regard.models.gpt import Block, Blocks
from regard.models.transformer import DecoderLayer, DecoderStack
from regard.nn.attention import Dot
from regard.nn.layers import FeedForward, Residual
from regard.nn.record import Recording
from regard.nn.state import KeyValue


class Table:
    """A decoder layer as the kernel `layers` reads it: its sizes, then the addresses of its weights and biases.

    The linear maps stand in this order: queries, keys and values; out of the heads; into and out of the feed-forward;
    and, where it attends to a memory, that attention's queries and out of its heads. Then the norms, in the order of
    their sublayers.
    """

    def __init__(self, layer: DecoderLayer | Block, parts: dict[str, nn.Module | None]) -> None:
        attention, wide, first = layer.attention, layer.feed_forward, layer.around_attention
        assert isinstance(wide, FeedForward), f"a gated feed-forward is not packed: {wide}"
        assert isinstance(attention.score, Dot), f"scores other than dot products are not packed: {attention.score}"
        packed, inner, cross = parts["attention"], parts["feed_forward"], parts.get("cross")
        assert isinstance(packed, PackedSelfAttention), f"a packed self-attention, not {packed}"
        assert isinstance(inner, nn.Sequential), f"a packed feed-forward, not {inner}"
        linear: list[nn.Module] = [packed.projection, packed.output, *inner]
        if isinstance(cross, PackedAttention):
            linear += [cross.query_projection, cross.output]
        self.held = [_panels(one) for one in linear]  # for as long as their addresses are in use
        self.held += [_beside(*_of(one.norm)) for one in _around(layer)]
        self.work = sum(weight.numel() for weight, _ in self.held)
        self.joined, self.width, self.inner = attention.joined, wide.inner.in_features, wide.inner.out_features
        size = attention.joined // attention.heads
        self.heads = attention.heads
        kind = self.held[0][0].dtype
        self.most = FEW if kind == torch.int8 else sys.maxsize
        sizes = [self.width, self.joined, self.inner, CODES[wide.activation]]
        sizes += [first.placement == "pre", cross is not None, KINDS[kind]]
        places = [[tensor.data_ptr() for tensor in pair] for pair in self.held]
        places[4:4] = [[0, 0]] * 2 if cross is None else []
        places += [[0, 0]] * (10 - len(places))
        assert isinstance(first.norm, nn.LayerNorm), f"other norms are not packed: {first.norm}"
        scales = [first.norm.eps, attention.score.scale(size)]
        self.numbers = array("d", [*sizes, *scales, *(one for pair in places for one in pair)])
        self.address = self.numbers.buffer_info()[0]

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a packed model holds addresses: copy or save the model that it was packed from")

    def room(self, rows: int, keys: int) -> int:
        """Numbers that the kernel needs for so many rows that look at so many keys; see there."""
        return rows * (self.kept + self.heads * keys)

    @property
    def kept(self) -> int:
        """Of each row, beside its attention's weights."""
        rounded = room_to_round(max(self.width, self.joined, self.inner)) // 4
        return 4 * self.joined + 5 * self.width + self.inner + rounded


def advance(
    tables: Sequence[Table],
    x: Tensor,
    pasts: Sequence[Cache],
    mask: Tensor | None,
    memories: Sequence[KeyValue | None],
    memory_mask: Tensor | None,
) -> tuple[Tensor, tuple[KeyValue, ...]]:
    """One token of each row (R, 1, M) through layers of the same sizes -> (R, 1, M), and their pasts with it.

    All of them have written as much, of the same sizes, and their beams share what they may look at.
    """
    x, rows, first = x.contiguous(), len(x), tables[0]
    presents = [past.longer(1) for past in pasts]
    own, memory = presents[0], memories[0]
    size, joined = first.joined // first.heads, first.joined
    most = max(own.length * own.width, 0 if memory is None else memory.key.shape[2])
    output, room = torch.empty_like(x), x.new_empty(first.room(rows, most))
    parts = room.data_ptr()
    heads, weights = parts + 12 * rows * joined, parts + 4 * rows * first.kept
    allowed = terms(own, mask, None)  # held until the kernel has read them
    allowed_there = (None, None) if memory is None else terms(memory, memory_mask, None)
    told = about_token(parts + 4 * joined, 3 * joined, joined, own.pairs, own.length - 1)
    told += about_attention(rows, (parts, 3 * joined, size), own.seen(), *allowed, heads, weights)
    if memory is not None:
        looked_at = seen(memory.key, memory.value)
        told += about_attention(rows, (parts, joined, size), looked_at, *allowed_there, heads, weights)
    assert len(told) == (36 if memory is None else 61), f"the kernel reads so many numbers, not {len(told)}"
    places = [place for one in zip(tables, presents, memories, strict=True) for place in _places(*one)]
    run(
        "layers",
        rows * sum(table.work for table in tables),
        (len(tables), rows, x.data_ptr(), output.data_ptr(), parts, len(told), *told, *places),
    )
    return output, cast(tuple[KeyValue, ...], tuple(presents))  # models speak of what they make themselves


def _places(table: Table, present: Cache, memory: KeyValue | None) -> tuple[int, ...]:
    """Where a layer's weights are, the keys and values of its tokens, and those of what it remembers; all layers have
    them alike, one behind the other."""
    if memory is None:
        return table.address, present.pairs.data_ptr(), 0, 0
    return table.address, present.pairs.data_ptr(), memory.key.data_ptr(), memory.value.data_ptr()


class PackedDecoderLayer(DecoderLayer):
    """A `DecoderLayer` of packed parts, which the kernel knows."""

    def __init__(self, plain: DecoderLayer, parts: dict[str, nn.Module | None]) -> None:
        nn.Module.__init__(self)
        self._modules, self.parts, self.table = parts, tuple(parts.values()), Table(plain, parts)


class PackedBlock(Block):
    """A GPT's `Block` of packed parts, which the kernel knows."""

    def __init__(self, plain: Block, parts: dict[str, nn.Module | None]) -> None:
        nn.Module.__init__(self)
        self._modules, self.parts, self.table = parts, tuple(parts.values()), Table(plain, parts)


class PackedDecoderStack(DecoderStack):
    """A `DecoderStack` with a fast way for single tokens that nobody records."""

    def read(
        self,
        x: Tensor,
        memories: Sequence[KeyValue],
        pasts: Sequence[KeyValue | None],
        mask: Tensor | None,
        memory_mask: Tensor | None,
        record: Recording | None = None,
        bias: Tensor | None = None,
    ) -> tuple[Tensor, tuple[KeyValue, ...]]:
        tables = _quick(self, x, pasts, record) if bias is None else []
        if tables and all(fits(memory.key) for memory in memories):
            return advance(tables, x, cast(Sequence[Cache], pasts), mask, memories, memory_mask)
        return super().read(x, memories, pasts, mask, memory_mask, record, bias)


class PackedBlocks(Blocks):
    """`Blocks` with a fast way for single tokens that nobody records."""

    def read(
        self, x: Tensor, mask: Tensor | None, pasts: Sequence[KeyValue | None], record: Recording | None
    ) -> tuple[Tensor, tuple[KeyValue, ...]]:
        if tables := _quick(self, x, pasts, record):
            return advance(tables, x, cast(Sequence[Cache], pasts), mask, [None] * len(tables), None)
        return super().read(x, mask, pasts, record)


def _quick(
    stack: DecoderStack | Blocks, x: Tensor, pasts: Sequence[KeyValue | None], record: Recording | None
) -> list[Table]:
    """The layers as the kernel reads them, if it may be used: for numbers it knows, where no part was exchanged since
    it was packed."""
    rows, tokens, _ = x.shape
    if record is not None or tokens != 1 or not rows or not fits(x):
        return []
    held = {(past.pairs.shape, past.length, past.written[0]) if isinstance(past, Cache) else None for past in pasts}
    if len(held) > 1:  # a step was interrupted between layers: they do not lie alike any more
        return []
    tables: list[Table] = []
    for layer, past in zip(cast(Sequence[nn.Module], stack), pasts, strict=True):
        if not isinstance(layer, PackedDecoderLayer | PackedBlock) or not isinstance(past, Cache):
            return []
        if tuple(layer._modules.values()) != layer.parts or rows > layer.table.most or not fits(past.pairs):
            return []
        tables.append(layer.table)
    return tables


def packed_stack(plain: nn.Module, layers: dict[str, nn.Module | None]) -> nn.Module | None:
    """A stack with the fast way, from the plain one and its packed layers; None where it is none that has it."""
    kinds: dict[type, type[PackedDecoderStack] | type[PackedBlocks]] = {
        DecoderStack: PackedDecoderStack,
        Blocks: PackedBlocks,
    }
    kind = kinds.get(type(plain))
    return None if kind is None else kind(cast(Any, layers.values()))


def packed_layer(plain: nn.Module, parts: dict[str, nn.Module | None]) -> nn.Module | None:
    """A layer for the fast way, from the plain one and its packed parts; None where the kernel does not know all that
    is in it."""
    if not isinstance(plain, DecoderLayer | Block) or type(plain) not in (DecoderLayer, Block):
        return None  # a layer made from them may do otherwise
    around = _around(plain)
    attentions = [plain.attention, *([plain.cross] if isinstance(plain, DecoderLayer) else [])]
    norms = all(isinstance(one.norm, nn.LayerNorm) for one in around)
    alike = len({(one.placement, one.norm.eps) for one in around}) == 1
    alike = alike and len({(one.heads, one.joined, type(one.score)) for one in attentions}) == 1
    wide = isinstance(plain.feed_forward, FeedForward) and plain.feed_forward.activation in CODES
    if not (norms and alike and wide and isinstance(plain.attention.score, Dot)):
        return None
    return PackedBlock(plain, parts) if isinstance(plain, Block) else PackedDecoderLayer(plain, parts)


def _around(layer: DecoderLayer | Block) -> list[Residual]:
    cross = [layer.around_cross] if isinstance(layer, DecoderLayer) else []
    return [layer.around_attention, *cross, layer.around_feed_forward]


def _of(module: nn.Linear | nn.LayerNorm | nn.RMSNorm) -> tuple[Tensor, Tensor | None]:
    assert not isinstance(module, nn.RMSNorm), "other norms are not packed"
    return module.weight, module.bias


def _panels(linear: nn.Module) -> tuple[Tensor, Tensor]:
    assert isinstance(linear, Panels), f"a linear map in panels, not {linear}"
    return linear.panels, linear.biases


def _beside(weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    zeros = weight.new_zeros(len(weight)) if bias is None else bias
    return weight.detach().contiguous(), zeros.detach().contiguous()
