"""BPE dropout (Provilkov 2020): in training a word is cut into other pieces every time it is met, because merges are
left out at random. The model learns what the pieces have in common; small corpora gain most.

    unrelated     rate 0:   un related          rate 0.1:   un re lated,   u n related,   un related, ...
"""

from __future__ import annotations

import json
import random
from functools import lru_cache
from itertools import pairwise

from regard.data.tokenizers import BYTES, Tokenizer
from regard.data.words import marked
from regard.errors import UserError

Pieces = list[str]


class Merges:
    """The merges of a BPE tokenizer, as one that can leave some out, and repeat itself from a seed."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = json.loads(tokenizer.inner.to_str())["model"]
        if model["type"] != "BPE" or type(tokenizer) is not Tokenizer:
            raise UserError(f"options.bpe_dropout: is for our own bpe tokenizers, not {tokenizer.kind} (try 0)")
        self.tokenizer = tokenizer
        self.ids: dict[str, int] = model["vocab"]
        self.ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
        self.states = lru_cache(2**16)(self._states)

    def cut(self, ids: list[int], rate: float, draw: random.Random, most: int) -> list[int]:
        """The text of these ids, cut anew; the ids as they are, if that gives more than `most`."""
        words = marked.pre_tokenize_str(self.tokenizer.spelled(ids))
        found = [one for word, _ in words for piece in self._cut(word, rate, draw) for one in self._numbers(piece)]
        return found if len(found) <= most else ids

    def _cut(self, word: str, rate: float, draw: random.Random) -> Pieces:
        """Algorithm 1: of the merges that are possible, each left out with probability `rate`, the first learned is
        made; until none is left. Up to the first that is left out, that is the way which is taken without dropout."""
        *before, last = self.states(word)
        for pieces in before:
            if draw.random() < rate:
                return self._merged(pieces, rate, draw)
        return last

    def _merged(self, pieces: Pieces, rate: float, draw: random.Random) -> Pieces:
        """From a state whose first merge is left out."""
        ranked = sorted(self._possible(pieces))[1:]
        while ranked := [one for one in ranked if draw.random() >= rate]:
            pieces = _joined(pieces, min(ranked)[1])
            ranked = self._possible(pieces)
        return pieces

    def _states(self, word: str) -> list[Pieces]:
        """The pieces before every merge, and after the last."""
        found = [list(word)]
        while ranked := self._possible(found[-1]):
            found.append(_joined(found[-1], min(ranked)[1]))
        return found

    def _possible(self, pieces: Pieces) -> list[tuple[int, int]]:
        """The rank and the place of every merge."""
        pairs = enumerate(pairwise(pieces))
        return [(self.ranks[pair], place) for place, pair in pairs if pair in self.ranks]

    def _numbers(self, piece: str) -> list[int]:
        return [self.ids[piece]] if piece in self.ids else [self.ids[BYTES[value]] for value in piece.encode()]


def _joined(pieces: Pieces, place: int) -> Pieces:
    return [*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :]]
