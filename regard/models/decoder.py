"""What a decoder promises: a model that continues text. How masks, places and caches follow from its tokens is here.

prompt  t_1 ... t_n-1     t_n        next
        `start`           `step`     `step` ...          each step answers with the logits of the token after it
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import UserError
from regard.nn.attention import causal_mask
from regard.nn.layers import Stack
from regard.nn.record import Recording
from regard.nn.state import KeyValue, State

PROMPT_BLOCK = 512
"""Tokens of a prompt that are read at once."""


@dataclass(frozen=True)
class DecoderState(State):
    """What a decoder has read: keys and values layer by layer, and which of the tokens were no padding."""

    past: tuple[KeyValue, ...]
    real: Tensor | None  # (B, K); None where no token was padding
    length: int = 0


class Decoder(nn.Module, ABC):
    """Tokens in, the next token out. Padding, left or right, changes nothing.

    Training calls the model once on whole sequences; decoding calls `start` on all of the prompt but its last token,
    and `step` from there on.
    """

    config: ModelConfig
    output: nn.Linear
    """The projection onto the vocabulary, (M) -> (V)."""
    max_length: int
    """The most tokens the model can read and write together."""
    pad: int
    """The id that is no token; as a rule -1, since every id of the vocabulary is one."""

    words: nn.Embedding
    decoder: Stack[Any]
    """The layers, each with its self-attention as `attention`."""

    @abstractmethod
    def read(
        self,
        ids: Tensor,
        places: Tensor,
        mask: Tensor | None,
        past: Sequence[KeyValue | None],
        record: Recording | None = None,
    ) -> tuple[Tensor, tuple[KeyValue, ...]]:
        """Tokens (B, T) at `places` (B or 1, T) -> what `output` turns into logits (B, T, M), and the memory of every
        layer with them."""

    def forward(self, ids: Tensor, *, documents: Tensor | None = None, record: Recording | None = None) -> Tensor:
        """Tokens (B, T) -> what `output` turns into logits (B, T, M).

        `documents` (B, T) says which document each token belongs to, where several share a row: a token then sees its
        own document only, and places are counted from that document's beginning.
        """
        length = ids.shape[1]
        self._check(length)
        mask = causal_mask(length, length, ids.device)
        places = torch.arange(length, device=ids.device)[None]
        real = self._real(ids)
        if real is not None:
            mask, places = mask & real[:, None, None], real.cumsum(dim=1).sub_(1).clamp_(min=0)
        if documents is not None:
            mask = mask & (documents[:, None, :, None] == documents[:, None, None, :])
            begins = torch.where(documents[:, 1:] != documents[:, :-1], places[:, 1:], 0).cummax(dim=1).values
            places = places - F.pad(begins, (1, 0))
        hidden, _ = self.read(ids, places, mask, [None] * len(self.decoder), record)
        return hidden

    def start(self, prompt: Tensor) -> DecoderState:
        """Read the prompt (B, T), which may be empty, in blocks: scores then take memory for a block, not for all."""
        none = self.words(prompt[:, :0])  # (B, 0, M)
        state = DecoderState(tuple(layer.attention.nothing(none) for layer in self.decoder), None)
        for block in prompt.split(PROMPT_BLOCK, dim=1) if prompt.shape[1] else ():
            _, state = self._continue(block, state)
        return state

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, DecoderState]:
        """One token for each row (B,) -> the logits of the next (B, V), and the state after it."""
        assert isinstance(state, DecoderState), f"a decoder's state, not {type(state).__name__}"
        hidden, state = self._continue(ids[:, None], state)
        logits: Tensor = self.output(hidden[:, -1])
        return logits, state

    def _continue(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Tokens (B, T) after those of the state -> hidden (B, T, M), and the state with them."""
        queries = ids.shape[1]
        length = state.length + queries
        self._check(length)
        mask = causal_mask(queries, length, ids.device) if queries > 1 else None
        places = torch.arange(state.length, length, device=ids.device)[None]
        now, real = self._real(ids), None
        if now is not None or state.real is not None:
            before = state.real if state.real is not None else ids.new_ones(len(ids), state.length, dtype=torch.bool)
            real = torch.cat([before, ids != self.pad], dim=1)
            places = real.cumsum(dim=1)[:, state.length :].sub_(1).clamp_(min=0)
            mask = real[:, None, None] if mask is None else mask & real[:, None, None]
        hidden, past = self.read(ids, places, mask, state.past)
        return hidden, DecoderState(past, real, length)

    def _real(self, ids: Tensor) -> Tensor | None:
        """Where tokens are no padding; None where none is."""
        real = ids != self.pad
        return None if bool(real.all()) else real

    def _check(self, length: int) -> None:
        if length > self.max_length:
            raise UserError(
                f"a sequence of {length} tokens: this model was built for at most {self.max_length} (model.max_length)"
            )
