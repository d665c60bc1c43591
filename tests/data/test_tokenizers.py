"""Tokenizers lose nothing, never let text pose as a special token, and are the same every time."""

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.tokenizers import BOS, EOS, PAD, SPECIALS, UNK, Tokenizer
from regard.data.words import split_words
from regard.errors import UserError

TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    "The street was wide; the animal, tired.",
    "« Où est la rue ? » demanda l'homme à 12 h 30.",
    "We cross the street where the cars stop & wait.",
    "Nous traversons la rue là où les voitures s'arrêtent.",
] * 3
FRENCH = "«\u00a0Où est l'homme\u202f? Ici\u00a0\u00a0!\u00a0»\u00a0"  # with spaces that do not break
LOSSLESS = ["bpe", "wordpiece", "unigram", "char"]
KINDS = [*LOSSLESS, "word"]


@pytest.fixture(scope="module")
def made() -> dict[str, Tokenizer]:
    return {kind: Tokenizer.train(TEXTS, kind=kind, vocabulary=500) for kind in KINDS}


anything = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁"))
words = st.lists(st.sampled_from([*" ".join(TEXTS).split(), "</s>", "<0x41>", "日本", "🙂", "##ing", "zebra"]))
sentences = (anything | words.map(" ".join)).map(lambda text: unicodedata.normalize("NFC", text).strip())


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=sentences)
@settings(deadline=None, max_examples=150)
def test_decoding_restores_any_text(made: dict[str, Tokenizer], kind: str, text: str) -> None:
    ids = made[kind].encode(text)
    assert made[kind].decode(ids) == text
    assert not set(ids) & {PAD, UNK, BOS, EOS}


@pytest.mark.parametrize("text", TEXTS[:6])
def test_the_word_tokenizer_restores_words_it_knows(made: dict[str, Tokenizer], text: str) -> None:
    assert made["word"].decode(made["word"].encode(text)) == text


def test_the_word_tokenizer_answers_unk_for_the_others(made: dict[str, Tokenizer]) -> None:
    assert made["word"].decode(made["word"].encode("The zebra was tired.")) == "The <unk> was tired."


@pytest.mark.parametrize("kind", KINDS)
def test_special_strings_in_the_text_are_text(made: dict[str, Tokenizer], kind: str) -> None:
    for special in (*SPECIALS, "<0x41>"):
        ids = made[kind].encode(f"the {special} street")
        assert not set(ids) & {PAD, BOS, EOS}
        if kind in LOSSLESS:
            assert made[kind].decode(ids) == f"the {special} street"


