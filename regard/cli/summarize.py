"""`regard summarize`: a long text made short; with a picture of what each word looked at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inputs import are_tables, files_of, given, lines_of, say_bad, sources_of
from regard.data.readers import one_line


def summarize(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts; or text files, one text each, or tables; without either, standard input.", show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Every line of the files is a text.")] = False,
    columns: Annotated[str | None, typer.Option(help="Of tables: the column of the texts.")] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    beam: Annotated[int | None, typer.Option(help="Width of the beam; 1 = greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Score / length ** penalty.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n-gram of this size twice.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Fewest tokens.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Most tokens.")] = None,
    ask: Annotated[str | None, typer.Option(help="Said before every text: 'summarize:'.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text, with its score.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: faster, hardly worse (CPU).")] = False,
) -> None:
    """Summarise texts: one line of output for each."""
    from regard.cli.output import output
    from regard.cli.pictures import Picture
    from regard.data.badlines import BadLines
    from regard.run import Run

    opened = Run.load(run, device, "int8" if int8 else "float32")
    wishes = {
        "beam": beam, "length_penalty": length_penalty, "no_repeat_ngram": no_repeat_ngram, "min_length": min_length,
        "max_length": max_length,
    }  # fmt: skip
    search = opened.config.decode.wishing(wishes)
    said = given(text)
    files = files_of(said)
    bad, tables = BadLines(), are_tables(files, columns)
    texts = ("\n".join(lines_of([file], [])) for file in files) if files and not lines else lines_of(files, said)
    if tables:
        texts = sources_of(files, said, columns, opened.config.data.columns, bad)
    if not said and not lines and not sys.stdin.isatty():
        texts = iter(["\n".join(texts)])  # as a file would be: one text
    picture = Picture(attention, grid=grid, single=not lines and not tables and len(said) == 1)
    with output(out, files) as file:
        for number, result in enumerate(opened.summarizer.summarize(texts, search, ask=ask), start=1):
            if result.truncated:
                print(f"warning: text {number}: too long for the model, only its beginning was read", file=sys.stderr)
            print(
                json.dumps(result.row, ensure_ascii=False) if as_json else one_line(result.text), file=file, flush=True
            )
            if result.target_ids and picture.wanted(number):
                picture.draw(result.attention, number)
    say_bad(bad)
