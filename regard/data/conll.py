"""CoNLL files: a word a line with what is said of it, a blank line after each sentence. CoNLL-U names its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from regard.data.badlines import BadLines, Location
from regard.data.files import expand, lines
from regard.errors import UserError

_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_ENDINGS = (".conll", ".conllu", ".bio", ".iob")


@dataclass(frozen=True)
class Tagged:
    """Words with a tag each."""

    words: list[str]
    tags: list[str]

    @property
    def key(self) -> str:
        return " ".join(self.words)


def read_tagged(
    files: Sequence[str], columns: Sequence[str] | None, bad: BadLines
) -> Iterator[tuple[Tagged, Location]]:
    """`columns`: of the words and of the tags, by number, or by name in CoNLL-U; there the tag is `upos`, else the
    last column."""
    if columns is not None and len(columns) != 2:
        raise UserError(f"data.columns = {','.join(columns)}: give two, of the words and of the tags (try 0,1)")
    for path in expand(files):
        places = _places(columns, path) if columns else [1, 3] if _is_universal(path) else [0, -1]
        before, read = bad.total, bad.read
        for (words, tags), where in _sentences(path, places, bad):
            yield Tagged(words, tags), where
        if bad.read > read and bad.total - before == bad.read - read:
            wanted = f"the columns {','.join(columns)}" if columns else "a word and its tag"
            raise UserError(
                f"{path}: no sentence can be read; {wanted} must be on each line, with a tab or a space between, and a "
                "blank line after each sentence (CoNLL)"
            )


def read_words(
    files: Sequence[str], columns: Sequence[str] | None, learned: Sequence[str] | None, bad: BadLines
) -> Iterator[list[str]]:
    """The words alone, of the column that is named, or else of the one that was `learned` if the file can have it. A
    sentence that cannot be read comes as none at all, so that what is made of it stands in its place."""
    for path in expand(files):
        usual = [1] if _is_universal(path) else [0]
        if not columns and learned and (learned[0].isdecimal() or _is_universal(path)):
            usual = _places(learned[:1], path)
        for (words,), _ in _sentences(path, _places(columns[:1], path) if columns else usual, bad, every=True):
            yield words


def is_conll(path: Path) -> bool:
    """By its name."""
    return _ending(path) in _ENDINGS


def _sentences(
    path: Path, places: Sequence[int], bad: BadLines, every: bool = False
) -> Iterator[tuple[list[list[str]], Location]]:
    """Of each sentence the columns at `places`. All lines have as many cells as the first, or the sentence is left out
    as a whole: what stands last in a short line is not the tag. Numbered columns need not be the last ones."""
    bad.unit = "sentence"
    universal, width, number = _is_universal(path), 0, 0
    rows: list[list[str]] = []
    wrong: Location | None = None
    for number, raw in enumerate(chain(lines(path), [b""]), 1):
        text = raw.decode(errors="replace").rstrip()
        if not text.strip():
            bad.read += bool(rows or wrong)
            if rows and not wrong:
                yield [[row[place] for row in rows] for place in places], Location(str(path), number)
            elif wrong and every:
                yield [[] for _ in places], wrong
            rows, wrong = [], None
            continue
        cells = text.split("\t") if "\t" in text else text.split()
        if text.startswith("-DOCSTART-") or (universal and not cells[0].isdecimal()):
            continue  # in CoNLL-U: a comment, or a word of several tokens, which follow
        if cells[0] == "#" and (len(cells) != width if width else "\t" not in text):
            continue  # a comment, and not the word "#" with its tags
        width = width or len(cells)
        enough = len(cells) == width if min(places) < 0 else len(cells) > max(places)
        if enough and -len(cells) <= min(places) and len({place % len(cells) for place in places}) == len(places):
            rows.append(cells)
        elif wrong is None:
            wrong = Location(f"{path}: line {number}", 0)
            bad.add("columns", wrong, text)


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def _is_universal(path: Path) -> bool:
    """By its name, or by its first word: ten columns, of which the first is 1."""
    if _ending(path) == ".conllu":
        return True
    for raw in lines(path):
        if raw.strip() and not raw.startswith(b"#"):
            cells = raw.split(b"\t")
            return len(cells) == len(_CONLLU) and cells[0].split(b"-")[0] == b"1"
    return False


def _places(columns: Sequence[str], path: Path) -> list[int]:
    places = []
    for name in columns:
        if name.lower() in _CONLLU and _is_universal(path):
            places.append(_CONLLU.index(name.lower()))
        elif name.removeprefix("-").isdecimal():
            places.append(int(name))
        else:
            known = ", ".join(_CONLLU)
            raise UserError(f"{path}: data.columns = {name!r}: must be a number, or in CoNLL-U one of {known}")
    return places
