"""Between two classes: a threshold that validation finds, that the run keeps, and that every verb obeys."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.data.prepare import Silent
from regard.errors import UserError
from regard.nn.weights import load_tensors, load_weights
from regard.tasks.class_scores import best_threshold
from regard.tasks.classify import Classify
from regard.training.start import settle, train

SMALL: dict[str, object] = {
    "tokenizer.vocabulary": 200,
    "model.layers": 1,
    "model.width": 32,
    "model.inner": 64,
    "model.heads": 4,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "train.epochs": 6.0,
    "train.batch_tokens": 256,
    "train.learning_rate": 3e-3,
    "train.device": "cpu",
    "options.threshold": "tuned",
}
WORDS = ("awful", "lovely", "strange")


def write(path: Path, classes: int) -> str:
    """Texts whose words tell their class in nearly all cases."""
    random = np.random.default_rng(0)
    words, said = random.integers(classes, size=200), random.integers(classes, size=200)
    told = np.where(random.random(200) < 0.9, words, said)
    pairs = enumerate(zip(words, told, strict=True))
    rows = [f"The cat number {number} was {WORDS[word]} again.\tclass{label}" for number, (word, label) in pairs]
    path.write_text("\n".join(["text\tlabel", *rows]), encoding="utf8")
    return str(path)


@pytest.mark.parametrize(
    ("truth", "probabilities", "between"),
    [
        ([False, False, True, True], [0.1, 0.7, 0.8, 0.9], (0.7, 0.72)),  # all up to 0.8 are as good
        ([False, True, True, True], [0.1, 0.2, 0.3, 0.9], (0.18, 0.2)),
        ([False, True, True], [0.1, 0.994, 0.999], (0.5, 0.5)),
        ([False, False, True], [0.1, 0.994, 0.999], (0.994, 0.995)),  # a sure model has its doubts near one
    ],
)
def test_of_the_best_thresholds_the_nearest_to_a_half_is_taken(
    truth: list[bool], probabilities: list[float], between: tuple[float, float]
) -> None:
    low, high = between
    assert low <= best_threshold(np.array(truth), np.array(probabilities), "accuracy") <= high


def test_the_metric_decides() -> None:
    """Many negatives, few positives: accuracy says none of them, macro F1 wants them found."""
    truth = np.array([False] * 18 + [True] * 2)
    probabilities = np.array([0.1] * 15 + [0.6] * 3 + [0.6] * 2)
    assert best_threshold(truth, probabilities, "accuracy") > 0.59
    assert best_threshold(truth, probabilities, "macro_f1") < 0.6


def test_a_model_that_leans_to_one_class_is_set_right(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", 2)
    folder = train("classify", [path], out=tmp_path / "run", settings=SMALL)
    config, _ = settle("classify", [path], None, None, SMALL)
    task = Classify.prepare(config, tmp_path, Silent())
    model = task.build(config, task.vocabulary, task.facts).eval()
    weights = load_tensors(folder.model)[0]
    load_weights(model, weights, folder.model)
    accuracy = task.predicting(model).evaluate(task.examples.valid).scores["accuracy"]
    bias = next(name for name, weight in weights.items() if name.startswith("head") and weight.shape == (2,))
    load_weights(model, {**weights, bias: weights[bias] + torch.tensor([0.0, 3.0])}, folder.model)
    leaning = task.predicting(model).evaluate(task.examples.valid).scores["accuracy"]
    assert task.settled(model)["threshold"] > 0.6
    assert task.predicting(model).evaluate(task.examples.valid).scores["accuracy"] >= accuracy > leaning


def test_a_run_keeps_its_threshold_and_obeys_it(tmp_path: Path) -> None:
    folder = train("classify", [write(tmp_path / "a.tsv", 2)], out=tmp_path / "run", settings=SMALL)
    facts = json.loads(folder.facts.read_text(encoding="utf8"))
    assert 0 < facts["threshold"] < 1
    run = regard.load(folder.path)
    texts = [f"The cat number {number} was {WORDS[number % 2]} again." for number in range(7)]
    seconds = [one.probabilities["class1"] for one in run.classify(texts)]
    middle = sorted(seconds)[3]
    folder.facts.write_text(json.dumps({**facts, "threshold": middle}), encoding="utf8")
    said = [one.label for one in regard.load(folder.path).classify(texts)]
    assert said == ["class1" if second > middle else "class0" for second in seconds]
    exported = CliRunner().invoke(app, ["export", str(folder.path), "--out", str(tmp_path / "hf")])
    assert exported.exit_code == 0
    assert "threshold" in exported.output


def test_a_threshold_is_for_two_classes(tmp_path: Path) -> None:
    config, _ = settle("classify", [write(tmp_path / "a.tsv", 3)], None, None, SMALL)
    with pytest.raises(UserError, match=r"options\.threshold = 'tuned': is between two classes; here are 3"):
        Classify.prepare(config, tmp_path, Silent())
