"""`regard export`: a run as a folder that other libraries open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.errors import UserError


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run.")],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not be there yet.")],
    to: Annotated[str, typer.Option(help="The layout: hf, as Hugging Face's transformers open it.")] = "hf",
) -> None:
    """Write a run as a Hugging Face folder: config.json, model.safetensors, tokenizer.json."""
    from regard.hub.published import export as write
    from regard.training.saved import open_saved

    if to != "hf":
        raise UserError(f"--to {to}: unknown; there is hf")
    saved = open_saved(run)
    write(saved, out)
    typer.echo(f"{out}: {', '.join(sorted(path.name for path in out.iterdir()))}")
    if saved.config.task == "classify" and (threshold := saved.facts.get("threshold")) not in (None, 0.5):
        typer.echo(f"The run's threshold, {threshold:g}, is not in it: the layout has no place for one.")
    if getattr(saved.config.model, "outside_training", None) == "drawn":
        typer.echo(
            "Outside training, transformers reads the first block in place of random ones: about long texts it may "
            "answer otherwise (so does a run trained with --set model.outside_training=first)."
        )
