"""What a trained model is asked: files as those it learned from. The answers in them, if any, are not read.

A row that cannot be used comes as an empty one, so that what is written has a row for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from regard.data.badlines import BadLines, Location
from regard.data.labelled import SECONDS, SITUATIONS, TEXTS, situation, text_and_label, without_header
from regard.data.readers import has_header, is_language, place_of, unfold
from regard.data.tables import Lookup, Row, pick, read_rows
from regard.errors import UserError

_SOURCES = ("source", "src", "article", "document", "dialogue", *TEXTS)


def read_texts(
    files: Sequence[str], columns: Sequence[str], learned: Sequence[str], bad: BadLines
) -> Iterator[tuple[str, str | None]]:
    """Tables with a column of texts, perhaps a second one: by the names in `columns`; or where there are none by those
    of the table that was `learned`, if these are there too; or by the usual ones; or as training finds them."""
    chosen: list[str] | None = None
    rows = read_rows(files, [*columns, *learned, *TEXTS, *SECONDS], bad)
    first = list(islice(rows, 100))
    look = Lookup(lambda row, where: _columns(row, columns, learned, where, [one for one, _ in first if one]), bad)
    for row, where in chain(first, rows):
        if row and (chosen is None or chosen[0] not in row):
            chosen = look(row, where)
        texts = [str(row.get(name) or "").strip() for name in chosen or ()] if row else []
        if texts and not all(texts):
            bad.add("empty", where, " | ".join(texts))
        if texts and all(texts):
            yield texts[0], texts[1] if len(texts) > 1 else None
        else:
            yield "", None
    look.end()


def _columns(
    row: Row, columns: Sequence[str], learned: Sequence[str], where: Location, first: Sequence[Row]
) -> list[str]:
    if len(columns) > 2:
        raise UserError(f"columns = {','.join(columns)}: give the text, perhaps a second one; labels are not read here")
    if columns:
        return [pick(row, [name], f"name {name!r}", where) for name in columns]
    if learned and all(name in row for name in learned):
        return list(learned)
    names = {str(name).lower(): str(name) for name in row}
    if len(names) == 1:
        return list(names.values())
    if without_header(row):
        return [text_and_label(row, where, first)[0]]
    text = pick(row, TEXTS, "text", where)
    return [text, *[names[name] for name in SECONDS if name in names][:1]]


def read_sources(files: Sequence[str], columns: Sequence[str], learned: Sequence[str], bad: BadLines) -> Iterator[str]:
    """The texts of tables that are to be translated, summarised or turned into vectors: one column, chosen as in
    `read_texts`; or the first that is called after a language; or the first, where none has a name."""
    chosen: str | None = None
    look = Lookup(lambda row, where: _source(row, columns, learned, where), bad)
    for row, where in read_rows(files, [*columns, *learned, *_SOURCES], bad, has_header):
        sides = unfold(row)
        if row and chosen not in sides:
            chosen = look(sides, where)
        given = sides.get(chosen or "") or ""
        text = " ".join(str(given if not isinstance(given, list) else " ".join(map(str, given))).split())
        if row and chosen is not None and not text:
            bad.add("empty", where, str(row))
        yield text
    look.end()


def _source(row: Row, columns: Sequence[str], learned: Sequence[str], where: Location) -> str:
    if columns:
        return pick(row, columns[:1], f"name {columns[0]!r}", where)
    place = place_of(learned[0], list(row)) if learned else None
    if place is not None:
        return list(row)[place]
    names = {str(name).lower(): str(name) for name in row}
    if known := [names[name] for name in _SOURCES if name in names]:
        return known[0]
    languages = [name for plain, name in names.items() if is_language(plain)]
    if len(languages) > 2:  # beside two languages, "id" is a number and not Indonesian
        languages = [name for name in languages if name.lower() != "id"]
    if languages:
        return languages[0]
    if all(name.isdecimal() for name in names):
        return next(iter(names.values()))
    return pick(row, _SOURCES, "text", where)


def read_situations(files: Sequence[str], bad: BadLines) -> Iterator[tuple[str, list[str]]]:
    """Tables of multiple choice: a situation and the ways to go on."""
    look = Lookup(situation, bad)
    for row, where in read_rows(files, SITUATIONS, bad):
        yield (look(row, where) if row else None) or ("", [])
    look.end()
