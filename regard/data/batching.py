"""Which rows share a batch: rows of like length, up to a budget of tokens, in an order that anyone can recompute.

The plan of an epoch is a pure function of its arguments, so a resumed run, or another process, makes the same batches
without any state to save.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.errors import UserError


def plan(
    lengths: NDArray[np.integer],
    *,
    batch_tokens: int,
    seed: int = 0,
    epoch: int = 0,
    shuffle: bool = True,
    pool: int = 100_000,
) -> list[NDArray[np.int64]]:
    """The batches of an epoch, as arrays of row numbers; every row is in exactly one.

    `lengths` is (rows, fields). Rows times the longest row of the batch, in any field, stays within `batch_tokens`,
    except that a row longer than the budget is a batch of its own. Rows are shuffled into pools, sorted by length
    inside a pool, cut, and the batches shuffled: little padding, yet an order that does not follow the lengths.
    Without `shuffle` there is one pool and the batches come from short to long.
    """
    if batch_tokens < 1:
        raise UserError(f"batch_tokens = {batch_tokens}: must be at least 1 (try 4096)")
    assert pool > 0, f"pool = {pool}"
    assert lengths.ndim == 2, f"lengths must be (rows, fields), not {lengths.shape}"
    rows = len(lengths)
    random = np.random.Generator(np.random.PCG64([seed, epoch]))
    order = random.permutation(rows) if shuffle else np.arange(rows)
    longest = np.maximum(lengths.max(axis=1, initial=0), 1).astype(np.int64)
    batches: list[NDArray[np.int64]] = []
    for drawn in np.split(order, range(pool, rows, pool)) if shuffle else [order]:
        noise = 2 * random.random(len(drawn)) if shuffle else np.zeros(len(drawn))
        part = drawn[_by_length(lengths[drawn], longest[drawn], noise)]
        batches += _cut(part, longest[part], batch_tokens, first=random.random() if shuffle else 1.0)
    if shuffle:
        batches = [batches[n] for n in random.permutation(len(batches))]
    return batches


def _by_length(
    lengths: NDArray[np.integer], longest: NDArray[np.int64], noise: NDArray[np.float64]
) -> NDArray[np.int64]:
    """An order by the longest field, and within it by how the fields differ, back and forth like a plough.

    Turning at each length keeps the shorter field alike across the turn too: a third less padding than sorting plainly.
    """
    slant = lengths[:, 0].astype(np.int64) - lengths[:, -1] + noise
    return np.lexsort((np.where(longest % 2, slant, -slant), longest))


def _cut(
    part: NDArray[np.int64], longest: NDArray[np.int64], batch_tokens: int, first: float
) -> list[NDArray[np.int64]]:
    """Cuts rows sorted by `longest` greedily: a batch ends where one more row would break the budget.

    The first batch gets only the share `first` of the budget, which moves all cuts: in a corpus smaller than a pool
    the same rows would otherwise meet in every epoch.
    """
    batches = []
    begin, budget = 0, int(batch_tokens * first)
    while begin < len(part):
        window = longest[begin : begin + max(1, budget // int(longest[begin]))]
        fits = int(np.count_nonzero(window * np.arange(1, len(window) + 1) <= budget))
        end = begin + max(1, fits)
        batches.append(part[begin:end])
        begin, budget = end, batch_tokens
    return batches


def pad(rows: Sequence[NDArray[np.integer]], pad: int = 0) -> NDArray[np.int64]:
    """Rows of different lengths as one array (rows, longest), filled up with `pad` on the right."""
    lengths = np.array([len(row) for row in rows], np.int64)
    batch = np.full((len(rows), int(lengths.max(initial=0))), pad, np.int64)
    if batch.size:
        batch[np.arange(batch.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return batch
