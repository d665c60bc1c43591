"""The weights of a model as safetensors files. Never a pickle."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.errors import UserError, listed

_IN_LAYER = re.compile(r"(?!head\.).*\.\d+\.")


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and what is written about them."""
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


class StoredTensors(Mapping[str, Tensor]):
    """The tensors of one or several files, each mapped when it is asked for: what nobody holds, takes no memory."""

    def __init__(self, *paths: Path) -> None:
        self.places: dict[str, tuple[Path, str]] = {}
        for path in paths:
            with _opened(path) as file:
                self.places |= {name: (path, name) for name in file.keys()}  # noqa: SIM118

    def renamed(self, new: Callable[[str], str]) -> StoredTensors:
        """The same ones under other names."""
        other = StoredTensors()
        other.places = {new(name): place for name, place in self.places.items()}
        return other

    def __getitem__(self, name: str) -> Tensor:
        path, stored = self.places[name]
        with _opened(path) as file:
            tensor: Tensor = file.get_tensor(stored)
            return tensor

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise UserError(f"{path}: {'may not be read by you' if path.exists() else 'no such file'}") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: damaged or cut short ({error})") from None


class Unfilled(TorchFunctionMode):
    """Models that are built in it keep their memory untouched, and so do not take it: they get their weights next."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if getattr(function, "__name__", "") in ("normal_", "uniform_", "kaiming_uniform_"):
            return args[0] if args else named["tensor"]
        return function(*args, **named)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The weights by name; tied ones once."""
    return {name: weight.detach() for name, weight in model.named_parameters()}


@torch.no_grad()
def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path, share: bool = False) -> None:
    """Fills the model; a name or a shape that does not fit is an error that lists them.

    With `share` the tensors become the weights, without a copy: for a model that will not be trained.
    """
    own = dict(model.named_parameters())
    wrong = [f"missing {name}" for name in own if name not in tensors]
    wrong += [f"unknown {name}" for name in tensors if name not in own]
    wrong += [
        f"{name} is {tuple(tensors[name].shape)}, expected {tuple(weight.shape)}"
        for name, weight in own.items()
        if name in tensors and tensors[name].shape != weight.shape
    ]
    if wrong:
        raise UserError(f"{path}: the weights do not fit the model of config.yaml: {'; '.join(wrong[:5])}")
    for name, weight in own.items():
        tensor = tensors[name]
        if share and tensor.dtype == weight.dtype and tensor.device == weight.device:
            weight.data = tensor.contiguous()
        else:
            weight.copy_(tensor)


@torch.no_grad()
def begin_with(model: nn.Module, tensors: Mapping[str, Tensor], source: str) -> list[str]:
    """Fills what the tensors have and the model too; what begins afresh and what was not used is said in words.

    A model may have a new head, or a longer table of words or positions; but one whose layers have other shapes, or
    that shares nothing with its source, is an error.
    """
    own = dict(model.named_parameters())
    for name, weight in own.items():
        if _IN_LAYER.match(name) and name in tensors and tensors[name].shape != weight.shape:
            shapes = f"{tuple(tensors[name].shape)}, and not {tuple(weight.shape)}"
            raise UserError(f"{source}: is of another shape: {name} is {shapes} (leave model.* settings out)")
    fitting = [name for name, weight in own.items() if name in tensors and tensors[name].shape == weight.shape]
    if not fitting:
        raise UserError(f"{source}: has no weight that fits this model; is it of another family?")
    for name in fitting:
        own[name].copy_(tensors[name])
    fresh, unused = [name for name in own if name not in fitting], [name for name in tensors if name not in fitting]
    notes = [f"Weights from {source}: {len(fitting)} of {len(own)}"]
    notes += [f"  fresh: {listed(fresh)}"] if fresh else []
    return notes + ([f"  not used: {listed(unused)}"] if unused else [])
