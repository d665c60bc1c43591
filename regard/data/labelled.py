"""Examples with an answer, as the tasks of an encoder read them from files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice, takewhile
from pathlib import Path
from typing import Any

from regard.data.badlines import BadLines, Location
from regard.data.files import expand, format_of, lines
from regard.data.tables import Row, pick, read_table
from regard.errors import UserError

TEXTS = ("text", "sentence", "sentence1", "premise", "question1", "review", "content", "message")
SECONDS = ("sentence2", "hypothesis", "question2", "second", "text2")
SITUATIONS = ("label", "startphrase", "context", "goal", "ctx", "question", "options")
_LABELS = ("label", "class", "category", "sentiment", "score", "target", "gold_label", "similarity")
_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


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
class Tagged:
    """Words with a tag each."""

    words: list[str]
    tags: list[str]

    @property
    def key(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Answer:
    text: str
    start: int  # the character of the context where it begins

    def stands_in(self, context: str) -> bool:
        return context[self.start : self.start + len(self.text)] == self.text


@dataclass(frozen=True)
class Question:
    """A question about a context; `answers` are its references, none where the context has no answer."""

    id: str
    title: str
    question: str
    context: str
    answers: list[Answer]

    @property
    def key(self) -> str:
        return self.title  # questions about one article stay together

    @property
    def finer(self) -> str:
        return self.context


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
    for row, where in chain(first, rows):
        if chosen is None or chosen[0] not in row:
            chosen = _columns(row, columns, where, [one for one, _ in first])
        text, second, label = (None if name is None else row.get(name) for name in chosen)
        texts = [str(part).strip() for part in (text, second) if part is not None]
        if label in (None, "", "-") or not all(texts) or not texts:
            bad.add("empty", where, f"{text} | {label}")
            continue
        yield Labelled(texts[0], texts[1] if len(texts) > 1 else None, str(label).strip()), where


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
    if all(name.isdecimal() for name in names):  # no header: two columns, of which the label has fewer values
        if len(row) != 2:
            raise UserError(f"{where.path}: {len(row)} columns without names; choose, for example --columns 0,1")
        seen = {name: {one[name] for one in first if name in one} for name in row}
        label, text = sorted(row, key=lambda name: (len(seen[name]), sum(map(len, seen[name]))))
        return text, None, label
    second = next((names[name] for name in SECONDS if name in names), None)
    return pick(row, TEXTS, "text", where), second, pick(row, _LABELS, "label", where)


def read_tagged(
    files: Sequence[str], columns: Sequence[str] | None, bad: BadLines
) -> Iterator[tuple[Tagged, Location]]:
    """CoNLL files: a word and its tags a line, a blank line after each sentence. In CoNLL-U the tag is `upos`.

    `columns`: of the words and of the tags, by number, or by name in CoNLL-U.
    """
    for path in expand(files):
        universal = _ending(path) == ".conllu"
        places = _places(columns, universal, path)
        words: list[str] = []
        tags: list[str] = []
        number = width = 0
        for number, raw in enumerate([*lines(path), b""], 1):
            text = raw.decode(errors="replace").rstrip()
            if not text.strip():
                if words:
                    bad.read += 1
                    yield Tagged(words, tags), Location(str(path), number)
                words, tags = [], []
                continue
            cells = text.split("\t") if "\t" in text else text.split()
            if text.startswith("-DOCSTART-") or (universal and not cells[0].isdecimal()):
                continue  # in CoNLL-U: a comment, or a word of several tokens, which follow
            if cells[0] == "#" and (len(cells) != width if width else "\t" not in text):
                continue  # a comment, and not the word "#" with its tags
            width = len(cells)
            if not all(-len(cells) <= place < len(cells) for place in places) or len(cells) < 2:
                bad.read += 1
                bad.add("columns", Location(str(path), number), text)
                continue
            words.append(cells[places[0]])
            tags.append(cells[places[1]])


def is_conll(path: Path) -> bool:
    """By its name."""
    return _ending(path) in (".conll", ".conllu", ".bio", ".iob")


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def _places(columns: Sequence[str] | None, universal: bool, path: Path) -> tuple[int, int]:
    if columns is None:
        return (1, 3) if universal else (0, -1)
    if len(columns) != 2:
        raise UserError(f"data.columns = {','.join(columns)}: give two, of the words and of the tags (try 0,1)")
    places = []
    for name in columns:
        if name.lower() in _CONLLU and universal:
            places.append(_CONLLU.index(name.lower()))
        elif name.lstrip("-").isdecimal():
            places.append(int(name))
        else:
            raise UserError(f"{path}: data.columns = {name!r}: must be a number, or in CoNLL-U one of {_CONLLU}")
    return places[0], places[1]


def read_questions(files: Sequence[str], bad: BadLines) -> Iterator[tuple[Question, Location]]:
    """SQuAD's JSON, version 1.1 or 2.0 (questions that have no answer); or tables with its fields."""
    for path in expand(files):
        for question in questions(path):
            bad.read += 1
            astray = [one.text for one in question.answers if not one.stands_in(question.context)]
            if astray:
                bad.add("answer", Location(f"{path}: {question.id}", 0), astray[0])
            else:
                yield question, Location(str(path), bad.read)


