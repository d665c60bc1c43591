"""The Transformer: "Attention Is All You Need" (Vaswani et al., 2017), figure 1.

    source ids                                target ids (shifted right)
        | embed · √M + positions                  | embed · √M + positions
        |                                         |
    [ self-attention      ]                   [ causal self-attention ]
    [ feed-forward        ] x encoder_layers  [ attention over memory ] x decoder_layers
        |                                     [ feed-forward          ]
      memory ------------------------------------'|
                                              output projection -> logits

Around every sublayer stands a residual connection with a layer norm, after it ("post", the paper's) or before it
("pre"; then one more norm ends each stack, Xiong 2020).

Sites: `encoder.{layer}.self`, `decoder.{layer}.self`, `decoder.{layer}.cross`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from pydantic import Field
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.base import Embedding, EncoderDecoder, output_projection
from regard.nn.attention import ScoreName, causal_mask, padding_mask, window_mask
from regard.nn.dropout import Dropout
from regard.nn.layers import (
    Activation,
    FeedForward,
    GatedFeedForward,
    MultiHeadAttention,
    NormKind,
    NormPlacement,
    Residual,
    SelfAttention,
    Stack,
)
from regard.nn.positions import PositionJoin, PositionKind, Positions
from regard.nn.record import Recording
from regard.nn.state import KeyValue, State

Attention = TypeVar("Attention", bound=MultiHeadAttention)


class TransformerConfig(ModelConfig):
    """Table 3 of the paper, and what later work varied."""

    kind: Literal["transformer"] = "transformer"
    encoder_layers: int = Field(default=6, ge=1)
    decoder_layers: int = Field(default=6, ge=1)
    width: int = Field(default=512, ge=1, description="M, the paper's d_model")
    inner: int = Field(default=2048, ge=1, description="width inside the feed-forward, the paper's d_ff")
    heads: int = Field(default=8, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    norm: NormPlacement = "pre"
    norm_epsilon: float = Field(default=1e-5, gt=0)
    activation: Activation = "relu"
    score: ScoreName = "scaled-dot"
    positions: PositionKind = "sinusoid"
    position_join: PositionJoin = "add"
    window: int = Field(default=0, ge=0, description="self-attention reaches this many tokens each way; 0 = all")
    share_embeddings: bool = Field(default=True, description="one embedding table for source and target")
    tie_output: bool = Field(default=True, description="the output projection is the target's embedding table")
    max_length: int = Field(default=1024, ge=1)
    decoder_start: int | None = Field(default=None, ge=0, description="the token before the first; the tokenizer's")


SIZES: dict[str, dict[str, object]] = {
    "micro": {"encoder_layers": 2, "decoder_layers": 2, "width": 128, "inner": 256, "heads": 4},
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "width": 128, "inner": 256, "heads": 4},
    "small": {"encoder_layers": 6, "decoder_layers": 6, "width": 256, "inner": 1024, "heads": 4},
    "base": {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "inner": 2048, "heads": 8},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "width": 1024, "inner": 4096, "heads": 16, "dropout": 0.3},
}


class Shape(Protocol):
    """What a layer needs to know; models that are made of the same layers have these fields too."""

    width: int
    inner: int
    heads: int
    dropout: float
    attention_dropout: float
    norm: NormPlacement
    norm_epsilon: float
    activation: Activation
    score: ScoreName


@dataclass(frozen=True)
class Style:
    """What later models changed inside the layers; the defaults are the paper's."""

    norm: NormKind = "layer"
    gated: bool = False
    biases: bool = True
    head_width: int | None = None
    inner_dropout: float = 0.0


PLAIN = Style()


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (figure 1, left)."""

    def __init__(self, config: Shape, style: Style = PLAIN) -> None:
        super().__init__()
        self.attention = _attention(config, style, SelfAttention)
        self.feed_forward = _feed_forward(config, style)
        self.around_attention, self.around_feed_forward = _residual(config, style), _residual(config, style)

    def forward(
        self, x: Tensor, mask: Tensor | None, record: Recording | None, site: str, bias: Tensor | None = None
    ) -> Tensor:
        query, memory = self.attention.query_and_memory(self.around_attention.before(x))
        looked = self.attention(query, memory, mask=mask, bias=bias, record=record, site=f"{site}.self")
        x = self.around_attention.after(x, looked)
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x)))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention over the encoder's memory, then feed-forward (figure 1, right)."""

    def __init__(self, config: Shape, style: Style = PLAIN) -> None:
        super().__init__()
        self.attention = _attention(config, style, SelfAttention)
        self.cross = _attention(config, style, MultiHeadAttention)
        self.feed_forward = _feed_forward(config, style)
        self.around_attention, self.around_cross = _residual(config, style), _residual(config, style)
        self.around_feed_forward = _residual(config, style)

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
        query, present = self.attention.query_and_memory(self.around_attention.before(x), past)
        looked = self.attention(query, present, mask=mask, bias=bias, record=record, site=f"{site}.self")
        x = self.around_attention.after(x, looked)
        query = self.cross.query(self.around_cross.before(x))
        looked = self.cross(query, memory, mask=memory_mask, record=record, site=f"{site}.cross")
        x = self.around_cross.after(x, looked)
        return self.around_feed_forward.after(x, self.feed_forward(self.around_feed_forward.before(x))), present


class DecoderStack(Stack[DecoderLayer]):
    """The decoder's layers, one above the other (figure 1, right)."""

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
        """Target tokens (B, T, M), each layer's memory and past -> (B, T, M), and the pasts with them."""
        presents = []
        for index, (layer, memory, past) in enumerate(zip(self, memories, pasts, strict=True)):
            x, present = layer(x, memory, past, mask, memory_mask, record, f"decoder.{index}", bias)
            presents.append(present)
        return x, tuple(presents)


