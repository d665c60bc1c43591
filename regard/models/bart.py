"""BART: "Denoising Sequence-to-Sequence Pre-training for Natural Language Generation" (Lewis et al., 2020), figure 1c.

    corrupted text                        the text itself (shifted right)
        | embed + places, norm                | embed + places, norm
    [ self-attention, both ways ]         [ causal self-attention ]
    [ feed-forward              ] x N     [ attention over memory ] x N
        |                                 [ feed-forward          ]
      memory --------------------------------'|
                                          output projection = the embedding table, + a bias

The Transformer of 2017 with learned places, GELU, and a norm on the embeddings (section 2.1). What makes it BART is
what it is trained on: text that was masked, cut, permuted or rotated, to be written as it was (section 2.2; see
`regard.data.denoising`).

Sites: `encoder.{layer}.self`, `decoder.{layer}.self`, `decoder.{layer}.cross`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.base import Embedding, output_projection
from regard.models.bert import initialise
from regard.models.transformer import DecoderLayer, DecoderStack, EncoderLayer, Stacks, Style
from regard.nn.attention import ScoreName
from regard.nn.dropout import Dropout
from regard.nn.layers import Activation, NormPlacement, Stack
from regard.nn.positions import Positions

RESERVED = 2
"""The tables of places have two rows that stand for no place: the published code counted from its padding token."""


class BartConfig(ModelConfig):
    """Section 2.1: six layers in each stack of the base model, twelve in the large one."""

    kind: Literal["bart"] = "bart"
    encoder_layers: int = Field(default=6, ge=1)
    decoder_layers: int = Field(default=6, ge=1)
    width: int = Field(default=768, ge=1)
    inner: int = Field(default=3072, ge=1)
    heads: int = Field(default=12, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    activation: Activation = "gelu"
    norm: NormPlacement = "post"
    norm_epsilon: float = Field(default=1e-5, gt=0)
    score: ScoreName = "scaled-dot"
    scale_embedding: bool = Field(default=False, description="embeddings times √M, as in the Transformer")
    max_length: int = Field(default=1024, ge=1)
    decoder_start: int | None = Field(default=None, ge=0, description="the token before the first; the tokenizer's")


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"encoder_layers": 2, "decoder_layers": 2, "width": 128, "inner": 512, "heads": 4},
    "small": {"encoder_layers": 4, "decoder_layers": 4, "width": 256, "inner": 1024, "heads": 4},
    "base": {"encoder_layers": 6, "decoder_layers": 6, "width": 768, "inner": 3072, "heads": 12},
    "large": {"encoder_layers": 12, "decoder_layers": 12, "width": 1024, "inner": 4096, "heads": 16},
}


class Bart(Stacks):
    def __init__(self, config: BartConfig, vocabulary: int) -> None:
        super().__init__()
        self.config, self.max_length, self.decoder_start = config, config.max_length, config.decoder_start
        self.pad = config.pad
        width = config.width
        self.words = Embedding(vocabulary, width, config.pad, None if config.scale_embedding else 1.0)
        self.source_positions = Positions("learned", width, config.max_length, offset=RESERVED)
        self.target_positions = Positions("learned", width, config.max_length, offset=RESERVED)
        self.source_norm = nn.LayerNorm(width, config.norm_epsilon)
        self.target_norm = nn.LayerNorm(width, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)
        style = Style(inner_dropout=config.inner_dropout)
        self.encoder = Stack[EncoderLayer](EncoderLayer(config, style) for _ in range(config.encoder_layers))
        self.decoder = DecoderStack(DecoderLayer(config, style) for _ in range(config.decoder_layers))
        self.encoder_norm, self.decoder_norm = nn.Identity(), nn.Identity()
        self.output = output_projection(self.words, width, tied=True)
        initialise(self)

    def embed_source(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(self.source_norm(self.source_positions(self.words(ids))))
        return embedded

    def embed_target(self, ids: Tensor, first: int = 0) -> Tensor:
        embedded: Tensor = self.dropout(self.target_norm(self.target_positions(self.words(ids), first)))
        return embedded
