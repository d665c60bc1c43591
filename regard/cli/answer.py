"""`regard answer`: the part of a text that answers a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.errors import UserError


def answer(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    question: Annotated[list[str], typer.Argument(help="What to ask; several questions may be given.")],
    context: Annotated[str, typer.Option(help="The text to find the answer in, or a file that has it.")],
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Answer questions about a text of any length, with its own words."""
    from regard.cli.inputs import files_of
    from regard.cli.pictures import Picture
    from regard.run import Run

    files = files_of([context])
    try:
        text = files[0].read_text(encoding="utf8") if files else context
    except UnicodeDecodeError as error:
        raise UserError(f"{context}: is not UTF-8 text ({error.reason})") from None
    if not text.strip():
        raise UserError("--context: is empty; give a text, or a file that has one")
    picture = Picture(attention, single=len(question) == 1)
    for number, found in enumerate(Run.load(run, device).answer(question, [text] * len(question)), 1):
        row = {"question": found.question, "answer": found.text, "start": found.start, "probability": found.probability}
        typer.echo(json.dumps(row, ensure_ascii=False) if as_json else found.text or "(no answer in this text)")
        if picture.wanted(number):
            picture.draw(found.attention, number)
