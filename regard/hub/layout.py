"""A table of names, read in both directions: our weights and settings, and those of a published layout.

A weight of ours is one of theirs under another name, or several of theirs one above the other (our projection of
queries, keys and values is one matrix). `{n}` in a name stands for the number of a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.errors import UserError

Names = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Layout:
    """How a published kind of model calls what ours has.

    `fields` maps our settings to those of its config.json; `fixed` are settings that ours has no choice for, with the
    value they must have, and `means` the settings of ours that this kind of model stands for. `prefix` stands before
    every name of a model with a head, and is missing in a bare encoder.
    """

    model_type: str
    fields: Mapping[str, str]
    weights: Names
    prefix: str = ""
    fixed: Mapping[str, object] = field(default_factory=dict)
    means: Mapping[str, object] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()  # names of theirs that hold nothing learned

    def settings(self, theirs: Mapping[str, Any]) -> dict[str, Any]:
        """Our settings from their config.json."""
        for name, value in self.fixed.items():
            if theirs.get(name, value) != value:
                raise UserError(f"config.json: {name} = {theirs[name]!r}: only {value!r} is supported")
        return {**self.means, **{ours: theirs[name] for ours, name in self.fields.items() if name in theirs}}

    def config(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        """Their config.json from our settings."""
        for setting, value in self.means.items():
            if ours[setting] != value:
                raise UserError(
                    f"model.{setting} = {ours[setting]!r}: cannot be written as {self.model_type}, which has {value!r}"
                )
        named = {name: ours[setting] for setting, name in self.fields.items() if setting in ours}
        return {"model_type": self.model_type, **self.fixed, **named}

    def to_ours(self, theirs: Mapping[str, Tensor], layers: int) -> tuple[dict[str, Tensor], list[str], list[str]]:
        """Our weights, the names of theirs that were not used, and those that were missing."""
        start = self.prefix if any(name.startswith(self.prefix) for name in theirs) else ""
        ours, used, missing = {}, set(), []
        for name, parts in self.names(layers):
            sources = [start + part for part in parts]
            absent = [source for source in sources if source not in theirs]
            missing += absent
            used |= set(sources)
            if not absent:
                ours[name] = torch.cat([theirs[source] for source in sources]) if len(parts) > 1 else theirs[sources[0]]
        unused = [name for name in theirs if name not in used and not name.endswith(self.ignored)]
        return ours, unused, missing

    def to_theirs(self, ours: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
        """Their weights. Nothing of ours may be left over."""
        theirs: dict[str, Tensor] = {}
        names = dict(self.names(layers))
        left = [name for name in ours if name not in names]
        assert not left, f"the layout {self.model_type} has no name for {left}"
        for name, parts in names.items():
            pieces = ours[name].chunk(len(parts)) if len(parts) > 1 else (ours[name],)
            theirs |= {self.prefix + part: piece.contiguous() for part, piece in zip(parts, pieces, strict=True)}
        return theirs

    def names(self, layers: int) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each of our names with theirs, for a model of so many layers."""
        for ours, theirs in self.weights.items():
            parts = (theirs,) if isinstance(theirs, str) else theirs
            for number in range(layers) if "{n}" in ours else [0]:
                yield ours.replace("{n}", str(number)), tuple(part.replace("{n}", str(number)) for part in parts)


def named_alike(pairs: Mapping[str, str], kinds: tuple[str, ...] = ("weight", "bias")) -> dict[str, str]:
    """`{"a": "b"}` -> `{"a.weight": "b.weight", "a.bias": "b.bias"}`."""
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for ours, theirs in pairs.items() for kind in kinds}


def joined(ours: str, theirs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """A weight and a bias of ours that are several of theirs."""
    return {f"{ours}.{kind}": tuple(f"{part}.{kind}" for part in theirs) for kind in ("weight", "bias")}