@dataclass(frozen=True)
class TransformerState(State):
    """The memory's keys and values, projected once, and those of the tokens so far, layer by layer."""

    memory: tuple[KeyValue, ...]
    memory_mask: Tensor | None  # None where no sentence is padded
    past: tuple[KeyValue, ...]
    length: int = 0


class Stacks(EncoderDecoder):
    """The walk through an encoder and a decoder of the layers above, which BART and T5 share.

    Models differ in how tokens become vectors, in what is added to the scores, and in what ends a stack.
    """

    encoder: Stack[EncoderLayer]
    decoder: DecoderStack
    encoder_norm: nn.Module
    decoder_norm: nn.Module
    pad: int
    window: int = 0

    @abstractmethod
    def embed_source(self, ids: Tensor) -> Tensor:
        """(B, S) -> (B, S, M)."""

    @abstractmethod
    def embed_target(self, ids: Tensor, first: int = 0) -> Tensor:
        """(B, T), of which the first token stands at place `first` -> (B, T, M)."""

    def source_bias(self, length: int) -> Tensor | None:
        """What the encoder's self-attention adds to its scores: (1, H, S, S)."""
        return None

    def target_bias(self, queries: int, keys: int) -> Tensor | None:
        """What the decoder's self-attention adds to its scores: (1, H, Q, K)."""
        return None

    def forward(self, source: Tensor, target: Tensor, *, record: Recording | None = None) -> Tensor:
        memory = self.encode(source, record)
        length = target.shape[1]
        mask, bias = self._window(causal_mask(length, length, target.device)), self.target_bias(length, length)
        memory_mask = padding_mask(source, self.pad)
        projected = [layer.cross.memory(memory) for layer in self.decoder]
        nothing = [None] * len(projected)
        x, _ = self.decoder.read(self.embed_target(target), projected, nothing, mask, memory_mask, record, bias)
        hidden: Tensor = self.decoder_norm(x)
        return hidden

    def encode(self, source: Tensor, record: Recording | None = None) -> Tensor:
        """Source ids (B, S) -> memory (B, S, M)."""
        mask, bias = self._window(padding_mask(source, self.pad)), self.source_bias(source.shape[1])
        x = self.embed_source(source)
        for index, layer in enumerate(self.encoder):
            x = layer(x, mask, record, f"encoder.{index}", bias)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def start(self, source: Tensor) -> TransformerState:
        memory = self.encode(source)
        projected = tuple(layer.cross.memory(memory) for layer in self.decoder)
        past = tuple(layer.attention.nothing(memory) for layer in self.decoder)
        mask = padding_mask(source, self.pad)
        return TransformerState(projected, None if bool(mask.all()) else mask, past)

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, TransformerState]:
        assert isinstance(state, TransformerState), f"a Transformer's state, not {type(state).__name__}"
        x = self.embed_target(ids[:, None], state.length)
        keys = state.length + 1
        mask = window_mask(1, keys, self.window, ids.device) if self.window else None
        bias = self.target_bias(1, keys)
        x, past = self.decoder.read(x, state.memory, state.past, mask, state.memory_mask, bias=bias)
        logits: Tensor = self.output(self.decoder_norm(x[:, -1]))
        return logits, TransformerState(state.memory, state.memory_mask, past, keys)

    def _window(self, mask: Tensor) -> Tensor:
        length = mask.shape[-1]
        return mask & window_mask(length, length, self.window, mask.device) if self.window else mask


class Transformer(Stacks):
    def __init__(self, config: TransformerConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.max_length, self.decoder_start = config, config.max_length, config.decoder_start
        self.pad, self.window = config.pad, config.window
        width = config.width
        self.target_embedding = Embedding(vocabulary, width, config.pad)
        share = config.share_embeddings
        self.source_embedding = self.target_embedding if share else Embedding(vocabulary, width, config.pad)
        positions = (config.positions, width, config.max_length, config.position_join)
        self.source_positions, self.target_positions = Positions(*positions), Positions(*positions)
        self.dropout = Dropout(config.dropout)
        style = Style(inner_dropout=config.inner_dropout)
        self.encoder = Stack[EncoderLayer](EncoderLayer(config, style) for _ in range(config.encoder_layers))
        self.decoder = DecoderStack(DecoderLayer(config, style) for _ in range(config.decoder_layers))
        pre = config.norm == "pre"
        self.encoder_norm = nn.LayerNorm(width, config.norm_epsilon) if pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(width, config.norm_epsilon) if pre else nn.Identity()
        self.output = output_projection(self.target_embedding, width, config.tie_output)

    def embed_source(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(self.source_positions(self.source_embedding(ids)))
        return embedded

    def embed_target(self, ids: Tensor, first: int = 0) -> Tensor:
        embedded: Tensor = self.dropout(self.target_positions(self.target_embedding(ids), first))
        return embedded


def _residual(config: Shape, style: Style) -> Residual:
    return Residual(config.width, config.norm, config.dropout, config.norm_epsilon, style.norm)


def _attention(config: Shape, style: Style, kind: type[Attention]) -> Attention:
    return kind(
        config.width,
        config.heads,
        head_width=style.head_width,
        biases=style.biases,
        score=config.score,
        dropout=config.attention_dropout,
    )


def _feed_forward(config: Shape, style: Style) -> FeedForward | GatedFeedForward:
    kind = GatedFeedForward if style.gated else FeedForward
    width, inner, activation = config.width, config.inner, config.activation
    return kind(width, inner, activation=activation, dropout=style.inner_dropout, biases=style.biases)
