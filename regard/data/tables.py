"""Rows of tables with named columns: CSV, TSV, JSON lines or Parquet, plain or gzip. Everything streams.

A table without a header has the columns `0`, `1`, ... Whether its first line is one is told by the names in it.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from regard.data.badlines import BadLines, Location
from regard.data.files import expand, format_of, has_tabs, lines
from regard.errors import UserError

Row = dict[str, Any]
Found = TypeVar("Found")
LONGEST = 1000
"""Lines that one row of a table may take."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_table(files: Sequence[str], names: Sequence[str], bad: BadLines) -> Iterator[tuple[Row, Location]]:
    """Every row by its columns; `names` are those that make a first line a header (numbers do not)."""
    return ((row, where) for row, where in read_rows(files, names, bad) if row)


def read_rows(
    files: Sequence[str], names: Sequence[str], bad: BadLines, has_header: Callable[[list[str]], bool] = lambda _: False
) -> Iterator[tuple[Row, Location]]:
    """As `read_table`; a row that cannot be read comes too, without any column, so that rows can be counted.
    `has_header` may know other names that make a first line a header."""
    for path in expand(files):
        kind = format_of(path)
        if kind == "jsonl":
            yield from _json_rows(path, bad)
        elif kind == "parquet":
            yield from _parquet(path, bad)
        elif path.suffix.lower() == ".json":
            yield from _json_list(path, bad)
        else:
            yield from _cells(path, kind == "csv", names, has_header, bad)


class NoColumnError(UserError):
    """A row has none of the columns that are looked for."""


class Lookup(Generic[Found]):
    """What `choose` finds in a row, or None where a column is missing. One such row is a bad line; where no row has the
    columns, `end` says so."""

    def __init__(self, choose: Callable[[Row, Location], Found], bad: BadLines) -> None:
        self.choose, self.bad = choose, bad
        self.found, self.problem = False, NoColumnError()

    def __call__(self, row: Row, where: Location) -> Found | None:
        try:
            value = self.choose(row, where)
        except NoColumnError as problem:
            self.problem = self.problem if self.problem.args else problem
            self.bad.add("columns", where, str(row))
            return None
        self.found = True
        return value

    def end(self) -> None:
        if self.problem.args and not self.found:
            raise self.problem


def pick(row: Row, wanted: Sequence[str], what: str, where: Location) -> str:
    """The name of the first wanted column that the row has; a clear answer when it has none."""
    plain = {str(name).strip().lower(): name for name in row}
    for name in wanted:
        if name.lower() in plain:
            return str(plain[name.lower()])
    raise NoColumnError(
        f"{where.path}: no column for the {what}; there are {', '.join(map(str, row))}. Name it, for example "
        f"--columns {','.join(map(str, list(row)[:2]))}"
    )


def _cells(
    path: Path, is_csv: bool, names: Sequence[str], has_header: Callable[[list[str]], bool], bad: BadLines
) -> Iterator[tuple[Row, Location]]:
    known = {name.lower() for name in names if not name.isdecimal()}
    numbered = any(name.isdecimal() for name in names)  # then what stands behind those columns does not matter
    header: list[str] | None = None
    for cells, where in csv_cells(path, bad, tabs=not is_csv):
        if cells is None:
            yield {}, where
            continue
        if header is None:
            if known & {cell.strip().lower() for cell in cells} or has_header(cells):
                header = [cell.strip() for cell in cells]
                continue
            header = [str(number) for number in range(len(cells))]
        bad.read += 1
        text, row = " | ".join(cells), {}
        if not text.strip(" |"):
            bad.add("empty", where, text)
        elif no_text(text):
            bad.add("encoding", where, text)
        elif len(cells) < len(header) or (not numbered and any(cells[len(header) :])):
            bad.add("columns", where, text)
        else:
            row = dict(zip(header, cells, strict=False))
        yield row, where


