"""Attention at every step of a recurrent decoder, as it learns on a CPU: what `attention` gives, and its gradients in
less time.

Every step attends to the same memory, and autograd forms a gradient as large as the memory for each of them and adds
it to the others. Here the values get theirs in one product at the end. A test says that both agree.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.nn.attention import Score, attention_weights
from regard.nn.unrolled import product_kind


class StepAttention:
    """`attention` to one memory, called for every step in turn."""

    def __init__(self, key: Tensor, value: Tensor, mask: Tensor, score: Score) -> None:
        self.key, self.mask, self.score = key, mask, score
        self.uses = _Uses()
        self.value: Tensor = _Gather.apply(value.to(product_kind(value)), self.uses)  # type: ignore[no-untyped-call]

    def __call__(self, query: Tensor) -> Tensor:
        """(B, H, Q, D) -> (B, H, Q, C)."""
        weights = attention_weights(query, self.key, self.mask, None, self.score)
        mixed: Tensor = _Mix.apply(weights.to(self.value.dtype), self.value, self.uses)  # type: ignore[no-untyped-call]
        return mixed


class _Uses:
    """The weights of every use that was passed so far on the way back, and what came back to its outputs."""

    def __init__(self) -> None:
        self.way_back = -1
        self.weights: list[Tensor] = []
        self.grads: list[Tensor] = []

    def add(self, weights: Tensor, grad: Tensor) -> None:
        way_back = torch._C._current_graph_task_id()
        if way_back != self.way_back:  # a new one: what one before it left is not for this
            self.way_back, self.weights, self.grads = way_back, [], []
        self.weights.append(weights.detach())  # else what is kept here would keep the graph that keeps this
        self.grads.append(grad)

    def take(self) -> tuple[Tensor, Tensor]:
        """All of them side by side, (B, H, T, S) and (B, H, T, C), to be kept no longer."""
        weights, grads, self.weights, self.grads = self.weights, self.grads, [], []
        return torch.cat(weights, dim=-2), torch.cat(grads, dim=-2)


class _Gather(torch.autograd.Function):
    """Values, unchanged; backwards, W' G of all uses at once."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, uses: _Uses) -> Tensor:
        ctx.uses = uses
        ctx.set_materialize_grads(False)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        weights, grad = ctx.uses.take()
        return weights.mT @ grad, None


class _Mix(torch.autograd.Function):
    """W V, one of the uses."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, value: Tensor, uses: _Uses) -> Tensor:
        ctx.save_for_backward(weights, value)
        ctx.uses = uses
        return weights @ value

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        weights, value = ctx.saved_tensors
        ctx.uses.add(weights, grads[0])
        return grads[0] @ value.mT, None, None
