"""Text as documents of sentences: nothing of it is lost, and sentences stand apart as they did."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.badlines import BadLines
from regard.data.documents import Blocks, sentences, split_sentences, store_sentences
from regard.data.store import Store
from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.models import parse_model
from regard.models.base import EncoderConfig
from regard.tasks.masker import Masker


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("(It was late.) Nobody came!", ["(It was late.)", "Nobody came!"]),
        ("Wait… What? No.", ["Wait…", "What?", "No."]),
        ("It cost 3.50 in all. e.g. this", ["It cost 3.50 in all. e.g. this"]),
        ("他说：“走开。”然后他走了。没有人来！", ["他说：“走开。”", "然后他走了。", "没有人来！"]),
        ("one", ["one"]),
        ("", []),
    ],
)
def test_prose_is_parted_after_what_closes_a_sentence(text: str, parts: list[str]) -> None:
    assert split_sentences(text) == parts


def test_texts_of_jsonl_are_documents_and_tables_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in ("One.\nTwo.", "Three.")), encoding="utf8")
    assert list(sentences([str(file)], "lines", BadLines())) == ["One.", "Two.", "", "Three.", "", ""]
    table = tmp_path / "a.csv"
    table.write_text("text,label\nOne.,1\n", encoding="utf8")
    with pytest.raises(UserError, match=r"a.csv: give plain text"):
        list(sentences([str(table)], "lines", BadLines()))


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "unigram"])
def test_sentences_one_after_the_other_are_tokens_of_the_text(kind: str, tmp_path: Path) -> None:
    texts = ["The cat ran home.", "The dog saw it.", "", "The cow slept."]
    tokenizer = Subwords.learn(texts * 5, kind=kind, vocabulary=320)
    store_sentences(iter(texts), tokenizer, tmp_path / "store", 50)
    blocks = Blocks.cut(Store.open(tmp_path / "store"), 100)
    found = [np.concatenate(blocks.sentences(row)).tolist() for row in range(len(blocks))]
    assert found == [tokenizer.encode(text) for text in ("The cat ran home. The dog saw it.", "The cow slept.")]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe", "unigram"])
def test_how_the_second_part_begins_does_not_tell_whether_it_follows(kind: str, tmp_path: Path) -> None:
    """Documents of one sentence each, whose first word is in no other place."""
    texts = [part for n in range(40) for part in (f"First then {n} more words come here now.", "")]
    tokenizer = Subwords.learn(texts, kind=kind, vocabulary=320)
    store_sentences(iter(texts), tokenizer, tmp_path / "store", 50)
    blocks = Blocks.cut(Store.open(tmp_path / "store"), 60)
    config = parse_model({"kind": "bert", "size": "tiny", "layers": 1})
    assert isinstance(config, EncoderConfig)
    masker = Masker(tokenizer, config, 0.15, False, True)
    batch = masker.batch(blocks, range(len(blocks)), 0)
    assert batch.follows is not None
    assert 8 < int(batch.follows.sum()) < 32, "half and half"
    assert int(batch.inputs.segments.max()) < 2, "a BERT knows two segments, whatever its tokenizer counts"
    built = [masker._input(blocks, row, np.random.default_rng(row)) for row in range(len(blocks))]
    texts = [tokenizer.decode(ids.tolist()) for ids, _, _ in built]
    assert all(text.count("First") <= 1 for text in texts), "a false second part is from the middle too"
    assert masker.around == len(tokenizer.surround(np.zeros(0, np.int64), np.zeros(0, np.int64))[0])


def test_swapped_words_are_words(tmp_path: Path) -> None:
    texts = ["a b c d e f g h"] * 30
    tokenizer = Subwords.learn(texts, kind="wordpiece", vocabulary=40)
    config = parse_model({"kind": "bert", "size": "tiny", "layers": 1})
    assert isinstance(config, EncoderConfig)
    words = Masker(tokenizer, config, 0.15, False, False).words
    assert not set(words.tolist()) & set(tokenizer.special.ids)
    assert len(words) + len(tokenizer.special.ids) == len(tokenizer)
