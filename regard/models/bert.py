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
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.base import Encoder
from regard.models.transformer import EncoderLayer
from regard.nn.attention import ScoreName, padding_mask
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, NormPlacement, Stack
from regard.nn.positions import Positions
from regard.nn.record import Recording


class BertConfig(ModelConfig):
    """Section 3, "Model Architecture"; the small sizes are those of Turc 2019."""

    kind: Literal["bert"] = "bert"
    layers: int = Field(default=12, ge=1)
    width: int = Field(default=768, ge=1)
    inner: int = Field(default=3072, ge=1)
    heads: int = Field(default=12, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    activation: Activation = "gelu"
    norm: NormPlacement = "post"
    norm_epsilon: float = Field(default=1e-12, gt=0)
    score: ScoreName = "scaled-dot"
    segments: int = Field(default=2, ge=1)
    max_length: int = Field(default=512, ge=1)
    pooler: bool = Field(default=True, description="the summary's dense layer, which some heads do without")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> BertConfig:
        if self.width % self.heads:
            raise ValueError(f"width = {self.width}: must be a multiple of heads = {self.heads}")
        return self


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"layers": 2, "width": 128, "inner": 512, "heads": 2},
    "mini": {"layers": 4, "width": 256, "inner": 1024, "heads": 4},
    "small": {"layers": 4, "width": 512, "inner": 2048, "heads": 8},
    "base": {"layers": 12, "width": 768, "inner": 3072, "heads": 12},
    "large": {"layers": 24, "width": 1024, "inner": 4096, "heads": 16},
}


class Bert(Encoder):
    def __init__(self, config: BertConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.width, self.max_length = config, config.width, config.max_length
        self.words = nn.Embedding(vocabulary, config.width, padding_idx=config.pad)
        self.positions = Positions("learned", config.width, config.max_length)
        self.segments = nn.Embedding(config.segments, config.width)
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        self.encoder = Stack[EncoderLayer](EncoderLayer(config) for _ in range(config.layers))
        self.pooler = nn.Linear(config.width, config.width) if config.pooler else None
        initialise(self)

    def each_layer(
        self, ids: Tensor, segments: Tensor | None = None, record: Recording | None = None
    ) -> Iterator[Tensor]:
        segments = torch.zeros_like(ids) if segments is None else segments
        x = self.dropout(self.norm(self.positions(self.words(ids) + self.segments(segments))))
        yield x
        mask = padding_mask(ids, self.config.pad)
        for index, layer in enumerate(self.encoder):
            x = layer(x, mask, record, f"encoder.{index}")
            yield x

    def summary(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """tanh(W h + b) of the first token, [CLS]."""
        assert self.pooler is not None, "the model was built without its pooler (model.pooler)"
        return torch.tanh(self.pooler(hidden[:, 0]))


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
