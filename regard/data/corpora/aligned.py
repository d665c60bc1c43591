"""Words in two languages at once, and how a sentence is written out from them.

A word is a text with *marks* (bits). Words of the two languages that share a mark are linked: the gold alignment is
what the grammar did, not what a heuristic found afterwards. Contraction ("de" + "le" = "du") joins marks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TypeVar

from regard.data.corpora.inflection import elides
from regard.data.pairs import Pair

T = TypeVar("T")
Word = tuple[str, int]
Words = list[Word]


_CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
_ELIDED = {"le": "l'", "la": "l'", "je": "j'", "ne": "n'", "de": "d'", "que": "qu'", "me": "m'"}


@dataclass(slots=True)
class Draw:
    """One sentence in the making: its random generator, its marks, and the combinations of words it contains."""

    random: Random
    marks: int = 0
    combinations: set[tuple[str, str]] = field(default_factory=set)

    def mark(self) -> int:
        self.marks += 1
        return 1 << self.marks

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self.random.random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability


def piece(draw: Draw, entry: str) -> tuple[Words, Words]:
    """Reads `"last1+week2/la2+semaine2+dernière1"`: words with the same digit get the same mark."""
    english, french = _parse(entry)
    marks = {digit: draw.mark() for digit in ("", "1", "2")}
    return [(word, marks[digit]) for word, digit in english], [(word, marks[digit]) for word, digit in french]


@cache
def _parse(entry: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    words = [
        [(part.rstrip("12"), part[len(part.rstrip("12")) :]) for part in side.split("+")] for side in entry.split("/")
    ]
    return words[0], words[1]


@dataclass(slots=True)
class Draft:
    """A sentence in words, before it is written out: many drafts are turned down on their English alone."""

    english: Words
    french: Words
    source: str

    def pair(self) -> Pair:
        """Contracts, elides, spaces and capitalises; links the words that share a mark."""
        french = _liaise(self.french)
        rights = [(j, marks) for j, (_, marks) in enumerate(french)]
        links = [(i, j) for i, (_, left) in enumerate(self.english) for j, right in rights if left & right]
        return Pair(self.source, _join(french), tuple(links))


def finish(draw: Draw, english: Words, french: Words, end: str = ".") -> Draft:
    mark = draw.mark()
    english = [*english, (end, mark)]
    return Draft(english, [*french, (end, mark)], _join(english).replace(" ?", "?"))


def _liaise(words: Words) -> Words:
    merged: Words = []
    index = 0
    while index < len(words):
        text, marks = words[index]
        if text in {"de", "à"} and index + 2 < len(words):
            following, other = words[index + 1]
            joined = _CONTRACTIONS.get((text, following))
            if joined and (following == "les" or not elides(words[index + 2][0])):
                text, marks = joined, marks | other
                index += 1
        merged.append((text, marks))
        index += 1
    for index, (text, marks) in enumerate(merged[:-1]):
        if text in _ELIDED and elides(merged[index + 1][0]):
            merged[index] = (_ELIDED[text], marks)
    return merged


def _join(words: Words) -> str:
    """A hyphen and an apostrophe hold words together; a French question mark keeps its space."""
    text = " ".join([word for word, _ in words]).replace("' ", "'").replace(" - ", "-")
    text = text.replace(" ,", ",").replace(" .", ".")
    return text[0].upper() + text[1:]
