"""Hidden words: how many, which, and what stands in their place; and text as documents of sentences."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.badlines import BadLines
from regard.data.documents import Blocks, sentences, store_sentences
from regard.data.masking import hide
from regard.data.store import Store
from regard.data.subwords import Subwords

MASK, VOCABULARY = 4, 1000


def hidden(seed: int, ids: np.ndarray, groups: list[list[int]], rate: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    return hide(ids, groups, np.random.default_rng(seed), rate=rate, mask=MASK, words=np.arange(VOCABULARY))


def test_it_is_a_function_of_its_seed_and_changes_only_what_it_says() -> None:
    ids = np.arange(10, 110)
    groups = [[place] for place in range(2, 98)]
    one, places = hidden(3, ids, groups)
    again, same = hidden(3, ids, groups)
    assert np.array_equal(one, again)
    assert np.array_equal(places, same)
    assert not np.array_equal(places, hidden(4, ids, groups)[1])
    rest = np.setdiff1d(np.arange(100), places)
    assert np.array_equal(one[rest], ids[rest])
    assert places.min() >= 2, "what may not be hidden is not"
    assert places.max() < 98
    assert np.array_equal(ids, np.arange(10, 110)), "its argument stays as it was"


def test_shares_are_those_of_the_paper() -> None:
    ids = np.full(200, 7)
    groups = [[place] for place in range(200)]
    masked = kept = swapped = 0
    for seed in range(300):
        found, places = hidden(seed, ids, groups)
        assert len(places) == 30, "15% of 200"
        masked += int((found[places] == MASK).sum())
        kept += int((found[places] == 7).sum())
        swapped += int(((found[places] != 7) & (found[places] != MASK)).sum())
    total = masked + kept + swapped
    assert masked / total == pytest.approx(0.8, abs=0.02)
    assert kept / total == pytest.approx(0.1, abs=0.015)
    assert swapped / total == pytest.approx(0.1, abs=0.015)


def test_what_is_read_tells_nothing_of_a_word_that_is_hidden() -> None:
    """Other words under the masks and the swapped ones are the same input; only those that are kept are seen."""
    groups = [[place] for place in range(200)]
    for seed in range(20):
        ids = np.arange(10, 210)
        read, places = hidden(seed, ids, groups)
        gone = places[read[places] != ids[places]]
        assert len(gone) > 15
        other = ids.copy()
        other[gone] += 300
        again, same = hidden(seed, other, groups)
        assert np.array_equal(again, read)
        assert np.array_equal(same, places)


def test_words_are_hidden_whole() -> None:
    groups = [[0, 1, 2], [3], [4, 5], [6], [7, 8, 9], [10], [11]]
    for seed in range(50):
        _, places = hidden(seed, np.arange(20, 32), groups, rate=0.3)
        chosen = set(places.tolist())
        assert chosen
        for group in groups:
            assert chosen >= set(group) or not chosen & set(group)


def test_at_least_one_word_is_hidden_and_nothing_of_nothing() -> None:
    assert len(hidden(0, np.array([9, 9]), [[0], [1]])[1]) == 1
    assert len(hidden(0, np.array([9, 9]), [])[1]) == 0


def test_prose_and_lines_become_the_same_sentences(tmp_path: Path) -> None:
    prose = 'The cat slept. "Is it?" he asked. It was 3.5 m long!\n\nAnother text begins. Here.\n'
    (tmp_path / "prose.txt").write_text(prose, encoding="utf8")
    found = list(sentences([str(tmp_path / "prose.txt")], "auto", BadLines()))
    assert found == [
        "The cat slept.",
        '"Is it?" he asked.',
        "It was 3.5 m long!",
        "",
        "Another text begins.",
        "Here.",
        "",
    ]
    (tmp_path / "lines.txt").write_text("\n".join(found), encoding="utf8")
    assert [one for one in sentences([str(tmp_path / "lines.txt")], "auto", BadLines()) if one] == [
        one for one in found if one
    ]


def test_blocks_hold_whole_sentences_of_one_document(tmp_path: Path) -> None:
    texts = ["a b c", "d e", "", "f g h i j k l", "m", "", "n o p q", ""]
    tokenizer = Subwords.learn(texts, kind="wordpiece", vocabulary=80)
    store_sentences(iter(texts), tokenizer, tmp_path / "store", longest=5)
    blocks = Blocks.cut(Store.open(tmp_path / "store"), room=5)
    shown = [tokenizer.decode(np.concatenate(blocks.sentences(number)).tolist()) for number in range(len(blocks))]
    assert shown == ["a b c d e", "f g h i j", "k l m", "n o p q"]
    assert blocks.sizes.tolist() == [5, 5, 3, 4]
