"""Runs, opened to be looked at: the plain model (not its packed twin), so that each number is the paper's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.config import Config, assemble
from regard.data.corpora import CORPORA
from regard.data.prepare import Prepared
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.explorer.scene import Subject
from regard.explorer.translation import Translator
from regard.models import build, parse_model
from regard.nn.weights import load_tensors, load_weights
from regard.run import Run
from regard.training.folder import RunFolder
from regard.training.metrics import read_metrics
from regard.training.start import read_run_config

EXAMPLES = {"english-french": ["The white cat is not sleeping.", "My old friend will never buy a red car."]}
"""First sentences for the built-in corpora; other runs show their own held-out ones."""


def open_run(path: Path, checkpoint: str = "") -> Subject:
    """The run in the folder `path`, by its best weights or by one of its checkpoints."""
    folder = RunFolder(path)
    config, _ = assemble([("config.yaml", read_run_config(folder))], parse_model)
    if not folder.model.is_file():
        Run.load(path)  # says what is missing
    if config.task not in OPENERS:
        known = ", ".join(OPENERS)
        raise UserError(f"{path}: the page cannot show runs of the task {config.task!r} yet (it shows: {known})")
    return OPENERS[config.task](folder, config, checkpoint)


def _translator(folder: RunFolder, config: Config, checkpoint: str) -> Subject:
    tokenizer = Tokenizer.load(folder.tokenizer)
    model = build(config.model, len(tokenizer))
    load_weights(model, _weights(folder, checkpoint), folder.model)
    name = "-".join(filter(None, (config.model.kind, config.model.size)))
    examples = _examples(folder, config)
    return Translator(folder.path.name, name, model.eval(), tokenizer, config.decode, examples)


OPENERS: dict[str, Callable[[RunFolder, Config, str], Subject]] = {"translate": _translator}
"""How the runs of each task are opened."""


def checkpoints(folder: RunFolder) -> list[str]:
    """The steps whose weights the run still has, in order."""
    return [path.stem.removeprefix("step-").lstrip("0") or "0" for path in reversed(folder.checkpoints())]


def _weights(folder: RunFolder, checkpoint: str) -> dict[str, Any]:
    """The best weights, or those of a checkpoint: the averaged ones, where the run averages."""
    if not checkpoint:
        return load_tensors(folder.model)[0]
    if checkpoint not in checkpoints(folder):
        kept = ", ".join(checkpoints(folder)) or "none"
        raise UserError(f"checkpoint = {checkpoint!r}: is not kept any more (kept: {kept})")
    tensors, _ = load_tensors(folder.path / "training" / f"step-{int(checkpoint):09d}.safetensors")
    part = "average/" if any(name.startswith("average/") for name in tensors) else "model/"
    return {name.removeprefix(part): tensor for name, tensor in tensors.items() if name.startswith(part)}


def _examples(folder: RunFolder, config: Config) -> list[str]:
    examples: list[str] = []
    for source in config.data.train:
        if source in CORPORA:
            examples += EXAMPLES.get(source, [])
    if folder.data.is_dir():
        for pairs in Prepared.open(folder.data).tests.values():
            short = [pair.source for pair in pairs[:200] if len(pair.source) <= 60]
            examples += short[:3]
    return list(dict.fromkeys(examples))[:6]


def training(folder: RunFolder) -> dict[str, Any]:
    """What the run reported while it was trained, and where it stands."""
    rows = read_metrics(folder) if folder.metrics.is_file() else []
    config = read_run_config(folder)
    scores = json.loads(folder.scores.read_text(encoding="utf8")) if folder.scores.is_file() else {}
    step = int(max((row["step"] for row in rows), default=0))
    done = folder.scores.is_file()
    steps = config["train"].get("steps")
    return {"rows": rows, "step": step, "steps": steps, "done": done, "checkpoints": checkpoints(folder)} | {
        "scores": {
            name: {key: row[key] for key in ("bleu", "chrf", "exact") if key in row} for name, row in scores.items()
        }
    }
