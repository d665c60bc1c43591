"""What is measured: the shapes of `../shared/peers.md`, and made-up sentences of equal length."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.models.transformer import TransformerConfig

Shape = dict[str, Any]

STEPS, PAIRS, LENGTH = 4, 128, 16
"""Training: so many steps a turn, of so many pairs, of so many tokens on either side."""
TOKENS = 24
"""Decoding: so many tokens in and out."""
TRAIN_VOCABULARY, DECODE_VOCABULARY = 9_700, 8_000
TRAIN: Shape = {
    "encoder_layers": 4,
    "decoder_layers": 4,
    "width": 128,
    "inner": 256,
    "heads": 4,
    "dropout": 0.3,
    "inner_dropout": 0.3,
    "norm": "post",
    "positions": "sinusoid-halves",
}
DECODE: Shape = {"max_length": 64, "norm": "post", "positions": "sinusoid-halves"}


def transformer(shape: Shape) -> TransformerConfig:
    """Imported here, because a side that does not use PyTorch should not hold it."""
    from regard.models.transformer import TransformerConfig

    return TransformerConfig(**shape)


def sentences(rows: int, length: int, seed: int) -> list[list[int]]:
    draw = random.Random(seed)
    return [[draw.randrange(4, DECODE_VOCABULARY) for _ in range(length)] for _ in range(rows)]
