"""Summarisation: articles read, ROUGE as defined, learned on a small file, asked for from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.data.articles import read_articles, split_sentences
from regard.data.badlines import BadLines
from regard.errors import UserError
from regard.tasks.rouge import rouge
from regard.training.start import train

SETTINGS = {
    "tokenizer.kind": "word", "tokenizer.vocabulary": 60, "model.encoder_layers": 1, "model.decoder_layers": 1,
    "model.width": 32, "model.inner": 32, "model.heads": 2, "model.dropout": 0.0, "train.batch_tokens": 400,
    "train.steps": 150, "train.validate_every": 50, "train.warmup": 20, "train.learning_rate": 0.01,
    "train.validate_sentences": 5, "decode.beam": 2, "data.valid_count": 10, "data.test_count": 10,
}  # fmt: skip
COLOURS = ["red", "green", "blue", "white"]
ANIMALS = ["cat", "dog", "cow", "owl", "fox"]


def article(number: int) -> dict[str, object]:
    """The summary is the last two words of the text."""
    colour, animal, other = COLOURS[number % 4], ANIMALS[number % 5], ANIMALS[number // 5 % 5]
    sentences = [f"There was a {other} .", f"It saw number {number % 7} .", f"All was {colour} {animal}"]
    return {"source": sentences, "target": [f"{colour} {animal}", "another summary"], "title": "t"}


@pytest.fixture(scope="module")
def articles_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("articles") / "articles.jsonl"
    path.write_text("".join(json.dumps(article(n)) + "\n" for n in range(280)), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def run_folder(articles_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "summaries"
    train("summarize", [str(articles_file)], out=out, model="transformer-micro", settings=SETTINGS)
    return out


def test_what_can_be_learned_is_learned(run_folder: Path) -> None:
    scores = json.loads((run_folder / "scores.json").read_text(encoding="utf8"))["test"]
    assert scores["rouge1"] > 80
    assert scores["lead_rouge1"] < 20, "the first sentence says nothing of it"
    run = regard.load(run_folder)
    again = run.summarizer.evaluate(run.held_out()["test"]).scores
    assert again == pytest.approx(scores, abs=1e-3)


def test_a_summary_has_its_attention_and_the_cli_its_picture(run_folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("There was a cat .\nIt saw number 3 .\nAll was red fox\n", encoding="utf8")
    picture = tmp_path / "picture.svg"
    result = CliRunner().invoke(app, ["summarize", str(run_folder), str(text), "--attention", str(picture)])
    assert result.exit_code == 0, result.output
    assert picture.is_file()
    (one,) = regard.load(run_folder).summarize(text.read_text(encoding="utf8"))
    assert one.text == result.stdout.strip()
    cross = one.attention["decoder.0.cross"]
    assert cross.weights.sum(axis=-1) == pytest.approx(1, abs=1e-4)
    assert cross.keys.tokens[-1] == "</s>"


def test_a_model_reads_no_more_of_a_text_than_it_learned_to(run_folder: Path) -> None:
    run = regard.load(run_folder)
    most = run.config.data.max_length
    (found,) = run.summarize(" ".join(["There was a cat ."] * most))
    assert (len(found.source_ids), found.truncated) == (most, True)
    (short,) = run.summarize("There was a cat .")
    assert not short.truncated


def test_a_search_is_changed_by_what_is_named_and_by_nothing_else(run_folder: Path) -> None:
    run, text = regard.load(run_folder), "There was a cat . It saw number 3 . All was red fox"
    whole = run.config.decode.model_copy(update={"beam": 3, "n_best": 3})
    (expected,) = run.summarize(text, whole)
    (found,) = run.summarize(text, beam=3, n_best=3)
    assert [(one.text, one.score) for one in found.others] == [(one.text, one.score) for one in expected.others]
    assert len(found.others) == 2
    (short,) = run.summarize(text, whole, max_length=1)
    assert (len(short.target_ids), len(short.others)) == (1, 2)
    with pytest.raises(UserError, match=r"beem: unknown key.*beam"):
        run.summarize(text, beem=3)


def test_marks_of_the_tokenizer_count_in_what_the_model_reads(articles_file: Path, tmp_path: Path) -> None:
    """BART's has two around a text: what the first check allows is checked again when they are known."""
    settings = {**SETTINGS, "tokenizer.kind": "byte-bpe", "model.max_length": 32, "data.max_length": 31}
    with pytest.raises(UserError, match=r"data\.max_length = 31: must be at most 30.* with 2 marks around"):
        train("summarize", [str(articles_file)], out=tmp_path / "run", model="bart-tiny", settings=settings)


