"""What a model is told about places: its table of positions, and how alike any two places are."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from regard.nn.positions import Positions
from regard.nn.record import Weights

PLACES = 96
"""Positions shown: the first of them."""


@torch.inference_mode()
def positions(model: nn.Module, part: Literal["table", "similarity"]) -> Weights | None:
    """The encoding of the first places (places, width), or the cosines between them (places, places)."""
    for module in model.modules():
        if isinstance(module, Positions) and module.table.shape[1]:
            table = module.table[:PLACES].float().cpu()
            if part == "similarity":
                unit = F.normalize(table, dim=-1)
                table = unit @ unit.T
            shown: Weights = table.numpy()
            return shown
    return None
