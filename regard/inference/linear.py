"""Linear maps with their weights laid out for the kernel that multiplies by them."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 32
"""The number of rows that weights are laid out for. Measured with 1 to 128 rows, this layout was best or near it."""

SMALL = 2**17
"""A matrix of fewer numbers stays in the cache, where finding the blocked kernel costs more than it saves."""

MANY = 256
"""From this number of rows on, the plain product is as fast as the machine."""


class PackedLinear(nn.Module):
    """x W' + b, and its positive part where `relu`, in float32, by the kernel that is fastest for the number of rows.

    For several rows W is blocked for oneDNN: 1.3 to 2.5 times as fast as `F.linear`. A single row has to read all of W
    for two operations on each number: there each thread multiplies a part of W of its own, 1.7 times as fast. Where
    single rows do not occur (`several`), only the blocked W is kept; where memory counts (`once`), only the plain one.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None, relu: bool = False, several: bool = False, once: bool = False
    ) -> None:
        super().__init__()
        weight = weight.detach().contiguous()
        self.shape, self.relu = weight.shape, relu
        self.bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        self.small = weight.numel() < SMALL
        plain_only = self.small or (once and not several)
        self.blocked = None if plain_only else torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
        self.plain = None if several and not self.small else weight

    @staticmethod
    def available() -> bool:
        return bool(torch.backends.mkldnn.is_available())

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.numel() // self.shape[1]
        if self.plain is not None and rows == 1 and not self.small:
            return self._activated(self._single(inputs, self.plain).add_(self.bias))
        if self.plain is not None and (self.blocked is None or rows >= MANY):
            return self._activated(F.linear(inputs, self.plain, self.bias))
        then = "relu" if self.relu else "none"
        output: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self.blocked, self.bias, then, [], "")
        return output

    def _single(self, inputs: Tensor, weight: Tensor) -> Tensor:
        """W times one row: as many equal parts of W as there are threads, and the rows of W that are left over."""
        outputs, width = self.shape
        parts = torch.get_num_threads()
        even = outputs // parts * parts
        column = inputs.view(1, 1, width).expand(parts, -1, -1).transpose(1, 2)
        product = torch.bmm(weight[:even].view(parts, -1, width), column).view(even)
        if even < outputs:
            product = torch.cat([product, torch.mv(weight[even:], inputs.view(width))])
        return product.view(*inputs.shape[:-1], outputs)

    def _activated(self, output: Tensor) -> Tensor:
        return output.relu_() if self.relu else output


class Int8Linear(nn.Module):
    """x W' + b, and its positive part where `relu`, by FBGEMM: W in 8 bits with a scale for each output, x in 7 bits
    with a scale for each call.

    7 bits for the inputs, because processors without VNNI add two products in 16 bits, which 8 bits could overflow.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor | None, relu: bool = False, several: bool = False, once: bool = False
    ) -> None:
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
