"""GPT: a Transformer's decoder alone, trained to continue text.

GPT-1: "Improving Language Understanding by Generative Pre-Training" (Radford et al., 2018), section 3.1: norms after
the sublayers. GPT-2: "Language Models are Unsupervised Multitask Learners" (Radford et al., 2019), section 2.3: norms
before them, one more at the end, and the projections back into the residual stream start smaller, by 1 / √N for N of
them. GPT-3: "Language Models are Few-Shot Learners" (Brown et al., 2020), table 2.1: the same, larger.

    ids          places
     | W_e         | W_p                     h_0 = U W_e + W_p                    (GPT-1, eq. 2)
     '-----(+)-----'
            |
    [ causal self-attention ]
    [ feed-forward, GELU    ] x layers       h_l = block(h_{l-1})
            | norm (pre)
            | W_e'                           P(u) = softmax(h_n W_e')
          logits

Site: `decoder.{layer}.self`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.decoder import Decoder
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, FeedForward, NormPlacement, Residual, SelfAttention, Stack
from regard.nn.record import Recording
from regard.nn.state import KeyValue


class GPTConfig(ModelConfig):
    kind: Literal["gpt"] = "gpt"
    layers: int = Field(default=12, ge=1)
    width: int = Field(default=768, ge=1)
    inner: int | None = Field(default=None, ge=1, description="width inside the feed-forward; 4 times the width")
    heads: int = Field(default=12, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    activation: Activation = "gelu-tanh"
    norm: NormPlacement = Field(default="pre", description="post is GPT-1")
    norm_epsilon: float = Field(default=1e-5, gt=0)
    tie_output: bool = Field(default=True, description="the output projection is the embedding table")
    pad: int = Field(default=-1, description="the id that is no token: none of the vocabulary's")
    max_length: int = Field(default=1024, ge=1, description="the context, in tokens")


def _gpt3(layers: int, width: int, heads: int) -> dict[str, object]:
    return {"layers": layers, "width": width, "heads": heads, "max_length": 2048}


SIZES: dict[str, dict[str, object]] = {
    "nano": {"layers": 4, "width": 128, "heads": 4, "attention_dropout": 0.0},
    "1": {"layers": 12, "width": 768, "heads": 12, "norm": "post", "max_length": 512},
    "124m": {"layers": 12, "width": 768, "heads": 12},
    "355m": {"layers": 24, "width": 1024, "heads": 16},
    "774m": {"layers": 36, "width": 1280, "heads": 20},
    "1.5b": {"layers": 48, "width": 1600, "heads": 25},
    # GPT-3, table 2.1, with every layer dense. Two of its rows contradict themselves (heads times their width is not
    # the model's width): 1.3B has 16 heads here instead of 24, and 13B is 5,120 wide instead of 5,140.
    "3-125m": _gpt3(12, 768, 12),
    "3-350m": _gpt3(24, 1024, 16),
    "3-760m": _gpt3(24, 1536, 16),
    "3-1.3b": _gpt3(24, 2048, 16),
    "3-2.7b": _gpt3(32, 2560, 32),
    "3-6.7b": _gpt3(32, 4096, 32),
    "3-13b": _gpt3(40, 5120, 40),
    "3-175b": _gpt3(96, 12288, 96),
}


class Block(nn.Module):
    """Causal self-attention, then feed-forward (GPT-1, figure 1, left)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width, inner = config.width, config.inner or 4 * config.width
        self.attention = SelfAttention(width, config.heads, dropout=config.attention_dropout)
        self.feed_forward = FeedForward(width, inner, activation=config.activation)
        residual = (width, config.norm, config.dropout, config.norm_epsilon)
        self.around_attention, self.around_feed_forward = Residual(*residual), Residual(*residual)

    def forward(
        self, x: Tensor, mask: Tensor | None, past: KeyValue | None, record: Recording | None, site: str
    ) -> tuple[Tensor, KeyValue]:
        query, present = self.attention.query_and_memory(self.around_attention.before(x), past)
        looked = self.attention(query, present, mask=mask, record=record, site=f"{site}.self")
        x = self.around_attention.after(x, looked)
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x))), present


class Blocks(Stack[Block]):
    """The layers, one above the other."""

    def read(
        self, x: Tensor, mask: Tensor | None, pasts: Sequence[KeyValue | None], record: Recording | None
    ) -> tuple[Tensor, tuple[KeyValue, ...]]:
        """Tokens (B, T, M) and each layer's past -> (B, T, M), and the pasts with them."""
        presents = []
        for index, (block, past) in enumerate(zip(self, pasts, strict=True)):
            x, present = block(x, mask, past, record, f"decoder.{index}")
            presents.append(present)
        return x, tuple(presents)


class GPT(Decoder):
    config: GPTConfig
    decoder: Blocks

    def __init__(self, config: GPTConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.max_length, self.pad = config, config.max_length, config.pad
        self.words = nn.Embedding(vocabulary, config.width)
        self.places = nn.Embedding(config.max_length, config.width)
        self.dropout = Dropout(config.dropout)
        self.decoder = Blocks(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon) if config.norm == "pre" else nn.Identity()
        self.output = nn.Linear(config.width, vocabulary, bias=False)
        initialise(self, config.layers)
        if config.tie_output:
            self.output.weight = self.words.weight

    def read(
        self,
        ids: Tensor,
        places: Tensor,
        mask: Tensor | None,
        past: Sequence[KeyValue | None],
        record: Recording | None = None,
    ) -> tuple[Tensor, tuple[KeyValue, ...]]:
        x = self.dropout(self.words(ids.clamp(min=0)) + self.places(places))  # (B, T, M)
        x, present = self.decoder.read(x, mask, past, record)
        return self.norm(x), present


@torch.no_grad()
def initialise(model: nn.Module, layers: int, deviation: float = 0.02) -> None:
    """Matrices from a narrow normal distribution, biases zero; what ends a sublayer narrower (GPT-2, section 2.3)."""
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            ends = name.endswith(("attention.output.weight", "feed_forward.output.weight"))
            nn.init.normal_(weight, std=deviation / math.sqrt(2 * layers) if ends else deviation)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
