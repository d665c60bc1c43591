"""`regard translate`: sentences, a file or standard input; with a picture of what each word looked at."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.translator import Translation

PICTURES = 20
"""Sentences whose attention is drawn, at most: a picture each."""


def translate(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences, or one text file; without either, standard input.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    attention: Annotated[
        Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or its numbers: .json.")
    ] = None,
    site: Annotated[str | None, typer.Option(help="Which attention to draw: decoder.3.cross, ...")] = None,
    head: Annotated[int | None, typer.Option(help="Which head to draw; by default their mean.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    subwords: Annotated[bool, typer.Option("--subwords", help="Draw subwords instead of words.")] = False,
    method: Annotated[str | None, typer.Option(help="greedy, beam or sample.")] = None,
    beam: Annotated[int | None, typer.Option(help="Width of the beam.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Outputs per sentence.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Score / length ** penalty.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n-gram of this size twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How every output must begin.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Fewest tokens.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Most tokens.")] = None,
    temperature: Annotated[float | None, typer.Option(help="For sampling: under 1 is bolder.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample among the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample within this share of probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="For sampling.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with scores.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Translate sentences, a file or standard input.

    Line by line and in order; files may be of any length.
    """
    wishes = {
        "method": method, "beam": beam, "n_best": n_best, "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram, "min_length": min_length, "max_length": max_length,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    from regard.cli.output import output
    from regard.config import SearchConfig, validated
    from regard.run import Run

    opened = Run.load(run, device)
    given = {name: value for name, value in wishes.items() if value is not None}
    search = validated(SearchConfig, {**opened.config.decode.model_dump(), **given}, "decode.")
    lines = _lines(text)
    prefixes = None if prefix is None else iter(lambda: prefix, None)
    with output(out) as file:
        for number, result in enumerate(opened.stream(lines, search, prefixes), start=1):
            if result.truncated:
                print(f"warning: line {number}: too long for the model, only its beginning was read", file=sys.stderr)
            for one in [result, *result.others]:
                record = {"source": one.source, "text": one.text, "score": one.score}
                print(json.dumps(record, ensure_ascii=False) if as_json else one.text, file=file, flush=True)
            if attention is not None and number <= PICTURES:
                path = (
                    attention
                    if text and len(text) == 1 and not Path(text[0]).is_file()
                    else _numbered(attention, number)
                )
                _draw(result, path, site, head, grid, subwords)


def _lines(text: list[str] | None) -> Iterator[str]:
    """The sentences: as given, or the lines of a file, or of standard input."""
    if text and text != ["-"]:
        file = Path(text[0])
        if len(text) > 1 or not _is_file(file):
            yield from text
            return
        try:
            with file.open(encoding="utf8") as lines:
                yield from lines
        except UnicodeDecodeError as error:
            raise UserError(f"{file}: is not UTF-8 text ({error.reason} at byte {error.start})") from None
        return
    if sys.stdin.isatty():
        print("Type a sentence and press Enter (Ctrl-D ends):", file=sys.stderr)
    yield from sys.stdin


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a sentence can be too long to be a file name
        return False


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")


def _draw(result: Translation, path: Path, site: str | None, head: int | None, grid: bool, subwords: bool) -> None:
    from regard.explorer.figures import draw

    record = result.attention
    if not record.sites:
        raise UserError("--attention: this model has no attention to draw (try one trained with --model rnn-attention)")
    if not subwords:
        record = record.words()
    if path.suffix == ".json":
        try:
            path.write_text(record.to_json(), encoding="utf8")
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror})") from None
    else:
        draw(record, path, site=site, head=head, grid=grid)
    print(f"attention: {path}", file=sys.stderr)
