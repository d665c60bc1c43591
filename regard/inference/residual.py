"""The connection around a sublayer, for inference: a sum and its norm in one pass."""

from __future__ import annotations

from torch import Tensor, nn

from regard.inference.kernels import fits, normed_sum
from regard.nn.layers import Residual


class PackedResidual(nn.Module):
    """`Residual` without its dropout, with LayerNorm(x + Sublayer(x)) as one kernel."""

    def __init__(self, plain: Residual, norm: nn.LayerNorm) -> None:
        super().__init__()
        self.norm, self.placement = norm, plain.placement

    def before(self, inputs: Tensor) -> Tensor:
        normed: Tensor = self.norm(inputs) if self.placement == "pre" else inputs
        return normed

    def after(self, inputs: Tensor, output: Tensor) -> Tensor:
        if self.placement == "pre":
            return inputs + output
        if fits(inputs) and fits(output):
            return normed_sum(inputs, output, self.norm.weight, self.norm.bias, self.norm.eps)
        normed: Tensor = self.norm(inputs + output)
        return normed
