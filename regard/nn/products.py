"""Matrix products of training in float32, by the faster of the two libraries that PyTorch brings.

PyTorch leaves products of float32 matrices to MKL, which uses half of AVX-512 on AMD's processors: 118 GFLOP/s on a
core of a Zen 5, where oneDNN has 270. There `linear` takes oneDNN, forwards and back; elsewhere, and in other
precisions, it is `F.linear`. A test says that both agree.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEWEST_ROWS = 64
"""Of fewer rows, 128 wide, a product is over before oneDNN has found its kernel."""


class Linear(nn.Linear):
    """`nn.Linear` by `linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.weight, self.bias)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W' + b: (..., K), (N, K), (N,) -> (..., N)."""
    if not (torch.is_grad_enabled() and weight.requires_grad and by_onednn(inputs)):
        return F.linear(inputs, weight, bias)
    output: Tensor = _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return output


def by_onednn(inputs: Tensor) -> bool:
    """Whether products of these rows (..., K) are faster by oneDNN than by MKL."""
    plain = inputs.dtype == torch.float32 and inputs.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return plain and inputs.numel() >= FEWEST_ROWS * inputs.shape[-1] and mkl_is_slow()


def product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """A B' + b by oneDNN: (M, K), (N, K), (N,) -> (M, N). Either may be a transposed view: of the left one, better the
    smaller, a copy is made."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return found


def transposed_product(left: Tensor, right: Tensor) -> Tensor:
    """A' B by oneDNN: (K, M), (K, N) -> (M, N), in the order of memory that is formed fastest."""
    if left.shape[1] <= right.shape[1]:
        return product(left.t(), right.t())
    return product(right.t(), left.t()).t()


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return product(inputs.flatten(0, -2), weight, bias).view(*inputs.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs, weight = ctx.saved_tensors
        grad = grads[0].flatten(0, -2)
        asked, _, biased = ctx.needs_input_grad
        grad_inputs = product(grad, weight.t()).view(inputs.shape) if asked else None
        grad_weight = transposed_product(grad, inputs.flatten(0, -2))
        return grad_inputs, grad_weight.contiguous(), grad.sum(dim=0) if biased else None


@cache
def mkl_is_slow() -> bool:
    able = torch.cpu.get_capabilities()
    wide = bool(able.get("avx512_f")) and str(able.get("cpu_name", "")).startswith("AMD")
    return wide and torch.backends.mkldnn.is_available()