def test_special_ids_are_dropped_when_decoding(made: dict[str, Tokenizer]) -> None:
    tokenizer = made["bpe"]
    assert tokenizer.decode([BOS, *tokenizer.encode("the street"), EOS, PAD, PAD]) == "the street"
    assert tokenizer.tokens([BOS, EOS, PAD, UNK]) == ["<s>", "</s>", "<pad>", "<unk>"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_its_texts(made: dict[str, Tokenizer], kind: str) -> None:
    texts = [*TEXTS[:4], "", "€ 日本 zebra"]
    assert made[kind].encode_batch(texts) == [made[kind].encode(text) for text in texts]
    assert made[kind].encode("") == []
    assert made[kind].decode([]) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_is_the_same(made: dict[str, Tokenizer], kind: str, tmp_path: Path) -> None:
    made[kind].save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.kind == made[kind].kind == kind
    assert len(loaded) == len(made[kind])
    for text in [*TEXTS, "</s> zebra €"]:
        assert loaded.encode(text) == made[kind].encode(text)
        assert loaded.decode(loaded.encode(text)) == made[kind].decode(made[kind].encode(text))


def test_training_again_in_another_process_gives_the_same_json(made: dict[str, Tokenizer]) -> None:
    """Another process, because hash orders differ between processes: that is what breaks the library's own training."""
    code = (
        "import json, sys; from regard.data.tokenizers import Tokenizer; job = json.load(sys.stdin)\n"
        "print(json.dumps({kind: Tokenizer.train(job['texts'], kind=kind, vocabulary=500).inner.to_str()"
        " for kind in job['kinds']}))"
    )
    job = json.dumps({"texts": TEXTS, "kinds": KINDS})
    done = subprocess.run([sys.executable, "-c", code], input=job, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {kind: tokenizer.inner.to_str() for kind, tokenizer in made.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_one_shot_iterator_serves_as_well_as_a_list(made: dict[str, Tokenizer], kind: str) -> None:
    assert Tokenizer.train(iter(TEXTS), kind=kind, vocabulary=500).inner.to_str() == made[kind].inner.to_str()


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_is_an_upper_bound_even_where_characters_would_fill_it(kind: str) -> None:
    han = [chr(0x4E00 + n) for n in range(400)]
    texts = ["".join(han[n : n + 4]) + " cross the street" for n in range(397)] + [han[0] * 3] * 9
    tokenizer = Tokenizer.train(iter(texts), kind=kind, vocabulary=420)
    assert len(tokenizer) <= 420
    if kind in LOSSLESS:
        assert len(tokenizer.encode("the")) <= 4  # frequent letters keep their tokens
        assert tokenizer.decode(tokenizer.encode(texts[390])) == texts[390]  # rare ones are bytes


def test_bpe_learns_whole_words_and_a_larger_vocabulary_shortens(made: dict[str, Tokenizer]) -> None:
    assert made["bpe"].tokens(made["bpe"].encode("the street")) == ["the", "street"]
    small = Tokenizer.train(TEXTS, kind="bpe", vocabulary=330)
    assert len(small) == 330
    assert len(small.encode(TEXTS[0])) > len(made["bpe"].encode(TEXTS[0]))


def test_lowercase_and_composed_forms() -> None:
    tokenizer = Tokenizer.train(TEXTS, kind="bpe", vocabulary=500, lowercase=True)
    assert tokenizer.decode(tokenizer.encode("The STREET")) == "the street"
    assert tokenizer.encode("fatigue\u0301") == tokenizer.encode("fatigué")


def test_labels_are_readable(made: dict[str, Tokenizer]) -> None:
    ids = made["word"].encode(TEXTS[1])
    assert made["word"].tokens([*ids, EOS])[:4] == ["L'", "animal", "n'", "a"]
    assert made["word"].tokens([*ids, EOS])[-2:] == [".", "</s>"]
    assert made["char"].tokens(made["char"].encode("a é")) == ["▁", "a", "▁", "é"]
    assert made["bpe"].tokens(made["bpe"].encode("€"))[-3:] == ["<0xE2>", "<0x82>", "<0xAC>"]


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=sentences)
@settings(deadline=None, max_examples=100)
def test_word_groups_hold_each_token_once_in_order(made: dict[str, Tokenizer], kind: str, text: str) -> None:
    ids = [BOS, *made[kind].encode(text), EOS]
    groups = made[kind].word_groups(ids)
    assert [position for group in groups for position in group] == list(range(len(ids)))
    assert groups[0] == [0]
    assert groups[-1] == [len(ids) - 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", [*TEXTS[:6], "Un naïf œuf: 5 € (ou £4) 🙂 zebra…", "two  spaces", "ὦ ξεῖν', ἀγγέλλειν Łódź!", "x ▁", FRENCH]
)
def test_word_groups_are_the_words(made: dict[str, Tokenizer], kind: str, text: str) -> None:
    """Alignments are counted over `split_words`: groups must be in step with it, bytes and all."""
    tokenizer = made[kind]
    ids = tokenizer.encode(text)
    groups = tokenizer.word_groups(ids)
    if kind in LOSSLESS:
        assert [tokenizer.decode(ids[n] for n in group).strip() for group in groups] == split_words(text)
    elif UNK not in ids:
        assert len(groups) == len(split_words(text))


def test_a_space_of_any_kind_ends_a_word(made: dict[str, Tokenizer]) -> None:
    assert split_words(FRENCH) == ["«", "Où", "est", "l'", "homme", "?", "Ici", "!", "»"]
    assert all(made[kind].decode(made[kind].encode(FRENCH)) == FRENCH for kind in LOSSLESS)


@pytest.mark.parametrize("kind", LOSSLESS)
def test_scripts_without_spaces_are_not_merged(kind: str) -> None:
    text = "我们过马路"
    tokenizer = Tokenizer.train(["我 们 过 马 路", "the street", "我们"] * 3, kind=kind, vocabulary=300)
    ids = tokenizer.encode(text + "駅")
    groups = tokenizer.word_groups(ids)
    assert [tokenizer.decode(ids[n] for n in group) for group in groups][-2:] == ["路", "駅"]  # 駅 is three bytes
    assert len(groups) >= 4
    assert all(len(group) == 1 or "▁" in tokenizer.tokens(ids[n] for n in group) for group in groups[:-1])


def test_word_groups_of_broken_bytes(made: dict[str, Tokenizer]) -> None:
    """A model may generate half a character; it must not break the picture."""
    tokenizer = made["bpe"]
    half = tokenizer.encode("a€")[:-1]
    assert tokenizer.decode(half).startswith("a")
    assert [n for group in tokenizer.word_groups(half) for n in group] == list(range(len(half)))


def test_what_cannot_be_trained() -> None:
    with pytest.raises(UserError, match=r"vocabulary = 100: a bpe tokenizer needs at least 300 .*\(try 8000\)"):
        Tokenizer.train(TEXTS, kind="bpe", vocabulary=100)
    with pytest.raises(UserError, match=r"kind = 'bep': unknown; did you mean 'bpe'\?"):
        Tokenizer.train(TEXTS, kind="bep", vocabulary=500)  # type: ignore[arg-type]
    for kind in KINDS:
        with pytest.raises(UserError, match="no text to learn from"):
            Tokenizer.train([], kind=kind, vocabulary=500)


def test_files_that_are_no_tokenizer_of_ours(tmp_path: Path, made: dict[str, Tokenizer]) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(UserError, match=r"tokenizer\.json: there is no such tokenizer file"):
        Tokenizer.load(path)
    made["bpe"].save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:300], encoding="utf-8")
    with pytest.raises(UserError, match=r"not a readable tokenizer\.json"):
        Tokenizer.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"not a readable tokenizer\.json"):
        Tokenizer.load(path)
    path.write_text(text.replace("</s>", "[SEP]"), encoding="utf-8")
    with pytest.raises(UserError, match="was not made by Regard: its first four tokens must be <pad> <unk> <s> </s>"):
        Tokenizer.load(path)
