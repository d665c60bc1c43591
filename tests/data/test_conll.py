"""CoNLL files: what is ragged is not learned from, and words alone can be read."""

from pathlib import Path

import pytest

from regard.data.badlines import BadLines
from regard.data.conll import read_tagged, read_words
from regard.errors import UserError


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf8")
    return str(folder / name)


@pytest.mark.parametrize("short", ["sees NN", "sees"])
def test_a_sentence_with_a_short_line_is_left_out_as_a_whole(tmp_path: Path, short: str) -> None:
    path = written(tmp_path, "a.conll", f"cat NN B-NP O\n\nit PR B-NP O\n{short}\n\nrain NN B-NP B-X\n")
    bad = BadLines()
    assert [example.words for example, _ in read_tagged([path], None, bad)] == [["cat"], ["rain"]]
    assert "1 of 3 sentences were left out" in bad.summary()
    assert "a.conll: line 4" in bad.summary()


def test_a_numbered_column_may_have_others_behind_it(tmp_path: Path) -> None:
    path = written(tmp_path, "a.conll", "cat NN x\nsees VB\n")
    ((example, _),) = read_tagged([path], ["0", "1"], BadLines())
    assert example.tags == ["NN", "VB"]


def test_universal_files_are_known_by_their_columns(tmp_path: Path) -> None:
    lines = ["# text = it rains", "1\tit\tit\tPRON" + "\t_" * 6, "2\trains\train\tVERB" + "\t_" * 6, ""]
    path = written(tmp_path, "a.conll", "\n".join(lines))
    ((example, _),) = read_tagged([path], None, BadLines())
    assert (example.words, example.tags) == (["it", "rains"], ["PRON", "VERB"])


@pytest.mark.parametrize(
    ("name", "text", "columns", "learned"),
    [
        ("a.conll", "it\nrains\n", None, None),
        ("a.conll", "it O\nrains O\n", None, ["form", "xpos"]),  # what was learned has names, which this file has not
        ("a.conll", "1 it O\n2 rains O\n", ["1"], None),
        ("a.conll", "1 it O\n2 rains O\n", None, ["1", "2"]),
        ("a.conllu", "1\tit\n2\trains\n", None, None),
    ],
)
def test_words_are_read_without_their_tags(
    tmp_path: Path, name: str, text: str, columns: list[str] | None, learned: list[str] | None
) -> None:
    assert list(read_words([written(tmp_path, name, text)], columns, learned, BadLines())) == [["it", "rains"]]


def test_a_sentence_that_cannot_be_read_keeps_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, "a.conll", "1 it\n\n2\n\n3 rains\n")
    assert list(read_words([path], ["1"], None, BadLines())) == [["it"], [], ["rains"]]


def test_a_name_is_only_for_universal_files(tmp_path: Path) -> None:
    path = written(tmp_path, "a.conll", "it O\n")
    with pytest.raises(UserError, match=r"data.columns = 'form': must be a number, or in CoNLL-U one of id, form"):
        list(read_tagged([path], ["form", "upos"], BadLines()))
    with pytest.raises(UserError, match="give two"):
        list(read_tagged([path], ["0"], BadLines()))
