"""Linear maps for inference: float32 by a kernel for few rows, and 8 bits."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.inference.kernels import fits, product

MOST = 256
"""With more rows than this, PyTorch's own product is as fast as the machine."""


class PackedLinear(nn.Module):
    """x W' + b, and its positive part where `relu`, in float32: up to `MOST` rows by our kernel, if `quick`."""

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False, quick: bool = False) -> None:
        super().__init__()
        self.weight, self.relu, self.quick = weight.detach().contiguous(), relu, quick
        self.bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()

    def forward(self, inputs: Tensor) -> Tensor:
        if self.quick and inputs.numel() <= MOST * self.weight.shape[1] and fits(inputs):
            return product(inputs, self.weight, self.bias, self.relu)
        output = F.linear(inputs, self.weight, self.bias)
        return output.relu_() if self.relu else output


class Int8Linear(nn.Module):
    """x W' + b, and its positive part where `relu`, by FBGEMM: W in 8 bits with a scale for each output, x in 7 bits
    with a scale for each call.

    7 bits for the inputs, because processors without VNNI add two products in 16 bits, which 8 bits could overflow.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
        super().__init__()
        self.relu = relu
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
        return output
