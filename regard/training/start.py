"""From a command to a finished run: settings, folder, data, model, loop, final score."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from regard.config import Config, Values, assemble, dump, flatten, nest, read_origins, read_yaml
from regard.data.corpora import CORPORA
from regard.errors import UserError
from regard.models import build, named, parse_model
from regard.tasks import task_named
from regard.tasks.base import Task
from regard.training.display import Display, clock
from regard.training.distributed import Ranks, join
from regard.training.folder import Progress, RunFolder, load_tensors, load_weights, write_text
from regard.training.interrupt import Interrupt
from regard.training.loop import Trainer
from regard.training.memory import keep_freed_memory

DEFAULT_MODEL = "transformer"


class Interrupted(Exception):  # noqa: N818 - not an error: a person asked for it
    """The training was asked to stop, and has saved where it stands."""


def cache_folder() -> Path:
    """Where tokenised data is kept for the next run on the same files: $REGARD_CACHE, or ~/.cache/regard."""
    return Path(os.environ.get("REGARD_CACHE") or Path.home() / ".cache" / "regard")


def settle(
    task: str, files: Sequence[str], model: str | None, recipe: Path | None, settings: Values
) -> tuple[Config, dict[str, str]]:
    """All settings of a new run, and where each came from."""
    layers: list[tuple[str, Values]] = []
    if len(files) == 1 and files[0] in CORPORA:
        layers.append((f"corpus {files[0]}", CORPORA[files[0]].settings))
    if recipe is not None:
        read = read_yaml(recipe)
        layers.append((str(recipe), {key: value for key, value in read.items() if not (key == "model" and model)}))
    layers.append(("command", {"task": task, **({"data.train": list(files)} if files else {})}))
    layers.append(("command", settings))
    chosen: Mapping[str, Any] = nest({key: value for _, layer in layers for key, value in flatten(layer)})
    section = chosen.get("model", {})
    if model is None and isinstance(section, Mapping) and "kind" in section:
        model = "-".join(filter(None, (str(section["kind"]), section.get("size"))))
    model = model or DEFAULT_MODEL
    config, origins = assemble([(model, {"model": named(model)}), *layers], parse_model)
    if not config.data.train:
        raise UserError("data.train: no file given (try: regard train translate pairs.tsv --out runs/mine)")
    return config, origins


def train(
    task: str,
    files: Sequence[str],
    *,
    out: Path,
    model: str | None = None,
    recipe: Path | None = None,
    settings: Values | None = None,
    overwrite: bool = False,
    display: Display | None = None,
) -> RunFolder:
    """Train a new run in the folder `out`."""
    task_named(task)
    config, origins = settle(task, files, model, recipe, settings or {})
    folder = RunFolder(out)
    ranks = join(config.train.device)
    try:
        if ranks.first:
            _claim(folder, overwrite)
            write_text(folder.config, dump(config, origins))
        ranks.wait()
        return _run(config, folder, ranks, display if display and ranks.first else Display(), further=False)
    finally:
        ranks.close()


def resume(out: Path, *, settings: Values | None = None, display: Display | None = None) -> RunFolder:
    """Go on with the run in the folder `out`, as if it had never stopped. `settings` may lengthen it."""
    folder = RunFolder(out)
    values, origins = read_run_config(folder), read_origins(folder.config)
    config, changed = assemble([("", values), ("on resuming", settings or {})], parse_model)
    ranks = join(config.train.device)
    try:
        if settings and ranks.first:
            origins |= {key: origin for key, origin in changed.items() if origin}
            write_text(folder.config, dump(config, origins))
        ranks.wait()
        shown = display if display and ranks.first else Display()
        return _run(config, folder, ranks, shown, further=bool(settings))
    finally:
        ranks.close()


def read_run_config(folder: RunFolder) -> dict[str, Any]:
    """The settings of an existing run; a clear answer when there is none."""
    if not folder.path.is_dir():
        raise UserError(
            f"{folder.path}: no such folder; train a run first (regard train translate pairs.tsv --out ...)"
        )
    if not folder.config.is_file():
        raise UserError(f"{folder.path}: not a run of Regard (it has no config.yaml)")
    return read_yaml(folder.config)


def _claim(folder: RunFolder, overwrite: bool) -> None:
    """The folder must be new or empty; a run that is there is not lost by accident."""
    path = folder.path
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: is a file, not a folder; choose another --out")
    if path.is_dir() and any(path.iterdir()):
        if not folder.config.exists():
            raise UserError(f"{path}: holds other files and is not a run; choose another --out")
        if not overwrite:
            raise UserError(
                f"{path}: already holds a run. To go on with it: regard train --resume {path}. "
                "To replace it: add --overwrite"
            )
        shutil.rmtree(path)
    folder.create()


def _run(config: Config, folder: RunFolder, ranks: Ranks, display: Display, *, further: bool) -> RunFolder:
    """`further`: a run that had finished was given other settings, and is to go on."""
    kind = task_named(config.task)
    try:
        if ranks.first and not folder.data.is_dir():
            display.note(f"Reading {', '.join(config.data.train)}")
            kind.prepare(config, cache_folder(), folder.data, display)
        ranks.wait()
        task = kind.open(config, folder.data)
        if ranks.first:
            write_text(folder.tokenizer, (folder.data / "tokenizer.json").read_text(encoding="utf8"))
        display.note(task.summary)
        progress = _fit(config, task, folder, ranks, display, further)
        if not progress.done:
            raise Interrupted(
                f"Stopped at step {progress.step:,}, all saved. Go on: regard train --resume {folder.path}"
            )
        if ranks.first:
            _finish(config, task, folder, ranks, progress, display)
        ranks.wait()
    finally:
        display.close()
    return folder


def _fit(config: Config, task: Task, folder: RunFolder, ranks: Ranks, display: Display, further: bool) -> Progress:
    keep_freed_memory()
    torch.manual_seed(config.train.seed)
    model = build(config.model, task.vocabulary).to(ranks.device)
    count = sum(weight.numel() for weight in model.parameters())
    name = "-".join(filter(None, (config.model.kind, config.model.size)))
    display.note(f"Model {name}: {count:,} parameters, on {ranks.device.type}, {ranks.size} process(es)")
    trainer = Trainer(model, task, config.train, folder, ranks)
    for warning in trainer.resume():
        display.note(f"warning: {warning}")
    if further and trainer.progress.step < config.train.steps:
        trainer.reopen()
    if trainer.progress.step:
        display.note(f"Going on from step {trainer.progress.step:,}")
    with Interrupt() as interrupt:
        return trainer.fit(display, interrupt)


def _finish(config: Config, task: Task, folder: RunFolder, ranks: Ranks, progress: Progress, display: Display) -> None:
    """The final score, by the best weights, on sentences that no choice has seen."""
    display.note(f"Trained {progress.step:,} steps in {clock(progress.seconds)}; best at step {progress.best_step:,}")
    model = build(config.model, task.vocabulary).to(ranks.device)
    load_weights(model, load_tensors(folder.model)[0], folder.model)
    display.start("scoring held-out examples", None)
    scores = task.test(model.eval())
    display.finish()
    write_text(folder.scores, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")
