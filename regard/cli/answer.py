"""`regard answer`: the part of a text that answers a question."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from regard.errors import UserError


def answer(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    question: Annotated[
        list[str], typer.Argument(help="What to ask: one question or several; or a file of them in SQuAD's layout.")
    ],
    context: Annotated[
        str | None, typer.Option(help="The text to find the answer in, or a file that has it.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Answer questions about a text of any length, with its own words."""
    from regard.cli.inputs import files_of, say_bad, windows
    from regard.cli.output import output
    from regard.cli.pictures import Picture
    from regard.data.badlines import BadLines
    from regard.data.questions import read_questions
    from regard.run import Run

    files, bad = files_of(question), BadLines()
    if context is None and not files:
        raise UserError("--context: is missing; give the text to find the answer in, or ask a file in SQuAD's layout")
    if context is not None and files:
        raise UserError(f"{files[0]}: has its own contexts, so leave --context out (or ask a question, not a file)")
    asked: Iterator[tuple[str | None, str, str]]
    if files:
        located = read_questions(list(map(str, files)), bad, answered=False)
        asked = ((one.id, one.question, one.context) for one, _ in located)
    else:
        text = _text(context or "")
        asked = ((None, one, text) for one in question)
    opened = Run.load(run, device)
    picture = Picture(attention, single=not files and len(question) == 1)
    number = 0
    with output(out, files or files_of([context or ""])) as file:
        for window in windows(asked):
            answers = opened.answer([one[1] for one in window], [one[2] for one in window])
            for (name, *_), found in zip(window, answers, strict=True):
                number += 1
                row = {**({} if name is None else {"id": name}), **found.row}
                plain = " ".join(found.text.split()) or "(no answer in this text)"
                print(json.dumps(row, ensure_ascii=False) if as_json else plain, file=file, flush=True)
                if found.truncated:
                    print(f"warning: question {number}: too long, only its beginning was read", file=sys.stderr)
                if picture.wanted(number):
                    picture.draw(found.attention, number)
    say_bad(bad)


def _text(context: str) -> str:
    from regard.cli.inputs import files_of, lines_of

    text = "\n".join(lines_of(files, [])) if (files := files_of([context])) else context
    if not text.strip():
        raise UserError("--context: is empty; give a text, or a file that has one")
    return text
