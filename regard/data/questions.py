"""Questions about a context, and the parts of it that answer them: SQuAD's JSON, version 1.1 or 2.0 (where a question
may have no answer), or tables with its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.badlines import BadLines, Location
from regard.data.files import expand, format_of, lines
from regard.data.tables import Lookup, Row, pick, read_table
from regard.errors import UserError

_CONTEXTS, _QUESTIONS, _ANSWERS = ("context", "passage", "text"), ("question", "query"), ("answers", "answer")


@dataclass(frozen=True)
class Answer:
    text: str
    start: int  # the character of the context where it begins

    def stands_in(self, context: str) -> bool:
        return bool(self.text) and context[self.start : self.start + len(self.text)] == self.text


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


def read_questions(
    files: Sequence[str], bad: BadLines, answered: bool = True, columns: Sequence[str] | None = None
) -> Iterator[tuple[Question, Location]]:
    """All that can be used. Without `answered` their answers do not matter, and are not read. `columns` names a table's
    column of contexts and that of questions."""
    bad.unit = "question"
    if columns is not None and len(columns) != 2:
        raise UserError(f"columns = {','.join(columns)}: name two, that of the contexts and that of the questions")
    for path in expand(files):
        for row, where in _in_table(path, bad, columns) if format_of(path) != "text" else _in_articles(path, bad):
            context, asked = (_text(row[name]) for name in ("context", "question"))
            if not context.strip() or not asked.strip():
                bad.add("empty", where, asked or context)
                continue
            try:
                answers = _answers(row, context) if answered else []
            except (ValueError, KeyError, TypeError):
                bad.add("unanswered", where, asked)
                continue
            if astray := [one.text for one in answers if not one.stands_in(context)]:
                bad.add("answer", where, astray[0])
            else:
                yield Question(row["id"], row["title"] or context, asked, context, answers), where


def _in_articles(path: Path, bad: BadLines) -> Iterator[tuple[Row, Location]]:
    """The questions of SQuAD's own layout, as rows."""
    try:
        for article in json.loads(b"\n".join(lines(path)))["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    bad.read += 1
                    own = {"id": str(asked["id"]), "title": article.get("title"), "context": paragraph["context"]}
                    yield {**asked, **own}, Location(f"{path}: {asked['id']}", 0)
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(f"{path}: not a file in SQuAD's layout ({type(problem).__name__}: {problem})") from None


def _in_table(path: Path, bad: BadLines, columns: Sequence[str] | None) -> Iterator[tuple[Row, Location]]:
    contexts, questions = ([one] for one in columns) if columns else (_CONTEXTS, _QUESTIONS)
    names = ((contexts, "context"), (questions, "question"))
    look = Lookup(lambda row, where: [pick(row, wanted, what, where) for wanted, what in names], bad)
    for row, where in read_table([str(path)], (*questions, *contexts, *_ANSWERS), bad):
        both = look(row, where)
        if both is None:
            continue
        named = row.get("id") not in (None, "")
        own = {"id": str(row["id"] if named else where.line), "title": row.get("title")}
        place = Location(f"{path}: {own['id']}", 0) if named else where
        yield {**row, **own, "context": row[both[0]], "question": row[both[1]]}, place
    look.end()


def _answers(row: Row, context: str) -> list[Answer]:
    """`answers` as SQuAD has them, [{"text": ..., "answer_start": ...}], or Hugging Face, {"text": [...],
    "answer_start": [...]}; or one `answer`, with its `answer_start` unless it stands in the context once. No answer is
    said by an empty one, or by `is_impossible`; a question that says nothing of answers is an error."""
    if str(row.get("is_impossible")).lower() in ("true", "1"):
        return []
    if "answers" not in row:
        text, start = _text(row["answer"]), row.get("answer_start")
        return [Answer(text, context.find(text) if start in (None, "") else int(start))] if text else []
    given: Any = row["answers"]
    if isinstance(given, str):
        given = json.loads(given)
    if isinstance(given, dict):
        given = [
            {"text": text, "answer_start": start}
            for text, start in zip(given["text"], given["answer_start"], strict=True)
        ]
    return [Answer(str(one["text"]), int(one["answer_start"])) for one in given]


def _text(value: object) -> str:
    return "" if value is None else str(value)
