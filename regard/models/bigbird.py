"""BigBird: "Transformers for Longer Sequences" (Zaheer et al., 2020).

BERT whose tokens see only some others, in blocks: their neighbours, the first and the last block, and a few blocks at
random (figure 1, section 2). Time and memory then grow with the length of a text, not with its square; a text that is
too short for that to pay sees all of itself.

    key blocks     0  1  2  3  4  5  6  7
    query block 0  g  g  g  g  g  g  g  g      g  global: the first and the last block
                1  g  w  w     r        g      w  window: a block and its two neighbours
                2  g  w  w  w        r  g      r  random: others in each layer and head, always the same
                3  g     w  w  w  r     g
               ...

The last block of a text is its own, not that of the longest text beside it: padding changes nothing.

Site: `encoder.{layer}.self`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from regard.models.base import SummaryKind
from regard.models.bert import Bert, BertConfig
from regard.models.transformer import EncoderLayer
from regard.nn.attention import attention, padding_mask, record_weights
from regard.nn.layers import Activation
from regard.nn.record import Recording
from regard.nn.sparse import NOTHING, block_attention, seen_counts


class BigBirdConfig(BertConfig):
    """The defaults are those of BigBird-base (ITC, section 4 and table 8)."""

    kind: str = "bigbird"
    attention: Literal["block-sparse", "full"] = Field(default="block-sparse", description="full: as BERT's")
    block: int = Field(default=64, ge=1, description="tokens of one block")
    random_blocks: int = Field(default=3, ge=0, description="blocks that each block looks at by chance")
    outside_training: Literal["drawn", "first"] = Field(
        default="drawn", description="random blocks: as in training, or the first block instead, as transformers does"
    )
    activation: Activation = "gelu-tanh"
    word_transform: Activation | Literal["none"] = "gelu-tanh"
    sequence_summary: SummaryKind = "dense-gelu-tanh"
    span_layer: bool = True
    max_length: int = Field(default=4096, ge=1)


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"layers": 2, "width": 128, "inner": 512, "heads": 2},
    "small": {"layers": 4, "width": 512, "inner": 2048, "heads": 8},
    "base": {"layers": 12, "width": 768, "inner": 3072, "heads": 12},
    "large": {"layers": 24, "width": 1024, "inner": 4096, "heads": 16},
}


@dataclass(frozen=True)
class Texts:
    """Rows of a batch that are of equally many blocks, and what those see; None where all is seen."""

    rows: Tensor  # (R,)
    length: int
    seen: Tensor | None  # (H, N - 2, 5 + random blocks)


class BigBirdLayer(EncoderLayer):
    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        record: Recording | None,
        site: str,
        bias: Tensor | None = None,
        texts: list[Texts] | None = None,
    ) -> Tensor:
        if texts is None or mask is None or all(some.seen is None for some in texts):
            return super().forward(x, mask, record, site, bias)
        query, memory = self.attention.query_and_memory(self.around_attention.before(x))
        key, value, score = memory.key, memory.value, self.attention.score
        if record is not None and record.wants(f"{site}.self"):
            record_weights(record, f"{site}.self", query, key, value, score, partial(_terms, texts, mask))
        dropout = self.attention.dropout if self.training else 0.0
        heads = torch.zeros_like(query)
        for some in texts:
            q, k, v, real = (_cut(query, some, 2), _cut(key, some, 2), _cut(value, some, 2), _cut(mask, some, 3))
            if some.seen is None:
                looked = attention(q, k, v, mask=real, score=score, dropout=dropout)
            else:
                looked = block_attention(q, k, v, some.seen, real, score=score, dropout=dropout)
            length = min(some.length, x.shape[1])
            heads[some.rows, :, :length] = looked[:, :, :length]
        x = self.around_attention.after(x, self.attention.output(heads.transpose(1, 2).flatten(2)))
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x)))


class BigBird(Bert):
    layer: ClassVar[type[EncoderLayer]] = BigBirdLayer

    def __init__(self, config: BigBirdConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.config: BigBirdConfig = config

    def each_layer(
        self, ids: Tensor, segments: Tensor | None = None, record: Recording | None = None
    ) -> Iterator[Tensor]:
        x = self.embed(ids, segments)
        yield x
        mask = padding_mask(ids, self.config.pad)
        for index, layer in enumerate(self.encoder):
            x = layer(x, mask, record, f"encoder.{index}", texts=self._texts(mask, index))
            yield x

    def _texts(self, mask: Tensor, layer: int) -> list[Texts] | None:
        config = self.config
        if config.attention == "full":
            return None
        places = torch.arange(1, mask.shape[-1] + 1, device=mask.device)
        blocks = ((mask[:, 0, 0] * places).amax(dim=1) + config.block - 1) // config.block
        short = 5 + 2 * config.random_blocks  # so many blocks are all seen: what is saved would be less than is lost
        texts = []
        for number in sorted({max(count, short) for count in blocks.tolist()}):
            rows = (blocks == number if number > short else blocks <= short).nonzero()[:, 0]
            seen = None
            if number > short:
                drawn = self.training or config.outside_training == "drawn"
                random = drawn_blocks(config.heads, number, config.random_blocks, layer) if drawn else None
                seen = seen_blocks(config.heads, number, config.random_blocks, random).to(mask.device)
            texts.append(Texts(rows, number * config.block, seen))
        return texts


def seen_blocks(heads: int, blocks: int, count: int, random: Tensor | None) -> Tensor:
    """Which blocks those between the first and the last see, `random` (H, N - 2, count) included; without it, the first
    block in the place of each: (H, N - 2, 5 + count)."""
    own = torch.arange(1, blocks - 1)[:, None]
    window = own + torch.tensor([-1, 0, 1])  # (N - 2, 3)
    ends = torch.tensor([0, blocks - 1]).expand(blocks - 2, 2).clone()
    ends[0, 0] = ends[-1, 1] = NOTHING  # there the window has it already
    random = torch.zeros(heads, blocks - 2, count, dtype=torch.long) if random is None else random
    return torch.cat([torch.cat([ends, window], dim=1).expand(heads, -1, -1), random], dim=2)


@lru_cache(maxsize=256)
def drawn_blocks(heads: int, blocks: int, count: int, seed: int) -> Tensor:
    """For each head and block, as many other blocks that it would not see otherwise: (H, N - 2, count)."""
    own = torch.arange(1, blocks - 1)
    near = (own[:, None] - own).abs() <= 1
    dice = torch.rand(heads, len(own), len(own), generator=torch.Generator().manual_seed(seed))
    return dice.masked_fill(near, -1.0).topk(count, dim=-1).indices + 1


def _cut(part: Tensor, some: Texts, axis: int) -> Tensor:
    """Some rows of a batch, as long as they are: (B, ..., T, ...) -> (R, ..., length, ...), at the axis of T."""
    part = part if len(some.rows) == len(part) else part[some.rows]
    length = part.shape[axis]
    if length >= some.length:
        return part.narrow(axis, 0, some.length)
    return F.pad(part, (0, 0) * (part.ndim - 1 - axis) + (0, some.length - length))


def _terms(texts: list[Texts], mask: Tensor, heads: list[int], rows: list[int]) -> tuple[Tensor, Tensor]:
    """The mask and bias by which full attention has the weights of the blocks: a key that is seen n times has + log n.

    (B, chosen heads, chosen rows, T) each.
    """
    length = mask.shape[-1]
    counts = torch.ones(len(mask), len(heads), len(rows), length, device=mask.device)
    for some in texts:
        if some.seen is not None:
            asked = [row for row in rows if row < some.length]
            seen = seen_counts(some.seen[heads], some.length // (some.seen.shape[1] + 2), asked).float()
            after = (0, max(0, length - some.length), 0, len(rows) - len(asked))
            counts[some.rows] = F.pad(seen[:, :, :length], after)
    return mask & (counts > 0), counts.log()
