"""From a command to a finished run: settings, folder, data, model, loop, final score."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path

import torch

from regard.config import Config, TrainConfig, Values, dump, flatten, read_origins, read_yaml
from regard.data.batching import plan
from regard.data.corpora import CORPORA
from regard.data.folders import building
from regard.data.tokenizer_files import FILES as TOKENIZER_FILES
from regard.errors import UserError
from regard.models import MODELS, named
from regard.models.base import Encoder, ImageEncoder
from regard.nn.weights import begin_with, load_tensors, load_weights
from regard.tasks import settings_of, task_named
from regard.tasks.base import Task
from regard.training.display import Display, clock
from regard.training.distributed import Ranks, join
from regard.training.folder import Progress, RunFolder, read_run_config, write_text
from regard.training.interrupt import Interrupt
from regard.training.loop import Trainer, in_bfloat16
from regard.training.memory import keep_freed_memory
from regard.training.optimizer import freeze
from regard.training.saved import open_saved, trained_model


class Interrupted(Exception):  # noqa: N818 - not an error: a person asked for it
    """The training was asked to stop, and has saved where it stands."""


def cache_folder() -> Path:
    """Where tokenised data is kept for the next run on the same files: $REGARD_CACHE, or ~/.cache/regard."""
    return Path(os.environ.get("REGARD_CACHE") or Path.home() / ".cache" / "regard")


def settle(
    task: str | None, files: Sequence[str], model: str | None, recipe: Path | None, settings: Values
) -> tuple[Config, dict[str, str]]:
    """All settings of a new run, and where each came from. A recipe may name the task."""
    read = {} if recipe is None else dict(flatten(read_yaml(recipe)))
    task = task or str(read.get("task", "translate"))
    if model:  # the name on the command line stands for a whole model, not for a part of the recipe's
        read = {key: value for key, value in read.items() if not key.startswith("model.")}
    asked: dict[str, object] = {
        "task": task,
        **({"data.train": list(files)} if files else {}),
        **dict(flatten(settings)),
    }
    for layer in (read, asked):
        if "train.steps" in layer:  # steps that are asked for are not overruled by the epochs of a layer below
            layer.setdefault("train.epochs", None)
    chosen = {**read, **asked}
    if model is None and "model.kind" in chosen:
        model = "-".join(str(chosen[key]) for key in ("model.kind", "model.size") if chosen.get(key))
    layers = [*_usual_layers(task, model, chosen), (str(recipe), read), ("command", asked)]
    match chosen.get("data.train"):
        case [str(name)] | str(name) if name in CORPORA:
            layers.insert(2, (f"corpus {name}", CORPORA[name].settings))
    config, origins = settings_of(layers)
    if not config.data.train:
        raise UserError(f"data.train: no file given (try: regard train {task} FILE --out runs/mine)")
    _check_layers(config)
    task_named(config.task).check(config)
    return config, origins


def usual_settings(task: str, model: str | None) -> Config:
    """What a run has if nothing else is asked for."""
    return settings_of([("command", {"task": task}), *_usual_layers(task, model, {})])[0]


def _usual_layers(task: str, model: str | None, chosen: Values) -> list[tuple[str, Values]]:
    origin, layer = _model_layer(task, model, chosen)
    _check_promise(task, str(dict(flatten(layer))["model.kind"]))
    return [(f"task {task}", task_named(task).defaults), (origin, layer)]


def _model_layer(task: str, model: str | None, chosen: Values) -> tuple[str, Values]:
    """The model's settings before all others: those of its name, or those of the model to begin with."""
    start = chosen.get("start")
    if start is None:
        model = model or task_named(task).default_model
        settings = named(model)
        usual = MODELS[str(settings["kind"])].usual if task_named(task).as_papers else {}
        return model, {"model": settings, **usual}
    if model is not None:
        raise UserError(f"--model {model}: is settled by --from {start}; leave one of them out")
    saved = open_saved(Path(str(start)))
    text = {} if saved.text is None else {"tokenizer": {"file": str(start)}}
    options = task_named(task).inherited(saved, chosen)
    return f"from {start}", {"model": saved.config.model.model_dump(), "options": options, **text}


def _check_promise(task: str, model: str) -> None:
    able = [kind for kind, family in MODELS.items() if issubclass(family.model, task_named(task).promise)]
    if model not in able:
        raise UserError(f"model = {model!r}: cannot {task}; these can: {', '.join(able)}")


def _check_layers(config: Config) -> None:
    """Only encoders have layers that are counted from below (`regard.training.optimizer.depth`)."""
    if issubclass(MODELS[config.model.kind].model, Encoder | ImageEncoder):
        layers = getattr(config.model, "layers", math.inf)
        if config.train.freeze > layers:
            raise UserError(f"train.freeze = {config.train.freeze}: the model has {layers} layers (-1: all of it)")
        return
    for name, given in (("freeze", config.train.freeze), ("layer_decay", config.train.layer_decay != 1)):
        if given:
            raise UserError(f"train.{name}: is for encoders (bert, vit, ...); a {config.model.kind} learns as a whole")


