"""The same models, executed faster on a CPU: packed weights, int8, caches that are written in place.

`pack` returns a twin of a model whose linear maps and attentions have been exchanged for fast ones. The twin has the
model's own `forward`, `start` and `step`: what a model computes is written in its file and nowhere else.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Literal, TypeVar, cast, get_args

import torch
from torch import nn

from regard.errors import UserError, nearest
from regard.inference.attention import MakeLinear, PackedAttention, PackedSelfAttention
from regard.inference.kernels import fits
from regard.inference.layer import packed_layer
from regard.inference.linear import Int8Linear, PackedLinear
from regard.inference.residual import PackedResidual
from regard.nn.attention import Dot, Score
from regard.nn.layers import FeedForward, MultiHeadAttention, Residual, SelfAttention

Weights = Literal["float32", "int8"]
Model = TypeVar("Model", bound=nn.Module)

LARGE = 2**23
"""Weights from which our kernels are used. A smaller model stays in the processor's cache, where they gain a tenth, and
loading them takes half a second."""


def pack(model: Model, weights: Weights = "float32") -> Model:
    """A twin of `model` for inference; off the CPU, the model itself.

    The twin shares the model's weights; in 8 bits, it holds its own.
    """
    model.eval()
    if weights not in get_args(Weights):
        raise UserError(f"weights = {weights!r}: unknown{nearest(weights, get_args(Weights))}")
    if any(weight.device.type != "cpu" for weight in model.parameters()):
        if weights == "int8":
            raise UserError("int8 runs on the CPU only (try --device cpu)")
        return model
    if weights == "int8" and not Int8Linear.available():
        raise UserError("int8 needs PyTorch's FBGEMM kernels, which this build of PyTorch does not have")
    held = [weight.detach() for weight in model.parameters()]
    quick = sum(weight.numel() for weight in held) >= LARGE and all(map(fits, held))
    linear = Int8Linear if weights == "int8" else partial(PackedLinear, quick=quick)
    with torch.no_grad():
        return cast(Model, _twin(model, linear, quick, {}))


def _twin(module: nn.Module, linear: MakeLinear, quick: bool, done: dict[nn.Module, nn.Module]) -> nn.Module:
    """The fast form of a module; one that occurs twice in a model is made once."""
    if module not in done:
        if isinstance(module, Score) or (isinstance(module, MultiHeadAttention) and not isinstance(module.score, Dot)):
            done[module] = module
        elif isinstance(module, MultiHeadAttention):
            packed = PackedSelfAttention if isinstance(module, SelfAttention) else PackedAttention
            done[module] = packed(module, linear, quick)
        elif isinstance(module, FeedForward):
            inner, output = module.inner, module.output
            activated = linear(inner.weight, inner.bias, module.activation)
            done[module] = nn.Sequential(activated, linear(output.weight, output.bias))
        elif isinstance(module, Residual) and isinstance(module.norm, nn.LayerNorm) and quick:
            done[module] = PackedResidual(module, module.norm)
        elif type(module) is nn.Linear:
            done[module] = linear(module.weight, module.bias)
        else:
            done[module] = twin = copy.copy(module)
            children = module._modules.items()
            twin._modules = {name: child and _twin(child, linear, quick, done) for name, child in children}
            if quick and linear is not Int8Linear:
                done[module] = packed_layer(module, twin._modules) or twin
    return done[module]
