"""`regard translate`: sentences, a file or standard input; with a picture of what each word looked at."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: faster, hardly worse (CPU).")] = False,
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

    opened = Run.load(run, device, "int8" if int8 else "float32")
    if beam is not None and method is None:
        wishes["method"] = "beam"
    given = {name: value for name, value in wishes.items() if value is not None}
    search = validated(SearchConfig, {**opened.config.decode.model_dump(), **given}, "decode.")
    files = _files(text or [])
    lines = _lines(files, text or [])
    prefixes = None if prefix is None else iter(lambda: prefix, None)
    waiting = not text and sys.stdin.isatty()
    picture = _Picture(attention, site, head, grid, subwords, single=not files and len(text or []) == 1)
    with output(out, files) as file:
        results = opened.stream(lines, search, prefixes, window=1 if waiting else None)
        for number, result in enumerate(results, start=1):
            if result.truncated:
                print(f"warning: line {number}: too long for the model, only its beginning was read", file=sys.stderr)
            for one in [result, *result.others]:
                record = {"source": one.source, "text": one.text, "score": one.score}
                print(json.dumps(record, ensure_ascii=False) if as_json else one.text, file=file, flush=True)
            picture.draw(result, number)


def _files(text: list[str]) -> list[Path]:
    """The arguments as files, if they are; what only looks like one is said, not translated."""
    paths = [Path(one) for one in text]
    if paths and all(map(_is_file, paths)):
        return paths
    for one in text:
        if re.fullmatch(r"\S*(/\S+|\w\.(txt|tsv|csv|jsonl?|gz|[a-z]{2}))", one):
            raise UserError(f"{one}: no such file (to translate it as a sentence, pipe it: echo '{one}' | regard ...)")
    return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a sentence can be too long to be a file name
        return False


def _lines(files: list[Path], text: list[str]) -> Iterator[str]:
    """The lines of the files, or the sentences as given, or the lines of standard input."""
    if text and not files and text != ["-"]:
        yield from text
        return
    if not files and sys.stdin.isatty():
        print("Type a sentence and press Enter (Ctrl-D ends):", file=sys.stderr)
    try:
        for path in files:
            with path.open(encoding="utf8") as lines:
                yield from lines
        if not files:
            yield from sys.stdin
    except UnicodeDecodeError as error:
        where = path if files else "standard input"
        raise UserError(f"{where}: is not UTF-8 text ({error.reason})") from None


@dataclass(frozen=True)
class _Picture:
    """What to draw of each translation, and where."""

    path: Path | None
    site: str | None
    head: int | None
    grid: bool
    subwords: bool
    single: bool

    def draw(self, result: Translation, number: int) -> None:
        if self.path is None or not result.target_ids:
            return
        if number > PICTURES:
            if number == PICTURES + 1:
                print(f"attention: drawn for the first {PICTURES} sentences only", file=sys.stderr)
            return
        from regard.explorer.figures import draw

        path = self.path if self.single else self.path.with_name(f"{self.path.stem}-{number}{self.path.suffix}")
        record = result.attention
        if not record.sites:
            raise UserError("--attention: this model has no attention to draw (try --model rnn-attention in training)")
        record = record if self.subwords else record.words()
        if path.suffix == ".json":
            chosen = record.select(self.site or "*", None if self.head is None else [self.head])
            path.write_text(chosen.to_json(), encoding="utf8")
        else:
            draw(record, path, site=self.site, head=self.head, grid=self.grid)
        print(f"attention: {path}", file=sys.stderr)
