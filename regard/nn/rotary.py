"""Rotary positions: queries and keys are turned by their places (Su 2021, "RoFormer", eq. 15 and 34).

Pair i of a head's numbers is turned by the angle p · base^(-2i/D) for place p. The product of a turned query and a
turned key then depends on how far apart they stand, and on nothing else; nothing is learned.

The pairs are (i, i + D/2), as in the weights that are published in Hugging Face's layout.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Turn:
    """The turn of tokens at given places, the same for every layer: cosines and sines (B or 1, 1, T, D)."""

    cosine: Tensor
    sine: Tensor

    def __call__(self, heads: Tensor) -> Tensor:
        """(B, H, T, D) turned."""
        first, second = heads.chunk(2, dim=-1)
        return heads * self.cosine + torch.cat([-second, first], dim=-1) * self.sine


@dataclass(frozen=True)
class Stretch:
    """Rates that were changed for longer texts than those trained on first (Llama 3.1): what turns slowly, fewer than
    `low` times in `first` tokens, turns `factor` times more slowly; what turns more than `high` times stays."""

    factor: float
    low: float
    high: float
    first: int

    def __call__(self, rates: Tensor) -> Tensor:
        turns = self.first * rates / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return rates * (kept + (1 - kept) / self.factor)


def turn(places: Tensor, width: int, base: float = 10_000.0, stretch: Stretch | None = None) -> Turn:
    """For tokens at `places` (B, T), in heads of `width`."""
    rates = base ** (-torch.arange(0, width, 2, device=places.device).float() / width)  # (D / 2)
    rates = rates if stretch is None else stretch(rates)
    angles = (places[..., None] * rates).repeat(1, 1, 2)[:, None]  # (B, 1, T, D)
    return Turn(angles.cos(), angles.sin())
