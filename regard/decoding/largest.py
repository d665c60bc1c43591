"""The few largest of many numbers: `topk`, in less than half the time on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 80


def largest(numbers: Tensor, few: int) -> tuple[Tensor, Tensor]:
    """The `few` largest of each row (R, V), the largest first, and their places; of shorter rows all.

    They are in the blocks with the largest peaks, of which there are as many, or behind the last whole block.
    """
    whole = numbers.shape[1] // BLOCK * BLOCK
    if few * BLOCK >= whole:
        return numbers.topk(min(few, numbers.shape[1]), dim=1)
    blocks = numbers[:, :whole].unflatten(1, (-1, BLOCK))  # (R, blocks, BLOCK)
    chosen = blocks.amax(dim=2).topk(few, dim=1).indices  # (R, few)
    near = blocks.gather(1, chosen[:, :, None].expand(-1, -1, BLOCK)).flatten(1)
    rest = torch.arange(whole, numbers.shape[1], device=numbers.device).expand(len(numbers), -1)
    within = torch.arange(BLOCK, device=numbers.device)
    places = torch.cat([(chosen[:, :, None] * BLOCK + within).flatten(1), rest], dim=1)
    found, order = torch.cat([near, numbers[:, whole:]], dim=1).topk(few, dim=1)
    return found, places.gather(1, order)
