"""Text that was damaged, for a model that learns to write it as it was: BART's five ways, and T5's one.

    the text               A B C . D E .
    masking                A _ C . D _ .           each chosen token becomes a mask
    deletion               A C . D .               each chosen token is gone, and where it was must be found
    infilling              A _ D E .               spans become one mask each; a span may be empty
    permutation            D E . A B C .           sentences change places
    rotation               C . D E . A B           the text begins somewhere else        (Lewis 2020, figure 2)

    spans                  A <0> D <1>  ->  <0> B C . <1> E . <2>                         (Raffel 2020, figure 2)

Every function is pure: what is random is drawn from the generator it is given. Rotation, permutation and spans lose
nothing, and have an exact inverse.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.tokenizers import Tokenizer
from regard.errors import UserError

Ids = NDArray[np.integer[Any]]
Random = np.random.Generator
NoiseName = Literal["masking", "deletion", "infilling", "permutation", "rotation"]


def mask_tokens(ids: Ids, share: float, mask: int, random: Random) -> Ids:
    """Each token becomes the mask with probability `share`."""
    return np.where(random.random(len(ids)) < share, mask, ids)


def delete_tokens(ids: Ids, share: float, random: Random) -> Ids:
    """Each token is deleted with probability `share`; one is always left."""
    kept = random.random(len(ids)) >= share
    if len(ids) and not kept.any():
        kept[random.integers(len(ids))] = True
    return ids[kept]


def infill(ids: Ids, share: float, mean: float, mask: int, random: Random) -> Ids:
    """Spans whose lengths are Poisson with `mean`, `share` of the tokens altogether, become one mask each.

    A span of length 0 inserts a mask: how many tokens are missing must be learned. Between two spans a token stays.
    """
    lengths = _poisson_lengths(round(share * len(ids)), mean, random)
    kept = len(ids) - sum(lengths)
    while len(lengths) > kept + 1:  # there are so many gaps between the tokens that stay
        kept += lengths.pop()
    gaps = np.sort(random.choice(kept + 1, len(lengths), replace=False))
    pieces, place = [], 0
    for gap, length, before in zip(gaps, lengths, np.cumsum([0, *lengths]), strict=False):
        begin = int(gap + before)
        pieces += [ids[place:begin], np.array([mask], dtype=ids.dtype)]
        place = begin + length
    return np.concatenate([*pieces, ids[place:]])


def sentences(ids: Ids, ends: Collection[int]) -> list[Ids]:
    """The text cut after each token of `ends`; nothing is lost."""
    borders = np.flatnonzero(np.isin(ids, list(ends))) + 1
    return [part for part in np.split(ids, borders) if len(part)]


def permuted(parts: Sequence[Ids], order: Sequence[int] | NDArray[np.int64]) -> list[Ids]:
    """The parts in another order; `np.argsort(order)` brings them back."""
    return [parts[place] for place in order]


def rotated(ids: Ids, by: int) -> Ids:
    """The text from its token number `by` on, and then what stood before; `-by` brings it back."""
    return np.roll(ids, -by)


@dataclass(frozen=True)
class Noise:
    """Several ways, one after the other; BART itself has permutation, then infilling (section 4.3)."""

    kinds: Sequence[NoiseName]
    share: float
    mean: float
    mask: int
    ends: frozenset[int]  # the tokens that end a sentence

    def __call__(self, ids: Ids, random: Random) -> Ids:
        for kind in self.kinds:
            if kind == "masking":
                ids = mask_tokens(ids, self.share, self.mask, random)
            elif kind == "deletion":
                ids = delete_tokens(ids, self.share, random)
            elif kind == "infilling":
                ids = infill(ids, self.share, self.mean, self.mask, random)
            elif kind == "permutation":
                parts = sentences(ids, self.ends)
                ids = np.concatenate(permuted(parts, random.permutation(len(parts)))) if parts else ids
            else:
                ids = rotated(ids, int(random.integers(max(1, len(ids)))))
        return ids


Span = tuple[int, int]
"""Where a span begins and ends."""


def choose_spans(length: int, share: float, mean: float, most: int, random: Random) -> list[Span]:
    """Spans of `mean` tokens on average that cover `share` of a text, at least one token apart, at most `most`.

    Their number and their sum are fixed by the length; where they lie and how long each is, is random. The text begins
    with what stays and ends with a span (as the published code has it).
    """
    noise = min(max(round(length * share), 1), length - 1)
    count = min(max(round(noise / mean), 1), noise, length - noise, most)
    if count < 1:
        return []
    ends = np.cumsum(np.stack([_parts(length - noise, count, random), _parts(noise, count, random)], axis=1).ravel())
    return [(int(begin), int(end)) for begin, end in ends.reshape(-1, 2)]


def corrupt_spans(ids: Ids, spans: Sequence[Span], sentinels: Sequence[int]) -> tuple[Ids, Ids]:
    """The text with a sentinel for each span; and the spans, each after its sentinel, closed by one more."""
    if len(spans) >= len(sentinels):
        raise UserError(f"{len(spans)} spans need {len(spans) + 1} sentinels; the tokenizer has {len(sentinels)}")
    source: list[Ids] = []
    target: list[Ids] = []
    place = 0
    marks = np.array(sentinels[: len(spans) + 1], dtype=ids.dtype)
    for number, (begin, end) in enumerate(spans):
        source += [ids[place:begin], marks[number : number + 1]]
        target += [marks[number : number + 1], ids[begin:end]]
        place = end
    return np.concatenate([*source, ids[place:]]), np.concatenate([*target, marks[-1:]])


def restore_spans(source: Ids, target: Ids, sentinels: Sequence[int]) -> Ids:
    """The text again: the exact inverse of `corrupt_spans`. A sentinel that the target does not have stays empty."""
    places = np.flatnonzero(np.isin(target, list(sentinels)))
    hidden = {int(part[0]): part[1:] for part in np.split(target, places) if len(part) and part[0] in sentinels}
    pieces = [hidden.get(int(one), source[:0]) if one in sentinels else np.array([one]) for one in source]
    return np.concatenate([source[:0], *pieces]).astype(source.dtype)


SENTINEL = "<extra_id_{}>"


def sentinels_of(tokenizer: Tokenizer) -> list[int]:
    """The ids of <extra_id_0>, <extra_id_1>, ..., as many as the tokenizer has."""
    found: list[int] = []
    while (token := tokenizer.inner.token_to_id(SENTINEL.format(len(found)))) is not None:
        found.append(int(token))
    return found


def add_sentinels(tokenizer: Tokenizer, count: int) -> None:
    """At the end of the vocabulary, the first one last, as T5 has them."""
    tokenizer.inner.add_special_tokens([SENTINEL.format(number) for number in reversed(range(count))])


def sentence_ends(tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that end a sentence: those with a full stop, an exclamation or a question mark last."""
    labels = tokenizer.tokens(range(len(tokenizer)))
    return frozenset(number for number, label in enumerate(labels) if label.endswith((".", "!", "?", "。")))


def _poisson_lengths(total: int, mean: float, random: Random) -> list[int]:
    """Poisson lengths that add up to `total`: the last is cut to fit."""
    lengths: list[int] = []
    while total > 0:
        lengths.append(min(int(random.poisson(mean)), total))
        total -= lengths[-1]
    return lengths


def _parts(total: int, count: int, random: Random) -> NDArray[np.int64]:
    """`count` lengths of at least 1 that add up to `total`, every way equally likely."""
    cuts = np.sort(random.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff([0, *cuts, total])
