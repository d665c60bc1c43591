"""Texts become one stream: nothing is lost where they are cut, documents are marked, and the split leaks nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from regard.config import DataConfig, TokenizerConfig
from regard.data.language import Language, Texts, pieces, prepare_text
from regard.data.prepare import Silent
from regard.data.subwords import Subwords
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError

CHARACTERS = TokenizerConfig(kind="char", vocabulary=400)
TEXT = "It was the best of times, it was the worst of times;  it was\n\nthe age of wisdom. " * 20


def prepared(tmp_path: Path, *files: Path, kind: str = "char", share: float = 0.1) -> Language:
    config = TokenizerConfig.model_validate({"kind": kind, "vocabulary": 400})
    data = DataConfig.model_validate({"train": [str(file) for file in files]})
    return prepare_text(data, config, share, tmp_path / "cache", Silent())


@pytest.mark.parametrize("size", [10, 50, 333])
def test_pieces_change_neither_text_nor_tokens(size: int) -> None:
    parts = list(pieces([TEXT[:100], TEXT[100:]], size))
    assert len(parts) > 1
    assert "".join(parts) == TEXT
    for tokenizer in (
        Tokenizer.train([TEXT], kind="bpe", vocabulary=320),
        Tokenizer.train([TEXT], kind="char"),
        Subwords.learn([TEXT], kind="byte-bpe", vocabulary=300),
    ):
        assert [token for part in parts for token in tokenizer.encode(part)] == tokenizer.encode(TEXT)


def test_one_text_is_divided_by_position(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(TEXT, encoding="utf8")
    data = prepared(tmp_path, file)
    train, valid = (data.tokenizer.decode(stream.ids.tolist()) for stream in (data.train, data.valid))
    assert train + valid == TEXT + "\n" or train + " " + valid == TEXT + "\n"
    assert len(train) == pytest.approx(0.9 * len(TEXT), abs=2)
    assert data.lone
    assert data.train.bytes + data.valid.bytes == len(TEXT) + 1
    assert data.tokenizer.special.end not in data.train.ids


def test_documents_are_held_out_whole_and_marked(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    texts = [f"story {number} of the king and the queen" for number in range(200)]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf8")
    data = prepared(tmp_path, file, kind="byte-bpe")
    found = {}
    for name, stream in (("train", data.train), ("valid", data.valid)):
        marks = np.flatnonzero(stream.ids == data.tokenizer.special.end)
        assert marks[0] == 0, "each document begins with the mark"
        found[name] = [data.tokenizer.decode(part.tolist()) for part in np.split(stream.ids, marks[1:])]
    assert sorted(found["train"] + found["valid"]) == sorted(texts)
    assert 5 <= len(found["valid"]) <= 45
    assert not data.lone


def test_the_same_question_is_answered_from_the_cache(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(TEXT, encoding="utf8")
    first = prepared(tmp_path, file)
    assert prepared(tmp_path, file).folder == first.folder
    assert prepared(tmp_path, file, share=0.2).folder != first.folder


def test_a_folder_of_texts_and_bad_files(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_text("one", encoding="utf8")
    (folder / "old" / "b.txt").write_text("two", encoding="utf8")
    assert ["".join(document) for document in Texts([str(folder)])] == ["one\n", "two\n"]
    for name, content, message in (
        ("c.csv", b"a,b", "give plain text"),
        ("d.jsonl", b'{"body": 1}', "line 1 must be a JSON object with a field 'text'"),
        ("e.txt", b"\xff\xffa", "line 1 is not UTF-8"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            [list(document) for document in Texts([str(tmp_path / name)])]
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(UserError):
        prepared(tmp_path, tmp_path / "empty.txt")


@pytest.mark.parametrize("text", ["雪" * 900, "雪\n" * 450])
def test_a_text_without_spaces_is_cut_too(text: str) -> None:
    parts = list(pieces([text[place : place + 7] for place in range(0, 900, 7)], 50))
    assert "".join(parts) == text
    assert max(map(len, parts)) <= 107


def test_of_a_few_files_each_gives_its_last_part(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(3):
        lines = [f"file {number} line {line} of the text" for line in range(100)]
        (texts / f"{number}.txt").write_text("\n".join(lines), encoding="utf8")
    data = prepare_text(DataConfig(train=[str(texts)]), CHARACTERS, 0.1, tmp_path / "cache", Silent())
    valid = data.tokenizer.decode(data.valid.ids.tolist())
    assert all(f"file {number} line 99" in valid for number in range(3))
    assert "line 50 " not in valid
    assert "line 99 " not in data.tokenizer.decode(data.train.ids.tolist())


def test_of_many_documents_one_at_least_is_held_out(tmp_path: Path) -> None:
    for seed in range(6):
        rows = [json.dumps({"text": f"story {seed} number {number}"}) for number in range(12)]
        (tmp_path / "stories.jsonl").write_text("\n".join(rows), encoding="utf8")
        files = DataConfig(train=[str(tmp_path / "stories.jsonl")], seed=seed)
        data = prepare_text(files, CHARACTERS, 0.1, tmp_path / f"cache{seed}", Silent())
        assert len(data.valid.ids) > 5
        assert len(data.train.ids) > len(data.valid.ids)


def test_an_empty_file_is_not_what_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for number in range(12):
        (tmp_path / "texts" / f"{number}.txt").write_text(f"story number {number}" if number else "")
    for seed in range(6):
        files = DataConfig(train=[str(tmp_path / "texts")], seed=seed)
        data = prepare_text(files, CHARACTERS, 0.1, tmp_path / "cache", Silent())
        assert len(data.valid.ids) > 5


def test_a_text_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": TEXT, "body": "no"}))
    with pytest.raises(UserError, match=r"data\.columns = body: a text has none"):
        prepare_text(
            DataConfig(train=[str(tmp_path / "a.jsonl")], columns=["body"]), CHARACTERS, 0.1, tmp_path, Silent()
        )


def test_test_sets_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test.txt").write_text(f"the text of {name} " * 40, encoding="utf8")
    (tmp_path / "train").write_text("all other text " * 100, encoding="utf8")
    tests = [str(tmp_path / "a/test.txt"), str(tmp_path / "b/test.txt"), str(tmp_path / "train")]
    files = DataConfig(train=[str(tmp_path / "c/test.txt")], test=tests)
    data = prepare_text(files, CHARACTERS, 0.1, tmp_path / "cache", Silent())
    assert set(data.tests) == {"test.txt", "b-test.txt", f"{tmp_path.name}-train"}
    assert "of c" in data.tokenizer.decode(data.train.ids.tolist())
