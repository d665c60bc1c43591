"""BPE dropout: the same text in other pieces, as often as the rate says, the same again from the same seed."""

import random
from itertools import islice

import pytest

from regard.data.corpora import corpus
from regard.data.merges import Merges
from regard.data.prepare import Silent
from regard.data.tokenizers import Kind, Tokenizer
from regard.errors import UserError
from regard.tasks.translate import Translate
from regard.training.start import settle

TEXTS = [pair.target for pair in islice(corpus("english-french").splits["test"](), 200)]


@pytest.fixture(scope="module")
def merges() -> Merges:
    return Merges(Tokenizer.train(TEXTS, vocabulary=600))


@pytest.mark.parametrize("text", [*TEXTS[:20], "  zwei  Räume ", "日本 — été!", ""])
def test_the_text_stays_and_no_dropout_cuts_as_the_tokenizer(merges: Merges, text: str) -> None:
    ids, draw = merges.tokenizer.encode(text), random.Random(0)
    assert merges.cut(ids, 0.0, draw, 999) == ids
    for rate in (0.1, 0.5, 0.99):
        assert merges.tokenizer.decode(merges.cut(ids, rate, draw, 999)) == merges.tokenizer.decode(ids)


def test_every_merge_is_left_out_as_often_as_the_rate_says() -> None:
    merges = Merges(Tokenizer.train(["ab ab ab"], vocabulary=300))  # ▁ab has two merges
    ids, draw = merges.tokenizer.encode("ab"), random.Random(0)
    assert len(ids) == 1
    lengths = [len(merges.cut(ids, 0.2, draw, 99)) for _ in range(20_000)]
    assert lengths.count(1) / 20_000 == pytest.approx(0.8 * 0.8, abs=0.015)
    assert lengths.count(2) / 20_000 == pytest.approx(0.8 * 0.2, abs=0.015)
    assert lengths.count(3) / 20_000 == pytest.approx(0.2, abs=0.015)


def test_what_would_become_too_long_stays(merges: Merges) -> None:
    ids = merges.tokenizer.encode(TEXTS[0])
    assert merges.cut(ids, 0.99, random.Random(0), len(ids)) == ids


@pytest.mark.parametrize("kind", ["word", "unigram", "wordpiece"])
def test_other_tokenizers_have_no_merges(kind: Kind) -> None:
    with pytest.raises(UserError, match=r"options\.bpe_dropout: is for our own bpe tokenizers, not"):
        Merges(Tokenizer.train(TEXTS, kind=kind, vocabulary=600))


def test_a_batch_follows_from_its_seed(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("".join(f"{text}\t{text}\n" for text in dict.fromkeys(TEXTS)), encoding="utf8")
    settings = {"options.bpe_dropout": 0.3, "data.valid_count": 5, "data.test_count": 5, "tokenizer.vocabulary": 600}
    config, _ = settle("translate", [str(path)], None, None, settings)
    task = Translate.prepare(config, path.parent / "cache", Silent())
    one, same, other = (task.batch(range(8), seed) for seed in (1, 1, 2))
    assert one.source.equal(same.source)
    assert one.target.equal(same.target)
    assert one.source.shape != other.source.shape or not one.source.equal(other.source)
    decode = task.data.tokenizer.decode
    assert [decode(row) for row in one.source.tolist()] == [decode(row) for row in other.source.tolist()]
