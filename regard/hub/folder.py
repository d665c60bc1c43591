"""A folder as Hugging Face writes it: config.json, the weights in one or several safetensors files, the tokenizer's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from regard.errors import UserError
from regard.nn.weights import StoredTensors

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack")


@dataclass(frozen=True)
class Folder:
    """What is in a published folder: its settings and its weights under their own names."""

    path: Path
    config: Mapping[str, Any]
    weights: StoredTensors

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type"))


def is_folder(path: Path) -> bool:
    return (path / CONFIG).is_file()


def read_folder(path: Path) -> Folder:
    if not is_folder(path):
        raise UserError(f"{path}: no Hugging Face folder (there is no {CONFIG} in it)")
    return Folder(path, read_json(path / CONFIG), _read_weights(path))


def write_folder(path: Path, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """The inverse of `read_folder`, into a folder that exists."""
    (path / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf8")
    save_file(dict(weights), path / WEIGHTS, metadata={"format": "pt"})


def _read_weights(path: Path) -> StoredTensors:
    if (path / WEIGHTS).is_file():
        return StoredTensors(path / WEIGHTS)
    if (path / INDEX).is_file():
        places: dict[str, str] = read_json(path / INDEX).get("weight_map", {})
        weights = StoredTensors(*(path / name for name in sorted(set(places.values()))))
        absent = [name for name in places if name not in weights]
        if absent:
            raise UserError(f"{path / INDEX}: names weights that no file has: {', '.join(absent[:5])}")
        return weights
    for name in PICKLES:
        if (path / name).is_file():
            kind = (read_json(path / CONFIG).get("architectures") or ["AutoModel"])[0]
            raise UserError(
                f"{path}: has its weights only in {name}, which can run code when it is opened. Write {WEIGHTS} first, "
                f"where transformers is installed: transformers.{kind}.from_pretrained({str(path)!r})"
                f".save_pretrained({f'{path}-safe'!r}); and copy the tokenizer's files"
            )
    raise UserError(f"{path}: has no weights (neither {WEIGHTS} nor {INDEX})")


def read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: must hold a JSON object")
    return values
