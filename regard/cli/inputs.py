"""What a verb reads: sentences on the command line, the lines of files, or standard input."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from regard.data.badlines import BadLines, Location
from regard.data.files import format_of, has_tabs, lines, lines_in
from regard.data.tables import decoded
from regard.errors import UserError

T = TypeVar("T")
_FILE = re.compile(r"\S*(/\S+|\w\.(txt|tsv|csv|ndjson|jsonl?|parquet|conllu?|bio|iob|gz|[a-z]{2}))")
WINDOW = 256
"""Inputs read at a time."""


def given(text: list[str] | None) -> list[str]:
    """What stands on the command line; nothing, where it is `-`: then it is standard input that is read."""
    return [] if text is None or text == ["-"] else text


def files_of(text: list[str]) -> list[Path]:
    """The arguments as files, if they are; what only looks like one is said, not read as a text."""
    paths = [Path(one) for one in text]
    if paths and all(map(is_file, paths)):
        return paths
    if any(map(is_file, paths)):
        missing = next(one for one, path in zip(text, paths, strict=True) if not is_file(path))
        raise UserError(f"{missing}: no such file, beside others that are; give files, or sentences")
    for one, path in zip(text, paths, strict=True):
        if any(map(str.isalnum, one)) and is_folder(path):
            raise UserError(f"{one}: is a folder; give its files: {path}/* (or pipe it: echo '{one}' | regard ...)")
        if _FILE.fullmatch(one):
            raise UserError(f"{one}: no such file (to have it read as a sentence, pipe it: echo '{one}' | regard ...)")
    if len(text) > 1 and not any(" " in one or not one.isascii() for one in text):
        print(f"note: {len(text)} texts of one word each; to have them read as one text, quote it", file=sys.stderr)
    return []


def is_folder(path: Path) -> bool:
    """Whether there is such a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Whether there is such a file."""
    try:
        return path.is_file()
    except OSError:  # a sentence can be too long to be a file name
        return False


def names_in(columns: str | None) -> list[str] | None:
    """`en, fr` as two names."""
    return [name.strip() for name in columns.split(",")] if columns else None


def lines_of(files: list[Path], text: list[str], bad: BadLines | None = None) -> Iterator[str]:
    """The lines of the files, or the sentences as given, or the lines of standard input. What is no UTF-8 is an error;
    or, where lines are counted in `bad`, an empty line."""
    if text and not files:
        yield from text
        return
    if not files and sys.stdin.isatty():
        print("Type a sentence and press Enter (Ctrl-D ends):", file=sys.stderr)
    sources = [(str(path), lines(path)) for path in files] or [("standard input", lines_in(sys.stdin.buffer))]
    counted = bad or BadLines()
    for name, read in sources:
        for number, line in enumerate(read, 1):
            counted.read += 1
            found = decoded(line, Location(name, number), counted)
            if found is None and bad is None:
                raise UserError(f"{name}: line {number} is not UTF-8; another encoding? iconv -f LATIN1 -t UTF-8")
            yield found or ""


def windows_of(files: list[Path], text: list[str], bad: BadLines) -> Iterator[list[str]]:
    """The texts of `lines_of` a few at a time, one at a time for a person who types."""
    typed = not text and sys.stdin.isatty()
    return windows((line.strip() for line in lines_of(files, text, bad)), 1 if typed else WINDOW)


def windows(items: Iterable[T], size: int = WINDOW) -> Iterator[list[T]]:
    """A few at a time."""
    several = iter(items)
    while window := list(islice(several, size)):
        yield window


def are_tables(files: list[Path], columns: str | None = None) -> bool:
    """Whether files have columns (.tsv, .csv, .json, .jsonl, .parquet, text with tabs), and not a text a line; if some
    are asked for, they must."""
    kinds = {_is_table(path): path for path in files}
    if len(kinds) == 2:
        raise UserError(f"{kinds[True]} is a table and {kinds[False]} plain text; give files of one kind at a time")
    if columns and True not in kinds:
        raise UserError(f"--columns {columns}: is for tables (.tsv, .csv, .jsonl, .parquet)")
    return True in kinds


def _is_table(path: Path) -> bool:
    if format_of(path) not in ("tsv", "text") or path.suffix.lower() == ".json":
        return True
    return has_tabs(path)


def sources_of(
    files: list[Path], text: list[str], columns: str | None, learned: Sequence[str] | None, bad: BadLines
) -> Iterator[str]:
    """As `lines_of`; of tables the texts of one column, by name, or as in the table that was learned."""
    if not are_tables(files, columns):
        return lines_of(files, text, bad)
    from regard.data.asked import read_sources

    return read_sources(list(map(str, files)), names_in(columns) or [], learned or [], bad)


def say_bad(bad: BadLines) -> None:
    """What could not be used, to standard error; if that is all there was, it is an error."""
    if bad.total and bad.total >= bad.read:
        raise UserError(f"nothing could be used: {bad.summary()}")
    if bad.total:
        print(bad.summary(), file=sys.stderr)