def test_a_decoder_alone_keeps_room_for_a_summary_and_reads_the_rest(articles_file: Path, tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "tokenizer.kind": "word", "tokenizer.vocabulary": 60, "model.layers": 1, "model.width": 16, "model.heads": 2,
        "model.max_length": 32, "data.max_length": 20, "options.max_summary": 8, "decode.max_length": 100,
        "train.steps": 2, "train.validate_every": 2, "train.validate_sentences": 2,
    }  # fmt: skip
    folder = train("summarize", [str(articles_file)], out=tmp_path / "run", model="gpt-nano", settings=settings)
    (found,) = regard.load(folder.path).summarize(" ".join(["There was a cat ."] * 20))
    assert len(found.source_ids) == 20
    assert len(found.target_ids) <= 8
    with pytest.raises(UserError, match=r"data\.max_length = 23: must be at most 22.* source and target together"):
        train(
            "summarize", [str(articles_file)], out=tmp_path / "other", model="gpt-nano",
            settings={**settings, "data.max_length": 23},
        )  # fmt: skip


def test_standard_input_is_one_text_unless_its_lines_are(run_folder: Path) -> None:
    text = "There was a cat .\nIt saw number 3 .\nAll was red fox\n"
    whole = CliRunner().invoke(app, ["summarize", str(run_folder)], input=text)
    (one,) = regard.load(run_folder).summarize(text)
    assert whole.stdout == one.text + "\n"
    assert len(CliRunner().invoke(app, ["summarize", str(run_folder), "--lines"], input=text).stdout.splitlines()) == 3


def test_options_that_a_task_has_no_use_for_are_refused(run_folder: Path) -> None:
    greedy = CliRunner().invoke(app, ["evaluate", str(run_folder), "--beam", "1", "--json"])
    assert json.loads(greedy.stdout)["test"]["examples"] > 0
    for option in (["--tokenize", "none"], ["--stride", "3"], ["--worst", "w.png"], ["--by-length"]):
        result = CliRunner().invoke(app, ["evaluate", str(run_folder), *option])
        assert f"{option[0]}: is for " in str(result.exception)


def test_rouge_is_as_it_is_defined() -> None:
    scores = rouge(["the cat sat on the mat"], [["the cat was on the mat"]])
    assert scores["rouge1"] == pytest.approx(100 * 5 / 6)
    assert scores["rouge2"] == pytest.approx(100 * 3 / 5)
    assert scores["rougeL"] == pytest.approx(100 * 5 / 6)
    assert rouge(["a b"], [["c d", "a b"]])["rouge2"] == 100, "the best of several references"
    assert rouge(["cats"], [["cat"]])["rouge1"] == 100, "words are stemmed"


def test_tables_of_several_kinds_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('article,summary\n"One. Two is.",short\n', encoding="utf8")
    (tmp_path / "b.tsv").write_text("One. Two is.\tshort\n", encoding="utf8")
    (tmp_path / "c.jsonl").write_text('{"x": "One. Two is.", "y": ["short"]}\n', encoding="utf8")
    for name, columns in (("a.csv", None), ("b.tsv", None), ("c.jsonl", ["x", "y"])):
        ((found, _),) = read_articles([str(tmp_path / name)], columns, BadLines())
        assert (found.sentences, found.summaries, found.lead) == (["One.", "Two is."], ["short"], "One.")
    with pytest.raises(UserError, match="no column for the text"):
        list(read_articles([str(tmp_path / "c.jsonl")], None, BadLines()))
    bad = BadLines()
    (tmp_path / "d.jsonl").write_text('{"source": 3, "target": "s"}\n{"source": " ", "target": "s"}\n', encoding="utf8")
    assert list(read_articles([str(tmp_path / "d.jsonl")], None, bad)) == []
    assert bad.total == 2


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_row_without_a_column_is_left_out_and_named(tmp_path: Path, place: int) -> None:
    rows = [json.dumps({"text": f"Text {number}.", "summary": "short"}) for number in range(3)]
    rows.insert(place, json.dumps({"text": "alone"}))
    (tmp_path / "a.jsonl").write_text("\n".join(rows), encoding="utf8")
    bad = BadLines()
    assert len(list(read_articles([str(tmp_path / "a.jsonl")], None, bad))) == 3
    assert f"1 wrong columns (line {place + 1} of a.jsonl)" in bad.summary()


def test_sentences_end_at_marks_that_a_capital_follows() -> None:
    text = 'We use e.g. trees. "Does it work?" Yes! It has 3.5 points.'
    assert split_sentences(text) == ["We use e.g. trees.", '"Does it work?', "Yes!", "It has 3.5 points."]
