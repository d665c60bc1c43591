"""Recurrent layers: one module that reads a whole sequence or takes one step, GRU or LSTM, one or both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.nn.state import Hidden
from regard.nn.unrolled import Unrolled, learns_on_cpu

Cell = Literal["gru", "lstm"]


Reader = Callable[[Tensor, Hidden], tuple[Tensor, Hidden]]
"""What reads (B, T, inputs) from a state on: outputs (B, T, width), and the state after the last token."""


class Recurrent(nn.Module):
    """A stack of GRU (Cho 2014) or LSTM (Hochreiter 1997) layers over (B, T, inputs) -> (B, T, width)."""

    def __init__(
        self, cell: Cell, inputs: int, width: int, *, layers: int = 1, both_ways: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        kind = {"gru": nn.GRU, "lstm": nn.LSTM}[cell]
        self.gates = {"gru": 3, "lstm": 4}[cell]
        between = dropout if layers > 1 else 0.0
        self.layers = kind(inputs, width, layers, batch_first=True, bidirectional=both_ways, dropout=between)
        for name, weight in self.layers.named_parameters():
            if name.startswith("weight_hh"):
                for gate in weight.split(width):
                    nn.init.orthogonal_(gate)

    def forward(
        self, inputs: Tensor, state: Hidden | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Hidden]:
        """Outputs and the state after the last token; `lengths` (B,) says where padding begins, if there is any."""
        if self._learns():
            return Unrolled(self.layers)(inputs, state, lengths)
        start = None
        if state is not None:
            hidden = state.hidden.transpose(0, 1).contiguous()
            start = hidden if state.cell is None else (hidden, state.cell.transpose(0, 1).contiguous())
        if lengths is None:
            outputs, last = self.layers(inputs, start)
        else:
            packed = pack_padded_sequence(inputs, lengths.cpu(), batch_first=True, enforce_sorted=False)
            outputs, last = self.layers(packed, start)
            outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
        if isinstance(last, tuple):
            return outputs, Hidden(last[0].transpose(0, 1), last[1].transpose(0, 1))
        return outputs, Hidden(last.transpose(0, 1))

    def unrolled(self) -> Reader:
        """What reads as this does, to be called for every step of one sequence: in training on a CPU, the gradients of
        its weights are formed once for all steps."""
        return Unrolled(self.layers) if self._learns() else self

    def _learns(self) -> bool:
        weight: Tensor = self.layers.weight_hh_l0
        return learns_on_cpu(weight)


class Bridge(nn.Module):
    """From the encoder's last states to the decoder's first: s_0 = tanh(W h)  (Bahdanau 2015, section A.2.2)."""

    def __init__(self, encoder_width: int, decoder_width: int, layers: int, cell: Cell) -> None:
        super().__init__()
        self.layers, self.cell = layers, cell
        self.map = nn.Linear(encoder_width, layers * decoder_width)

    def forward(self, summary: Tensor) -> Hidden:
        """(B, encoder width) -> one state for each decoder layer."""
        hidden = torch.tanh(self.map(summary)).to(summary.dtype)  # states are not rounded
        hidden = hidden.reshape(len(summary), self.layers, -1)
        return Hidden(hidden, torch.zeros_like(hidden) if self.cell == "lstm" else None)
