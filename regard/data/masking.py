"""Words hidden for a model to guess (Devlin 2019, section 3.1, task 1): a pure function of its arguments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def hide(
    ids: Ids,
    groups: Sequence[Sequence[int]],
    random: np.random.Generator,
    *,
    rate: float,
    mask: int,
    words: Ids,
    keep: float = 0.1,
    swap: float = 0.1,
) -> tuple[Ids, Ids]:
    """The ids with some of them hidden, and the positions where.

    `groups` are the positions that are hidden together, or not at all: single tokens, or those of a whole word. `rate`
    of the tokens are chosen, at least one. A chosen token is replaced by the mask; but a share `keep` of them stays,
    and a share `swap` becomes any of `words`: in use there are no masks.
    """
    total = sum(len(group) for group in groups)
    wanted = max(1, round(rate * total)) if total else 0
    chosen: list[int] = []
    for number in random.permutation(len(groups)):
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(groups[number]) <= wanted or not chosen:
            chosen += groups[number]
    places = np.sort(np.array(chosen, np.int64))
    hidden = ids.copy()
    draw = random.random(len(places))
    hidden[places[draw >= keep + swap]] = mask
    other = places[(draw >= keep) & (draw < keep + swap)]
    hidden[other] = random.choice(words, len(other))
    return hidden, places
