"""XLNet: "Generalized Autoregressive Pretraining for Language Understanding" (Yang et al., 2019).

Words are predicted one after the other in a random order, so that each sees words on both sides of it (section 2.2).
Which word stands at a place must not be seen by the prediction for that place, but by those that come later: therefore
two streams (section 2.3, figure 1). Only the content stream is there when the model is used as an encoder.

    content  words(ids) -> [ looks at itself and at what it may see ] x layers -> hidden
                                |  keys and values of both streams are the content's
    query    mask vector -> [ looks at what it may see, not at itself ] x layers -> the word at its place

Where a token stands is only known as its distance to another (Dai 2019, section 3.3), whether two stand in the same
sentence only as yes or no (section 2.5):

    score(i, j) = ((q_i + u) · k_j + (q_i + v) · W r_{i-j} + (q_i + w) · s_{i,j}) / √D

Sites: `encoder.{layer}.self` (content), `encoder.{layer}.query`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.models.base import Encoder, EncoderConfig, HeadName, SummaryKind
from regard.models.bert import initialise
from regard.nn.attention import attention, padding_mask
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, FeedForward, Residual, Stack
from regard.nn.record import Recording
from regard.nn.state import KeyValue


class XLNetConfig(EncoderConfig):
    """The defaults are those of XLNet-base (section A.4). There is no longest input."""

    kind: Literal["xlnet"] = "xlnet"
    score: Literal["scaled-dot"] = "scaled-dot"
    norm: Literal["post"] = "post"
    pooler: Literal[False] = False
    segments: int = Field(default=3, ge=0, description="any number: only same or not is told apart")
    sequence_summary: SummaryKind = "dense-tanh"
    choice_summary: SummaryKind = "dense-tanh"
    word_transform: Activation | Literal["none"] = "none"
    two_streams: bool = Field(default=True, description="there is a query stream, to predict words with")

    def under(self, head: HeadName) -> XLNetConfig:
        return super().under(head).model_copy(update={"two_streams": head in ("masked", "pretraining")})


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"layers": 2, "width": 128, "inner": 512, "heads": 2},
    "small": {"layers": 4, "width": 512, "inner": 2048, "heads": 8},
    "base": {"layers": 12, "width": 768, "inner": 3072, "heads": 12},
    "large": {"layers": 24, "width": 1024, "inner": 4096, "heads": 16},
}


@dataclass(frozen=True)
class Asked:
    """From where a stream looks, and what it may see."""

    places: Tensor  # (B, Q)
    mask: Tensor  # (B, 1, Q, K)
    apart: Tensor | None  # (B, 1, Q, K), True where a key stands in another sentence; None for one sentence


class RelativeAttention(nn.Module):
    """Attention by content, distance and sentence. The paper's W_q, W_k, ... are kept as (M, H, D)."""

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        width, heads, size = config.width, config.heads, config.width // config.heads
        self.query, self.key, self.value, self.distance, self.output = (
            nn.Parameter(torch.empty(width, heads, size)) for _ in range(5)
        )
        self.content_bias, self.distance_bias, self.segment_bias = (  # u, v, w
            nn.Parameter(torch.empty(heads, size)) for _ in range(3)
        )
        self.segment = nn.Parameter(torch.empty(2, heads, size))  # in the same sentence, in another
        self.dropout = config.attention_dropout

    def memory(self, content: Tensor, distances: Tensor) -> tuple[KeyValue, Tensor]:
        """What both streams look at: keys and values (B, H, K, D), and the keys of distances (H, P, D)."""
        key, value = (torch.einsum("bkm,mhd->bhkd", content, weight) for weight in (self.key, self.value))
        return KeyValue(key, value), torch.einsum("pm,mhd->hpd", distances, self.distance)

    def forward(
        self, x: Tensor, memory: tuple[KeyValue, Tensor], asked: Asked, record: Recording | None, site: str
    ) -> Tensor:
        """(B, Q, M) -> (B, Q, M)."""
        content, distances = memory
        keys, size = content.key.shape[2], content.key.shape[3]
        query = torch.einsum("bqm,mhd->bhqd", x, self.query)
        by_distance = (query + self.distance_bias[:, None]) @ distances.transpose(-2, -1)  # (B, H, Q, P)
        far = keys - asked.places[:, None, :, None] + torch.arange(keys, device=x.device)  # (B, 1, Q, K), places in P
        bias = by_distance.gather(-1, far.expand(*query.shape[:3], keys))
        if asked.apart is not None:
            same, other = torch.einsum("bhqd,shd->sbhq", query + self.segment_bias[:, None], self.segment)
            bias = bias + torch.where(asked.apart, other[..., None], same[..., None])
        heads = attention(
            query + self.content_bias[:, None],
            content.key,
            content.value,
            mask=asked.mask,
            bias=bias / math.sqrt(size),
            dropout=self.dropout if self.training else 0.0,
            record=record,
            site=site,
        )
        return torch.einsum("bhqd,mhd->bqm", heads, self.output)


