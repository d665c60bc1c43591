"""From attention to word alignment, and how far it is from a gold one (Och & Ney 2003)."""

from __future__ import annotations

from collections.abc import Sequence

from regard.data.pairs import Alignment, Pair
from regard.nn.record import AttentionRecord, Recording
from regard.tasks.translator import Translator

TOGETHER = 64
"""Sentences replayed at once."""


def links(record: AttentionRecord, site: str) -> Alignment:
    """Each target word with the source word it looked at most; looking at the end mark is no link.

    `record` is over words; the last row and the last column are the end marks.
    """
    matrix = record.matrix(site)[:-1]
    best = matrix.argmax(axis=1)
    return tuple((int(source), target) for target, source in enumerate(best) if source < matrix.shape[1] - 1)


def alignment_errors(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """The alignment error rate at each cross-attention (mean of its heads): 1 - 2 |A and G| / (|A| + |G|)."""
    agreed: dict[str, int] = {}
    counted: dict[str, int] = {}
    encode = translator.tokenizer.encode_batch
    limit = translator.model.max_length or 10**9
    for first in range(0, len(pairs), TOGETHER):
        part = pairs[first : first + TOGETHER]
        sources, targets = encode([pair.source for pair in part]), encode([pair.target for pair in part])
        if max(map(len, sources + targets)) >= limit:
            continue  # too long to be replayed
        replayed = translator.replay(sources, targets, Recording(sites="*cross"))
        for pair, record in zip(part, replayed, strict=True):
            gold, words = set(pair.alignment or ()), record.words()
            for site in words.sites:
                found = set(links(words, site))
                agreed[site] = agreed.get(site, 0) + len(found & gold)
                counted[site] = counted.get(site, 0) + len(found) + len(gold)
    return {site: 1 - 2 * agreed[site] / max(1, counted[site]) for site in agreed}
