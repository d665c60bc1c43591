"""`regard tag`: a tag for every word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inputs import files_of, given, names_in, say_bad, windows, windows_of
from regard.errors import UserError


def tag(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Sentences; or text files, or CoNLL files; without either, standard input.", show_default=False
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Of CoNLL files: the column of the words, 0 or form.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Tag the words of sentences.

    A line is a sentence; its words are parted at spaces and around punctuation. CoNLL files (.conll, .conllu, .bio,
    .iob) have a word a line; their own tags are not read. Output as in them: a word and its tag a line, a blank line
    after each sentence.
    """
    from regard.cli.output import output
    from regard.cli.pictures import Picture
    from regard.data.badlines import BadLines
    from regard.data.conll import is_conll, read_words
    from regard.run import Run

    opened = Run.load(run, device)
    said = given(text)
    files = files_of(said)
    picture = Picture(attention, grid=grid, single=not files and len(said) == 1)
    number, bad = 0, BadLines()
    asked: Iterator[list[str]] | Iterator[list[list[str]]] = windows_of(files, said, bad)
    if len({is_conll(file) for file in files}) == 2:
        raise UserError(
            f"{', '.join(map(str, files))}: some have a word a line (CoNLL), some do not; tag them in two goes"
        )
    if files and is_conll(files[0]):
        asked = windows(read_words(list(map(str, files)), names_in(columns), opened.config.data.columns, bad))
    elif columns:
        raise UserError(f"--columns {columns}: is for CoNLL files (.conll, .conllu, .bio, .iob)")
    with output(out, files) as file:
        for window in asked:
            for one in opened.tag(window):
                number += 1
                if as_json:
                    print(json.dumps(one.row, ensure_ascii=False), file=file, flush=True)
                else:
                    for word, found in zip(one.words, one.tags, strict=True):
                        print(f"{word}\t{found}", file=file)
                    print(file=file, flush=True)
                if one.words and picture.wanted(number):
                    picture.draw(one.attention, number)
    say_bad(bad)
