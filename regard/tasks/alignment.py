"""From attention to word alignment, and how far it is from a gold one (Och & Ney 2003)."""

from __future__ import annotations

from collections.abc import Sequence

from regard.data.pairs import Alignment, Pair
from regard.nn.record import AttentionRecord, Recording
from regard.tasks.translator import Translator

TOGETHER = 64
"""Sentences replayed at once."""


def links(record: AttentionRecord, site: str, before: tuple[int, int] = (0, 0)) -> Alignment:
    """Each target word with the source word it looked at most; looking at a mark is no link.

    `record` is over words; the last row and the last column are the end marks, `before` the number of marks before the
    target's words and before the source's.
    """
    matrix = record.matrix(site)[before[0] : -1]
    best = matrix.argmax(axis=1) - before[1]
    words = matrix.shape[1] - 1 - before[1]
    return tuple((int(source), target) for target, source in enumerate(best) if 0 <= source < words)


def alignment_errors(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """The alignment error rate at each cross-attention (mean of its heads): 1 - 2 |A and G| / (|A| + |G|)."""
    agreed: dict[str, int] = {}
    counted: dict[str, int] = {}
    before = len(translator.marks.opening), len(translator.marks.before)
    for first in range(0, len(pairs), TOGETHER):
        part = pairs[first : first + TOGETHER]
        read = translator.encode([pair.source for pair in part])
        written = translator.tokenizer.encode_targets([pair.target for pair in part])
        fitting = [
            place
            for place, (source, target) in enumerate(zip(read, written, strict=True))
            if len(source) <= translator.reads and len(target) <= translator.writes  # else too long to be replayed
        ]
        if not fitting:
            continue
        sources, targets = [read[place] for place in fitting], [written[place] for place in fitting]
        replayed = translator.replay(sources, targets, Recording(sites="*cross"))
        for pair, record in zip([part[place] for place in fitting], replayed, strict=True):
            gold, words = set(pair.alignment or ()), record.words()
            for site in words.sites:
                found = set(links(words, site, before))
                agreed[site] = agreed.get(site, 0) + len(found & gold)
                counted[site] = counted.get(site, 0) + len(found) + len(gold)
    return {site: 1 - 2 * agreed[site] / max(1, counted[site]) for site in agreed}
