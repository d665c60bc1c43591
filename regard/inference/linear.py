"""Linear maps for inference: float32 by a kernel of our own, and 8 bits; and tables of words that are such maps too."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.inference.kernels import CODES, byte_panels, fits, from_panels, panels, product
from regard.models.base import Embedding

Activate = Callable[[Tensor], Tensor]

FEW = 8
"""In 8 bits without VNNI, more rows than this are FBGEMM's, which rounds the inputs too."""


class SharedLinear(nn.Module):
    """activation(x W' + b) by PyTorch, with the plain model's own weights."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activate | None = None) -> None:
        super().__init__()
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.activation = activation

    def forward(self, inputs: Tensor) -> Tensor:
        output = F.linear(inputs, self.weight, self.bias)
        return output if self.activation is None else self.activation(output)


class Panels(nn.Module):
    """activation(x W' + b) by our kernel, from panels of weights, in float32 or 8 bits, and of biases, scales (N)."""

    def __init__(self, weight: Tensor, *beside: Tensor, activation: Activate | None) -> None:
        super().__init__()
        self.outputs, self.code = len(beside[0]), CODES.get(activation, 0)
        self.later = None if activation in CODES else activation
        self.panels, self.biases = weight, torch.cat([panels(one) for one in beside])

    def product(self, inputs: Tensor) -> Tensor:
        output = product(inputs, self.panels, self.biases, self.outputs, self.code)
        return output if self.later is None else self.later(output)


class PackedLinear(Panels):
    """activation(x W' + b) in float32 by our kernel."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activate | None = None) -> None:
        bias = weight.new_zeros(len(weight)) if bias is None else bias
        super().__init__(panels(weight.detach()), bias.detach(), activation=activation)
        self.activation = activation

    @property
    def weight(self) -> Tensor:
        return from_panels(self.panels, self.outputs)

    @property
    def bias(self) -> Tensor:
        return from_panels(self.biases, self.outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        if fits(inputs):
            return self.product(inputs)
        return SharedLinear(self.weight, self.bias, self.activation).forward(inputs)


class PackedEmbedding(nn.Module):
    """The rows of a table that is also an output projection, out of its panels: tied weights are held once."""

    def __init__(self, plain: nn.Embedding, tied: PackedLinear) -> None:
        super().__init__()
        self.tied, self.scale = tied, plain.scale if isinstance(plain, Embedding) else 1

    def forward(self, ids: Tensor) -> Tensor:
        lanes, most = self.tied.panels.shape[-1], self.tied.outputs
        assert all(0 <= token < most for token in ids.flatten().tolist()), (
            f"tokens from 0 to {most - 1}, not {ids.tolist()}"
        )
        rows = self.tied.panels[ids // lanes, :, ids % lanes]  # (..., M)
        return rows if self.scale == 1 else rows * self.scale


class Int8Linear(nn.Module):
    """activation(x W' + b) by FBGEMM: W in 8 bits with a scale for each output, x in 7 bits with a scale for each call.

    7 bits for the inputs, because processors without VNNI add two products in 16 bits, which 8 bits could overflow.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activate | None = None) -> None:
        super().__init__()
        self.relu = activation is F.relu
        self.activation = None if self.relu else activation
        self.packed = torch.ops.quantized.linear_prepack(_rounded(weight), None if bias is None else bias.detach())

    @staticmethod
    def available() -> bool:
        return "fbgemm" in torch.backends.quantized.supported_engines

    def forward(self, inputs: Tensor) -> Tensor:
        kernel = torch.ops.quantized.linear_relu_dynamic if self.relu else torch.ops.quantized.linear_dynamic
        output: Tensor = kernel(inputs, self.packed, True)
        return output if self.activation is None else self.activation(output)


class ByteLinear(Panels):
    """activation(x W' + b) by our kernel for processors with VNNI: W in 8 bits with a scale for each output, x in 8
    bits with a scale for each row."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activate | None = None) -> None:
        rounded = _rounded(weight)
        super().__init__(byte_panels(rounded.int_repr()), *_beside(rounded, bias), activation=activation)
        self.width, self.activation = weight.shape[1], activation

    def forward(self, inputs: Tensor) -> Tensor:
        if fits(inputs):
            return self.product(inputs)
        whole = from_panels(self.panels.movedim(2, -1), self.outputs).flatten(1)[:, : self.width]
        biases, scales = (from_panels(half, self.outputs) for half in self.biases.chunk(2))
        return SharedLinear((whole.float() - 128) * scales[:, None], biases, self.activation).forward(inputs)


class PackedInt8Linear(Panels):
    """As `Int8Linear`, for processors without VNNI; up to `FEW` rows by our kernel, which leaves the inputs as they
    are, and reads a quarter of what `PackedLinear` reads. The weights are held twice, for few rows and for many."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: Activate | None = None) -> None:
        rounded = _rounded(weight)
        super().__init__(panels(rounded.int_repr()), *_beside(rounded, bias), activation=activation)
        self.many = Int8Linear(weight, bias, activation)

    def forward(self, inputs: Tensor) -> Tensor:
        few = inputs.numel() <= FEW * inputs.shape[-1] and fits(inputs)
        return self.product(inputs) if few else self.many.forward(inputs)


def _beside(rounded: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The biases and the scales of weights in 8 bits."""
    scales = rounded.q_per_channel_scales().float()
    return torch.zeros_like(scales) if bias is None else bias.detach(), scales


def _rounded(weight: Tensor) -> Tensor:
    """Weights (N, M) in 8 bits, with a scale for each output."""
    scales = weight.detach().abs().amax(dim=1).clamp(min=1e-8) / 127
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantize_per_channel.*", category=UserWarning)
        zeros = torch.zeros(len(scales), dtype=torch.long)
        return torch.quantize_per_channel(weight.detach(), scales.double(), zeros, 0, torch.qint8)