def train(
    task: str | None,
    files: Sequence[str],
    *,
    out: Path,
    model: str | None = None,
    recipe: Path | None = None,
    settings: Values | None = None,
    overwrite: bool = False,
    display: Display | None = None,
) -> RunFolder:
    """Train a new run in the folder `out`. What is there already is replaced only once the new data has been read, and
    the model is known to fit it."""
    config, origins = settle(task, files, model, recipe, settings or {})
    for used in (config.start, getattr(config.options, "teacher", None)):
        if used and Path(used).resolve() == out.resolve():
            raise UserError(f"--out {out}: is what this run begins with; choose another --out")
    kind = task_named(config.task)
    folder, ranks = RunFolder(out), join(config.train.device)
    display = display if display and ranks.first else Display()
    begun = False
    try:
        if ranks.first:
            _check_out(folder, overwrite)
            folder.hold()
            prepared = _prepare(kind, config, display)
            _check_model(config, prepared, ranks.device)
            folder.clear()
            folder.create()
            write_text(folder.config, dump(config, origins))
            _keep(prepared, folder)
        ranks.wait()
        begun = True
        return _run(config, folder, ranks, display, further=False)
    except KeyboardInterrupt:
        early = "Stopped before the training began: give the same command again"
        raise Interrupted(f"Stopped. Go on: regard train --resume {out}" if begun else early) from None
    finally:
        folder.release()
        display.close()
        ranks.close()


def resume(out: Path, *, settings: Values | None = None, display: Display | None = None) -> RunFolder:
    """Go on with the run in the folder `out`, as if it had never stopped.

    `settings` may change how it goes on, `train.*` and `decode.*`: more steps, say. Data and model are settled.
    """
    folder = RunFolder(out)
    values, origins = read_run_config(folder), read_origins(folder.config)
    changes = dict(flatten(settings or {}))
    if fixed := [key for key in changes if not key.startswith(("train.", "decode."))]:
        raise UserError(f"{fixed[0]}: cannot be changed on resuming (only train.* and decode.*); train a new run")
    for name, why in (("optimizer", "it has its own memory"), ("validate_sentences", "scores could not be compared")):
        if f"train.{name}" in changes:
            raise UserError(f"train.{name}: cannot be changed on resuming ({why}); train a new run")
    if "train.steps" in changes:
        changes.setdefault("train.epochs", None)
    config, changed = settings_of([("", values), ("on resuming", changes)])
    _check_layers(config)
    task_named(config.task).check(config)
    further = any(f"train.{name}" in changes for name in ("steps", "epochs", "patience"))
    if folder.scores.exists() and not further and (idle := [key for key in changes if key.startswith("train.")]):
        raise UserError(f"{idle[0]}: {out} has ended, so this would change nothing (to go on, add train.steps=...)")
    if "train.steps" in changes and config.train.steps <= folder.reached:
        raise UserError(f"train.steps = {config.train.steps:,}: {out} is at step {folder.reached:,} already; give more")
    ranks = join(config.train.device)
    display = display if display and ranks.first else Display()
    try:
        if ranks.first:
            folder.create()
            folder.hold()
            if not folder.data.is_dir():  # it was killed before the data was kept
                _keep(_prepare(task_named(config.task), config, display), folder)
            if changes:
                origins |= {key: origin for key, origin in changed.items() if origin}
                write_text(folder.config, dump(config, origins))
        ranks.wait()
        return _run(config, folder, ranks, display, further=further)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. Go on: regard train --resume {folder.path}") from None
    finally:
        folder.release()
        display.close()
        ranks.close()


def _check_out(folder: RunFolder, overwrite: bool) -> None:
    """The folder must be new, empty, or a run that may be replaced: nothing is lost by accident."""
    path = folder.path
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: is a file, not a folder; choose another --out")
    if path.is_dir():
        if folder.config.exists():
            read_run_config(folder)
            if not overwrite:
                raise UserError(
                    f"{path}: already holds a run. To go on with it: regard train --resume {path}. "
                    "To replace it: add --overwrite"
                )
        elif others := folder.others():
            raise UserError(f"{path}: holds other files ({others[0]}) and is not a run; choose another --out")
    folder.create()


def _check_model(config: Config, task: Task, device: torch.device) -> None:
    """That it can be built and held, and begin with what it is told to: before anything is replaced."""
    room = config.model.vocabulary
    if room and task.vocabulary > room:
        raise UserError(
            f"model.vocabulary = {room:,}: the tokenizer has {task.vocabulary:,} entries"
            + (f" (it is {config.start}'s: use its tokenizer as it is)" if config.start else "; leave it out")
        )
    with torch.device("meta"):
        model = task.build(config, task.vocabulary, task.facts)
    _check_memory(sum(weight.numel() for weight in model.parameters()), device)
    if config.start:
        begin_with(model, task.fitted(open_saved(Path(config.start)).all_weights), config.start)
    if task.teacher is not None:
        teacher = open_saved(Path(task.teacher))
        task.check_teacher(teacher, trained_model(teacher))


