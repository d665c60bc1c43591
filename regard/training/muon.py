"""Muon (Jordan et al., 2024): the matrices inside a model's layers move by orthogonal steps, all else by AdamW.

The step of a matrix is its momentum with all singular values set to about 1, so that directions which are rare in the
gradients are learned as fast as common ones. On small decoders that halves the number of steps, for a cost that does
not grow with the batch: a few products of the matrix's own size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        turning = [
            (weight, group)
            for group in self.param_groups
            for weight in (group["params"] if group["orthogonal"] else ())
            if weight.grad is not None
        ]
        parts = [part for weight, group in turning for part in self._ahead(weight).chunk(group["orthogonal"])]
        turned = iter(orthogonal(parts))
        for weight, group in turning:
            weight.mul_(1 - group["lr"] * group["weight_decay"])
            for part in weight.chunk(group["orthogonal"]):
                tall = max(1.0, part.shape[0] / part.shape[1]) ** 0.5  # the same change of outputs for any shape
                part.add_(next(turned), alpha=-RATE * group["lr"] * tall)
            weight.grad = None  # AdamW passes it over
        return super().step(closure)

    def _ahead(self, weight: Tensor) -> Tensor:
        """The momentum of a weight, one step ahead (Nesterov's)."""
        state, grad = self.state[weight], weight.grad
        assert grad is not None, "a weight without a gradient does not move"
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        return grad.lerp(state["momentum"].lerp_(grad, 1 - MOMENTUM), MOMENTUM)


def orthogonal(matrices: Sequence[Tensor], steps: int = 5) -> list[Tensor]:
    """Nearly U V' of each singular value decomposition U S V', by Newton and Schulz's iteration: products only.

    Matrices of one shape are turned together: many small products would wait for each other.
    """
    turned: dict[int, Tensor] = {}
    alike: dict[tuple[int, int], list[int]] = {}
    for place, matrix in enumerate(matrices):
        alike.setdefault((min(matrix.shape), max(matrix.shape)), []).append(place)
    for places in alike.values():
        x = torch.stack([_lying(matrices[place]) for place in places])
        x /= x.norm(dim=(1, 2), keepdim=True) + 1e-7
        for _ in range(steps):
            square = x @ x.mT
            change = torch.baddbmm(square, square, square, beta=-4.7750, alpha=2.0315)
            x = torch.baddbmm(x, change, x, beta=3.4445)
        for place, one in zip(places, x, strict=True):
            turned[place] = one if matrices[place].shape == one.shape else one.t()
    return [turned[place] for place in range(len(matrices))]


def _lying(matrix: Tensor) -> Tensor:
    """Wider than high."""
    return matrix.t() if matrix.shape[0] > matrix.shape[1] else matrix
