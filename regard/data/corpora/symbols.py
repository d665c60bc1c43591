"""Reverse and copy: the smallest tasks whose attention is known in advance, a falling and a rising diagonal."""

from collections.abc import Iterator
from random import Random
from string import ascii_lowercase

from regard.data.corpora.splits import home
from regard.data.pairs import Pair

SIZES = {"train": 10_000, "valid": 300, "test": 500}
LENGTHS = (3, 12)


def symbols(split: str, *, reverse: bool, size: int | None = None, seed: int = 0) -> Iterator[Pair]:
    """Distinct sequences of letters."""
    wanted = SIZES[split] if size is None else size
    random = Random(f"{seed} {split}")
    seen: set[str] = set()
    while wanted:
        letters = random.choices(ascii_lowercase, k=random.randint(*LENGTHS))
        source = " ".join(letters)
        if source in seen or home(source) != split:
            continue
        seen.add(source)
        wanted -= 1
        last = len(letters) - 1
        yield Pair(
            source,
            " ".join(reversed(letters)) if reverse else source,
            tuple((i, last - i if reverse else i) for i in range(len(letters))),
        )
