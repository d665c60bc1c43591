"""What a head does, in one word that is computed: how much of its weight goes to the previous token, the first, ...

Every measure is a share between 0 and 1, the mean over the queries. The label is the strongest pattern that holds for
most of the weight; a head without one is "sharp", "broad" or "mixed".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.nn.record import Heads, Weights

LEAST = 0.4
"""The share of its weight that a head must give to a pattern to be named after it."""

MEANING = {
    "previous": "the token before",
    "next": "the token after",
    "same": "the same token",
    "first": "the first token",
    "mark": "marks that are no text, such as the end mark",
    "sharp": "one token each, wherever it is",
    "broad": "many tokens at once",
    "mixed": "no single pattern",
}


@dataclass(frozen=True)
class Pattern:
    label: str
    why: str
    measures: dict[str, float]


def patterns(heads: Heads, specials: frozenset[str]) -> list[Pattern]:
    """The pattern of each head of a site."""
    itself = heads.queries.tokens == heads.keys.tokens
    marks = [place for place, token in enumerate(heads.keys.tokens) if token in specials]
    return [_pattern(_measures(matrix, itself, marks)) for matrix in heads.weights]


def _measures(matrix: Weights, itself: bool, marks: list[int]) -> dict[str, float]:
    keys = matrix.shape[1]
    total = max(float(matrix.sum()), 1e-9)  # rows that may attend to nothing count nothing
    shares = {"first": matrix[:, 0].sum() / total, "mark": matrix[:, marks].sum() / total}
    if itself and keys > 1:
        shares |= {
            "same": np.trace(matrix) / total,
            "previous": np.trace(matrix, offset=-1) / max(float(matrix[1:].sum()), 1e-9),
            "next": np.trace(matrix, offset=1) / max(float(matrix[:-1].sum()), 1e-9),
        }
    safe = np.where(matrix > 0, matrix, 1)
    entropy = -(matrix * np.log(safe)).sum(axis=1)
    # A causal row can spread over the tokens so far only: broad is measured against where the weight may go.
    open_to = np.maximum((matrix > 0).sum(axis=1), 2)
    shares["sharp"] = matrix.max(axis=1, initial=0).mean()
    shares["broad"] = (entropy / np.log(open_to)).mean()
    return {name: min(1.0, max(0.0, float(share))) for name, share in shares.items()}


def _pattern(measures: dict[str, float]) -> Pattern:
    places = {name: share for name, share in measures.items() if name not in ("sharp", "broad")}
    label = max(places, key=lambda name: places[name])
    if places[label] < LEAST:
        label = "sharp" if measures["sharp"] >= 0.6 else "broad" if measures["broad"] >= 0.75 else "mixed"
    share = f": {places[label]:.2f} of its weight" if label in places else ""
    if label == "sharp":
        share = f": {measures['sharp']:.2f} of the weight on the strongest"
    if label == "broad":
        share = f": spread {measures['broad']:.2f} of the way to even"
    return Pattern(label, f"looks at {MEANING[label]}{share}", measures)
