"""What encoder tasks do with files that are not as they should be; and no label is ever in what a model reads."""

import json
import math
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.data.prepare import Silent
from regard.errors import UserError
from regard.tasks import task_named
from regard.training.start import settle
from tests.tasks.test_encoder_tasks import SMALL, write

BRIEF = {**SMALL, "train.epochs": None, "train.steps": 1, "train.validate_every": 1}


def brief(task: str, folder: Path, *files: Path, **more: object) -> regard.Run:
    given = files or (write(folder, task),)
    settings = {**BRIEF, **{key.replace("__", "."): value for key, value in more.items()}}
    return regard.train(task, *map(str, given), out=folder / "run", settings=settings, quiet=True)


@pytest.mark.parametrize("task", ["classify", "tag", "choose", "answer"])
def test_no_label_is_in_what_the_model_reads(tmp_path: Path, task: str) -> None:
    """The same examples with other labels are the same inputs."""
    path, batches = write(tmp_path, task), []
    text = path.read_text(encoding="utf8")
    for content in (text, _asking_for_apples(text) if task == "answer" else _exchanged(text, *EXCHANGED[task])):
        path.write_text(content, encoding="utf8")
        config, _ = settle(task, [str(path)], None, None, BRIEF)
        batches.append(task_named(task).prepare(config, tmp_path / "cache", Silent()).batch(range(20), 0))
    first, other = batches
    assert torch.equal(first.inputs.ids, other.inputs.ids)
    assert torch.equal(first.inputs.segments, other.inputs.segments)
    assert not torch.equal(first.target, other.target), "the labels did change"


EXCHANGED = {"classify": ("\tgood", "\tbad"), "tag": ("\tB-animal", "\tO"), "choose": ('"label": 0', '"label": 1')}


def _exchanged(text: str, one: str, other: str) -> str:
    return text.replace(one, "\0").replace(other, one).replace("\0", other)


def _asking_for_apples(text: str) -> str:
    data = json.loads(text)
    for article in data["data"]:
        paragraph = article["paragraphs"][0]
        paragraph["qas"][0]["answers"] = [{"text": "apple", "answer_start": paragraph["context"].index("apple")}]
    return json.dumps(data)


def test_a_context_without_words_has_no_answer(tmp_path: Path) -> None:
    run = brief("answer", tmp_path)
    (found,) = run.answer("Who?", "\u200b")
    assert (found.text, found.probability) == ("", 1.0)


def test_the_validation_loss_of_an_answer_is_that_of_training(tmp_path: Path) -> None:
    """Nothing is learned in one step of rate 1e-9: every token is as likely as the others, at both ends."""
    run = brief("answer", tmp_path, train__learning_rate=1e-9)
    examples = run.held_out()["test"]
    (first,) = run.predictor.predict(examples[:1])
    tokens = len(run.saved.tokenizer.inputs([examples[0].question], [examples[0].context], most=256)[0].ids)
    assert first.loss == pytest.approx(math.log(tokens), rel=0.05)


def test_a_question_without_words_around_it_settles_no_threshold(tmp_path: Path) -> None:
    data = json.loads(write(tmp_path, "answer").read_text())
    for number, article in enumerate(data["data"]):
        if number % 4 == 0:
            article["paragraphs"][0]["qas"][0]["answers"] = []
    (tmp_path / "b.json").write_text(json.dumps(data))
    run = brief("answer", tmp_path, tmp_path / "b.json")
    assert math.isfinite(run.saved.facts["threshold"])


def test_settings_that_do_not_fit_leave_a_run_as_it_is(tmp_path: Path) -> None:
    run = brief("classify", tmp_path)
    before = sorted(path.name for path in run.folder.path.iterdir())
    for more in (
        ["--set", "model.features=sum-last-four"],
        ["--from", str(run.folder.path), "--set", "model.width=64"],
    ):
        out = tmp_path / "run" if "--from" not in more else tmp_path / "other"
        command = ["train", "classify", str(tmp_path / "a.tsv"), "--out", str(out), "--overwrite", *more]
        assert isinstance(CliRunner().invoke(app, command).exception, UserError)
    assert sorted(path.name for path in run.folder.path.iterdir()) == before
    assert regard.load(run.folder.path).classify("fine")


def test_weights_of_other_shapes_are_not_begun_with(tmp_path: Path) -> None:
    run = brief("classify", tmp_path)
    settings = {**BRIEF, "model.inner": 96}
    for key in ("model.layers", "model.width", "model.heads", "tokenizer.vocabulary"):
        settings.pop(key)
    with pytest.raises(UserError, match=r"is of another shape: encoder.encoder.0.*leave model"):
        regard.train(
            "classify",
            str(tmp_path / "a.tsv"),
            out=tmp_path / "two",
            settings={**settings, "start": str(run.folder.path)},
            quiet=True,
        )


def test_labels_that_only_held_out_examples_have_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "classify")
    (tmp_path / "test.tsv").write_text("text\tlabel\nfine\tstrange\nfine\tgood\n", encoding="utf8")
    command = ["train", "classify", str(tmp_path / "a.tsv"), "--test", str(tmp_path / "test.tsv")]
    command += ["--out", str(tmp_path / "run")]
    for key, value in {**BRIEF, "train.epochs": "null"}.items():
        command += ["--set", f"{key}={value}"]
    result = CliRunner().invoke(app, command)
    assert "only held-out examples have strange: cannot be learned" in result.output


