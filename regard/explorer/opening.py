"""Runs and published folders, opened to be looked at.

The plain model is opened, not its packed twin, so that each number is the paper's own. Which adapter shows it follows
from what the model is (see `regard.explorer.scene`), not from its name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data.articles import Article
from regard.data.pairs import Pair
from regard.errors import UserError
from regard.explorer.images import Pictures
from regard.explorer.reading import PARTS, Readings
from regard.explorer.scene import Subject
from regard.explorer.translation import Translations
from regard.explorer.writing import Writings
from regard.nn.weights import load_tensors
from regard.tasks import task_named
from regard.tasks.base import Task
from regard.tasks.encoder import EncoderPredictor, EncoderTask
from regard.tasks.filler import Filler
from regard.tasks.generator import Generator
from regard.tasks.image_classifier import ImageClassifier
from regard.tasks.saved import Saved
from regard.tasks.summarize import Summarizer
from regard.tasks.translator import Translator
from regard.training.folder import RunFolder, read_run_config
from regard.training.metrics import read_metrics
from regard.training.saved import open_saved, trained_model

EXAMPLES = {"english-french": ["The white cat is not sleeping.", "My old friend will never buy a red car."]}
"""First sentences for the built-in corpora; other runs show their own held-out ones."""
MASKED = "The animal did not cross the street because it was too tired."


def open_run(path: Path, checkpoint: str = "") -> Subject:
    """The run, or published model, in the folder `path`, by its best weights or by one of its checkpoints."""
    saved = open_saved(path)
    if checkpoint:
        saved = replace(saved, weights=_checkpoint(RunFolder(path), checkpoint))
    config, task, model = saved.config, task_named(saved.config.task), trained_model(saved).eval()
    name = "-".join(filter(None, (config.model.kind, config.model.size)))
    predictor = task.predictor(saved, model)
    folder = path.resolve().name
    if isinstance(predictor, Summarizer):
        predictor = predictor.translator
    if isinstance(predictor, Translator):
        return Translations(folder, name, predictor, config.decode, _examples(saved, task))
    if isinstance(predictor, EncoderPredictor | Filler):
        mask = predictor.reader.tokenizer.mask_text if isinstance(predictor, Filler) else ""
        examples = _examples(saved, task) or [MASKED.replace("street", mask or "street")]
        return Readings(folder, name, config.task, predictor, examples)
    if isinstance(predictor, Generator):
        return Writings(folder, name, predictor, config.decode, ["The cat", "Once upon a time"])
    if isinstance(predictor, ImageClassifier):
        pictures = {example.name: example.pixels for example in _held_out(saved, task)[:12]}
        return Pictures(folder, name, predictor, pictures)
    raise UserError(f"{path}: the page cannot show models of the task {config.task!r} yet")


def checkpoints(folder: RunFolder) -> list[str]:
    """The steps whose weights the run still has, in order."""
    return [path.stem.removeprefix("step-").lstrip("0") or "0" for path in reversed(folder.checkpoints())]


def _checkpoint(folder: RunFolder, step: str) -> dict[str, Any]:
    """The weights of a checkpoint: the averaged ones, where the run averages."""
    if step not in checkpoints(folder):
        kept = ", ".join(checkpoints(folder)) or "none"
        raise UserError(f"checkpoint = {step!r}: is not kept any more (kept: {kept})")
    tensors, _ = load_tensors(folder.path / "training" / f"step-{int(step):09d}.safetensors")
    part = "average/" if any(name.startswith("average/") for name in tensors) else "model/"
    return {name.removeprefix(part): tensor for name, tensor in tensors.items() if name.startswith(part)}


def _examples(saved: Saved, task: type[Task]) -> list[str]:
    """A few short inputs that the run has not been trained on."""
    known = [text for source in saved.config.data.train for text in EXAMPLES.get(source, [])]
    if issubclass(task, EncoderTask):
        texts = [f" {PARTS} ".join(task.texts(example)) for example in _held_out(saved, task)]
    else:
        held_out = _held_out(saved, task)
        texts = [
            one.source if isinstance(one, Pair) else one.lead for one in held_out if isinstance(one, Pair | Article)
        ]
    short = [text for text in texts if len(text) <= 60] or [text[:200] for text in texts]
    return list(dict.fromkeys([*known, *short[:6]]))[:6]


def _held_out(saved: Saved, task: type[Task]) -> list[Any]:
    """The first examples of each held-out set, if the run has its data."""
    folder = RunFolder(saved.path).data
    if not folder.is_dir():
        return []
    found: list[Any] = []
    for held_out in task.open(saved.config, folder).tests.values():
        if hasattr(held_out, "__getitem__"):  # and not blocks of a text, which are no examples to a person
            found += [held_out[place] for place in range(min(100, len(held_out)))]
    return found


def training(folder: RunFolder) -> dict[str, Any]:
    """What the run reported while it was trained, and where it stands."""
    if not folder.metrics.is_file():
        raise UserError(f"{folder.path}: has no metrics.jsonl: it was not trained here, or has not reported yet")
    rows, settings = read_metrics(folder), read_run_config(folder)["train"]
    scores = json.loads(folder.scores.read_text(encoding="utf8")) if folder.scores.is_file() else {}
    told = {name: {key: row[key] for key in row if isinstance(row[key], float)} for name, row in scores.items()}
    return {
        "rows": rows,
        "step": int(max((row["step"] for row in rows), default=0)),
        "steps": None if settings.get("epochs") else settings.get("steps"),
        "done": folder.scores.is_file(),
        "checkpoints": checkpoints(folder),
        "scores": told,
    }
