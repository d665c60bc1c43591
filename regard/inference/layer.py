"""A token's way through a whole decoder layer in one kernel, whose threads wait for each other between its parts.

One sentence reads the weights of a layer in half a millisecond; a dozen calls from Python would add half of that.
"""

from __future__ import annotations

import sys
from array import array
from typing import cast

import torch
from torch import Tensor, nn

from regard.inference.attention import Cache, PackedAttention, PackedSelfAttention, terms
from regard.inference.kernels import CODES, KINDS, about_attention, about_token, fits, room_to_round, run, seen
from regard.inference.linear import FEW, Panels
from regard.models.gpt import Block
from regard.models.transformer import DecoderLayer
from regard.nn.attention import Dot
from regard.nn.layers import FeedForward, Residual
from regard.nn.record import Recording
from regard.nn.state import KeyValue


class Table:
    """A decoder layer as the kernel `layer` reads it: its sizes, then the addresses of its weights and biases.

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

    def advance(
        self, x: Tensor, past: Cache, mask: Tensor | None, memory: KeyValue | None, memory_mask: Tensor | None
    ) -> tuple[Tensor, KeyValue]:
        """One token of each row (R, 1, M) -> (R, 1, M), and the past with it."""
        x, rows, present = x.contiguous(), len(x), past.longer(1)
        size, keys = self.joined // self.heads, present.length * present.width
        rounded = room_to_round(max(self.width, self.joined, self.inner)) // 4
        needed = 4 * self.joined + 3 * self.width + self.inner + rounded  # see the kernel
        most = keys if memory is None else max(keys, memory.key.shape[2])
        output, room = torch.empty_like(x), x.new_empty(rows * (needed + self.heads * most))
        parts = room.data_ptr()
        heads, weights = parts + 12 * rows * self.joined, parts + 4 * rows * needed
        own, others = terms(present, mask, None), (None, None) if memory is None else terms(memory, memory_mask, None)
        told: list[float] = [self.address, rows, x.data_ptr(), output.data_ptr(), parts]
        told += about_token(parts + 4 * self.joined, 3 * self.joined, self.joined, present.pairs, past.length)
        told += about_attention(rows, (parts, 3 * self.joined, size), present.seen(), *own, heads, weights)
        if memory is not None:
            there = seen(memory.key, memory.value)
            told += about_attention(rows, (parts, self.joined, size), there, *others, heads, weights)
        assert len(told) == (41 if memory is None else 66), f"the kernel reads so many numbers, not {len(told)}"
        run("layer", rows * self.work, told)
        return output, cast(KeyValue, present)  # models speak of what they make themselves


class PackedDecoderLayer(DecoderLayer):
    """A `DecoderLayer` of packed parts, with a fast way for single tokens that nobody records."""

    def __init__(self, plain: DecoderLayer, parts: dict[str, nn.Module | None]) -> None:
        nn.Module.__init__(self)
        self._modules, self.parts, self.table = parts, tuple(parts.values()), Table(plain, parts)

    def forward(
        self,
        x: Tensor,
        memory: KeyValue,
        past: KeyValue | None,
        mask: Tensor | None,
        memory_mask: Tensor | None,
        record: Recording | None = None,
        site: str = "",
        bias: Tensor | None = None,
    ) -> tuple[Tensor, KeyValue]:
        if isinstance(past, Cache) and bias is None and fits(memory.key) and _quick(self, x, past, record):
            return self.table.advance(x, past, mask, memory, memory_mask)
        return super().forward(x, memory, past, mask, memory_mask, record, site, bias)


class PackedBlock(Block):
    """A GPT's `Block` of packed parts, with a fast way for single tokens that nobody records."""

    def __init__(self, plain: Block, parts: dict[str, nn.Module | None]) -> None:
        nn.Module.__init__(self)
        self._modules, self.parts, self.table = parts, tuple(parts.values()), Table(plain, parts)

    def forward(
        self, x: Tensor, mask: Tensor | None, past: KeyValue | None, record: Recording | None, site: str
    ) -> tuple[Tensor, KeyValue]:
        if isinstance(past, Cache) and _quick(self, x, past, record):
            return self.table.advance(x, past, mask, None, None)
        return super().forward(x, mask, past, record, site)


def _quick(layer: PackedDecoderLayer | PackedBlock, x: Tensor, past: Cache, record: Recording | None) -> bool:
    """Whether the kernel may be used: for numbers it knows, where no part was exchanged since it was packed."""
    rows, tokens, _ = x.shape
    alone = record is None and tokens == 1 and 0 < rows <= layer.table.most
    return alone and fits(x) and fits(past.pairs) and tuple(layer._modules.values()) == layer.parts


def packed_layer(plain: nn.Module, parts: dict[str, nn.Module | None]) -> nn.Module | None:
    """A layer with the fast way, from the plain one and its packed parts; None where the kernel does not know all that
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
