"""A sentence pair: what a reader or a built-in corpus yields, one at a time."""

from dataclasses import dataclass

Alignment = tuple[tuple[int, int], ...]
"""Links (source word, target word), counted over `regard.data.words.split_words` of each side."""


@dataclass(frozen=True, slots=True)
class Pair:
    source: str
    target: str
    alignment: Alignment | None = None
