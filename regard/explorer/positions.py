"""What a model is told about places: its table of positions, and how alike any two places are."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.positions import Positions
from regard.nn.record import Weights

PLACES = 96
"""Positions shown: the first of them."""


@torch.inference_mode()
def positions(model: nn.Module, part: Literal["table", "similarity"]) -> Weights | None:
    """The encoding of the first places (places, width), or the cosines between them (places, places)."""
    for module in model.modules():
        table = _table(module)
        if table is not None and table.shape[1]:
            table = table[:PLACES].float().cpu()
            if part == "similarity":
                unit = F.normalize(table, dim=-1)
                table = unit @ unit.T
            shown: Weights = table.numpy()
            return shown
    return None


def _table(module: nn.Module) -> Tensor | None:
    """The table (places, width) that a module adds to its tokens, if it does."""
    if isinstance(module, Positions):
        return module.table[module.offset :]
    places = getattr(module, "places", None)  # GPT's learned places
    return places.weight if isinstance(places, nn.Embedding) else None
