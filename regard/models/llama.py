"""Llama: the modern form of GPT ("LLaMA: Open and Efficient Foundation Language Models", Touvron et al., 2023).

    ids
     | W_e
    [ RMS norm, causal self-attention ]      places turn queries and keys (Su 2021); heads share keys and values in
    [ RMS norm, gated feed-forward    ]      groups (Ainslie 2023); FFN(x) = (silu(x W_g) * x W_1) W_2 (Shazeer 2020)
     | x layers
     | RMS norm
     | W_o
    logits

Section 2.2 names the three changes from GPT: the norm before each sublayer is an RMS norm, the activation is gated,
and places are rotary, in every layer, in the place of a learned table. No linear map has a bias.

Site: `decoder.{layer}.self`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.decoder import Decoder
from regard.models.gpt import initialise
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, GatedFeedForward, GroupedSelfAttention, Residual, Stack
from regard.nn.record import Recording
from regard.nn.rotary import Stretch, Turn, turn
from regard.nn.state import KeyValue


class LlamaConfig(ModelConfig):
    kind: Literal["llama"] = "llama"
    layers: int = Field(default=12, ge=1)
    width: int = Field(default=768, ge=1)
    inner: int = Field(default=2048, ge=1)
    heads: int = Field(default=12, ge=1)
    key_heads: int | None = Field(default=None, ge=1, description="heads of keys and values; as many as heads")
    head_width: int | None = Field(default=None, ge=1, description="width / heads")
    dropout: float = Field(default=0.0, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    activation: Activation = "silu"
    norm_epsilon: float = Field(default=1e-5, gt=0)
    rotary_base: float = Field(default=10_000.0, gt=1, description="of the angles: larger turns more slowly")
    rotary: Literal["default", "llama3"] = Field(default="default", description="llama3: stretched for long texts")
    rotary_factor: float | None = Field(default=None, ge=1, description="of a stretch; see regard.nn.rotary")
    rotary_low: float | None = Field(default=None, gt=0, description="fewer turns than this are stretched whole")
    rotary_high: float | None = Field(default=None, gt=0, description="more turns than this are left alone")
    rotary_first: int | None = Field(default=None, ge=1, description="the context before it was stretched, in tokens")
    tie_output: bool = Field(default=False, description="the output projection is the embedding table")
    pad: int = Field(default=-1, description="the id that is no token: none of the vocabulary's")
    max_length: int = Field(default=2048, ge=1, description="the context, in tokens")

    @model_validator(mode="after")
    def _heads_divide(self) -> LlamaConfig:
        if (self.head_width or self.width // self.heads) % 2:
            raise ValueError(f"head_width = {self.head_width or self.width // self.heads}: must be even, to be turned")
        if self.heads % (self.key_heads or self.heads):
            raise ValueError(f"key_heads = {self.key_heads}: must divide heads = {self.heads}")
        if self.rotary == "llama3" and self.stretch is None:
            raise ValueError("rotary = 'llama3': needs rotary_factor, rotary_low < rotary_high, and rotary_first")
        return self

    @property
    def stretch(self) -> Stretch | None:
        factor, low, high, first = self.rotary_factor, self.rotary_low, self.rotary_high, self.rotary_first
        if self.rotary == "default" or not (factor and low and high and first) or low >= high:
            return None
        return Stretch(factor, low, high, first)


SIZES: dict[str, dict[str, object]] = {
    "nano": {"layers": 4, "width": 128, "inner": 344, "heads": 4, "tie_output": True, "max_length": 1024},
    "15m": {"layers": 6, "width": 288, "inner": 768, "heads": 6, "tie_output": True, "max_length": 256},
    "135m": {"layers": 30, "width": 576, "inner": 1536, "heads": 9, "key_heads": 3, "tie_output": True},
    "7b": {"layers": 32, "width": 4096, "inner": 11008, "heads": 32},
}


class Block(nn.Module):
    """Causal self-attention, then a gated feed-forward, an RMS norm before each."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.attention = GroupedSelfAttention(
            config.width,
            config.heads,
            config.key_heads or config.heads,
            config.head_width or config.width // config.heads,
            dropout=config.attention_dropout,
        )
        self.feed_forward = GatedFeedForward(config.width, config.inner, activation=config.activation)
        self.around_attention, self.around_feed_forward = (
            Residual(config.width, "pre", config.dropout, config.norm_epsilon, "rms") for _ in range(2)
        )

    def forward(
        self, x: Tensor, turned: Turn, mask: Tensor | None, past: KeyValue | None, record: Recording | None, site: str
    ) -> tuple[Tensor, KeyValue]:
        query, present = self.attention.query_and_memory(self.around_attention.before(x), turned, past)
        looked = self.attention(query, present, mask=mask, record=record, site=f"{site}.self")
        x = self.around_attention.after(x, looked)
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x))), present


class Llama(Decoder):
    config: LlamaConfig

    def __init__(self, config: LlamaConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.max_length, self.pad = config, config.max_length, config.pad
        self.words = nn.Embedding(vocabulary, config.width)
        self.dropout = Dropout(config.dropout)
        self.decoder = Stack[Block](Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, config.norm_epsilon)
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
        x = self.dropout(self.words(ids.clamp(min=0)))  # (B, T, M)
        config = self.config
        turned = turn(places, config.head_width or config.width // config.heads, config.rotary_base, config.stretch)
        presents = []
        for index, (block, before) in enumerate(zip(self.decoder, past, strict=True)):
            x, present = block(x, turned, mask, before, record, f"decoder.{index}")
            presents.append(present)
        return self.norm(x), tuple(presents)
