"""Files with answers, as the tasks of an encoder read them: no word is dropped, and nothing wrong is kept."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.data.asked import read_situations, read_sources, read_texts
from regard.data.badlines import BadLines
from regard.data.conll import read_tagged
from regard.data.labelled import read_choices, read_labelled
from regard.data.questions import read_questions
from regard.errors import UserError


def test_a_number_sign_may_be_a_word_and_may_begin_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("# a comment of several words\nwe\tO\n#\tO\n#tag\tB-x\n# id = 7\nwon\tO\n\n", encoding="utf8")
    ((example, _),) = read_tagged([str(path)], None, BadLines())
    assert example.words == ["we", "#", "#tag", "won"]
    path = tmp_path / "a.conllu"
    path.write_text("# text = we\n1\twe\twe\tPRON\n2\t#\t#\tSYM\n\n", encoding="utf8")
    ((example, _),) = read_tagged([str(path)], None, BadLines())
    assert (example.words, example.tags) == (["we", "#"], ["PRON", "SYM"])


def test_answers_that_do_not_stand_in_their_context_are_named_by_id(tmp_path: Path) -> None:
    context = "The cat sleeps."
    asked = [
        {"id": "right", "question": "Who?", "answers": [{"text": "cat", "answer_start": 4}]},
        {"id": "astray", "question": "Who?", "answers": [{"text": "cat", "answer_start": 5}]},
        {"id": "beyond", "question": "Who?", "answers": [{"text": "cat", "answer_start": 50}]},
        {"id": "none", "question": "Who?", "answers": [], "is_impossible": True},
    ]
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": [{"context": context, "qas": asked}]}]}))
    bad = BadLines()
    assert [question.id for question, _ in read_questions([str(path)], bad)] == ["right", "none"]
    assert "2 with an answer that does not stand in the context" in bad.summary()
    assert "squad.json: astray" in bad.summary()
    assert "squad.json: beyond" in bad.summary()


def test_columns_by_number_make_no_header_of_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "films.csv"
    path.write_text("0,bad film\n1,good film\n", encoding="utf8")
    rows = [example for example, _ in read_labelled([str(path)], ["1", "0"], BadLines())]
    assert [(row.text, row.label) for row in rows] == [("bad film", "0"), ("good film", "1")]


def test_choices_may_be_fewer_than_four(tmp_path: Path) -> None:
    path = tmp_path / "swag.csv"
    path.write_text("startphrase,ending0,ending1,ending2,label\nIt was,a,b,c,2\nIt was,a,,,0\n", encoding="utf8")
    bad = BadLines()
    ((choice, _),) = read_choices([str(path)], None, bad)
    assert (choice.options, choice.label) == (["a", "b", "c"], 2)
    assert bad.total == 1
    with pytest.raises(UserError, match=r"data\.columns = a,b: not for this task"):
        list(read_choices([str(path)], ["a", "b"], bad))


def test_labels_in_a_file_of_their_own_must_match(tmp_path: Path) -> None:
    row = json.dumps({"goal": "open it", "sol1": "push", "sol2": "pull"})
    (tmp_path / "a.jsonl").write_text(f"{row}\n\n{row}\n", encoding="utf8")
    (tmp_path / "a.lst").write_text("0\n1\n1\n", encoding="utf8")
    files = [str(tmp_path / "a.jsonl"), str(tmp_path / "a.lst")]
    with pytest.raises(UserError, match="3 labels beside 2 usable rows"):
        list(read_choices(files, None, BadLines()))


def test_half_of_an_escaped_character_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "\\ud83d", "label": "a"}\n{"text": "b", "label": "a"}\n')
    bad = BadLines()
    assert [example.text for example, _ in read_labelled([str(tmp_path / "a.jsonl")], None, bad)] == ["b"]
    assert bad.total == 1


@pytest.mark.parametrize(
    ("table", "columns", "learned", "expected"),
    [
        ("text\nhe sings\n", [], [], [("he sings", None)]),
        ("he sings\nshe reads\n", [], [], [("he sings", None), ("she reads", None)]),  # no header, one column
        (
            "sentence1\tsentence2\tscore\na\tb\t1\nc\t\t2\n",
            [],
            [],
            [("a", "b"), ("", None)],
        ),  # an empty row keeps its place
        ("0\tgood film\n", [], ["1"], [("good film", None)]),  # the table that was learned had no header either
        ("text\tx\tlabel\na\tb\tc\n", [], ["5", "6"], [("a", None)]),  # ... and this one has other columns
        ("text\tx\tlabel\na\tb\tc\n", ["x", "text"], [], [("b", "a")]),
    ],
)
def test_texts_without_labels_are_found_in_tables(
    tmp_path: Path, table: str, columns: list[str], learned: list[str], expected: list[tuple[str, str | None]]
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(table, encoding="utf8")
    assert list(read_texts([str(path)], columns, learned, BadLines())) == expected


@pytest.mark.parametrize(
    ("name", "table", "columns", "learned", "expected"),
    [
        ("a.csv", "id,en,fr\n1,the cat,le chat\n", [], [], "the cat"),
        ("a.tsv", "the cat\tle chat\n", [], [], "the cat"),
        ("a.csv", "a,b\nx,the cat\n", ["b"], [], "the cat"),
        ("a.csv", "a,b\nx,the cat\n", [], ["b", "a"], "the cat"),
        ("a.csv", "EN,FR\nthe cat,le chat\n", [], ["fr", "en"], "le chat"),
        ("a.csv", "en,fr\nthe cat,le chat\n", [], ["1", "0"], "le chat"),
        ("a.csv", "id,en-US,fr-FR\n1,the cat,le chat\n", [], [], "the cat"),
        ("a.jsonl", '{"translation": {"de": "die Katze", "en": "the cat"}}\n', ["en"], [], "the cat"),
        ("a.jsonl", '{"title": "t", "source": ["the", "cat"], "target": "c"}\n', [], [], "the cat"),
    ],
)
def test_sources_are_found_in_tables(
    tmp_path: Path, name: str, table: str, columns: list[str], learned: list[str], expected: str
) -> None:
    (tmp_path / name).write_text(table, encoding="utf8")
    assert list(read_sources([str(tmp_path / name)], columns, learned, BadLines())) == [expected]


def test_labels_are_not_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tsecond\tlabel\na\tb\tc\n", encoding="utf8")
    with pytest.raises(UserError, match="labels are not read here"):
        list(read_texts([str(path)], ["text", "second", "label"], [], BadLines()))


def test_a_row_with_more_cells_than_names_is_not_misread(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        'text,label\nGreat movie, loved it,positive\n"Bad, too",negative\nfine,positive,\n', encoding="utf8"
    )
    bad = BadLines()
    found = [(example.text, example.label) for example, _ in read_labelled([str(path)], None, bad)]
    assert found == [("Bad, too", "negative"), ("fine", "positive")]
    assert "1 wrong columns (line 2 of a.csv)" in bad.summary()


@pytest.mark.parametrize("rows", [20, 3000])
def test_a_quotation_mark_that_is_never_closed_is_named(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + 'fine 5" screen,yes\n' * 9 + '"oh,yes\n' + "fine,yes\n" * rows, encoding="utf8")
    with pytest.raises(UserError, match=r"line 11: a quotation mark is opened and not closed"):
        list(read_labelled([str(path)], None, BadLines()))


def test_without_names_the_labels_are_what_has_fewer_values(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("Good\tpositive\nA dull and long film\tnegative\nFine\tpositive\n", encoding="utf8")
    assert {example.label for example, _ in read_labelled([str(path)], None, BadLines())} == {"positive", "negative"}


def test_columns_beyond_a_line_are_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("cat\tNOUN\nsees\tVERB\n\n", encoding="utf8")
    bad = BadLines()
    with pytest.raises(UserError, match="no sentence can be read; the columns 0,-6 must be on each line"):
        list(read_tagged([str(path)], ["0", "-6"], bad))
    assert bad.total == 1  # a sentence


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"question": "Who?", "context": "A cat.", "answers": {"text": ["cat"], "answer_start": [2]}}\n'),
        ("a.csv", "question,context,answer\nWho?,A cat.,cat\n"),
        ("a.parquet", ""),
    ],
)
def test_questions_stand_in_tables_too(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    if content:
        path.write_text(content, encoding="utf8")
    else:
        answers = {"text": ["cat"], "answer_start": [2]}
        table = {"id": ["7"], "question": ["Who?"], "context": ["A cat."], "answers": [answers]}
        pq.write_table(pa.table(table), path)
    ((found, _),) = read_questions([str(path)], BadLines())
    assert (found.question, found.context) == ("Who?", "A cat.")
    assert [(one.text, one.start) for one in found.answers] == [("cat", 2)]


def test_a_list_of_objects_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"text": "fine", "label": "yes"}]', encoding="utf8")
    ((found, _),) = read_labelled([str(tmp_path / "a.json")], None, BadLines())
    assert (found.text, found.label) == ("fine", "yes")
    (tmp_path / "b.json").write_text('{"text": "fine"}', encoding="utf8")
    with pytest.raises(UserError, match="must be a list of objects"):
        list(read_labelled([str(tmp_path / "b.json")], None, BadLines()))


@pytest.mark.parametrize("label", ["", " ", None, ["x", "y"]])
def test_what_has_no_label_is_said_to_have_none(tmp_path: Path, label: object) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"text": "fine", "label": label}]), encoding="utf8")
    bad = BadLines()
    assert list(read_labelled([str(tmp_path / "a.json")], None, bad)) == []
    assert "1 without a label" in bad.summary()


def test_a_header_with_unknown_names_is_no_example(tmp_path: Path) -> None:
    rows = [f"text number {number},{'good' if number % 2 else 'bad'}" for number in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(["comment,stars", *rows]), encoding="utf8")
    with pytest.raises(UserError, match=r"line 1 looks like a header .* --columns comment,stars \(or 0,1"):
        list(read_labelled([str(tmp_path / "a.csv")], None, BadLines()))
    named = [example.label for example, _ in read_labelled([str(tmp_path / "a.csv")], ["comment", "stars"], BadLines())]
    assert set(named) == {"good", "bad"}
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf8")
    assert len(list(read_labelled([str(tmp_path / "a.csv")], None, BadLines()))) == 20


@pytest.mark.parametrize(("label", "reason"), [(None, "without a label"), (2, "option"), ("b", "option")])
def test_a_label_that_is_no_option_is_said(tmp_path: Path, label: object, reason: str) -> None:
    row = {"context": "it rains", "options": ["wet", "dry"], "label": label}
    (tmp_path / "a.jsonl").write_text(json.dumps(row), encoding="utf8")
    bad = BadLines()
    assert list(read_choices([str(tmp_path / "a.jsonl")], None, bad)) == []
    assert reason in bad.summary()


def test_rows_that_cannot_be_read_keep_their_place(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\nnothing\n{"text": ""}\n{"text": "b"}\n', encoding="utf8")
    assert [text for text, _ in read_texts([str(tmp_path / "a.jsonl")], [], [], BadLines())] == ["a", "", "", "b"]
    assert list(read_sources([str(tmp_path / "a.jsonl")], [], [], BadLines())) == ["a", "", "", "b"]
    (tmp_path / "b.csv").write_text("sent1,sent2,ending0,ending1\nit,rains,wet,dry\nit,rains,,\n", encoding="utf8")
    assert list(read_situations([str(tmp_path / "b.csv")], BadLines())) == [("it rains", ["wet", "dry"]), ("", [])]


def test_without_a_header_texts_are_found_as_in_training(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a nice film,good\na dull one,bad\nanother nice one,good\n", encoding="utf8")
    found = list(read_texts([str(tmp_path / "a.csv")], [], [], BadLines()))
    assert found == [("a nice film", None), ("a dull one", None), ("another nice one", None)]
