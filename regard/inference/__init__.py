"""The same models, executed faster on a CPU: packed weights, int8, caches that are written in place.

`pack` returns a twin of a model whose linear maps and attentions have been exchanged for fast ones. The twin has the
model's own `forward`, `start` and `step`: what a model computes is written in its file and nowhere else.
"""

from __future__ import annotations

import copy
from typing import Literal, TypeVar, cast, get_args

import torch
from torch import nn

from regard.errors import UserError, nearest
from regard.inference.attention import MakeLinear, PackedAttention, PackedSelfAttention
from regard.inference.kernels import fits, multiplies_bytes
from regard.inference.layer import packed_layer, packed_stack
from regard.inference.linear import (
    ByteLinear,
    Int8Linear,
    PackedEmbedding,
    PackedInt8Linear,
    PackedLinear,
    SharedLinear,
)
from regard.inference.residual import PackedResidual
from regard.nn.attention import Dot, Score
from regard.nn.layers import FeedForward, MultiHeadAttention, Residual, SelfAttention

Weights = Literal["float32", "int8"]
Model = TypeVar("Model", bound=nn.Module)

LARGE = 2**23
"""Weights from which our kernels are used. A smaller model stays in the processor's cache, where they gain a tenth, and
loading them takes half a second."""


def pack(model: Model, weights: Weights = "float32", *, keep: bool = True) -> Model:
    """A twin of `model` for inference; off the CPU, the model itself.

    A small model's twin shares its weights; that of a large one, or in 8 bits, holds its own. Who does not `keep` the
    model never has both in memory: it loses each weight as soon as that is packed, and is of no more use. A model that
    is kept is set to inference too (`eval`).
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
    kinds = {weight.dtype for weight in model.parameters()}
    if weights == "int8" and kinds != {torch.float32}:
        raise UserError(f"int8 is made from weights of float32, not of {', '.join(sorted(map(str, kinds)))}")
    large = sum(weight.numel() for weight in model.parameters()) >= LARGE
    quick = large and all(fits(weight.detach()) for weight in model.parameters())
    with torch.no_grad():
        return cast(Model, _Packing(model, weights, quick, keep).twin(model))


class _Packing:
    """What is packed, how, and what is done already: a module that occurs twice in a model is packed once."""

    def __init__(self, model: nn.Module, weights: Weights, quick: bool, keep: bool) -> None:
        self.quick, self.keep, self.done = quick, keep, dict[nn.Module, nn.Module]()
        self.linear = _kind(weights, quick)
        linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
        tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
        self.tied = {table: output for table in tables for output in linear if output.weight is table.weight}

    def twin(self, module: nn.Module) -> nn.Module:
        """The fast form of a module."""
        if module not in self.done:
            self.done[module] = module if _stays(module) else self._packed(module)
        return self.done[module]

    def _packed(self, module: nn.Module) -> nn.Module:
        if isinstance(module, MultiHeadAttention):
            packed = PackedSelfAttention if isinstance(module, SelfAttention) else PackedAttention
            return self._instead(packed(module, self.linear, self.quick), module, module.output)
        if isinstance(module, FeedForward):
            inner, output = module.inner, module.output
            activated = self.linear(inner.weight, inner.bias, module.activation)
            return self._instead(nn.Sequential(activated, self.linear(output.weight, output.bias)), inner, output)
        if isinstance(module, Residual) and isinstance(module.norm, nn.LayerNorm) and self.quick:
            return PackedResidual(module, module.norm)
        if isinstance(module, nn.Linear):
            return self._instead(self.linear(module.weight, module.bias), module)
        if isinstance(module, nn.Embedding) and self.linear is PackedLinear and module in self.tied:
            tied = cast(PackedLinear, self.twin(self.tied[module]))
            return self._instead(PackedEmbedding(module, tied), module)
        twin = copy.copy(module)
        twin._modules = {name: child and self.twin(child) for name, child in module._modules.items()}
        parts = twin._modules
        fast = packed_layer(module, parts) or packed_stack(module, parts) if self.quick else None
        return fast or twin

    def _instead(self, packed: nn.Module, *plain: nn.Module) -> nn.Module:
        """What is packed, in place of plain modules, which lose their weights if they are not kept."""
        for module in () if self.keep else plain:
            module._parameters = dict.fromkeys(module._parameters)
        return packed


def _kind(weights: Weights, quick: bool) -> MakeLinear:
    """What linear maps become."""
    if weights == "float32":
        return PackedLinear if quick else SharedLinear
    if quick:
        return ByteLinear if multiplies_bytes() else PackedInt8Linear
    return Int8Linear


def _stays(module: nn.Module) -> bool:
    """Score functions, and attention by others than dot products, are executed as they are."""
    other = isinstance(module, MultiHeadAttention) and not isinstance(module.score, Dot)
    return other or isinstance(module, Score)
