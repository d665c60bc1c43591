"""A trained model found at a path: a run of ours, or a folder that others have published."""

from __future__ import annotations

import json
from pathlib import Path

from torch import nn

from regard.data.tokenizer_files import open_tokenizer
from regard.errors import UserError
from regard.hub.folder import is_folder
from regard.hub.published import open_published
from regard.nn.weights import Unfilled, load_tensors, load_weights
from regard.tasks import settings_of, task_named
from regard.tasks.saved import Saved
from regard.training.folder import RunFolder, read_run_config


def trained_model(saved: Saved) -> nn.Module:
    """The model of what was saved, with its weights."""
    vocabulary = 0 if saved.text is None else len(saved.text)
    with Unfilled():
        model = task_named(saved.config.task).build(saved.config, vocabulary, saved.facts)
    if "head.0.weight" in model.state_dict() and not any(name.startswith("head.") for name in saved.weights):
        task = saved.config.task
        raise UserError(
            f"{saved.path}: is an encoder without a head. Give it one: regard train {task} ... --from {saved.path}"
        )
    load_weights(model, saved.weights, saved.path, share=True)
    return model


def open_saved(path: Path) -> Saved:
    if is_folder(path):
        return open_published(path)
    folder = RunFolder(path)
    config, _ = settings_of([("config.yaml", read_run_config(folder))])
    if not folder.model.is_file():
        raise UserError(
            f"{path}: has no trained weights yet (no model.safetensors); they appear with the first validation. "
            f"Go on training: regard train --resume {path}"
        )
    text = open_tokenizer(folder.tokenizer) if folder.tokenizer.is_file() else None
    if text is None and config.task != "image":
        raise UserError(f"{folder.tokenizer}: is missing; a copy is in {folder.data / folder.tokenizer.name}")
    facts = json.loads(folder.facts.read_text(encoding="utf8")) if folder.facts.is_file() else {}
    return Saved(path, config, load_tensors(folder.model)[0], text, facts)
