"""T5: "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer" (Raffel et al., 2020).

    "translate English to German: That is good."      "Das ist gut." (shifted right)
        | embed                                           | embed
    [ norm, self-attention + distances ]              [ norm, causal self-attention + distances ]
    [ norm, feed-forward               ] x N          [ norm, attention over memory             ] x N
        | norm                                        [ norm, feed-forward                      ]
      memory ---------------------------------------------'| norm
                                                       output projection -> logits

What differs from the Transformer (section 2.1): no places, but a learned number for each head and distance, added to
the scores of self-attention and shared by all layers of a stack; norms that only scale (Zhang 2019); no biases; dot
products that are not scaled, so that the queries start smaller instead. Version 1.1 has a gated feed-forward (Shazeer
2020) and an output projection of its own. Every task is text to text, told apart by a prefix (figure 1).

Sites: `encoder.{layer}.self`, `decoder.{layer}.self`, `decoder.{layer}.cross`.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.base import Embedding, output_projection
from regard.models.transformer import DecoderLayer, DecoderStack, EncoderLayer, Stacks, Style
from regard.nn.attention import ScoreName
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, MultiHeadAttention, NormPlacement, Stack
from regard.nn.positions import RelativeBias


class T5Config(ModelConfig):
    """Section 2.1 and 3.7; version 1.1 is `activation: gelu-tanh, gated: true, tie_output: false`."""

    kind: Literal["t5"] = "t5"
    encoder_layers: int = Field(default=6, ge=1)
    decoder_layers: int = Field(default=6, ge=1)
    width: int = Field(default=512, ge=1)
    inner: int = Field(default=2048, ge=1)
    heads: int = Field(default=8, ge=1)
    head_width: int = Field(default=64, ge=1, description="D; heads times this need not be the width")
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    activation: Activation = "relu"
    gated: bool = Field(default=False, description="the feed-forward has a gate (version 1.1)")
    norm: NormPlacement = "pre"
    norm_epsilon: float = Field(default=1e-6, gt=0)
    score: ScoreName = "dot"
    buckets: int = Field(default=32, ge=4, description="of distances; those far away share one")
    farthest: int = Field(default=128, ge=2, description="distance from which on all are the same")
    tie_output: bool = Field(default=True, description="the output projection is the embedding table")
    scale_output: bool = Field(default=True, description="times M^-1/2 before the output, which a tied table needs")
    decoder_start: int | None = Field(default=None, ge=0, description="the token before the first; the tokenizer's")

    @model_validator(mode="after")
    def _farther_than_near(self) -> T5Config:
        if self.farthest <= self.buckets // 2:
            raise ValueError(f"farthest = {self.farthest}: must be more than half of buckets = {self.buckets}")
        return self


def _size(layers: int, width: int, inner: int, heads: int, head_width: int = 64) -> dict[str, object]:
    shape = {"width": width, "inner": inner, "heads": heads, "head_width": head_width}
    return {"encoder_layers": layers, "decoder_layers": layers, **shape}


_GATED = {"activation": "gelu-tanh", "gated": True, "tie_output": False, "scale_output": False}
SIZES: dict[str, dict[str, object]] = {
    "tiny": _size(2, 128, 512, 4, 32),
    "mini": _size(4, 256, 1024, 4),
    "small": _size(6, 512, 2048, 8),
    "base": _size(12, 768, 3072, 12),
    "large": _size(24, 1024, 4096, 16),
    "3b": _size(24, 1024, 16384, 32, 128),
    "11b": _size(24, 1024, 65536, 128, 128),
    "1.1-small": {**_size(8, 512, 1024, 6), **_GATED},
    "1.1-base": {**_size(12, 768, 2048, 12), **_GATED},
    "1.1-large": {**_size(24, 1024, 2816, 16), **_GATED},
    "1.1-xl": {**_size(24, 2048, 5120, 32), **_GATED},
    "1.1-xxl": {**_size(24, 4096, 10240, 64), **_GATED},
}


class T5(Stacks):
    def __init__(self, config: T5Config, vocabulary: int) -> None:
        super().__init__()
        self.config, self.decoder_start, self.pad = config, config.decoder_start, config.pad
        width = config.width
        self.words = Embedding(vocabulary, width, None, scale=1.0)  # padding is also the token before the first
        distances = (config.heads, config.buckets, config.farthest)
        self.source_distances = RelativeBias(*distances, both_ways=True)
        self.target_distances = RelativeBias(*distances, both_ways=False)
        self.dropout = Dropout(config.dropout)
        style = Style(
            norm="rms",
            gated=config.gated,
            biases=False,
            head_width=config.head_width,
            inner_dropout=config.dropout,
        )
        self.encoder = Stack[EncoderLayer](EncoderLayer(config, style) for _ in range(config.encoder_layers))
        self.decoder = DecoderStack(DecoderLayer(config, style) for _ in range(config.decoder_layers))
        self.encoder_norm = End(config, 1.0)
        self.decoder_norm = End(config, width**-0.5 if config.scale_output else 1.0)
        self.output = output_projection(self.words, width, config.tie_output, bias=False)
        initialise(self)

    def embed_source(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(self.words(ids))
        return embedded

    def embed_target(self, ids: Tensor, first: int = 0) -> Tensor:
        return self.embed_source(ids)

    def source_bias(self, length: int) -> Tensor:
        bias: Tensor = self.source_distances(length, length)
        return bias

    def target_bias(self, queries: int, keys: int) -> Tensor:
        bias: Tensor = self.target_distances(queries, keys)
        return bias


class End(nn.Module):
    """What ends a stack: a norm, dropout, and in the decoder the factor that a tied output needs."""

    def __init__(self, config: T5Config, scale: float) -> None:
        super().__init__()
        self.norm, self.dropout, self.scale = (
            nn.RMSNorm(config.width, config.norm_epsilon),
            Dropout(config.dropout),
            scale,
        )

    def forward(self, x: Tensor) -> Tensor:
        ended: Tensor = self.dropout(self.norm(x))
        return ended if self.scale == 1 else ended * self.scale


@torch.no_grad()
def initialise(model: T5) -> None:
    """As the published code does: each map keeps the size of its inputs, and queries are smaller by √D, in the place
    of the scores' scale. The embeddings are of size 1: no factor and no places follow them."""
    config = model.config
    for module in model.modules():
        if isinstance(module, RelativeBias):
            module.table.normal_(std=config.width**-0.5)
        elif isinstance(module, nn.Linear) and module is not model.output:
            module.weight.normal_(std=module.in_features**-0.5)
        elif isinstance(module, MultiHeadAttention):
            module.weight.normal_(std=config.width**-0.5)
            module.weight[: module.joined] *= config.head_width**-0.5
    model.words.weight.normal_()
    if not config.tie_output:
        model.output.weight.normal_(std=config.width**-0.5)
