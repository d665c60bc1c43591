"""A decoder as a translator: the source is its prompt, the target what it answers (GPT-2, section 2.3 and 3.7).

    source ids </s>   <s> target ids
    `--------------------------------'     one sequence, read from left to right
                       | ...       |
                      hidden vectors of the target, so that the loss is on the answer only

Nothing is learned here: the weights are the decoder's own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.models.base import EncoderDecoder
from regard.models.decoder import Decoder
from regard.nn.record import Recording
from regard.nn.state import State


class Prompted(EncoderDecoder):
    """A `Decoder` with the promise of an `EncoderDecoder`. `pad` is the padding of the batches it is given; so much of
    its context as `target` says, or half of it, is for the target."""

    joined = True

    def __init__(self, decoder: Decoder, pad: int, target: int | None = None) -> None:
        super().__init__()
        self.decoder, self.pad, self.output, self.config = decoder, pad, decoder.output, decoder.config
        self.target = decoder.max_length // 2 if target is None else target
        self.max_length = decoder.max_length - self.target

    @property
    def max_target(self) -> int:
        return self.target

    def forward(self, source: Tensor, target: Tensor, *, record: Recording | None = None) -> Tensor:
        ids = torch.cat([source, target], dim=1)
        padding = ids == self.pad
        longest = int((~padding).sum(dim=1).max())
        order = padding.long().argsort(dim=1, stable=True)[:, :longest]  # what is padding goes to the end
        hidden = self.decoder(self._own(ids.gather(1, order)), record=record)
        begins = (source != self.pad).sum(dim=1, keepdim=True)
        places = (begins + torch.arange(target.shape[1], device=ids.device)).clamp(max=longest - 1)  # (B, T)
        answers: Tensor = hidden.gather(1, places[:, :, None].expand(-1, -1, hidden.shape[-1]))
        return answers

    def start(self, source: Tensor) -> State:
        return self.decoder.start(self._own(source))

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        return self.decoder.step(ids, state)

    def _own(self, ids: Tensor) -> Tensor:
        """With the decoder's padding."""
        return ids.masked_fill(ids == self.pad, self.decoder.pad)
