"""A table of names, read in both directions: our weights and settings, and those of a published layout.

A weight of ours is one of theirs under another name, or several of theirs one above the other (our projection of
queries, keys and values is one matrix). `{n}` in a name stands for the number of a layer.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.config import nest
from regard.errors import UserError

Names = Mapping[str, str | tuple[str, ...]]
Value = TypeVar("Value")
_PLAIN = torch.contiguous_format


@dataclass(frozen=True)
class HeadNames:
    """How an architecture (a name such as "BertForMaskedLM") calls the weights of the head of ours that it has.

    `unless` is as in `Layout`. `same` are other names that a weight of theirs may have too: that one is then read, and
    both are written.
    """

    head: str
    weights: Names
    unless: Mapping[str, str] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """How a published kind of model calls what ours has.

    Settings: `fields` maps ours to those of its config.json (to several, where ours is one for what theirs could have
    two of; a dot leads into a section), `values` the values of a setting that have another name there, `fallbacks` a
    setting that older files lack to the one that stood for it. `fixed` are settings that ours has no choice for, with
    the value they must have, and `means` the settings of ours that this kind of model stands for; `read_as` are those
    that no weight depends on: a model that has another value can be written too.

    Weights: `layers` says which of our settings counts the layers of each mark in a name. `prefix` stands before the
    names of a model with a head, except those in `outside`, and is missing in a bare encoder. `unless` names weights
    that are there only while a setting of ours is false, `only` those that are there while it is true; `copies` says
    which weight one of `unless` is a copy of: where both are published, they decide. `zeros` are weights that are zero
    where they are not published, each with the weight that has as many rows. `stands_in` are names under which a
    weight of theirs may stand instead, where a table is published once for several uses. `heads` are the architectures
    with a head, of several with the same one the first is written; `bare` is the one without.
    """

    model_type: str
    fields: Names
    weights: Names
    prefix: str = ""
    values: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    means: Mapping[str, object] = field(default_factory=dict)
    read_as: Mapping[str, object] = field(default_factory=dict)
    layers: Mapping[str, str] = field(default_factory=lambda: {"{n}": "layers"})
    outside: tuple[str, ...] = ()
    unless: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    zeros: Mapping[str, str] = field(default_factory=dict)
    stands_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    transposed: tuple[str, ...] = ()  # ends of our names of matrices that are theirs turned over
    one_row: tuple[str, ...] = ()  # names of theirs that have an axis of size 1 before ours
    ignored: tuple[str, ...] = ()  # names of theirs that hold nothing learned, or a copy
    heads: Mapping[str, HeadNames] = field(default_factory=dict)
    bare: str = ""

    def settings(self, theirs: Mapping[str, Any], weights: Mapping[str, Tensor] | None = None) -> dict[str, Any]:
        """Our settings from their config.json, and from their weights where those know better."""
        if theirs.get("quantization_config"):
            method = theirs["quantization_config"].get("quant_method", "fewer bits")
            raise UserError(
                f"config.json: quantization_config ({method}): its weights are packed and cannot be read; take the "
                "folder it was made from (--int8 makes weights small here)"
            )
        for name, value in self.fixed.items():
            found = _inside(theirs, name)
            if found is not None and found != value:
                raise UserError(f"config.json: {name} = {found!r}: only {value!r} is supported")
        ours = {**self.means, **self.read_as}
        for setting, names in self.fields.items():
            read = {name: self._value(theirs, name) for name in _tuple(names)}
            given = {name: value for name, value in read.items() if value is not None}
            if any(value != next(iter(given.values())) for value in given.values()):
                both = ", ".join(f"{name} = {value!r}" for name, value in given.items())
                raise UserError(f"config.json: {both}: only equal values are supported")
            for name, value in given.items():
                ours[setting] = self._ours(setting, name, value)
        for one, other in self.copies.items():
            copy, of = (str(self.weights[name]) for name in (one, other))
            if weights is not None and of in weights:
                ours[self.unless[one]] = copy not in weights or torch.equal(weights[copy], weights[of])
        return ours

    def config(self, ours: Mapping[str, Any]) -> dict[str, Any]:
        """Their config.json from our settings."""
        if other := {setting: value for setting, value in self.means.items() if ours[setting] != value}:
            found = ", ".join(f"model.{setting} = {ours[setting]!r}" for setting in other)
            theirs = " ".join(f"--set model.{setting}={value}" for setting, value in other.items())
            raise UserError(
                f"{found}: cannot be written as {self.model_type}, which has {', '.join(map(repr, other.values()))} "
                f"(a model trained with {theirs} can)"
            )
        fixed = {name: value for name, value in self.fixed.items() if value is not None}
        named: dict[str, Any] = {}
        for setting, names in self.fields.items():
            for name in _tuple(names) if ours.get(setting) is not None else ():
                value = self._theirs(setting, ours[setting])
                if named.setdefault(name, value) != value:
                    raise UserError(f"model.{setting} = {ours[setting]!r}: {self.model_type} has no such {name}")
        return nest({"model_type": self.model_type, **fixed, **named})

    def to_ours(
        self, theirs: Mapping[str, Tensor], settings: Mapping[str, Any], but: Container[str] = ()
    ) -> tuple[dict[str, Tensor], list[str], list[str]]:
        """Our weights (`but` for some), the names of theirs that were not used, and those that were missing."""
        prefix = self.prefix if any(name.startswith(self.prefix) for name in theirs) else ""
        ours, used, missing = {}, set(), []
        names = dict(self.names(settings, prefix))
        own = {part for parts in names.values() for part in parts}
        free = {name for name in theirs if name not in own}
        for name, wanted in names.items():
            parts = tuple(self._standing_in(part, prefix, theirs, free) for part in wanted)
            used |= set(parts)
            if name in but:
                continue
            absent = [part for part in parts if part not in theirs]
            if not absent:
                pieces = [theirs[part][0] if part in self.one_row else theirs[part] for part in parts]
                pieces = [piece.t() for piece in pieces] if self._turned(name) else pieces
                # A copy in our own order: what it was made from may be a file, which is then let go.
                ours[name] = torch.cat(pieces) if len(pieces) > 1 else pieces[0].clone(memory_format=_PLAIN)
            elif self.zeros.get(name) in ours:
                ours[name] = ours[self.zeros[name]].new_zeros(len(ours[self.zeros[name]]))
            else:
                missing += absent
        ignored = (*self.ignored, *(part for name in self.unless for part in _tuple(self.weights[name])))
        unused = [name for name in theirs if name not in used and not name.endswith(ignored)]
        return ours, unused, missing

    def to_theirs(self, ours: Mapping[str, Tensor], settings: Mapping[str, Any]) -> dict[str, Tensor]:
        """Their weights. Nothing of ours may be left over."""
        theirs: dict[str, Tensor] = {}
        names = dict(self.names(settings, self.prefix))
        left = [name for name in ours if name not in names]
        assert not left, f"the layout {self.model_type} has no name for {left}"
        for name, parts in names.items():
            pieces = ours[name].chunk(len(parts)) if len(parts) > 1 else (ours[name],)
            pieces = tuple(piece.t() for piece in pieces) if self._turned(name) else pieces
            for part, piece in zip(parts, pieces, strict=True):
                theirs[part] = (piece[None] if part in self.one_row else piece).contiguous()
        return theirs

    def with_head(self, head: HeadNames) -> Layout:
        """The layout of a model whose weights are named `encoder.*` and `head.*`."""
        inside, above = "encoder.", "head."
        return replace(
            self,
            weights=_under(inside, self.weights) | _under(above, head.weights),
            outside=(*self.outside, *(part for names in head.weights.values() for part in _tuple(names))),
            unless=_under(inside, self.unless) | _under(above, head.unless),
            only=_under(inside, self.only),
            zeros={inside + name: inside + like for name, like in self.zeros.items()},
        )

    def names(self, settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each of our names with theirs, for a model of these settings."""
        for ours, theirs in self.weights.items():
            if ours in self.unless and settings[self.unless[ours]]:
                continue
            if ours in self.only and not settings[self.only[ours]]:
                continue
            parts = tuple(part if part in self.outside else prefix + part for part in _tuple(theirs))
            mark = next((mark for mark in self.layers if mark in ours), None)
            if mark is None:
                yield ours, parts
                continue
            for number in map(str, range(settings[self.layers[mark]])):
                yield ours.replace(mark, number), tuple(part.replace(mark, number) for part in parts)

    def _standing_in(self, part: str, prefix: str, theirs: Container[str], free: Container[str]) -> str:
        """The name that a weight of theirs has in this file; one that is `free` has no use of its own."""
        others = () if part in theirs else self.stands_in.get(part.removeprefix(prefix), ())
        names = [name for other in others for name in (prefix + other, other)]
        return next((name for name in names if name in free), part)

    def _turned(self, name: str) -> bool:
        return bool(self.transposed) and name.endswith(self.transposed)

    def _value(self, theirs: Mapping[str, Any], name: str) -> Any:
        found = _inside(theirs, name)
        return _inside(theirs, self.fallbacks[name]) if found is None and name in self.fallbacks else found

    def _ours(self, setting: str, name: str, value: Any) -> Any:
        known = self.values.get(setting)
        if known is None or value in known:
            return value if known is None else known[value]
        raise UserError(f"config.json: {name} = {value!r}: must be one of {', '.join(map(repr, known))}")

    def _theirs(self, setting: str, value: Any) -> Any:
        for theirs, ours in self.values.get(setting, {}).items():
            if ours == value:
                return theirs
        if setting in self.values:
            raise UserError(f"model.{setting} = {value!r}: {self.model_type} has no such value")
        return value


ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Their names of activations, and ours."""


def named_alike(pairs: Mapping[str, str], kinds: tuple[str, ...] = ("weight", "bias")) -> dict[str, str]:
    """`{"a": "b"}` -> `{"a.weight": "b.weight", "a.bias": "b.bias"}`."""
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for ours, theirs in pairs.items() for kind in kinds}


def joined(ours: str, theirs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """A weight and a bias of ours that are several of theirs."""
    return {f"{ours}.{kind}": tuple(f"{part}.{kind}" for part in theirs) for kind in ("weight", "bias")}


def _inside(values: Mapping[str, Any], name: str) -> Any:
    """`a.b` of `{"a": {"b": 1}}`; None where there is no such value."""
    section, dot, rest = name.partition(".")
    found = values.get(section)
    if not dot:
        return found
    return _inside(found, rest) if isinstance(found, Mapping) else None


def _tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _under(prefix: str, table: Mapping[str, Value]) -> dict[str, Value]:
    return {prefix + name: value for name, value in table.items()}
