"""A classifier that learns from another: its answers count as much as the labels, whatever tokenizer it has."""

import random
from pathlib import Path

import pytest
import torch

import regard
from regard.data.prepare import Silent
from regard.errors import UserError
from regard.tasks.classify import Classify
from regard.training.saved import open_saved, trained_model
from regard.training.start import settle

SMALL: dict[str, object] = {
    "tokenizer.vocabulary": 200,
    "model.layers": 1,
    "model.width": 32,
    "model.inner": 64,
    "model.heads": 4,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "train.epochs": 10.0,
    "train.batch_tokens": 256,
    "train.learning_rate": 3e-3,
    "train.device": "cpu",
}
WORDS = ("awful", "lovely")


def write(path: Path, names: tuple[str, str], *, true: bool = True) -> Path:
    """Texts whose words tell their class; labels that are not `true` say nothing."""
    draw = random.Random(0)
    rows = [(f"The cat number {number} was {WORDS[number % 2]} again.", number % 2) for number in range(200)]
    lines = [f"{text}\t{names[kind if true else draw.randrange(2)]}" for text, kind in rows]
    path.write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf8")
    return path


@pytest.fixture(scope="module", params=[("bad", "good"), ("-0.5", "2.5")], ids=["classes", "numbers"])
def teacher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    folder = tmp_path_factory.mktemp("teacher")
    file = write(folder / "a.tsv", request.param)
    return regard.train("classify", file, out=folder / "run", settings=SMALL, quiet=True)


def names(teacher: regard.Run) -> tuple[str, str]:
    return ("-0.5", "2.5") if teacher.predictor.facts["numbers"] else ("bad", "good")


def test_a_student_learns_what_only_its_teacher_knows(teacher: regard.Run, tmp_path: Path) -> None:
    noise = write(tmp_path / "noise.tsv", names(teacher), true=False)
    truth = write(tmp_path / "truth.tsv", names(teacher))
    settings = {**SMALL, "tokenizer.vocabulary": 120, "data.valid": [str(truth)], "data.test": [str(truth)]}
    taught = {**settings, "options.teacher": str(teacher.folder.path)}
    student = regard.train("classify", noise, out=tmp_path / "student", settings=taught, quiet=True)
    main, least = ("pearson", 60) if teacher.predictor.facts["numbers"] else ("accuracy", 95)
    assert student.scores["test"][main] > least


def test_agreeing_with_the_teacher_leaves_half_of_the_loss(teacher: regard.Run, tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", names(teacher))
    settings = {**SMALL, "tokenizer.file": str(teacher.folder.path), "options.teacher": str(teacher.folder.path)}
    config, _ = settle("classify", [str(file)], None, None, settings)
    task = Classify.prepare(config, tmp_path, Silent())
    saved = open_saved(teacher.folder.path)
    model = trained_model(saved)
    batch = task.batch(range(5, 25), 0)
    alone = task.loss(model, batch)
    assert not task.taught(saved, model, Silent()), "a student begins with weights of its own"
    torch.testing.assert_close(task.loss(model, task.batch(range(5, 25), 0)), alone / 2, rtol=1e-4, atol=1e-5)


def test_a_teacher_that_does_not_fit_is_refused(teacher: regard.Run, tmp_path: Path) -> None:
    file = write(tmp_path / "a.tsv", ("poor", "fine"))
    settings = {**SMALL, "options.teacher": str(teacher.folder.path)}
    with pytest.raises(UserError, match=r"options.teacher = .*: must know the same classes; it has .*, .* fine, poor"):
        regard.train("classify", file, out=tmp_path / "run", settings=settings, quiet=True)
    text = tmp_path / "text.txt"
    text.write_text("".join(f"The cat number {n} slept.\n" for n in range(300)), encoding="utf8")
    short = {**SMALL, "train.steps": 2}
    del short["train.epochs"]
    guesser = regard.train("masked", text, out=tmp_path / "guesser", model="bert-tiny", settings=short, quiet=True)
    settings["options.teacher"] = str(guesser.folder.path)
    with pytest.raises(UserError, match="does not classify"):
        regard.train("classify", file, out=tmp_path / "other", settings=settings, quiet=True)
