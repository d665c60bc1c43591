"""Texts with their summaries, from the tables people have.

A text or a summary may be a list: of a text's sentences, of several summaries that people wrote of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from regard.data.badlines import BadLines, Location
from regard.data.tables import Lookup, Row, pick, read_table
from regard.errors import UserError

_TEXTS = ("source", "article", "document", "text", "dialogue", "content")
_SUMMARIES = ("target", "summary", "highlights", "abstract", "tldr")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")


@dataclass(frozen=True)
class Article:
    """A text by its sentences, and its summaries: the first is trained on, all are references."""

    sentences: list[str]
    summaries: list[str]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    @property
    def lead(self) -> str:
        """The first sentence: the summary to beat."""
        return self.sentences[0]

    @property
    def key(self) -> str:
        return self.text


def read_articles(
    files: Sequence[str], columns: Sequence[str] | None, bad: BadLines
) -> Iterator[tuple[Article, Location]]:
    """`columns` are those of the text and of the summary; without them the usual names are looked for."""
    if columns is not None and len(columns) != 2:
        raise UserError(f"columns = {','.join(columns)}: give two, the text's and the summary's (try source,target)")
    wanted = ([columns[0]], [columns[1]]) if columns else (_TEXTS, _SUMMARIES)
    look = Lookup(lambda row, where: _both(row, columns, wanted, where), bad)
    for row, where in read_table(files, [name for names in wanted for name in names], bad):
        both = look(row, where)
        if both is None:
            continue
        sentences, summaries = map(_texts, both)
        if sentences is None or summaries is None:
            bad.add("columns", where, str(row))
        elif not sentences or not summaries:
            bad.add("empty", where, str(row))
        else:
            yield Article(split_sentences(sentences[0]) if len(sentences) == 1 else sentences, summaries), where
    look.end()


def _both(row: Row, columns: Sequence[str] | None, wanted: Sequence[Sequence[str]], where: Location) -> tuple[Any, Any]:
    """A row's text and its summary."""
    if not columns and set(row) == {"0", "1"}:  # a table without a header
        return row["0"], row["1"]
    return row[pick(row, wanted[0], "text", where)], row[pick(row, wanted[1], "summary", where)]


def split_sentences(text: str) -> list[str]:
    """Cut after a full stop, an exclamation or a question mark that a capital or a digit follows."""
    return [part for part in _SENTENCE.split(text) if part]


def _texts(value: Any) -> list[str] | None:
    """One text or a list of them, without the empty ones and with single spaces; None for anything else."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        return None
    return [plain for one in given if (plain := " ".join(one.split()))]
