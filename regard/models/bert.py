"""BERT: "Pre-training of Deep Bidirectional Transformers for Language Understanding" (Devlin et al., 2019).

    ids        segments     places
     | embed      | embed      | embed          (figure 2: the three are added)
     '-----------(+)-----------'
                  | norm
    [ self-attention, every token sees every token ]
    [ feed-forward                                 ] x layers       (the Transformer's encoder, post-norm, GELU)
                  |
              hidden (B, T, M)  --- first token, dense, tanh --->  summary (B, M)

Words that were masked are predicted from their hidden vectors, whether the second sentence follows the first from the
summary (section 3.1, tasks 1 and 2).

Site: `encoder.{layer}.self`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.models.base import Encoder, EncoderConfig
from regard.models.transformer import EncoderLayer, Style
from regard.nn.attention import padding_mask
from regard.nn.dropout import Dropout
from regard.nn.layers import Stack
from regard.nn.positions import Positions
from regard.nn.record import Recording


class BertConfig(EncoderConfig):
    """The defaults are those of BERT-base; the small sizes are those of Turc 2019."""

    kind: str = "bert"
    max_length: int = Field(default=512, ge=1)


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"layers": 2, "width": 128, "inner": 512, "heads": 2},
    "mini": {"layers": 4, "width": 256, "inner": 1024, "heads": 4},
    "small": {"layers": 4, "width": 512, "inner": 2048, "heads": 8},
    "base": {"layers": 12, "width": 768, "inner": 3072, "heads": 12},
    "large": {"layers": 24, "width": 1024, "inner": 4096, "heads": 16},
}


class Bert(Encoder):
    layer: ClassVar[type[EncoderLayer]] = EncoderLayer

    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.config: BertConfig = config
        self.max_length: int = config.max_length
        self.words = nn.Embedding(vocabulary, config.width, padding_idx=config.pad)
        self.positions = Positions("learned", config.width, config.max_length)
        self.segments = nn.Embedding(config.segments, config.width) if config.segments else None
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        style = Style(inner_dropout=config.dropout)  # "on all layers" (appendix A.2)
        self.encoder = Stack[EncoderLayer](self.layer(config, style) for _ in range(config.layers))
        self.pooler = nn.Linear(config.width, config.width) if config.pooler else None
        initialise(self)

    def each_layer(
        self, ids: Tensor, segments: Tensor | None = None, record: Recording | None = None
    ) -> Iterator[Tensor]:
        x = self.embed(ids, segments)
        yield x
        mask = padding_mask(ids, self.config.pad)
        for index, layer in enumerate(self.encoder):
            x = layer(x, mask, record, f"encoder.{index}")
            yield x

    def embed(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        """The sum of what a token is, in which sentence it stands, and where: (B, T) -> (B, T, M)."""
        x = self.words(ids)
        if self.segments is not None:
            apart = segments is not None and self.config.segments > 1
            x = x + self.segments(segments if apart else torch.zeros_like(ids))
        embedded: Tensor = self.dropout(self.norm(self.place(x, ids)))
        return embedded

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        placed: Tensor = self.positions(x)
        return placed

    def summary(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """tanh(W h + b) of the first token, [CLS]; without a pooler its vector as it is."""
        first = hidden[:, 0]
        return first if self.pooler is None else torch.tanh(self.pooler(first))


def initialise(model: nn.Module, deviation: float = 0.02) -> None:
    """Weights from a narrow normal distribution, biases zero, norms the identity (as the published code does)."""
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            nn.init.normal_(weight, std=deviation)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            with torch.no_grad():
                module.weight[module.padding_idx].zero_()