def test_labels_that_cannot_be_scored_are_named_with_those_that_can(tmp_path: Path) -> None:
    run = brief("classify", tmp_path)
    (tmp_path / "b.tsv").write_text("text\tlabel\nfine\t1.0\npoor\t0.0\nfine\tgood\n", encoding="utf8")
    with pytest.raises(UserError, match=r"such as '0.0': these are bad, good.*raise max_bad_share"):
        run.score(tmp_path / "b.tsv")
    assert run.score(tmp_path / "b.tsv", max_bad_share=0.9)["b.tsv"]["examples"] == 1
    command = ["evaluate", str(run.folder.path), str(tmp_path / "b.tsv"), "--max-bad-share", "0.9"]
    assert CliRunner().invoke(app, command).exit_code == 0


def test_classes_may_have_weights_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path, "classify")
    for weights, wrong in (({"good": 2.0}, None), ({"fine": 2.0}, "no example has the label 'fine'")):
        config, _ = settle("classify", [str(path)], None, None, {**BRIEF, "options.class_weights": weights})
        if wrong is None:
            prepared = task_named("classify").prepare(config, tmp_path / "cache", Silent())
            assert prepared.class_weights.tolist() == [1.0, 2.0]  # type: ignore[attr-defined]
        else:
            with pytest.raises(UserError, match=wrong):
                task_named("classify").prepare(config, tmp_path / "cache", Silent())


def test_what_cannot_be_asked_is_said(tmp_path: Path) -> None:
    chooser = brief("choose", tmp_path)
    with pytest.raises(UserError, match=r"choices = \[\]"):
        chooser.choose("it rains", [])
    (tmp_path / "b.csv").write_text("a,b\n1,2\n", encoding="utf8")
    result = CliRunner().invoke(app, ["choose", str(chooser.folder.path), str(tmp_path / "b.csv")])
    assert isinstance(result.exception, UserError)
    assert "no columns of a choice" in str(result.exception)


def test_a_missing_file_is_the_one_that_is_named(tmp_path: Path) -> None:
    run = brief("tag", tmp_path)
    (tmp_path / "b.txt").write_text("a cat\n", encoding="utf8")
    for missing in ("missing.txt", "missing.conllu", "missing.parquet"):
        result = CliRunner().invoke(app, ["tag", str(run.folder.path), str(tmp_path / "b.txt"), missing])
        assert str(result.exception).startswith(f"{missing}: no such file")


@pytest.mark.parametrize("task", ["answer", "choose"])
def test_what_was_cut_says_so(tmp_path: Path, task: str) -> None:
    run, long = brief(task, tmp_path), "the fox eats an apple " * 100
    if task == "answer":
        whole, cut = run.answer(["What does the fox eat?  ", f"What does {long}"], "The fox eats an apple.")
    else:
        whole, cut = run.choose(["The fox", long], [["eats", "sleeps"]] * 2)
    assert (whole.truncated, cut.truncated) == (False, True)
    assert "truncated" not in whole.row
    assert cut.row["truncated"] is True


def test_tagging_takes_time_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a sentence is, its words are tokenised a few times, and not once for every part."""
    run, words = brief("tag", tmp_path), ["fox"] * 3000
    tokenizer, read = run.predictor.reader.tokenizer, []
    inputs = tokenizer.inputs

    def counted(texts: list[list[str]], **options: object) -> object:
        read.append(len(texts[0]))
        return inputs(texts, **options)

    monkeypatch.setattr(tokenizer, "inputs", counted)
    (found,) = run.tag([words])
    assert found.words == words
    assert len(found.tags) == 3000
    assert sum(read) < 4 * len(words)
    assert run.tag([[]])[0].attention.sites == {}


def test_a_line_of_another_encoding_keeps_its_place(tmp_path: Path) -> None:
    path = brief("classify", tmp_path).folder.path
    (tmp_path / "latin.txt").write_bytes(b"a fine apple\ncaf\xe9\nan awful apple\n")
    for given in ([str(tmp_path / "latin.txt")], []):
        done = CliRunner().invoke(app, ["classify", str(path), *given], input=(tmp_path / "latin.txt").read_bytes())
        assert done.exit_code == 0, done.output
        assert [bool(line) for line in done.stdout.splitlines()] == [True, False, True]
        assert "1 invalid UTF-8" in done.stderr


def test_what_is_no_text_is_not_read_as_one(tmp_path: Path) -> None:
    run = brief("classify", tmp_path)
    for given in ([None], ["fine", 3], [float("nan")]):
        with pytest.raises(UserError, match=r"texts\[\d\] = (None|3|nan): must be a text"):
            run.classify(given)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"max_bad_share = 7: must be from 0 to 1"):
        run.score(max_bad_share=7)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("choose", "no columns of a choice; there are text, label. Name them context, options"),
        ("tag", "no sentence can be read; a word and its tag must be on each line"),
    ],
)
def test_a_table_of_another_task_is_explained(tmp_path: Path, task: str, expected: str) -> None:
    (tmp_path / "a.csv").write_text("text,label\n" + "a fine apple,good\nan awful apple of all,bad\n" * 20)
    with pytest.raises(UserError, match=expected):
        brief(task, tmp_path, tmp_path / "a.csv")
