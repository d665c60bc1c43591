"""SentencePiece's files: texts are cut as `transformers` cuts them, and what was opened can be saved."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import sentencepiece
from transformers import MarianTokenizer, T5Tokenizer

from regard.data.sentencepieces import TwoSided
from regard.data.tokenizer_files import open_tokenizer
from regard.errors import UserError

COLOURS = {"white": "weiße", "black": "schwarze", "old": "alte", "quiet": "ruhige", "grey": "graue"}
ENGLISH = [f"The {one} cat number {n} slept on the mat." for n, one in enumerate([*COLOURS] * 4)]
GERMAN = [f"Die {one} Katze Nummer {n} schlief größer auf der Matte." for n, one in enumerate([*COLOURS.values()] * 4)]
ASKED = ["The white cat sat.", "  two   spaces ", "ﬁne Ⅷ number 7", "the haß", ">>deu<< the cat"]


def spm(texts: list[str], path: Path, **more: object) -> list[str]:
    """A model learned from texts; its pieces."""
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=file, vocab_size=70, hard_vocab_limit=False, minloglevel=2, **more
    )
    path.write_bytes(file.getvalue())
    model = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    return [model.id_to_piece(number) for number in range(len(model))]


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opus")
    pieces = spm(ENGLISH, folder / "source.spm") + spm(GERMAN, folder / "target.spm")
    names = ["</s>", "<unk>", ">>deu<<", *sorted(set(pieces) - {"<unk>", "<s>", "</s>"}), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: n for n, name in enumerate(names)}), encoding="utf8")
    return folder


def test_an_opus_folder_cuts_each_language_by_its_own_pieces(opus: Path, tmp_path: Path) -> None:
    theirs = MarianTokenizer(
        str(opus / "source.spm"), str(opus / "target.spm"), str(opus / "vocab.json"), source_lang="en", target_lang="de"
    )
    ours = open_tokenizer(opus)
    assert isinstance(ours, TwoSided)
    ours.save(tmp_path / "tokenizer.json")
    again = open_tokenizer(tmp_path)
    for one in (ours, again):
        for text in [*ENGLISH[:3], *ASKED]:
            assert one.encode(text) == theirs(text).input_ids[:-1], text
        for text in [*GERMAN[:3], "die Matte"]:
            written = theirs(text_target=text).input_ids
            assert one.encode_targets([text]) == [written[:-1]], text
            assert one.decode(written) == theirs.decode(written, skip_special_tokens=True) == text
    assert (ours.special.end, ours.special.pad) == (theirs.eos_token_id, theirs.pad_token_id)
    assert again.special == ours.special
    assert ours.encode(GERMAN[0]) != ours.encode_targets([GERMAN[0]])[0]


def test_a_model_of_t5_has_its_sentinels_after_the_pieces(tmp_path: Path) -> None:
    control = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    spm(ENGLISH, tmp_path / "spiece.model", **control)
    settings = {"tokenizer_class": "T5Tokenizer", "extra_ids": 100}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf8")
    theirs, ours = T5Tokenizer.from_pretrained(tmp_path), open_tokenizer(tmp_path)
    for text in [*ENGLISH[:3], *ASKED[:4]]:
        assert ours.inner.encode(text).ids == theirs(text).input_ids, text
    assert ours.inner.token_to_id("<extra_id_3>") == theirs.convert_tokens_to_ids("<extra_id_3>")
    assert len(ours) == len(theirs)


def test_what_cannot_be_read_says_how_to_convert_it(opus: Path, tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes((opus / "source.spm").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLNetTokenizer"}', encoding="utf8")
    with pytest.raises(UserError, match=r"spiece\.model of a XLNetTokenizer cannot be read here.*save_pretrained"):
        open_tokenizer(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "spiece.model").write_bytes(b"nothing of that kind")
    with pytest.raises(UserError, match="not a readable model of SentencePiece"):
        open_tokenizer(tmp_path)
