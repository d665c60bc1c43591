"""English to French from a small grammar: real agreement, elision, negation and word order, learned in minutes.

Some (adjective, noun) and (verb, object) combinations are held out: no sentence of train, valid or test contains one,
every sentence of `unseen` does, and each of the words is common in train. A model that translates `unseen` has learned
words and rules rather than sentences.
"""

from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from random import Random

from regard.data.corpora.grammar import sentence
from regard.data.corpora.splits import home
from regard.data.pairs import Pair

DEMO = "The white cat is sleeping."
"""A sentence of the grammar that no split contains: "Le chat blanc dort."."""

SIZES = {"train": 50_000, "valid": 500, "test": 1_000, "unseen": 1_000}
LENGTHS = range(3, 13)
"""Words of the English side, without the punctuation."""

_HELD_OUT_ONE_IN = 14


@cache
def held_out(first: str, noun: str, seed: int = 0) -> bool:
    """Whether this adjective, or verb, with this noun is kept for `unseen`."""
    if first == "white" and noun == "cat":
        return False  # the demonstration is about an unseen sentence, not an unseen combination
    digest = blake2b(f"{seed} {first} {noun}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % _HELD_OUT_ONE_IN == 0


def english_french(split: str, size: int | None = None, seed: int = 0) -> Iterator[Pair]:
    """Distinct pairs of one split, the same for the same seed."""
    wanted = SIZES[split] if size is None else size
    random = Random(f"{seed} {split}")
    seen = {DEMO}
    while wanted:
        draft, combinations = sentence(random)
        unseen = any(held_out(first, noun, seed) for first, noun in combinations)
        if unseen != (split == "unseen"):
            continue
        source = draft.source
        if source in seen or source.count(" ") + 1 not in LENGTHS or not (unseen or home(source) == split):
            continue
        seen.add(source)
        wanted -= 1
        yield draft.pair()
