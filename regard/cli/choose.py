"""`regard choose`: the best of several ways to go on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.choose import Chosen


def choose(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    context: Annotated[str, typer.Argument(help="The situation, or the question; or a table of them, as in training.")],
    choices: Annotated[
        list[str] | None, typer.Argument(help="Two or more ways to go on; none with a table.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Choose the likeliest of several ways to go on."""
    from regard.cli.inputs import files_of, say_bad, windows
    from regard.cli.output import output
    from regard.cli.pictures import Picture
    from regard.data.asked import read_situations
    from regard.data.badlines import BadLines
    from regard.run import Run

    files = [] if choices else files_of([context])
    if not files and len(choices or []) < 2:
        raise UserError(f"choices = {choices or []}: at least two are needed, or a table of situations in their place")
    bad = BadLines()
    asked = read_situations([context], bad) if files else iter([(context, choices or [])])
    opened = Run.load(run, device)
    picture = Picture(attention, single=not files)
    number = 0
    with output(out, files) as file:
        for window in windows(asked):
            full = [(one, several) for one, several in window if several]
            results = iter(opened.choose([one for one, _ in full], [several for _, several in full]) if full else [])
            for _, several in window:
                number += 1
                found = next(results) if several else None
                print(_row(found) if as_json else _shown(found, alone=not files), file=file, flush=True)
                if found is not None and found.truncated:
                    print(f"warning: situation {number}: too long, only a part of it was read", file=sys.stderr)
                if found is not None and picture.wanted(number):
                    picture.draw(found.attention, number)
    say_bad(bad)


def _row(found: Chosen | None) -> str:
    """As JSON. A row that could not be read has no choice, and keeps its place."""
    if found is None:
        return json.dumps({"context": "", "number": None, "choice": None, "probabilities": []})
    return json.dumps(found.row, ensure_ascii=False)


def _shown(found: Chosen | None, alone: bool) -> str:
    """All choices of a single situation; of many, a line for the best of each."""
    if found is None:
        return ""
    chances = list(zip(found.probabilities, found.choices, strict=True))
    if not alone:
        return f"{found.number}\t{chances[found.number][0]:.3f}\t{found.text}"
    marks = [">" if number == found.number else " " for number in range(len(chances))]
    return "\n".join(f"{mark} {chance:.3f}  {text}" for mark, (chance, text) in zip(marks, chances, strict=True))
