"""A model with parts of it switched off, to see what they were for (Michel 2019, "Are Sixteen Heads Really Better...").

`without` returns a twin that shares all weights. A head that is off adds nothing: its part of the concatenated heads
is zero before the output projection. In a layer that is off, every sublayer adds nothing and the residual passes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from regard.errors import UserError
from regard.nn.layers import Stack

Model = TypeVar("Model", bound=nn.Module)
SUBLAYERS = {"self": "attention", "cross": "cross"}
"""The attention at a site, by the name of the layer's module."""


def without(model: Model, off: Iterable[str]) -> Model:
    """A twin of `model` without heads such as "decoder.1.cross.2" and layers such as "decoder.1"."""
    twin: nn.Module = model
    for name in off:
        match name.split("."):
            case [stack, layer, kind, head] if kind in SUBLAYERS and head.isdecimal():
                path, change = [*_stack(model, stack, name), layer, SUBLAYERS[kind]], _headless(int(head), name)
            case [stack, layer]:
                path, change = [*_stack(model, stack, name), layer], _passing
            case _:
                raise UserError(f"off = {name!r}: must be a head (decoder.1.cross.2) or a layer (decoder.1)")
        twin = _changed(twin, path, change, name)
    return cast(Model, twin)


def _stack(model: nn.Module, stack: str, name: str) -> list[str]:
    """Where the stack of layers of that name is, however deep: a head may stand around the model."""
    stacks = ((place, part) for place, part in model.named_modules() if isinstance(part, Stack))
    places = [place for place, layers in stacks if all(hasattr(layer, "feed_forward") for layer in layers)]
    for place in places:
        if place.rpartition(".")[2] == stack:
            return str(place).split(".")
    known = ", ".join(place.rpartition(".")[2] for place in places) or "none"
    raise UserError(f"off = {name!r}: this model has no such layers (it has: {known})")


def _headless(head: int, name: str) -> Callable[[nn.Module], nn.Module]:
    def change(attention: nn.Module) -> nn.Module:
        heads = int(cast(int, attention.heads))
        if head >= heads:
            raise UserError(f"off = {name!r}: this attention has heads 0 to {heads - 1}")
        return _with(attention, {"output": WithoutHead(cast(nn.Module, attention.output), heads, head)})

    return change


def _passing(layer: nn.Module) -> nn.Module:
    attentions = [name for name in SUBLAYERS.values() if name in layer._modules]
    silent = {name: _silent(layer.get_submodule(name), "output") for name in attentions}
    return _with(_silent(layer, "feed_forward"), silent)


def _silent(module: nn.Module, part: str) -> nn.Module:
    return _with(module, {part: Nothing(module.get_submodule(part))})


class WithoutHead(nn.Module):
    """The output projection of all heads but one."""

    def __init__(self, output: nn.Module, heads: int, head: int) -> None:
        super().__init__()
        self.output, self.heads, self.head = output, heads, head

    def forward(self, joined: Tensor) -> Tensor:
        """(..., H * D) -> (..., M)."""
        heads = joined.unflatten(-1, (self.heads, -1)).clone()
        heads[..., self.head, :] = 0
        output: Tensor = self.output(heads.flatten(-2))
        return output


class Nothing(nn.Module):
    """Zeros in the place of what a part would add to the residual."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.zeros_like(self.part(inputs))


def _with(module: nn.Module, changed: dict[str, nn.Module]) -> nn.Module:
    twin = copy.copy(module)
    twin._modules = {**module._modules, **changed}
    return twin


def _changed(module: nn.Module, path: list[str], change: Callable[[nn.Module], nn.Module], name: str) -> nn.Module:
    if not path:
        return change(module)
    child = module._modules.get(path[0])
    if child is None:
        known = ", ".join(key for key, value in module.named_children() if value is not None) or "nothing"
        raise UserError(f"off = {name!r}: there is no {path[0]!r} here (there is: {known})")
    return _with(module, {path[0]: _changed(child, path[1:], change, name)})
