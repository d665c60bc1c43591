"""Sentence pairs from the files people have: TSV, CSV, JSON lines, Parquet or two parallel texts, plain or gzip.

Everything streams: memory does not depend on the size of a file. A line that cannot be used goes to `BadLines`; a
file that cannot be used is a `UserError`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from regard.data.badlines import BadLines, Location
from regard.data.files import ALLOWED, expand, format_of, has_tabs, lines
from regard.data.pairs import Alignment, Pair
from regard.data.tables import csv_cells, decoded, json_lines, no_text
from regard.errors import UserError

_KNOWN = (("source", "target"), ("src", "tgt"), ("src", "trg"))
LANGUAGES = (
    "af", "am", "ar", "az", "be", "bg", "bn", "br", "bs", "ca", "cs", "cy", "da", "de", "el", "en", "eo",
    "es", "et", "eu", "fa", "fi", "fr", "fy", "ga", "gd", "gl", "gu", "ha", "he", "hi", "hr", "hu", "hy",
    "id", "ig", "is", "it", "ja", "ka", "kk", "km", "kn", "ko", "ku", "ky", "la", "lb", "lo", "lt", "lv",
    "mg", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "no", "oc", "or", "pa", "pl",
    "ps", "pt", "ro", "ru", "rw", "sa", "sd", "si", "sk", "sl", "so", "sq", "sr", "su", "sv", "sw", "ta",
    "te", "tg", "th", "tk", "tl", "tr", "tt", "ug", "uk", "ur", "uz", "vi", "wo", "xh", "yi", "yo", "zh",
    "zu",
)  # fmt: skip
_NAMES = (
    "arabic", "bulgarian", "catalan", "chinese", "croatian", "czech", "danish", "dutch", "english", "estonian",
    "finnish", "french", "german", "greek", "hebrew", "hindi", "hungarian", "icelandic", "indonesian", "irish",
    "italian", "japanese", "korean", "latin", "latvian", "lithuanian", "norwegian", "persian", "polish",
    "portuguese", "romanian", "russian", "serbian", "slovak", "slovenian", "spanish", "swahili", "swedish",
    "thai", "turkish", "ukrainian", "urdu", "vietnamese", "welsh",
)  # fmt: skip
_LANGUAGES = re.compile(f"({'|'.join(LANGUAGES)})([-_][a-z]{{2,4}})?|{'|'.join(_NAMES)}")
_BREAKS = re.compile(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*")
_PHARAOH = re.compile(r"\d+-\d+(?: +\d+-\d+)*")
Row = tuple[Any, Any, Any, int]
"""Source, target, alignment or None, and the line."""


def read_pairs(
    files: Sequence[str | Path], *, columns: Sequence[str] | None = None, bad: BadLines | None = None
) -> Iterator[Pair]:
    """The pairs of the files, one after the other.

    `columns` names the source and the target column (or gives their 0-based numbers); without it a table's own names
    (`source target`, `src tgt`, language codes) or its first two columns are taken.
    """
    return (pair for pair, _ in read_located(files, columns=columns, bad=bad))


def read_located(
    files: Sequence[str | Path], *, columns: Sequence[str] | None = None, bad: BadLines | None = None
) -> Iterator[tuple[Pair, Location]]:
    """The pairs, each with the file and the line it came from."""
    bad = BadLines() if bad is None else bad
    if columns is not None and len(columns) != 2:
        raise UserError(f"columns = {' '.join(columns)}: give two, the source and the target (try --columns en,fr)")
    if columns is not None and columns[0] == columns[1]:
        raise UserError(f"columns = {','.join(columns)}: the source and the target are one column; give two")
    paths = expand(files)
    read_before = bad.read
    usable = 0
    for path, rows in _tables(paths, columns, bad):
        name = str(path)
        for source, target, alignment, line in rows:
            if not isinstance(source, str) or not isinstance(target, str):
                bad.add(
                    "empty" if None in (source, target) else "columns", Location(name, line), f"{source} | {target}"
                )
                continue
            pair = Pair(source_line(source), one_line(target), alignment)
            if not pair.source or not pair.target:
                bad.add("empty", Location(name, line), f"{source} | {target}")
                continue
            usable += 1
            yield pair, Location(name, line)
    if not usable:
        names = ", ".join(str(path) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
        if bad.read == read_before:
            raise UserError(f"{names}: empty, there is no sentence pair to read")
        raise UserError(f"{names}: no usable sentence pair: {bad.summary()}\nWhat can be read: {ALLOWED}")


def _tables(paths: list[Path], columns: Sequence[str] | None, bad: BadLines) -> Iterator[tuple[Path, Iterator[Row]]]:
    """Each table with its rows; two plain texts side by side are one table."""
    texts = [path for path in paths if format_of(path) == "text"]
    if texts and len(texts) < len(paths):
        raise UserError(f"{texts[0]}: a plain text among tables; give {ALLOWED}")
    if texts and not all(map(has_tabs, texts)):
        if len(texts) != 2:
            names = ", ".join(path.name for path in texts[:5])
            hint = " (JSON with an object a line should be called .jsonl)" if ".json" in texts[0].suffixes else ""
            raise UserError(f"{names}: {len(texts)} plain text without tabs cannot be paired{hint}; give {ALLOWED}")
        if columns is not None:
            raise UserError(f"columns = {' '.join(columns)}: parallel text files have no columns; leave them out")
        yield texts[0], _parallel(texts[0], texts[1], bad)
        return
    read = {"tsv": _tsv, "text": _tsv, "csv": _csv, "jsonl": _jsonl, "parquet": _parquet}
    for path in paths:
        yield path, read[format_of(path)](path, columns, bad)


def _parallel(one: Path, other: Path, bad: BadLines) -> Iterator[Row]:
    counts = [0, 0]
    for number, pair in enumerate(zip_longest(lines(one), lines(other)), 1):
        counts = [count + (line is not None) for count, line in zip(counts, pair, strict=True)]
        if counts[0] != counts[1]:
            continue  # the shorter file has ended: only count on
        bad.read += 1
        assert None not in pair, "both files have this line"
        source = decoded(pair[0], Location(str(one), number), bad)
        target = None if source is None else decoded(pair[1], Location(str(other), number), bad)
        if source is not None and target is not None:
            yield source, target, None, number
    if counts[0] != counts[1]:
        raise UserError(
            f"{one} has {counts[0]:,} lines and {other} has {counts[1]:,}: parallel files need the same number, "
            "line by line the same sentence"
        )


def _tsv(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[Row]:
    named = columns is not None and not all(column.isdecimal() for column in columns)
    first, second = (0, 1) if columns is None or named else map(int, columns)
    links: int | None = None
    begun = header = False
    for number, raw in enumerate(lines(path), 1):
        where = Location(str(path), number)
        if not begun and raw.strip():
            begun = True
            names = raw.decode(errors="replace").split("\t")
            header = named or has_header(names)
            if header:
                first, second = _choose(names, columns, path)
            links = _links_at(names if header else None, first, second)
            if header:
                continue
        bad.read += 1
        text = decoded(raw, where, bad)
        if text is None:
            continue
        cells = text.split("\t")
        if number <= 2 and columns is None and not header:
            _check_pairs(cells, path, number)
        if not text.strip():
            bad.add("empty", where, text)
        elif len(cells) <= max(first, second):
            bad.add("columns", where, text)
        else:
            third = cells[links] if links is not None and len(cells) > links else None
            turned = columns is not None and second < first
            yield cells[first], cells[second], _alignment(third, turned), number


def _links_at(header: Sequence[str] | None, first: int, second: int) -> int | None:
    """The column of alignments: by its name; without names the third, unless it is one of the sides."""
    if header is None:
        return 2 if 2 not in (first, second) else None
    plain = [name.strip().lower() for name in header]
    return plain.index("alignment") if "alignment" in plain else None


def _check_pairs(cells: list[str], path: Path, number: int) -> None:
    """Columns without names are the source, the target and perhaps an alignment; of more, somebody must choose. What
    has a number, or nothing, in its first column has the number of a row there (as pandas writes it)."""
    more = [cell for cell in cells[2:] if cell.strip() and _alignment(cell) is None]
    before = cells[0].strip()
    if more and (before.isdecimal() or (number == 1 and not before)):
        raise UserError(
            f"{path}: {len(cells)} columns without known names, of which the first "
            + (f"is a number ({before})" if before else "has no name")
            + "; choose the source and the target, for example --columns 1,2"
        )


def _csv(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[Row]:
    chosen: tuple[int, int] | None = None
    links: int | None = None
    header, width = False, 0
    rows = ((cells, where) for cells, where in csv_cells(path, bad) if cells is not None)
    for number, (cells, where) in enumerate(rows, 1):
        if chosen is None:
            width = len(cells)
            header = has_header(cells) or (columns is not None and not all(one.isdecimal() for one in columns))
            if header:
                chosen = _choose(cells, columns, path)
            else:
                chosen = (0, 1) if columns is None else (int(columns[0]), int(columns[1]))
            links = _links_at(cells if header else None, *chosen)
            if header:
                continue
        if number <= 2 and columns is None and not header:
            _check_pairs(cells, path, number)
        bad.read += 1
        text = ",".join(cells)
        if not text.strip(" ,"):
            bad.add("empty", where, text)
        elif no_text(text):
            bad.add("encoding", where, text)
        elif len(cells) <= max(chosen) or (columns is None and any(cells[width:])):
            bad.add("columns", where, text)
        else:
            third = cells[links] if links is not None and len(cells) > links else None
            turned = columns is not None and chosen[1] < chosen[0]
            yield cells[chosen[0]], cells[chosen[1]], _alignment(third, turned), where.line


def _jsonl(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[Row]:
    chosen: tuple[str, str] | None = None
    turned = False
    for record, where in json_lines(path, bad):
        sides = unfold(record)
        if chosen is None:
            names = [name for name, value in sides.items() if columns is not None or isinstance(value, str | None)]
            one, other = _choose(names, columns, path)
            chosen, turned = (names[one], names[other]), columns is not None and other < one
        if chosen[0] not in sides or chosen[1] not in sides:
            bad.add("columns", where, str(record))
        else:
            yield sides[chosen[0]], sides[chosen[1]], _alignment(record.get("alignment"), turned), where.line


def _parquet(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            nested = "translation" in schema.names and pa.types.is_struct(schema.field("translation").type)
            fields = list(schema.field("translation").type) if nested else list(schema)
            names = [field.name for field in fields if columns is not None or _is_text(field.type)]
            names = [name for name in names if name != "alignment"]
            one, other = _choose(names, columns, path)
            wanted = ["translation"] if nested else [names[one], names[other]]
            wanted += [name for name in ("alignment",) if name in schema.names]
            number = 0
            for batch in file.iter_batches(batch_size=4096, columns=wanted):
                for record in batch.to_pylist():
                    number += 1
                    bad.read += 1
                    sides = record["translation"] or {} if nested else record
                    alignment = _alignment(record.get("alignment"), columns is not None and other < one)
                    yield sides.get(names[one]), sides.get(names[other]), alignment, number
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; give {ALLOWED}") from None
    except (pa.ArrowException, OSError) as problem:
        first = str(problem).splitlines()[0]
        raise UserError(f"{path}: not a readable Parquet file ({first}); copy or download it again") from None


def one_line(text: str) -> str:
    """Without white space around it, and with a space for each line break: a translation is a line. Accents are one
    letter with the one below them (NFC), as tokenizers write them: else no output would equal its reference."""
    return unicodedata.normalize("NFC", _BREAKS.sub(" ", text).strip())


def source_line(text: str) -> str:
    """As `one_line`, with one plain space between words, whatever white space was there: it says nothing to a reader,
    and to a tokenizer the same sentence would be another. Targets keep theirs, which are to be written."""
    return " ".join(one_line(text).split())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def unfold(record: dict[str, Any]) -> dict[str, Any]:
    """`{"translation": {"en": …, "fr": …}}`, the layout of Hugging Face data sets, is its inside."""
    inside = record.get("translation")
    sides = inside if isinstance(inside, dict) else record
    return {name: value for name, value in sides.items() if name != "alignment"}


def is_language(name: str) -> bool:
    return _LANGUAGES.fullmatch(name) is not None


def has_header(cells: list[str]) -> bool:
    """Whether they are names: two that are usual for sides of pairs, or two languages ("no" alone may be a text)."""
    names = {cell.strip().lower() for cell in cells}
    return any(names.issuperset(known) for known in _KNOWN) or sum(map(is_language, names)) > 1


def place_of(column: str, names: Sequence[str]) -> int | None:
    """Where a column stands among `names`, of which it is one, in any case; or whose number it is."""
    plain = [name.strip().lower() for name in names]
    if column in names:
        return names.index(column)
    if column.lower() in plain:
        return plain.index(column.lower())
    return int(column) if column.isdecimal() and int(column) < len(names) else None


def _choose(names: list[str], columns: Sequence[str] | None, path: Path) -> tuple[int, int]:
    """The numbers of the source and the target column among `names`."""
    plain = [name.strip().lower() for name in names]
    found = f"found {', '.join(names) or 'no column of text'}"
    if columns is not None:
        numbers = []
        for column in columns:
            number = place_of(column, names)
            if number is None:
                raise UserError(f"{path}: there is no column {column!r}; {found}; pass two of them as --columns")
            numbers.append(number)
        return numbers[0], numbers[1]
    for one, other in _KNOWN:
        if one in plain and other in plain:
            return plain.index(one), plain.index(other)
    languages = [number for number, name in enumerate(plain) if is_language(name)]
    if len(languages) == 3:  # beside two languages, "id" is a number and not Indonesian
        languages = [number for number in languages if plain[number] != "id"]
    if len(languages) == 2:
        return languages[0], languages[1]
    if len(names) == 2:
        return 0, 1
    raise UserError(
        f"{path}: cannot tell which columns are the source and the target; {found}; pass two of them, for example "
        f"--columns {','.join(names[:2]) if len(names) > 1 else 'source,target'}"
    )


def _alignment(value: Any, turned: bool = False) -> Alignment | None:
    """Links from `"0-0 1-2"` (the Pharaoh format) or `[[0, 0], [1, 2]]`; anything else is no alignment. They go from
    the first side in the file to the second: `turned` is what they are for who reads the second as the source."""
    if isinstance(value, str):
        text = value.strip()
        if not _PHARAOH.fullmatch(text):
            return None
        value = [link.split("-") for link in text.split()]
    try:
        links = [(int(one), int(other)) for one, other in value] if value is not None else None
    except (TypeError, ValueError):
        return None
    if links is None:
        return None
    return tuple((other, one) if turned else (one, other) for one, other in links)
