"""Linear maps for inference: float32 by a kernel of our own, and 8 bits."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.inference.kernels import CODES, fits, product

MOST = 1024 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 256
"""With more rows than this PyTorch has the faster product. (With AVX-512 ours is as fast up to there, and adds and
activates in the same pass.)"""


class PackedLinear(nn.Module):
    """activation(x W' + b) in float32: up to `MOST` rows by our kernel, if `quick`."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: Callable[[Tensor], Tensor] | None = None,
        quick: bool = False,
    ) -> None:
        super().__init__()
        self.weight, self.activation = weight.detach().contiguous(), activation
        self.bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        self.code = CODES.get(activation) if quick else None

    @property
    def quick(self) -> bool:
        return self.code is not None

    def forward(self, inputs: Tensor) -> Tensor:
        if self.code is not None and inputs.numel() <= MOST * self.weight.shape[1] and fits(inputs):
            return product(inputs, self.weight, self.bias, self.code)
        output = F.linear(inputs, self.weight, self.bias)
        return output if self.activation is None else self.activation(output)


class Int8Linear(nn.Module):
    """activation(x W' + b) by FBGEMM: W in 8 bits with a scale for each output, x in 7 bits with a scale for each call.

    7 bits for the inputs, because processors without VNNI add two products in 16 bits, which 8 bits could overflow.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None, activation: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        super().__init__()
        self.relu = activation is F.relu
        self.activation = None if self.relu else activation
        scales = weight.detach().abs().amax(dim=1).clamp(min=1e-8) / 127
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*quantize_per_channel.*", category=UserWarning)
            zeros = torch.zeros(len(scales), dtype=torch.long)
            rounded = torch.quantize_per_channel(weight.detach(), scales.double(), zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(rounded, None if bias is None else bias.detach())

    @staticmethod
    def available() -> bool:
        return "fbgemm" in torch.backends.quantized.supported_engines

    def forward(self, inputs: Tensor) -> Tensor:
        kernel = torch.ops.quantized.linear_relu_dynamic if self.relu else torch.ops.quantized.linear_dynamic
        output: Tensor = kernel(inputs, self.packed, True)
        return output if self.activation is None else self.activation(output)
