"""The RNN encoder-decoder that compresses a sentence into one vector.

Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder" (GRU; the vector is shown to the decoder at
every step, eq. 7-9), and Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks" (LSTM; the vector
is the decoder's first state; the source may be read backwards, section 3.3).

    source ids -> embed -> GRU/LSTM -> last state c
                                        | s_0 = tanh(W c)
    target ids -> embed ([; c]) -> GRU/LSTM -> tanh(W [s; y; c]) -> output projection -> logits

It has no attention: everything that is known of the source passes through c, which is why it fails on long sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.base import Embedding, EncoderDecoder, output_projection
from regard.nn.dropout import Dropout
from regard.nn.record import Recording
from regard.nn.recurrent import Bridge, Cell, Recurrent
from regard.nn.state import Hidden, State


class RNNConfig(ModelConfig):
    kind: Literal["rnn"] = "rnn"
    cell: Cell = "gru"
    layers: int = Field(default=1, ge=1)
    embedding: int = Field(default=256, ge=1, description="width of the word embeddings")
    width: int = Field(default=512, ge=1, description="width of the hidden state, and so of the one vector")
    both_ways: bool = Field(default=False, description="read the source in both directions")
    reverse_source: bool = Field(default=False, description="read the source backwards (Sutskever 2014)")
    repeat_summary: bool = Field(default=True, description="show the vector to the decoder at every step (Cho 2014)")
    dropout: float = Field(default=0.2, ge=0, lt=1)
    tie_output: bool = True


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"embedding": 128, "width": 256},
    "small": {"embedding": 256, "width": 512},
    "base": {"embedding": 620, "width": 1000},
}


@dataclass(frozen=True)
class RNNState(State):
    hidden: Hidden
    summary: Tensor  # (B, C)


class RNN(EncoderDecoder):
    def __init__(self, config: RNNConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(vocabulary, config.embedding, config.pad)
        self.encoder = Recurrent(
            config.cell,
            config.embedding,
            config.width,
            layers=config.layers,
            both_ways=config.both_ways,
            dropout=config.dropout,
        )
        compressed = config.width * (2 if config.both_ways else 1)
        self.bridge = Bridge(compressed, config.width, config.layers, config.cell)
        shown = compressed if config.repeat_summary else 0
        self.decoder = Recurrent(
            config.cell, config.embedding + shown, config.width, layers=config.layers, dropout=config.dropout
        )
        self.readout = nn.Linear(config.width + config.embedding + shown, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.output = output_projection(self.embedding, config.embedding, config.tie_output)

    def forward(self, source: Tensor, target: Tensor, *, record: Recording | None = None) -> Tensor:
        hidden, _ = self._advance(target, self.start(source))
        return hidden

    def start(self, source: Tensor) -> RNNState:
        lengths = (source != self.config.pad).sum(dim=1)
        if self.config.reverse_source:
            places = torch.arange(source.shape[1], device=source.device)
            mirrored = (lengths[:, None] - 1 - places).clamp(min=0)
            source = source.gather(1, mirrored).masked_fill(places >= lengths[:, None], self.config.pad)
        _, last = self.encoder(self.dropout(self.embedding(source)), lengths=lengths)
        directions = 2 if self.config.both_ways else 1
        summary = last.hidden[:, -directions:].flatten(1)  # (B, C), of the top layer
        return RNNState(self.bridge(summary), summary)

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, RNNState]:
        assert isinstance(state, RNNState), f"an RNN's state, not {type(state).__name__}"
        hidden, state = self._advance(ids[:, None], state)
        logits: Tensor = self.output(hidden[:, 0])
        return logits, state

    def _advance(self, target: Tensor, state: RNNState) -> tuple[Tensor, RNNState]:
        """Read target tokens (B, T) -> (B, T, M) and the state after the last of them."""
        embedded = self.dropout(self.embedding(target))
        shown = [state.summary[:, None].expand(-1, target.shape[1], -1)] if self.config.repeat_summary else []
        outputs, hidden = self.decoder(torch.cat([embedded, *shown], dim=-1), state.hidden)
        read = torch.tanh(self.readout(torch.cat([self.dropout(outputs), embedded, *shown], dim=-1)))
        return self.dropout(read), RNNState(hidden, state.summary)
