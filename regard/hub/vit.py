"""The names of Hugging Face's `ViTModel` and `DeiTModel`, and their folders, bare or with a head, read and written.

config.json                -> settings, class names
*.safetensors              -> weights named as in `regard.tasks.image_classifier.ImageModel`: `encoder.*`, `head.*`
preprocessor_config.json   -> how images are shown to the model: `Framing`
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.data.images_decode import Fit, Framing, Resample
from regard.errors import UserError, listed
from regard.hub.folder import Folder, read_json, write_folder
from regard.hub.layout import ACTIVATIONS, HeadNames, Layout, joined, named_alike
from regard.models.vit import VitConfig
from regard.tasks import settings_of
from regard.tasks.saved import Facts, Saved

_LAYER = "encoder.layer.{n}"
_FIELDS = {
    "image": "image_size",
    "patch": "patch_size",
    "channels": "num_channels",
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "inner": "intermediate_size",
    "heads": "num_attention_heads",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "activation": "hidden_act",
    "norm_epsilon": "layer_norm_eps",
}
_WEIGHTS = {
    "class_token": "embeddings.cls_token",
    "positions": "embeddings.position_embeddings",
    **joined(
        "encoder.{n}.attention", tuple(f"{_LAYER}.attention.attention.{part}" for part in ("query", "key", "value"))
    ),
    **named_alike(
        {
            "patches": "embeddings.patch_embeddings.projection",
            "encoder.{n}.attention.output": f"{_LAYER}.attention.output.dense",
            "encoder.{n}.around_attention.norm": f"{_LAYER}.layernorm_before",
            "encoder.{n}.feed_forward.inner": f"{_LAYER}.intermediate.dense",
            "encoder.{n}.feed_forward.output": f"{_LAYER}.output.dense",
            "encoder.{n}.around_feed_forward.norm": f"{_LAYER}.layernorm_after",
            "final_norm": "layernorm",
        }
    ),
}
_MEANS = {"kind": "vit", "summary": "class", "positions": "learned", "norm": "pre", "score": "scaled-dot"}
_POOLER = ("pooler.dense.weight", "pooler.dense.bias")  # trained for nothing that is published
_ONE_HEAD = named_alike({"0": "classifier"})
_TWO_HEADS = named_alike({"0": "cls_classifier", "1": "distillation_classifier"})

VIT = Layout(
    model_type="vit",
    prefix="vit.",
    fields=_FIELDS,
    weights=_WEIGHTS,
    values={"activation": ACTIVATIONS},
    means={**_MEANS, "distillation": "none"},
    fixed={"qkv_bias": True},
    ignored=_POOLER,
    heads={"ViTForImageClassification": HeadNames("none", _ONE_HEAD)},
)
DEIT = Layout(
    model_type="deit",
    prefix="deit.",
    fields=_FIELDS,
    weights={**_WEIGHTS, "distillation_token": "embeddings.distillation_token"},
    values={"activation": ACTIVATIONS},
    means=_MEANS,
    fixed={"qkv_bias": True},
    ignored=_POOLER,
    heads={
        "DeiTForImageClassification": HeadNames("token", _ONE_HEAD),
        "DeiTForImageClassificationWithTeacher": HeadNames("head", _TWO_HEADS),
    },
)
"""Here a head is called after our setting `distillation`, by which a model has one head or two."""
_BARE = {"vit": HeadNames("none", {}), "deit": HeadNames("token", {})}

PROCESSOR = "preprocessor_config.json"
_RESAMPLES: dict[int, Resample] = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # Pillow's numbers


def read_vit(folder: Folder) -> Saved:
    layout = {"vit": VIT, "deit": DEIT}[folder.model_type]
    names = _BARE[folder.model_type]
    for architecture in folder.config.get("architectures") or []:
        names = layout.heads.get(architecture, names)
    settings = {**layout.settings(folder.config), "distillation": names.head}
    config, _ = settings_of([("config.json", {"task": "image", "model": settings})])
    weights, unused, missing = layout.with_head(names).to_ours(folder.weights, config.model.model_dump())
    if missing:
        raise UserError(f"{folder.path}: weights are missing: {listed(missing)}")
    framing = read_framing(folder, int(folder.config.get("num_channels", 3)))
    facts = {"classes": _classes(folder), **framing.facts()}
    return Saved(folder.path, config, weights, facts=facts, unused=unused)


def write_vit(saved: Saved, out: Path) -> None:
    """The inverse of `read_vit`, into a folder that exists."""
    model = saved.config.model
    assert isinstance(model, VitConfig), f"settings of a ViT, not {type(model).__name__}"
    layout = VIT if model.distillation == "none" else DEIT
    architecture, names = next((name, head) for name, head in layout.heads.items() if head.head == model.distillation)
    classes: list[str] = list(saved.facts["classes"])
    settings = model.model_dump()
    theirs = {"architectures": [architecture], "dtype": "float32", **layout.config(settings)}
    theirs["id2label"] = {str(number): name for number, name in enumerate(classes)}
    theirs["label2id"] = {name: number for number, name in enumerate(classes)}
    write_folder(out, theirs, layout.with_head(names).to_theirs(dict(saved.weights), settings))
    (out / PROCESSOR).write_text(json.dumps(_processor(saved.facts, layout), indent=2) + "\n", encoding="utf8")


def read_framing(folder: Folder, channels: int) -> Framing:
    """From the settings of their image processor; where there are none, those that `transformers` has for the family,
    on images of the size that the model was trained on."""
    path, deit, image = folder.path, folder.model_type == "deit", int(folder.config.get("image_size", 224))
    read: dict[str, Any] = {"size": round(image * 8 / 7) if deit else image, "crop_size": image}
    read |= {"resample": 3 if deit else 2, "do_center_crop": deit, "image_mean": [0.5], "image_std": [0.5]}
    read |= read_json(path / PROCESSOR) if (path / PROCESSOR).is_file() else {}
    if abs(float(read.get("rescale_factor", 1 / 255)) - 1 / 255) > 1e-6 or not read.get("do_rescale", True):
        raise UserError(f"{path / PROCESSOR}: only pixels rescaled by 1/255 are supported")
    stored = _side(path, read["size"])
    size = _side(path, read["crop_size"]) if read["do_center_crop"] else stored
    fit: Fit = "crop" if isinstance(read["size"], dict) and "shortest_edge" in read["size"] else "squash"
    mean, deviation = ([0.0], [1.0]) if not read.get("do_normalize", True) else (read["image_mean"], read["image_std"])
    if read["resample"] not in _RESAMPLES:
        known = ", ".join(f"{number} ({name})" for number, name in _RESAMPLES.items())
        raise UserError(f"{path / PROCESSOR}: resample = {read['resample']!r}: only these are supported: {known}")
    return Framing(
        size, max(stored, size), channels, fit, _RESAMPLES[read["resample"]],
        tuple(_each(mean, channels)), tuple(_each(deviation, channels)),
    )  # fmt: skip


def _processor(facts: Facts, layout: Layout) -> dict[str, Any]:
    framing = Framing.of(facts)
    crop = framing.fit == "crop"
    return {
        "image_processor_type": {"vit": "ViTImageProcessor", "deit": "DeiTImageProcessor"}[layout.model_type],
        "do_resize": True,
        "size": {"shortest_edge": framing.stored} if crop else {"height": framing.stored, "width": framing.stored},
        "resample": next(number for number, name in _RESAMPLES.items() if name == framing.resample),
        "do_center_crop": crop or framing.size != framing.stored,
        "crop_size": {"height": framing.size, "width": framing.size},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(framing.mean),
        "image_std": list(framing.deviation),
    }


def _side(path: Path, size: int | Mapping[str, int]) -> int:
    sides = {size} if isinstance(size, int) else set(size.values())
    if len(sides) != 1:
        raise UserError(f"{path / PROCESSOR}: size = {size}: only squares are supported")
    return int(sides.pop())


def _each(values: list[float], channels: int) -> list[float]:
    return list(values) if len(values) == channels else [sum(values) / len(values)] * channels


def _classes(folder: Folder) -> list[str]:
    named: Mapping[str, Any] = folder.config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    if named.keys() != {str(number) for number in range(len(named))}:
        raise UserError(f"{folder.path}: config.json: id2label: must name every class from 0 on")
    names = [str(named[str(number)]) for number in range(len(named))]
    twice = {name for name, times in Counter(names).items() if times > 1}  # ImageNet has two cranes
    return [f"{name} ({number})" if name in twice else name for number, name in enumerate(names)]