def _check_memory(weights: int, device: torch.device) -> None:
    """That this machine can hold so many weights: on a CPU with their gradients and Adam's two averages."""
    if not hasattr(os, "sysconf"):
        return
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    need = weights * (16 if device.type == "cpu" else 4)
    if need > have:
        raise UserError(
            f"model: {weights:,} weights need {need / 2**30:,.0f} GB to be trained, and this machine has "
            f"{have / 2**30:,.0f}; try a smaller model (regard models shows sizes)"
        )


def _prepare(kind: type[Task], config: Config, display: Display) -> Task:
    for name, files in (("valid", config.data.valid), ("test", config.data.test)):
        if both := set(files) & set(config.data.train):
            display.note(
                f"warning: data.{name}: {min(both)} is trained on too; its scores will say nothing of new texts"
            )
    display.note(f"Reading {', '.join(config.data.train)}")
    return kind.prepare(config, cache_folder(), display)


def _keep(prepared: Task, folder: RunFolder) -> None:
    """The data into the run, whole or not at all."""
    with building(folder.data) as place:
        prepared.keep(place)


def _run(config: Config, folder: RunFolder, ranks: Ranks, display: Display, *, further: bool) -> RunFolder:
    """`further`: a run that had finished is given more steps, or more patience, and is to go on."""
    task = task_named(config.task).open(config, folder.data)
    if ranks.first:
        for name in TOKENIZER_FILES:
            if (text := folder.data / name).is_file():
                write_text(folder.path / name, text.read_text(encoding="utf8"))
        if task.facts:
            write_text(folder.facts, json.dumps(task.facts, indent=1, ensure_ascii=False) + "\n")
    display.note(task.summary)
    progress = _fit(config, task, folder, ranks, display, further)
    if not progress.done:
        raise Interrupted(f"Stopped at step {progress.step:,}, all saved. Go on: regard train --resume {folder.path}")
    if ranks.first:
        _finish(config, task, folder, ranks, progress, display)
    ranks.wait()
    return folder


def _fit(config: Config, task: Task, folder: RunFolder, ranks: Ranks, display: Display, further: bool) -> Progress:
    keep_freed_memory()
    torch.manual_seed(config.train.seed)
    model = task.build(config, task.vocabulary, task.facts)
    if config.start and not folder.checkpoints():
        saved = open_saved(Path(config.start))
        for note in [*begin_with(model, task.fitted(saved.all_weights), config.start), *saved.notes]:
            display.note(note)
    if task.teacher is not None:
        saved = open_saved(Path(task.teacher))
        teacher = trained_model(saved).to(ranks.device)
        task.check_teacher(saved, teacher)
        first = task.taught(saved, teacher, display)
        if first and not config.start and not folder.checkpoints():
            for note in begin_with(model, first, task.teacher):
                display.note(note)
    model = model.to(ranks.device)
    count = sum(weight.numel() for weight in model.parameters())
    name = "-".join(filter(None, (config.model.kind, config.model.size)))
    display.note(
        f"Model {name}: {count:,} parameters, on {ranks.device.type}"
        + (", in bfloat16" if in_bfloat16(config.train, ranks) else "")
        + (f", {ranks.size} processes" if ranks.size > 1 else "")
    )
    if frozen := freeze(model, config.train.freeze):
        display.note(f"Frozen: {frozen:,} of them")
    trainer = Trainer(model, task, _with_steps(config.train, task, ranks), folder, ranks)
    if trainer.config.warmup != config.train.warmup:
        display.note(f"Warm-up in {trainer.config.warmup:,} steps, a tenth of all")
    for warning in trainer.resume():
        display.note(f"warning: {warning}")
    if further and trainer.progress.done and trainer.progress.step < trainer.config.steps:
        trainer.reopen()
    if trainer.progress.step and not trainer.progress.done:
        display.note(f"Going on from step {trainer.progress.step:,}")
    with Interrupt() as interrupt:
        return trainer.fit(display, interrupt)


def _with_steps(config: TrainConfig, task: Task, ranks: Ranks) -> TrainConfig:
    """Where epochs were asked for, the steps that they are."""
    if config.epochs is None:
        short = config.warmup >= config.steps  # the rate would never reach its height
        return config.model_copy(update={"warmup": math.ceil(config.steps / 10)}) if short else config
    batches = len(plan(task.lengths, batch_tokens=config.batch_tokens, seed=config.seed))
    steps = math.ceil(config.epochs * batches / (config.accumulate * ranks.size))
    return config.model_copy(update={"steps": steps, "warmup": min(config.warmup, math.ceil(steps / 10))})


def _finish(config: Config, task: Task, folder: RunFolder, ranks: Ranks, progress: Progress, display: Display) -> None:
    """The final score, by the best weights, on the test sets."""
    display.note(f"Trained {progress.step:,} steps in {clock(progress.seconds)}; best at step {progress.best_step:,}")
    model = task.build(config, task.vocabulary, task.facts).to(ranks.device)
    load_weights(model, load_tensors(folder.model)[0], folder.model)
    display.start("scoring held-out examples", None)
    if facts := task.settled(model.eval()):
        write_text(folder.facts, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    scores = task.test(model.eval())
    display.finish()
    write_text(folder.scores, json.dumps(scores, indent=2, ensure_ascii=False) + "\n")
