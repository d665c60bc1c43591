"""Damaged text: pure and seeded, what loses nothing can be undone exactly, and the statistics are the papers'."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from regard.data.denoising import (
    Ids,
    Noise,
    Random,
    add_sentinels,
    choose_spans,
    corrupt_spans,
    delete_tokens,
    infill,
    mask_tokens,
    permuted,
    restore_spans,
    rotated,
    sentence_ends,
    sentences,
    sentinels_of,
)
from regard.data.subwords import Subwords
from regard.errors import UserError

MASK, STOP = 1, 2
SENTINELS = list(range(999, 899, -1))


def text(length: int, seed: int = 0) -> Ids:
    """Every token occurs once, apart from full stops: what is left tells what was taken."""
    ids = np.arange(10, 10 + length)
    ids[np.random.default_rng(seed).random(length) < 0.1] = STOP
    return ids


WAYS: dict[str, Callable[[Ids, Random], Ids]] = {
    "masking": lambda ids, random: mask_tokens(ids, 0.3, MASK, random),
    "deletion": lambda ids, random: delete_tokens(ids, 0.3, random),
    "infilling": lambda ids, random: infill(ids, 0.3, 3.0, MASK, random),
    "all": Noise(("permutation", "infilling", "masking", "deletion", "rotation"), 0.3, 3.0, MASK, frozenset({STOP})),
    "spans": lambda ids, random: corrupt_spans(ids, choose_spans(len(ids), 0.15, 3.0, 99, random), SENTINELS)[0],
}


@pytest.mark.parametrize("way", WAYS)
def test_the_seed_decides_and_the_text_is_left_alone(way: str) -> None:
    ids = text(200)
    before = ids.copy()
    one, same, other = (WAYS[way](ids, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert np.array_equal(ids, before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 7])
def test_short_texts_are_possible(way: str, length: int) -> None:
    for seed in range(20):
        found = WAYS[way](text(length), np.random.default_rng(seed))
        assert len(found) or not length, "something is left of a text"


def test_masking_and_deletion_take_their_share() -> None:
    ids, random = text(50_000), np.random.default_rng(0)
    masked = mask_tokens(ids, 0.3, MASK, random)
    assert len(masked) == len(ids)
    assert (masked == MASK).mean() == pytest.approx(0.3, abs=0.01)
    assert np.array_equal(masked[masked != MASK], ids[masked != MASK])
    deleted = delete_tokens(ids, 0.3, random)
    assert len(deleted) / len(ids) == pytest.approx(0.7, abs=0.01)
    assert np.isin(deleted, ids).all()


def test_infilling_takes_exactly_its_share_in_spans_of_poisson_length() -> None:
    ids, random = np.arange(10, 100_010), np.random.default_rng(0)
    found = infill(ids, 0.3, 3.0, MASK, random)
    kept = found[found != MASK]
    assert len(kept) == 70_000
    assert (np.diff(kept) > 0).all(), "what stays keeps its order"
    masks = np.flatnonzero(found == MASK)
    assert (np.diff(masks) > 1).all(), "between two spans a token stays"
    before, after = found[masks[1:-1] - 1], found[masks[1:-1] + 1]
    lengths = after - before - 1
    assert lengths.mean() == pytest.approx(3.0, abs=0.05)
    assert lengths.var() == pytest.approx(3.0, abs=0.1), "a Poisson's variance is its mean"
    assert (lengths == 0).mean() == pytest.approx(np.exp(-3), abs=0.005), "some masks stand for nothing"


def test_permutation_and_rotation_are_undone_exactly() -> None:
    ids, random = text(300), np.random.default_rng(3)
    parts = sentences(ids, {STOP})
    assert np.array_equal(np.concatenate(parts), ids)
    assert all((part[:-1] != STOP).all() for part in parts), "one sentence each"
    order = random.permutation(len(parts))
    mixed = permuted(parts, order)
    assert not np.array_equal(np.concatenate(mixed), ids)
    assert np.array_equal(np.concatenate(permuted(mixed, np.argsort(order))), ids)
    assert rotated(ids, 7)[0] == ids[7]
    assert np.array_equal(rotated(rotated(ids, 7), -7), ids)


def test_rotation_begins_anywhere_with_equal_chance() -> None:
    rotate = Noise(("rotation",), 0.3, 3.0, MASK, frozenset())
    random = np.random.default_rng(0)
    first = [int(rotate(np.arange(8), random)[0]) for _ in range(8000)]
    assert np.bincount(first, minlength=8) / 8000 == pytest.approx(np.full(8, 1 / 8), abs=0.02)


@pytest.mark.parametrize("length", [2, 3, 10, 57, 512])
@pytest.mark.parametrize(("share", "mean"), [(0.15, 3.0), (0.5, 3.0), (0.15, 10.0), (0.9, 1.0)])
def test_spans_are_undone_exactly(length: int, share: float, mean: float) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        ids = random.integers(0, 800, length)
        spans = choose_spans(length, share, mean, 99, random)
        source, target = corrupt_spans(ids, spans, SENTINELS)
        assert np.array_equal(restore_spans(source, target, SENTINELS), ids)
        assert len(source) + len(target) == length + 2 * len(spans) + 1, "no token is told twice"


def test_spans_have_the_papers_statistics() -> None:
    """Section 3.1.4: 15% of the tokens, in spans of 3 on average: 512 tokens become 461 and 102 (with their ends)."""
    random = np.random.default_rng(0)
    covered = np.zeros(512)
    for _ in range(2000):
        spans = choose_spans(512, 0.15, 3.0, 99, random)
        assert (len(spans), sum(end - begin for begin, end in spans)) == (26, 77)
        assert all(one[1] < other[0] for one, other in pairwise(spans)), "apart from each other"
        for begin, end in spans:
            covered[begin:end] += 1
    assert (covered[50:450] / 2000).mean() == pytest.approx(77 / 512, abs=0.005), "anywhere alike"


def test_too_few_sentinels_are_said() -> None:
    with pytest.raises(UserError, match="2 spans need 3 sentinels; the tokenizer has 2"):
        corrupt_spans(np.arange(10), [(1, 2), (4, 6)], [99, 98])
    assert len(choose_spans(512, 0.5, 1.0, 5, np.random.default_rng(0))) == 5, "there are never more than asked for"


def test_a_tokenizer_gets_sentinels_as_t5_has_them() -> None:
    tokenizer = Subwords.learn(["The cat sleeps. Does it? No!"] * 9, kind="unigram", vocabulary=40)
    size = len(tokenizer)
    assert sentinels_of(tokenizer) == []
    add_sentinels(tokenizer, 5)
    assert sentinels_of(tokenizer) == [size + 4, size + 3, size + 2, size + 1, size]
    (line,) = tokenizer.encode_batch(["The cat sleeps. Does it? No! 3.14"])
    assert sorted(tokenizer.tokens([one for one in line if one in sentence_ends(tokenizer)])) == ["!", ".", ".", "?"]
