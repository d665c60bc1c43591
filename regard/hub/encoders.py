"""Published encoders, bare or with a head, read and written: one table of names each.

config.json   -> settings, head, labels
*.safetensors -> weights named as in `Headed`: `encoder.*`, `head.*`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from regard.errors import UserError
from regard.hub.bert import BERT
from regard.hub.bigbird import BIGBIRD
from regard.hub.distilbert import DISTILBERT
from regard.hub.folder import Folder, write_folder
from regard.hub.layout import HeadNames, Layout
from regard.hub.roberta import ROBERTA
from regard.hub.xlnet import XLNET
from regard.models import parse_model
from regard.models.base import EncoderConfig, HeadName

LAYOUTS: dict[str, Layout] = {layout.model_type: layout for layout in (BERT, ROBERTA, DISTILBERT, BIGBIRD, XLNET)}
_BARE = HeadNames("", {})
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclass(frozen=True)
class PublishedEncoder:
    """What a published folder holds.

    `weights` are exactly those of a model with this head; `spare` those of ours that came along and that this head does
    not need (a pooler), but another may. `unused` and `missing` are names of theirs.
    """

    config: EncoderConfig
    head: HeadName | None
    weights: Mapping[str, Tensor]
    spare: Mapping[str, Tensor] = field(default_factory=dict)
    labels: Sequence[str] = ()
    problem: str | None = None
    unused: Sequence[str] = ()
    missing: Sequence[str] = ()


def read_encoder(folder: Folder) -> PublishedEncoder:
    layout = LAYOUTS[folder.model_type]
    config = parse_model(layout.settings(folder.config))
    assert isinstance(config, EncoderConfig), f"the layout {layout.model_type} is one of encoders"
    theirs = folder.weights.renamed(_renewed)
    names = _head_of(layout, folder.config.get("architectures") or [], theirs)
    theirs = theirs.renamed(lambda name: names.same.get(name, name))
    head = cast(HeadName, names.head) if names.head else None
    whole, exact = layout.with_head(names), config if head is None else config.under(head)
    weights, _, missing = whole.to_ours(theirs, exact.model_dump())
    if head is None and config.pooler and missing and all("pool" in name for name in missing):  # saved without
        config = exact = config.model_copy(update={"pooler": False})
        weights, _, missing = whole.to_ours(theirs, exact.model_dump())
    spare, unused, _ = whole.to_ours(theirs, config.model_dump(), but=weights)
    return PublishedEncoder(
        config,
        head,
        weights,
        spare,
        _labels(folder, weights) if head in ("sequence", "token") else (),
        folder.config.get("problem_type"),
        unused,
        missing,
    )


def write_encoder(path: Path, model: PublishedEncoder, more: Mapping[str, Any] | None = None) -> None:
    """The inverse of `read_encoder`, into a folder that exists; with `more` settings that only we read."""
    if model.head == "token" and model.config.features != "last":
        raise UserError(f"model.features = {model.config.features!r}: has no published layout, only 'last' has")
    layout = next((one for one in LAYOUTS.values() if one.means["kind"] == model.config.kind), None)
    if layout is None:
        raise UserError(f"model.kind = {model.config.kind!r}: has no published layout")
    forms = {"": (layout.bare, _BARE)}
    for name, names in layout.heads.items():
        forms.setdefault(names.head, (name, names))
    if (model.head or "") not in forms:
        raise UserError(f"model.kind = {model.config.kind!r}: has no published form with a head for {model.head!r}")
    architecture, names = forms[model.head or ""]
    exact = model.config if model.head is None else model.config.under(model.head)
    ours = {**exact.model_dump(), "vocabulary": len(model.weights["encoder.words.weight"])}
    theirs = {"architectures": [architecture], "dtype": "float32", **layout.config(ours)}
    if model.labels:
        theirs["id2label"] = {str(number): label for number, label in enumerate(model.labels)}
        theirs["label2id"] = {label: number for number, label in enumerate(model.labels)}
    if model.problem is not None:
        theirs["problem_type"] = model.problem
    weights = layout.with_head(names).to_theirs(model.weights, ours)
    weights |= {other: weights[name].clone() for other, name in names.same.items()}
    write_folder(path, {**theirs, **(more or {})}, weights)


def _head_of(layout: Layout, architectures: Sequence[str], theirs: Mapping[str, Tensor]) -> HeadNames:
    """The head of the first architecture that is known; a larger one, if the folder has all of its weights.

    (The folder of BERT itself is called one of masked words only, but has the weights of both its tasks.)
    """
    named = next((layout.heads[name] for name in architectures if name in layout.heads), _BARE)
    for other in layout.heads.values():
        needed = {part for ours, part in other.weights.items() if ours not in other.unless}
        if named.weights.items() < other.weights.items() and named.head and needed <= theirs.keys():
            return other
    return named


def _labels(folder: Folder, weights: Mapping[str, Tensor]) -> list[str]:
    """The names of classes by number; those that transformers would give where there are none."""
    named: Mapping[str, Any] = folder.config.get("id2label") or {}
    classes = len(weights["head.output.bias"]) if "head.output.bias" in weights else len(named)
    labels = [str(named.get(str(number), f"LABEL_{number}")) for number in range(classes)]
    return [label if labels.count(label) == 1 else f"{label}_{number}" for number, label in enumerate(labels)]


def _renewed(name: str) -> str:
    """Names that TensorFlow gave to the weights of a norm, in folders of the first years."""
    for old, new in _OLD_NAMES.items():
        name = name.replace(old, new)
    return name