def questions(path: Path) -> Iterator[Question]:
    """All that are in a file, whether or not their answers are right."""
    if format_of(path) != "text":
        yield from _asked_in_table(path)
        return
    try:
        for article in json.loads(b"\n".join(lines(path)))["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    yield _question(asked, article, paragraph)
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{path}: not a file in SQuAD's layout ({type(problem).__name__}: {problem})") from None


def _asked_in_table(path: Path) -> Iterator[Question]:
    """`question` and `context`, and `answers` as Hugging Face has them, {"text": [...], "answer_start": [...]}; or one
    `answer`, with its `answer_start` unless it stands in the context once."""
    for number, (row, where) in enumerate(read_table([str(path)], ("question", "context", "answer"), BadLines()), 1):
        context = str(row[pick(row, ("context", "passage", "text"), "context", where)])
        asked = str(row[pick(row, ("question", "query"), "question", where)])
        given, answers = row.get("answers"), []
        if isinstance(given, dict):
            answers = [Answer(*one) for one in zip(given["text"], given["answer_start"], strict=True)]
        elif isinstance(given, list):
            answers = [Answer(one["text"], one["answer_start"]) for one in given]
        elif row.get("answer"):
            start = row.get("answer_start")
            text = str(row["answer"])
            answers = [Answer(text, context.find(text) if start in (None, "") else int(start))]
        yield Question(str(row.get("id") or number), str(row.get("title") or context), asked, context, answers)


def _question(asked: Row, article: Row, paragraph: Row) -> Question:
    answers = [Answer(one["text"], one["answer_start"]) for one in asked.get("answers", [])]
    none = asked.get("is_impossible", False)
    title = article.get("title") or paragraph["context"]
    return Question(str(asked["id"]), title, asked["question"], paragraph["context"], [] if none else answers)


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
    for number, (row, where) in enumerate(rows):
        found, label = situation(row), labels[number] if labels else str(row.get("label", ""))
        if found is None or not label.isdecimal() or int(label) >= len(found[1]):
            bad.add("columns", where, " | ".join(map(str, row)))
        else:
            yield Choice(*found, int(label)), where


def _labels_apart(paths: list[str]) -> tuple[list[str], list[str]]:
    """PIQA has its labels in a file of their own."""
    apart = [path for path in paths if path.endswith((".lst", "-labels.txt"))]
    labels = [line.decode().strip() for path in apart for line in lines(Path(path))]
    return [path for path in paths if path not in apart], labels


def situation(row: Row) -> tuple[str, list[str]] | None:
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
        return None
    texts = [str(one).strip() for one in options]
    return (context, texts) if context and len(texts) > 1 and all(texts) else None


def _numbered(row: Row, name: str) -> list[Any]:
    """The columns `name`0, `name`1, ... as far as there are any."""
    return [row[column] for column in takewhile(row.__contains__, (f"{name}{number}" for number in count()))]


def _joined(row: Row, *names: str) -> str:
    return " ".join(str(row[name]).strip() for name in names if row.get(name))
