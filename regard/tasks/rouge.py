"""ROUGE (Lin 2004), by Google's `rouge-score`: how many words, pairs of words, and words in sequence are shared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

KINDS = ("rouge1", "rouge2", "rougeL")


def rouge(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """The mean F1 of each kind, with stemming, times 100. Of several references, the one that gives the best F1 counts,
    kind by kind (as Cachola 2020 scores SciTLDR)."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(KINDS, use_stemmer=True)
    rows = [scorer.score_multi(list(several), output) for output, several in zip(outputs, references, strict=True)]
    return {kind: 100 * float(np.mean([row[kind].fmeasure for row in rows])) if rows else 0.0 for kind in KINDS}
