"""From attention to word alignment, and how far it is from a gold one (Och & Ney 2003)."""

from __future__ import annotations

from collections.abc import Sequence

from regard.data.pairs import Pair
from regard.nn.record import Recording
from regard.tasks.translator import Translator, links

TOGETHER = 64
"""Sentences replayed at once."""


def alignment_errors(translator: Translator, pairs: Sequence[Pair]) -> dict[str, float]:
    """The alignment error rate at each cross-attention (mean of its heads): 1 - 2 |A and G| / (|A| + |G|)."""
    agreed: dict[str, int] = {}
    counted: dict[str, int] = {}
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
                found = set(links(words, translator.marks, site, asked=translator.asked_words))
                agreed[site] = agreed.get(site, 0) + len(found & gold)
                counted[site] = counted.get(site, 0) + len(found) + len(gold)
    return {site: 1 - 2 * agreed[site] / max(1, counted[site]) for site in agreed}
