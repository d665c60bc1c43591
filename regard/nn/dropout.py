"""Dropout whose masks cost little on a CPU.

PyTorch draws one random number per element, which was a quarter of a small Transformer's training step. Eight elements
share one 64-bit draw here, a byte each, so the probability is rounded to 1/256 (0.1 becomes 26/256); the kept elements
are scaled by the rounded probability, and the mean stays exact. On other devices this is PyTorch's own dropout.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Srivastava 2014: each element is zero with probability `rate` during training, else divided by 1 - rate."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return inputs
        if inputs.device.type != "cpu":
            return F.dropout(inputs, self.rate)
        return inputs * byte_mask(inputs.shape, self.rate, inputs.dtype)


def byte_mask(shape: torch.Size, rate: float, dtype: torch.dtype) -> Tensor:
    """Zeros with probability `rate` (to the nearest 1/256), elsewhere 1 / (1 - that probability)."""
    dropped = min(255, max(1, round(rate * 256)))
    count = shape.numel()
    draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    kept = torch.ge(draws.view(torch.uint8)[:count], dropped, out=torch.empty(count, dtype=dtype))  # 0 or 1
    return kept.mul_(256 / (256 - dropped)).view(shape)
