"""Tokenizers as the published models have them: the same ids as `transformers` gives, and their marks explained."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import BertTokenizerFast, GPT2TokenizerFast, RobertaTokenizerFast

from regard.data.subwords import Papers, Subwords
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError

TEXTS = ["The white cat sleeps.", "A dog, not a cat, is barking at the naïve mouse!", "Sleeping cats don't bark."] * 5


@pytest.fixture(scope="module")
def wordpiece() -> Subwords:
    return Subwords.learn(TEXTS, kind="wordpiece", vocabulary=120, lowercase=True)


@pytest.fixture(scope="module")
def byte_bpe() -> Subwords:
    return Subwords.learn(TEXTS, kind="byte-bpe", vocabulary=350)


def test_two_texts_are_put_together_as_bert_does(wordpiece: Subwords) -> None:
    (found,) = wordpiece.inputs(["white cat"], ["dog"], most=32)
    special = wordpiece.special
    assert found.ids[0] == special.first
    assert found.ids.count(special.separator) == 2
    split = found.ids.index(special.separator)
    assert found.type_ids == [0] * (split + 1) + [1] * (len(found.ids) - split - 1)


def test_an_older_folder_of_bert_gives_the_ids_of_transformers(wordpiece: Subwords, tmp_path: Path) -> None:
    pieces = sorted(wordpiece.inner.get_vocab().items(), key=lambda entry: entry[1])
    (tmp_path / "vocab.txt").write_text("\n".join(piece for piece, _ in pieces), encoding="utf8")
    theirs = BertTokenizerFast.from_pretrained(tmp_path)
    ours = open_tokenizer(tmp_path)
    assert isinstance(ours, Subwords)
    for text, other in zip(TEXTS, reversed(TEXTS), strict=True):
        (found,) = ours.inputs([text], [other], most=20)
        expected = theirs(text, other, truncation=True, max_length=20)
        assert (found.ids, found.type_ids) == (expected["input_ids"], expected["token_type_ids"])


@pytest.mark.parametrize("kind", [RobertaTokenizerFast, GPT2TokenizerFast])
def test_byte_level_files_give_the_ids_of_transformers(byte_bpe: Subwords, tmp_path: Path, kind: type) -> None:
    model = json.loads(byte_bpe.inner.to_str())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf8")
    merges = "\n".join(["#version: 0.2", *(" ".join(pair) for pair in model["merges"])])
    (tmp_path / "merges.txt").write_text(merges, encoding="utf8")
    theirs = kind.from_pretrained(tmp_path)
    ours = open_tokenizer(tmp_path)
    for text in TEXTS:
        assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.decode(ours.encode(text)) == text


def test_long_second_texts_become_windows_that_overlap(wordpiece: Subwords) -> None:
    context = " ".join(TEXTS)
    (found,) = wordpiece.inputs(["who sleeps?"], [context], most=24, overlap=6)
    windows = [found, *found.overflowing]
    seen = {place for one in windows for place, side in zip(one.offsets, one.sequence_ids, strict=True) if side == 1}
    (whole,) = wordpiece.inputs(["who sleeps?"], [context], most=10**6)
    every = {place for place, side in zip(whole.offsets, whole.sequence_ids, strict=True) if side == 1}
    assert len(windows) > 2
    assert seen == every, "no part of the context is lost"
    assert all(len(one.ids) <= 24 for one in windows)


def test_what_a_person_types_is_no_special_token(wordpiece: Subwords) -> None:
    assert wordpiece.special.separator not in wordpiece.encode("a [SEP] b")
    (masked,) = wordpiece.inputs(["the [MASK] sleeps"], most=32, masks=True)
    assert masked.ids.count(wordpiece.special.mask) == 1


def test_words_are_groups_of_their_pieces(wordpiece: Subwords, byte_bpe: Subwords) -> None:
    for tokenizer in (wordpiece, byte_bpe):
        ids = tokenizer.inputs(["barking mouse sleeps"], most=64)[0].ids
        groups = tokenizer.word_groups(ids)
        assert len(groups) == 5, "three words, and a special token at each end"
        assert sorted(position for group in groups for position in group) == list(range(len(ids)))
    assert byte_bpe.tokens(byte_bpe.encode("naïve"))[0][0] == "n"


@pytest.mark.parametrize("kind", ["wordpiece", "byte-bpe"])
def test_the_same_texts_give_the_same_tokenizer(kind: Papers) -> None:
    """In another process too, whose hash tables have another order."""
    code = (
        "import sys; from regard.data.subwords import Subwords; texts = sys.stdin.read().splitlines();"
        f"print(Subwords.learn(texts, kind={kind!r}, vocabulary=330, lowercase=True).inner.to_str())"
    )
    given = "\n".join(TEXTS)
    found = {
        subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True, check=True).stdout
        for _ in range(3)
    }
    assert len(found) == 1


def test_saved_and_opened_again_each_token_has_its_role(byte_bpe: Subwords, tmp_path: Path) -> None:
    """Which one ends a text is said beside tokenizer.json: names that only one publisher has cannot be guessed."""
    byte_bpe.inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    named = Subwords(byte_bpe.inner, {"begin": "<|im_start|>", "end": "<|im_end|>", "pad": "<|im_end|>"})
    assert named.special.end != byte_bpe.special.end
    named.save(tmp_path / "tokenizer.json")
    again = open_tokenizer(tmp_path / "tokenizer.json")
    assert again.special == named.special
    assert again.fingerprint == named.fingerprint != byte_bpe.fingerprint


def test_files_of_another_kind_are_not_misread(tmp_path: Path) -> None:
    vocabulary = {"h": 0, "i": 1, "i</w>": 2, "hi</w>": 3}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh i</w>\n", encoding="utf8")
    with pytest.raises(UserError, match="marks the ends of words"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "CTRLTokenizer"}', encoding="utf8")
    with pytest.raises(UserError, match=r"merges\.txt of a CTRLTokenizer cannot be read here"):
        open_tokenizer(tmp_path)


def test_byte_level_pieces_can_be_lower_case() -> None:
    made = Subwords.learn(["the cat sat"] * 5, kind="byte-bpe", vocabulary=300, lowercase=True)
    assert made.encode("THE Cat") == made.encode("the cat")


def test_ours_and_theirs_are_told_apart(tmp_path: Path, wordpiece: Subwords) -> None:
    Tokenizer.train(TEXTS, vocabulary=400).save(tmp_path / "ours.json")
    wordpiece.save(tmp_path / "theirs.json")
    assert type(open_tokenizer(tmp_path / "ours.json")) is Tokenizer
    again = open_tokenizer(tmp_path / "theirs.json")
    assert isinstance(again, Subwords)
    assert again.special == wordpiece.special
    with pytest.raises(UserError, match="no tokenizer there"):
        open_tokenizer(tmp_path)
