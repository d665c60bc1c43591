"""The RNN that learned to align: Bahdanau et al. 2015 and Luong et al. 2015, with the choices that lie between them.

    source ids -> embed -> GRU/LSTM both ways -> memory h_1 ... h_S
                                                   | c_t = attention(query, memory)
    target ids -> embed -> GRU/LSTM  s_t  ---------'-> readout -> output projection -> logits

`query`: the previous state s_{t-1} asks (Bahdanau, eq. 6) or the current one, s_t (Luong, figure 2).
`context`: "input" feeds c_t into the cell (Bahdanau, eq. 4; with the current state as the query a second cell reads it:
the conditional GRU of Firat & Cho 2016); "concatenate" and "add" combine c_t with the cell's output (Luong, eq. 5).
`input_feeding`: the readout is an input of the next step (Luong, section 3.3).
`score`: any of the score functions; Bahdanau's is "additive".
`remember_words`: a source word is remembered with its embedding, m_s = [h_s; e_s] (Kuang et al. 2018, section 3.1).

The presets: bahdanau = previous, input, additive; luong = current, concatenate, general, input feeding.

Site: `decoder.cross`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.models.base import Embedding, EncoderDecoder, output_projection
from regard.nn.attention import SCORES, ScoreName, attention, padding_mask
from regard.nn.dropout import Dropout
from regard.nn.record import Recording
from regard.nn.recurrent import Bridge, Cell, Reader, Recurrent
from regard.nn.state import Hidden, State
from regard.nn.step_attention import StepAttention
from regard.nn.unrolled import learns_on_cpu

Looking = Callable[[Tensor], Tensor]
"""What answers queries (B, 1, Q, M) with contexts (B, 1, Q, C): one head."""


class RNNAttentionConfig(ModelConfig):
    kind: Literal["rnn-attention"] = "rnn-attention"
    cell: Cell = "gru"
    layers: int = Field(default=1, ge=1)
    embedding: int = Field(default=256, ge=1, description="width of the word embeddings")
    width: int = Field(default=512, ge=1, description="width of the decoder's state")
    memory: int | None = Field(
        default=None, ge=2, description="width of what is read of each source word, half from each direction; as width"
    )
    score: ScoreName = "additive"
    query: Literal["previous", "current"] = Field(default="previous", description="the state that asks")
    context: Literal["input", "concatenate", "add"] = Field(default="input", description="where the answer goes")
    input_feeding: bool = Field(default=False, description="the readout is an input of the next step (Luong 2015)")
    remember_words: bool = Field(
        default=False, description="a source word is remembered with its embedding beside what was read (Kuang 2018)"
    )
    dropout: float = Field(default=0.2, ge=0, lt=1)
    tie_output: bool = True

    @model_validator(mode="after")
    def _two_directions(self) -> RNNAttentionConfig:
        if self.encoded % 2:
            name = "width" if self.memory is None else "memory"
            raise ValueError(f"{name} = {self.encoded}: must be even, half for each direction of the encoder")
        if self.remembered != self.width and self.score in ("dot", "scaled-dot"):
            words = f" + {self.embedding} of the words" if self.remember_words else ""
            raise ValueError(
                f"memory = {self.encoded}{words}: {self.score} compares it with the state, so it must be as wide:"
                f" {self.width} (or try score = general)"
            )
        return self

    @property
    def encoded(self) -> int:
        """Width of what the encoder leaves of each source token."""
        return self.width if self.memory is None else self.memory

    @property
    def remembered(self) -> int:
        """Width of the memory: all that is kept of each source token."""
        return self.encoded + (self.embedding if self.remember_words else 0)


_LUONG = {"query": "current", "context": "concatenate", "score": "general", "input_feeding": True}
SIZES: dict[str, dict[str, object]] = {
    "tiny": {"embedding": 128, "width": 256},
    "small": {"embedding": 256, "width": 512},
    "bahdanau": {"embedding": 620, "width": 1000, "memory": 2000},
    "luong": {"embedding": 1000, "width": 1000, "cell": "lstm", "layers": 4, **_LUONG},
}


@dataclass(frozen=True)
class RNNAttentionState(State):
    memory: Tensor  # (B, S, C)
    key: Tensor  # the memory as the score function compares it
    mask: Tensor
    hidden: Hidden
    readout: Tensor  # (B, 1, E), of the step before, for input feeding


class RNNAttention(EncoderDecoder):
    def __init__(self, config: RNNAttentionConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        width, memory, inputs = config.width, config.remembered, config.embedding
        self.embedding = Embedding(vocabulary, inputs, config.pad)
        self.encoder = Recurrent(
            config.cell, inputs, config.encoded // 2, layers=config.layers, both_ways=True, dropout=config.dropout
        )
        self.bridge = Bridge(config.encoded, width, config.layers, config.cell)
        self.score = SCORES[config.score](width, memory)
        read = inputs + (inputs if config.input_feeding else 0)
        before = memory if config.context == "input" and config.query == "previous" else 0
        self.decoder = Recurrent(config.cell, read + before, width, layers=config.layers, dropout=config.dropout)
        if config.context == "input" and config.query == "current":
            self.second = Recurrent(config.cell, memory, width, layers=config.layers, dropout=config.dropout)
        if config.context == "add":
            self.context = nn.Linear(memory, width, bias=False)
        self.readout = nn.Linear(
            {"input": width + memory + inputs, "concatenate": width + memory, "add": width}[config.context], inputs
        )
        self.dropout = Dropout(config.dropout)
        self.output = output_projection(self.embedding, inputs, config.tie_output)

    def forward(self, source: Tensor, target: Tensor, *, record: Recording | None = None) -> Tensor:
        state = self.start(source)
        embedded = self.dropout(self.embedding(target))
        config = self.config
        if config.query == "current" and config.context != "input" and not config.input_feeding:
            # No step needs what the step before it attended to: all of them at once.
            output, context, _ = self._advance(embedded, state, self.cells, self._looking(state, record))
            return self._read(output, context, embedded)
        cells = [cell.unrolled() for cell in self.cells]
        look = self._looking(state, record, every_step=True)
        outputs, contexts, readouts = [], [], []
        for word in embedded.split(1, dim=1):
            output, context, hidden = self._advance(word, state, cells, look)
            outputs.append(output)
            contexts.append(context)
            if config.input_feeding:
                readouts.append(self._read(output, context, word))
            state = replace(state, hidden=hidden, readout=readouts[-1] if readouts else state.readout)
        if config.input_feeding:
            return torch.cat(readouts, dim=1)
        return self._read(torch.cat(outputs, dim=1), torch.cat(contexts, dim=1), embedded)

    def start(self, source: Tensor) -> RNNAttentionState:
        lengths = (source != self.config.pad).sum(dim=1)
        embedded = self.dropout(self.embedding(source))
        memory, last = self.encoder(embedded, lengths=lengths)
        memory = self.dropout(memory)
        if self.config.remember_words:
            memory = torch.cat([memory, embedded.to(memory.dtype)], dim=-1)
        hidden = self.bridge(last.hidden[:, -2:].flatten(1))  # the last states of the top layer, both ways
        key = self.score.key(memory[:, None])
        readout = memory.new_zeros(len(source), 1, self.config.embedding)
        return RNNAttentionState(memory, key, padding_mask(source, self.config.pad), hidden, readout)

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, RNNAttentionState]:
        assert isinstance(state, RNNAttentionState), f"an RNN's state, not {type(state).__name__}"
        embedded = self.dropout(self.embedding(ids[:, None]))
        output, context, hidden = self._advance(embedded, state, self.cells, self._looking(state))
        readout = self._read(output, context, embedded)
        logits: Tensor = self.output(readout[:, 0])
        return logits, replace(state, hidden=hidden, readout=readout)

    @property
    def cells(self) -> list[Recurrent]:
        """What reads the target, and what reads the contexts, if that is a second one."""
        two = self.config.context == "input" and self.config.query == "current"
        return [self.decoder, self.second] if two else [self.decoder]

    def _advance(
        self, embedded: Tensor, state: RNNAttentionState, cells: Sequence[Reader], look: Looking
    ) -> tuple[Tensor, Tensor, Hidden]:
        """Embedded target tokens (B, T, E) -> the cell's outputs (B, T, M), the contexts (B, T, C), its last state."""
        config = self.config
        inputs = [embedded, state.readout] if config.input_feeding else [embedded]
        if config.query == "current":
            outputs, hidden = cells[0](torch.cat(inputs, dim=-1), state.hidden)
            context = look(outputs[:, None])[:, 0]
            if config.context == "input":
                outputs, hidden = cells[1](context, hidden)
            return outputs, context, hidden
        context = look(state.hidden.top[:, None, None])[:, 0]
        inputs += [context] if config.context == "input" else []
        outputs, hidden = cells[0](torch.cat(inputs, dim=-1), state.hidden)
        return outputs, context, hidden

    def _read(self, outputs: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        """What the output projection sees: (B, T, E). Words and contexts have had their dropout before."""
        if self.config.context == "add":
            combined = outputs + self.context(context)
        else:
            combined = torch.cat([outputs, context, *([embedded] if self.config.context == "input" else [])], dim=-1)
        read: Tensor = self.dropout(torch.tanh(self.readout(combined)))
        return read

    def _looking(self, state: RNNAttentionState, record: Recording | None = None, every_step: bool = False) -> Looking:
        """Attention to the memory; `every_step`: it is called for each in turn."""
        key, value, mask = state.key, state.memory[:, None], state.mask
        if every_step and record is None and learns_on_cpu(value):
            return StepAttention(key, value, mask, self.score)
        return partial(
            attention, key=key, value=value, mask=mask, score=self.score, record=record, site="decoder.cross"
        )
