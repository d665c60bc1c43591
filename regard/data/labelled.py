"""Examples with an answer, as the tasks of an encoder read them from files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, takewhile
from pathlib import Path
from typing import Any

from regard.data.badlines import BadLines, Location
from regard.data.files import expand, lines
from regard.data.tables import Lookup, NoColumnError, Row, pick, read_table
from regard.errors import UserError

TEXTS = ("text", "sentence", "sentence1", "premise", "question1", "review", "content", "message")
SECONDS = ("sentence2", "hypothesis", "question2", "second", "text2")
SITUATIONS = (
    "label", "startphrase", "sent1", "ending0", "context", "goal", "sol1", "ctx", "endings", "question", "answer0",
    "options",
)  # fmt: skip
_LABELS = ("label", "class", "category", "sentiment", "score", "target", "gold_label", "similarity")


@dataclass(frozen=True)
class Labelled:
    """A text, or two of them, and its class, or a number as text."""

    text: str
    second: str | None
    label: str

    @property
    def key(self) -> str:
        return self.text


@dataclass(frozen=True)
class Choice:
    """A situation, several ways to go on, and the number of the right one."""

    context: str
    options: list[str]
    label: int

    @property
    def key(self) -> str:
        return self.context


def read_labelled(
    files: Sequence[str], columns: Sequence[str] | None, bad: BadLines
) -> Iterator[tuple[Labelled, Location]]:
    """Tables with a column of texts, perhaps a second one, and a column of labels: `columns` in this order."""
    chosen: tuple[str, str | None, str] | None = None
    rows = read_table(files, [*(columns or ()), *TEXTS, *SECONDS, *_LABELS], bad)
    first = list(islice(rows, 100))
    look = Lookup(lambda row, where: _columns(row, columns, where, [one for one, _ in first]), bad)
    for row, where in chain(first, rows):
        if chosen is None or chosen[0] not in row:
            chosen = look(row, where)
        if chosen is None:
            continue
        text, second, label = (None if name is None else row.get(name) for name in chosen)
        texts = [str(part).strip() for part in (text, second) if part is not None]
        named = "" if label is None else str(label).strip()
        if not all(texts) or not texts:
            bad.add("empty", where, f"{text} | {label}")
        elif named in ("", "-") or isinstance(label, list | dict):
            bad.add("unlabelled", where, f"{text} | {label}")
        else:
            yield Labelled(texts[0], texts[1] if len(texts) > 1 else None, named), where
    look.end()


def _columns(
    row: Row, columns: Sequence[str] | None, where: Location, first: Sequence[Row]
) -> tuple[str, str | None, str]:
    """Of the text, of a second one and of the label; `first` are rows to judge by."""
    if columns is not None:
        if len(columns) not in (2, 3):
            raise UserError(f"data.columns = {','.join(columns)}: give the text, perhaps a second one, and the label")
        found = [pick(row, [name], f"name {name!r}", where) for name in columns]
        return found[0], found[1] if len(found) == 3 else None, found[-1]
    names = {str(name).lower(): name for name in row}
    if without_header(row):
        text, label = text_and_label(row, where, first)
        seen = Counter(str(one.get(label)) for one in first)
        if row is first[0] and len(first) >= 10 and seen[str(row[label])] == 1 and len(seen) < len(first) / 2:
            raise UserError(
                f"{where.path}: line 1 looks like a header ({' | '.join(map(str, row.values()))}): no other line has "
                f"this label. Name its columns: --columns {row[text]},{row[label]} (or {text},{label}, if it is none)"
            )
        return text, None, label
    second = next((names[name] for name in SECONDS if name in names), None)
    return pick(row, TEXTS, "text", where), second, pick(row, _LABELS, "label", where)


def without_header(row: Row) -> bool:
    return all(str(name).isdecimal() for name in row)


def text_and_label(row: Row, where: Location, first: Sequence[Row]) -> tuple[str, str]:
    """The columns of a table without a header: two, of which the label has fewer values in the `first` rows."""
    if len(row) != 2:
        raise UserError(f"{where.path}: {len(row)} columns without names; choose, for example --columns 0,1")
    seen = {name: {one[name] for one in first if name in one} for name in row}
    label, text = sorted(row, key=lambda name: (len(seen[name]), sum(map(len, seen[name]))))
    return text, label


def read_choices(
    files: Sequence[str], columns: Sequence[str] | None, bad: BadLines
) -> Iterator[tuple[Choice, Location]]:
    """Tables of multiple choice: SWAG, HellaSwag, Cosmos QA and PIQA by the names of their columns, or any JSONL with
    `context`, `options` and `label`. A file of one label a line may stand beside a table without labels.
    """
    if columns is not None:
        raise UserError(f"data.columns = {','.join(columns)}: not for this task; name them context, options, label")
    tables, labels = _labels_apart([str(path) for path in expand(files)])
    rows: Iterable[tuple[Row, Location]] = read_table(tables, SITUATIONS, bad)
    if labels:
        rows = list(rows)
        if len(rows) != len(labels):
            raise UserError(f"{len(labels):,} labels beside {len(rows):,} usable rows: they must match, line by line")
    look = Lookup(situation, bad)
    for number, (row, where) in enumerate(rows):
        found, label = look(row, where), labels[number] if labels else row.get("label")
        if found is None:
            continue
        if label is None or not (named := str(label).strip().removesuffix(".0")):
            bad.add("unlabelled", where, found[0])
        elif not named.isdecimal() or int(named) >= len(found[1]):
            bad.add("option", where, f"{label}: {found[0]}")
        else:
            yield Choice(*found, int(named)), where
    look.end()


def _labels_apart(paths: list[str]) -> tuple[list[str], list[str]]:
    """PIQA has its labels in a file of their own."""
    apart = [path for path in paths if path.endswith((".lst", "-labels.txt"))]
    labels = [line.decode().strip() for path in apart for line in lines(Path(path))]
    return [path for path in paths if path not in apart], labels


def situation(row: Row, where: Location) -> tuple[str, list[str]]:
    """A situation and the ways to go on, by the columns that the well-known sets have."""
    options: list[Any]
    if isinstance(row.get("options"), list):
        context, options = _joined(row, "context", "question"), row["options"]
    elif "ending0" in row:  # SWAG
        context, options = _joined(row, "startphrase") or _joined(row, "sent1", "sent2"), _numbered(row, "ending")
    elif isinstance(row.get("endings"), list):  # HellaSwag
        context, options = _joined(row, "ctx"), row["endings"]
    elif "answer0" in row:  # Cosmos QA
        context, options = _joined(row, "context", "question"), _numbered(row, "answer")
    elif "sol1" in row and "sol2" in row:  # PIQA
        context, options = _joined(row, "goal"), [row["sol1"], row["sol2"]]
    else:
        raise NoColumnError(
            f"{where.path}: no columns of a choice; there are {', '.join(map(str, row))}. Name them context, options "
            "(a list) and label, or as SWAG, HellaSwag, Cosmos QA or PIQA do"
        )
    texts = [str(one).strip() for one in options]
    if not context or len(texts) < 2 or not all(texts):
        raise NoColumnError(f"{where.path}: a context and two or more ways to go on are needed, and none may be empty")
    return context, texts


def _numbered(row: Row, name: str) -> list[Any]:
    """The columns `name`0, `name`1, ... as far as there are any."""
    return [row[column] for column in takewhile(row.__contains__, (f"{name}{number}" for number in count()))]


def _joined(row: Row, *names: str) -> str:
    return " ".join(str(row[name]).strip() for name in names if row.get(name))
