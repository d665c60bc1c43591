"""The connection around a sublayer, for inference: a sum and its norm in one pass."""

from __future__ import annotations

from torch import Tensor, nn

from regard.inference.kernels import fits, normed_sum
from regard.nn.layers import Residual


class PackedResidual(Residual):
    """`Residual` without its dropout, with LayerNorm(x + Sublayer(x)) as one kernel."""

    norm: nn.LayerNorm

    def __init__(self, plain: Residual, norm: nn.LayerNorm) -> None:
        super().__init__(len(norm.weight), plain.placement, dropout=0.0)
        self.norm = norm

    def after(self, inputs: Tensor, output: Tensor) -> Tensor:
        if self.placement == "post" and fits(inputs) and fits(output):
            return normed_sum(inputs, output, self.norm.weight, self.norm.bias, self.norm.eps)
        return super().after(inputs, output)
