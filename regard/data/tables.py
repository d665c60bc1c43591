"""Rows of tables with named columns: CSV, TSV, JSON lines or Parquet, plain or gzip. Everything streams.

A table without a header has the columns `0`, `1`, ... Whether its first line is one is told by the names in it.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regard.data.badlines import BadLines, Location
from regard.data.files import expand, format_of, lines
from regard.errors import UserError

Row = dict[str, Any]
_SAME_CHARACTERS = "surrogateescape"  # bytes that are no UTF-8 pass through the CSV reader and are found in the row


def read_table(files: Sequence[str], names: Sequence[str], bad: BadLines) -> Iterator[tuple[Row, Location]]:
    """Every row by its columns; `names` are those that make a first line a header."""
    for path in expand(files):
        kind = format_of(path)
        if kind == "jsonl":
            yield from _json_lines(path, bad)
        elif kind == "parquet":
            yield from _parquet(path, bad)
        else:
            yield from _cells(path, kind == "csv", names, bad)


def pick(row: Row, wanted: Sequence[str], what: str, where: Location) -> str:
    """The name of the first wanted column that the row has; a clear answer when it has none."""
    plain = {str(name).strip().lower(): name for name in row}
    for name in wanted:
        if name.lower() in plain:
            return str(plain[name.lower()])
    raise UserError(
        f"{where.path}: no column for the {what}; there are {', '.join(map(str, row))}. Name it, for example "
        f"--columns {','.join(map(str, list(row)[:2]))}"
    )


def _cells(path: Path, is_csv: bool, names: Sequence[str], bad: BadLines) -> Iterator[tuple[Row, Location]]:
    csv.field_size_limit(sys.maxsize)
    texts = (line.decode(errors=_SAME_CHARACTERS).replace("\r", " ") + "\n" for line in lines(path))
    head = next(lines(path), b"")
    tabs = b"\t" in head
    if is_csv and not tabs:
        reader = csv.reader(texts, delimiter=";" if b"," not in head and b";" in head else ",")
    else:  # in a TSV a quotation mark is an ordinary character
        reader = csv.reader(texts, delimiter="\t", quoting=csv.QUOTE_NONE)
    known = {name.lower() for name in names}
    header: list[str] | None = None
    begin = 1
    for cells in reader:
        where, begin = Location(str(path), begin), reader.line_num + 1
        if header is None:
            plain = [cell.strip().lower() for cell in cells]
            if known & set(plain):
                header = [cell.strip() for cell in cells]
                continue
            header = [str(number) for number in range(len(cells))]
        bad.read += 1
        text = " | ".join(cells)
        if not text.strip(" |"):
            bad.add("empty", where, text)
        elif not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            bad.add("encoding", where, text)
        elif len(cells) < len(header):
            bad.add("columns", where, text)
        else:
            yield dict(zip(header, cells, strict=False)), where


def _json_lines(path: Path, bad: BadLines) -> Iterator[tuple[Row, Location]]:
    for number, raw in enumerate(lines(path), 1):
        where = Location(str(path), number)
        bad.read += 1
        try:
            row = json.loads(raw)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield row, where
        else:
            bad.add("json", where, raw[:200].decode(errors="replace"))


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
