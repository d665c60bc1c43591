"""Muon (Jordan et al., 2024): the matrices inside a model's layers move by orthogonal steps, all else by AdamW.

The step of a matrix is its momentum with all singular values set to about 1, so that directions which are rare in the
gradients are learned as fast as common ones. On small decoders that halves the number of steps, for a cost that does
not grow with the batch: a few products of the matrix's own size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

RATE = 8.0
"""An orthogonal step is larger than Adam's by nature: the rate of matrices, in shares of the learning rate."""
MOMENTUM = 0.95


class Muon(torch.optim.AdamW):
    """AdamW whose groups with `orthogonal` > 0 take orthogonal steps; a weight in them is so many matrices, one above
    the other."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        for group in self.param_groups:
            for weight in group["params"] if group["orthogonal"] else ():
                if weight.grad is not None:
                    self._turn(weight, group)
                    weight.grad = None  # AdamW passes it over
        return super().step(closure)

    def _turn(self, weight: Tensor, group: dict[str, Any]) -> None:
        state, grad = self.state[weight], weight.grad
        assert grad is not None, "a weight without a gradient does not move"
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        momentum = state["momentum"].lerp_(grad, 1 - MOMENTUM)
        ahead = grad.lerp(momentum, MOMENTUM)  # Nesterov's
        parts = [orthogonal(part) for part in ahead.chunk(group["orthogonal"])]
        tall = max(1.0, parts[0].shape[0] / parts[0].shape[1]) ** 0.5  # the same change of outputs for any shape
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.add_(torch.cat(parts), alpha=-RATE * group["lr"] * tall)


def orthogonal(matrix: Tensor, steps: int = 5) -> Tensor:
    """Nearly U V' of the singular value decomposition U S V', by Newton and Schulz's iteration: products only."""
    x = matrix / (matrix.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.t() if tall else x
    for _ in range(steps):
        square = x @ x.t()
        x = torch.addmm(x, torch.addmm(square, square, square, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    turned: Tensor = x.t() if tall else x
    return turned