class XLNetLayer(nn.Module):
    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        self.attention = RelativeAttention(config)
        self.feed_forward = FeedForward(
            config.width, config.inner, activation=config.activation, dropout=config.dropout
        )
        self.around_attention, self.around_feed_forward = (
            Residual(config.width, "post", config.dropout, config.norm_epsilon) for _ in range(2)
        )

    def forward(
        self, x: Tensor, memory: tuple[KeyValue, Tensor], asked: Asked, record: Recording | None, site: str
    ) -> Tensor:
        x = self.around_attention.after(x, self.attention(x, memory, asked, record, site))
        return self.around_feed_forward.after(x, self.feed_forward(x))


class XLNet(Encoder):
    def __init__(self, config: XLNetConfig, vocabulary: int) -> None:
        super().__init__()
        self.config: XLNetConfig = config
        self.max_length = None
        self.words = nn.Embedding(vocabulary, config.width)
        self.unknown = nn.Parameter(torch.empty(1, 1, config.width)) if config.two_streams else None
        self.dropout = Dropout(config.dropout)
        self.encoder = Stack[XLNetLayer](XLNetLayer(config) for _ in range(config.layers))
        initialise(self)

    def each_layer(
        self, ids: Tensor, segments: Tensor | None = None, record: Recording | None = None
    ) -> Iterator[Tensor]:
        content = self.dropout(self.words(ids))
        yield content
        asked, distances = self._asked(ids, segments, None, None), self._distances(ids)
        for index, layer in enumerate(self.encoder):
            memory = layer.attention.memory(content, distances)
            content = layer(content, memory, asked, record, f"encoder.{index}.self")
            yield content

    def predict(
        self, ids: Tensor, segments: Tensor | None, targets: Tensor, sees: Tensor, record: Recording | None = None
    ) -> Tensor:
        """What the query stream knows of the places `targets` (B, P), when place i may see place j only where `sees`
        (B, T, T): (B, P, M). See `sees_in_order`."""
        assert self.unknown is not None, "the model was built without its query stream (model.two_streams)"
        content = self.dropout(self.words(ids))
        unknown = self.dropout(self.unknown.expand(*targets.shape, -1))
        itself = torch.eye(ids.shape[1], dtype=torch.bool, device=ids.device)
        with_itself = self._asked(ids, segments, None, sees | itself)
        without = self._asked(ids, segments, targets, sees & ~itself)
        distances = self._distances(ids)
        for index, layer in enumerate(self.encoder):
            memory = layer.attention.memory(content, distances)
            unknown = layer(unknown, memory, without, record, f"encoder.{index}.query")
            content = layer(content, memory, with_itself, record, f"encoder.{index}.self")
        known: Tensor = unknown
        return known

    def guess(
        self, ids: Tensor, segments: Tensor | None, rows: Tensor, places: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """In training in any order, else from the left to the right. Without `words` no guess sees another's place."""
        targets = torch.zeros_like(ids, dtype=torch.bool)
        targets[rows, places] = True
        if words is None:
            order = torch.zeros_like(ids)
        else:
            ids = ids.index_put((rows, places), words)
            everywhere = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
            order = torch.rand(ids.shape, device=ids.device) if self.training else everywhere
        count = torch.bincount(rows, minlength=len(ids))
        slot = torch.arange(len(rows), device=ids.device) - (count.cumsum(0) - count)[rows]
        asked = ids.new_zeros(len(ids), int(count.max())).index_put((rows, slot), places)  # (B, P), filled up with 0
        return self.predict(ids, segments, asked, sees_in_order(targets, order))[rows, slot]

    def summary(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """The vector of the last token that is not padding, <cls>."""
        real = (ids != self.config.pad).long()
        last = (real * torch.arange(ids.shape[1], device=ids.device)).argmax(dim=1)
        return hidden[torch.arange(len(ids), device=ids.device), last]

    def _asked(self, ids: Tensor, segments: Tensor | None, targets: Tensor | None, sees: Tensor | None) -> Asked:
        """For all places, or for the targets."""
        everywhere = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        places = everywhere if targets is None else targets
        mask = padding_mask(ids, self.config.pad)
        if sees is not None:
            mask = mask & _rows(sees, places)[:, None]
        apart = None
        if segments is not None:
            apart = segments.gather(1, places)[:, None, :, None] != segments[:, None, None, :]
        return Asked(places, mask, apart)

    def _distances(self, ids: Tensor) -> Tensor:
        """Sinusoids of the distances from T down to 1 - T, sines before cosines: (P, M)."""
        length, width = ids.shape[1], self.config.width
        distance = torch.arange(length, -length, -1, dtype=torch.float32, device=ids.device)[:, None]
        angle = distance / 10000 ** (torch.arange(0, width, 2, device=ids.device) / width)
        table: Tensor = self.dropout(torch.cat([angle.sin(), angle.cos()], dim=-1))
        return table


def sees_in_order(targets: Tensor, order: Tensor) -> Tensor:
    """Which place may see which, when the targets (B, T) are predicted by rising `order` (B, T): (B, T, T).

    All see what is no target; a target also sees the targets before it (section 2.3, "Partial Prediction").
    """
    earlier = order[:, None, :] < order[:, :, None]
    return ~targets[:, None, :] | (targets[:, :, None] & earlier)


def _rows(table: Tensor, places: Tensor) -> Tensor:
    """Some rows (B, Q) of (B, T, T): (B, Q, T)."""
    return table.gather(1, places[..., None].expand(-1, -1, table.shape[2]))