def csv_cells(path: Path, bad: BadLines, tabs: bool = False) -> Iterator[tuple[list[str] | None, Location]]:
    """The cells of each row, or None for a line that is empty or wrongly quoted, which is counted here. A quoted cell
    may run over several lines; with tabs (where the first line has one), a quotation mark is a character.

    Bytes that are no UTF-8 pass through, since a row is known only when it has been read: see `no_text`.
    """
    csv.field_size_limit(sys.maxsize)
    tabs = tabs or has_tabs(path)
    begin, quotes = 1, 0  # the first line of the row that is being read, and its quotation marks so far

    def texts() -> Iterator[str]:
        nonlocal quotes
        for number, line in enumerate(lines(path), 1):
            text = line.decode(errors="surrogateescape").replace("\r", " ") + "\n"
            quotes += text.count('"')
            if number - begin > LONGEST:
                break
            yield text
        else:
            if tabs or quotes % 2 == 0:
                return
        raise UserError(f"{path}: line {begin}: a quotation mark is opened and not closed; close it, or double it")

    if tabs:
        reader = csv.reader(texts(), delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(texts(), delimiter=_delimiter(path), strict=True)
    while True:
        cells: list[str] | None = None
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            pass  # text behind a closing quotation mark
        first, begin, quotes = begin, reader.line_num + 1, 0
        if cells:
            yield cells, Location(str(path), first)
            continue
        for line in range(first, begin):
            where = Location(str(path), line)
            bad.read += 1
            bad.add("quotes" if cells is None else "empty", where, "")
            yield None, where


def _delimiter(path: Path) -> str:
    """A comma; or a semicolon, if that divides the first lines into as many cells each, and a comma does not."""
    head = [line.decode(errors="replace") for line in islice(filter(None, lines(path)), 5)]
    if not head or ";" not in head[0]:
        return ","
    by_comma, by_semicolon = ({len(cells) for cells in csv.reader(head, delimiter=mark)} for mark in ",;")
    return ";" if by_comma == {1} or (len(by_semicolon) == 1 and len(by_comma) > 1) else ","


def json_lines(path: Path, bad: BadLines) -> Iterator[tuple[Row, Location]]:
    """The objects of a file of JSON lines."""
    return ((row, where) for row, where in _json_rows(path, bad) if row)


def _json_rows(path: Path, bad: BadLines) -> Iterator[tuple[Row, Location]]:
    for number, raw in enumerate(lines(path), 1):
        where = Location(str(path), number)
        bad.read += 1
        yield _json_row(raw, where, bad), where


def _json_row(raw: bytes, where: Location, bad: BadLines) -> Row:
    """The object of a line; an empty one where there is none."""
    text = decoded(raw, where, bad)
    if text is None:
        return {}
    if not text.strip():
        bad.add("empty", where, text)
        return {}
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not row:
        bad.add("json", where, text)
        return {}
    if "\\ud" in text.lower() and no_text(json.dumps(row, ensure_ascii=False)):
        bad.add("encoding", where, text)
        return {}
    return row


def _json_list(path: Path, bad: BadLines) -> Iterator[tuple[Row, Location]]:
    """The objects of one JSON list."""
    try:
        rows = json.loads(b"\n".join(lines(path)))
    except ValueError as problem:
        raise UserError(f"{path}: not valid JSON ({problem}); for an object a line, name it .jsonl") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}: must be a list of objects: [{{...}}, {{...}}]")
    for number, row in enumerate(rows, 1):
        where = Location(str(path), number)
        bad.read += 1
        if not row:
            bad.add("empty", where, "{}")
        yield row, where


def decoded(raw: bytes, where: Location, bad: BadLines) -> str | None:
    """A line as text, or None for a bad one."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        bad.add("encoding", where, raw[:800].decode(errors="backslashreplace"))
        return None


def not_utf8(texts: Sequence[str]) -> UserError:
    """About the first of the texts that is none."""
    wrong = next(filter(no_text, texts), "")
    return UserError(f"{wrong[:60]!r}: is not UTF-8 text; another encoding? iconv -f LATIN1 -t UTF-8")


def no_text(text: str) -> bool:
    """True for bytes that were no UTF-8, and for half of an escaped pair."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def _parquet(path: Path, bad: BadLines) -> Iterator[tuple[Row, Location]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    bad.read += 1
                    yield row, Location(str(path), number)
    except (pa.ArrowException, OSError) as problem:
        first = str(problem).splitlines()[0]
        raise UserError(f"{path}: not a readable Parquet file ({first}); copy or download it again") from None
