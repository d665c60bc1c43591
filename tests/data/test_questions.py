"""Questions whose answers cannot be known are named, and never taken for questions without an answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.data.badlines import BadLines
from regard.data.questions import Question, read_questions
from regard.errors import UserError


def read(path: Path, text: str, answered: bool = True) -> tuple[list[Question], BadLines]:
    path.write_text(text, encoding="utf8")
    bad = BadLines()
    return [found for found, _ in read_questions([str(path)], bad, answered)], bad


def test_questions_keep_their_own_numbers(tmp_path: Path) -> None:
    rows = [{"id": number, "context": "A cat.", "question": f"Who {number}?"} for number in range(3)]
    found, _ = read(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)), answered=False)
    assert [one.id for one in found] == ["0", "1", "2"]
    found, _ = read(tmp_path / "a.csv", "context,question\nA cat.,Who?\n\nA dog.,Who?\n", answered=False)
    assert [one.id for one in found] == ["2", "4"], "those of their lines"


def test_columns_can_be_named(tmp_path: Path) -> None:
    path, bad = tmp_path / "a.csv", BadLines()
    path.write_text("wanted,body\nWho?,A cat.\n", encoding="utf8")
    ((found, _),) = read_questions([str(path)], bad, answered=False, columns=["body", "wanted"])
    assert (found.context, found.question) == ("A cat.", "Who?")
    with pytest.raises(UserError, match="name two"):
        list(read_questions([str(path)], bad, columns=["body"]))


def squad(**more: Any) -> str:
    asked = {"id": "7", "question": "Who?", **more}
    return json.dumps({"data": [{"paragraphs": [{"context": "A cat.", "qas": [asked]}]}]})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"answers": [{"text": "cat", "answer_start": None}]},
        {"answers": [{"text": "cat"}]},
        {"answers": ["cat"]},
        {"answers": "cat"},
        {"answers": None},
    ],
)
def test_what_says_nothing_of_an_answer_is_left_out(tmp_path: Path, more: dict[str, Any]) -> None:
    found, bad = read(tmp_path / "a.json", squad(**more))
    assert found == []
    assert "no answers that can be read" in bad.summary()
    assert "a.json: 7" in bad.summary()
    found, bad = read(tmp_path / "a.json", squad(**more), answered=False)
    assert [one.question for one in found] == ["Who?"], "a question can be asked without its answer"


@pytest.mark.parametrize("more", [{"answers": []}, {"answers": [{"text": "?"}], "is_impossible": True}])
def test_no_answer_is_said(tmp_path: Path, more: dict[str, Any]) -> None:
    ((found,), bad) = read(tmp_path / "a.json", squad(**more))
    assert (found.answers, bad.total) == ([], 0)


@pytest.mark.parametrize("start", [2, "2"])
def test_a_start_may_be_written_as_text(tmp_path: Path, start: object) -> None:
    ((found,), _) = read(tmp_path / "a.json", squad(answers=[{"text": "cat", "answer_start": start}]))
    assert found.answers[0].start == 2


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "question,context,ans\nWho?,A cat.,cat\n", "no answers that can be read"),
        ("a.csv", "question,context,answer,answer_start\nWho?,A cat.,cat,2.5\n", "no answers that can be read"),
        ("a.csv", "question,context,answer\nWho?,,cat\n", "empty side"),
        ("a.jsonl", '{"question": "Who?", "context": null, "answer": "cat"}\n', "empty side"),
        ("a.jsonl", '{"question": "Who?"\n', "invalid JSON"),
        ("a.csv", "question,context,answer\nWho?\n", "wrong columns"),
    ],
)
def test_rows_of_a_table_that_cannot_be_used_are_counted(tmp_path: Path, name: str, text: str, reason: str) -> None:
    found, bad = read(tmp_path / name, text)
    assert (found, bad.total, bad.read) == ([], 1, 1)
    assert reason in bad.summary()


def test_an_empty_answer_in_a_table_is_none(tmp_path: Path) -> None:
    ((found,), _) = read(tmp_path / "a.csv", "question,context,answer\nWho?,A cat.,\n")
    assert found.answers == []
