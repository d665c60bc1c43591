"""`regard train`: from a file to a trained run, or on with one that stopped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.inputs import names_in
from regard.cli.settings import parse_settings
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.training.folder import RunFolder


def train(
    task: Annotated[
        str | None,
        typer.Argument(
            help="What to train for: translate, summarize, language, masked, classify, tag, answer, choose, image, ...",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="A TSV, CSV, JSONL or Parquet file (or .gz), text files, a folder, a glob, "
            "or a built-in corpus (see: regard corpus).",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="Such as transformer-tiny; see: regard models.")] = None,
    start_from: Annotated[
        Path | None, typer.Option("--from", help="Begin with this run, or Hugging Face folder.", show_default=False)
    ] = None,
    valid: Annotated[list[str] | None, typer.Option(help="File to validate on (else a part is held out).")] = None,
    test: Annotated[list[str] | None, typer.Option(help="File for the final score (else a part is held out).")] = None,
    columns: Annotated[str | None, typer.Option(help="Source and target columns: en,fr or 0,1.")] = None,
    freeze: Annotated[
        int | None, typer.Option(help="Keep an encoder's lowest layers as they are; -1: all.", show_default=False)
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A recipe: a YAML file of settings.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting: train.steps=2000 (repeatable).")] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with this run instead.", show_default=False)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is already in --out.")] = False,
) -> None:
    """Train a model on your file, in one go.

    Tokenizer, split into training and held-out examples, training, score.

    Ctrl-C saves and stops; --resume goes on, to the bit as if it had never stopped.
    """
    settings = parse_settings(set_ or [])
    settings |= {f"data.{name}": list(given) for name, given in (("valid", valid), ("test", test)) if given}
    if start_from is not None:
        settings["start"] = str(start_from)
    if freeze is not None:
        settings["train.freeze"] = freeze
    if columns:
        settings["data.columns"] = names_in(columns)
    from regard.training import start
    from regard.training.display import display_for

    if resume is not None:
        given = {"task": task, "files": files, "--out": out, "--model": model, "--from": start_from, "--config": config}
        if useless := [name for name, value in {**given, "--overwrite": overwrite}.items() if value]:
            raise UserError(f"--resume {resume}: takes no {useless[0]}; the run knows its own")
        trained(lambda: start.resume(resume, settings=settings, display=display_for()))
        return
    if task is None and config is None:
        raise UserError("what to train? Try: regard train translate pairs.tsv --out runs/mine")
    if out is None:
        raise UserError("--out: missing; it names the folder for the run (try --out runs/mine)")
    trained(
        lambda: start.train(
            task,
            files or [],
            out=out,
            model=model,
            recipe=config,
            settings=settings,
            overwrite=overwrite,
            display=display_for(),
        )
    )


def trained(training: Callable[[], RunFolder]) -> RunFolder:
    """Train and show the scores; asked to stop, say how to go on. Of the processes of torchrun, one speaks."""
    from regard.cli.show import show_scores
    from regard.training.start import Interrupted

    try:
        folder = training()
    except Interrupted as stopped:
        if os.environ.get("RANK", "0") == "0":
            typer.echo(str(stopped))
        raise typer.Exit(130) from None
    if os.environ.get("RANK", "0") == "0":
        show_scores(folder)
    return folder
