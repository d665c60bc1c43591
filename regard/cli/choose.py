"""`regard choose`: the best of several ways to go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.errors import UserError


def choose(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    context: Annotated[str, typer.Argument(help="The situation, or the question.")],
    choices: Annotated[list[str], typer.Argument(help="Two or more ways to go on.")],
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object, with probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Choose the likeliest of several ways to go on."""
    from regard.cli.pictures import Picture
    from regard.run import Run

    if len(choices) < 2:
        raise UserError(f"choices = {choices}: at least two are needed")
    (found,) = Run.load(run, device).choose([context], [choices])
    if as_json:
        row = {"context": context, "number": found.number, "choice": found.text, "probabilities": found.probabilities}
        typer.echo(json.dumps(row, ensure_ascii=False))
    else:
        for number, (text, chance) in enumerate(zip(found.choices, found.probabilities, strict=True)):
            typer.echo(f"{'>' if number == found.number else ' '} {chance:.3f}  {text}")
    picture = Picture(attention)
    if picture.wanted(1):
        picture.draw(found.attention, 1)
