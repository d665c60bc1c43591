"""The tasks of an encoder, from files to scores: they learn, they are exported as they are, mistakes are explained."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import AutoTokenizer, BertForQuestionAnswering, BertForSequenceClassification
from transformers import BertForMultipleChoice as BertForChoice
from transformers import BertForTokenClassification as BertForTags
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.data.badlines import BadLines
from regard.data.prepare import Silent
from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.hub.encoders import PublishedEncoder, write_encoder
from regard.hub.published import export
from regard.models import parse_model
from regard.models.base import EncoderConfig
from regard.models.heads import build_headed
from regard.nn.weights import load_tensors, weights_of
from regard.tasks.answer import Answer, AnswerOptions, target_of, windows
from regard.tasks.classify import Classify
from regard.tasks.tag import firsts, split
from regard.training.distributed import join
from regard.training.saved import open_saved
from regard.training.start import settle, train

SMALL: dict[str, object] = {
    "tokenizer.vocabulary": 200,
    "model.layers": 2,
    "model.width": 32,
    "model.inner": 64,
    "model.heads": 4,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "train.epochs": 12.0,
    "train.batch_tokens": 256,
    "train.learning_rate": 3e-3,
    "train.validate_every": 40,
    "train.device": "cpu",
}
NAMES = ("cat", "dog", "bird", "mouse", "horse", "cow")
GOOD, BAD = ("lovely", "fine", "great"), ("awful", "poor", "dull")


def sentence(number: int) -> tuple[str, str]:
    words = GOOD if number % 2 else BAD
    return f"The {NAMES[number % 6]} number {number} was {words[number % 3]} again.", "good" if number % 2 else "bad"


def write(folder: Path, task: str) -> Path:
    """A small file of examples that can be learned."""
    rows: list[Any] = []
    if task == "classify":
        rows = ["\t".join(("text", "label")), *("\t".join(sentence(number)) for number in range(160))]
    elif task == "tag":
        for number in range(160):
            words = sentence(number)[0].removesuffix(".").split()
            rows += [f"{word}\t{'B-animal' if word in NAMES else 'O'}" for word in words] + [""]
    elif task == "choose":
        for number in range(160):
            options = [f"it was {GOOD[number % 3]}", f"it was {BAD[number % 3]}"]
            right = number % 2
            row = {
                "context": f"The {NAMES[number % 6]} {number}",
                "options": options[:: 1 if right else -1],
                "label": 1 - right,
            }
            rows.append(
                json.dumps(row if number % 5 else {**row, "options": [*row["options"], f"it was {BAD[0]} and dull"]})
            )
    else:
        asked = []
        for number in range(160):
            name = NAMES[number % 6]
            context = f"Number {number} went home. The {name} ate the apple. Nobody else came."
            answers = [{"text": name, "answer_start": context.index(name)}]
            asked.append(
                {"context": context, "qas": [{"id": str(number), "question": "Who ate it?", "answers": answers}]}
            )
        rows = [json.dumps({"data": [{"title": str(number), "paragraphs": [one]} for number, one in enumerate(asked)]})]
    path = folder / {"classify": "a.tsv", "tag": "a.conll", "choose": "a.jsonl", "answer": "a.json"}[task]
    path.write_text("\n".join(rows) + "\n", encoding="utf8")
    return path


@pytest.fixture(scope="module", params=["classify", "tag", "choose", "answer"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    folder = tmp_path_factory.mktemp(request.param)
    settings = {**SMALL, "train.epochs": 20.0, "train.learning_rate": 5e-3} if request.param == "answer" else SMALL
    return regard.train(request.param, write(folder, request.param), out=folder / "run", settings=settings, quiet=True)


MAIN = {"classify": "accuracy", "tag": "f1", "choose": "accuracy", "answer": "f1"}


def test_what_can_be_learned_is_learned(run: regard.Run) -> None:
    scores = run.scores["test"]
    assert scores[MAIN[run.config.task]] > 90, scores


def test_an_opened_run_scores_as_it_did_after_training(run: regard.Run) -> None:
    found = run.predictor.evaluate(run.held_out()["test"])
    again = found.scores
    for name, value in run.scores["test"].items():
        if isinstance(value, float):
            assert again[name] == pytest.approx(value, abs=1e-4)
    assert len(found.rows) == found.scores["examples"]


def test_neighbours_in_a_batch_change_nothing(run: regard.Run) -> None:
    examples = list(run.held_out()["test"])
    together = run.predictor.predict(examples)
    for example, one in zip(examples[:4], together, strict=False):
        (alone,) = run.predictor.predict([example])
        assert alone.output == one.output or alone.output == pytest.approx(one.output, abs=1e-3)
        assert alone.loss == pytest.approx(one.loss, abs=1e-3)


def test_the_exported_folder_gives_equal_logits(run: regard.Run, tmp_path: Path) -> None:
    """And opened again by us, equal predictions."""
    kinds = {
        "classify": BertForSequenceClassification, "tag": BertForTags,
        "answer": BertForQuestionAnswering, "choose": BertForChoice,
    }  # fmt: skip
    export(open_saved(run.folder.path), tmp_path / "hf")
    theirs = kinds[run.config.task].from_pretrained(tmp_path / "hf").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    texts = [sentence(number)[0] for number in range(5)] + ["Émile saw THE cat"]
    rows = run.predictor.reader.tokenizer.inputs(texts, [text[::-1] for text in texts], most=64)
    encoded = tokenizer(texts, [text[::-1] for text in texts], return_tensors="pt", padding=True)
    assert [ids[: len(row.ids)] for ids, row in zip(encoded["input_ids"].tolist(), rows, strict=True)] == [
        row.ids for row in rows
    ]
    inputs = {name: value[:, None] if run.config.task == "choose" else value for name, value in encoded.items()}
    with torch.no_grad():
        answer = theirs(**inputs)
    for number, ours in enumerate(run.predictor.reader.logits(rows)):
        if run.config.task == "answer":
            expected = torch.stack([answer.start_logits[number], answer.end_logits[number]], dim=-1)
        else:
            expected = answer.logits[number]
        expected = expected[: len(ours)] if ours.ndim > 1 else expected.flatten() if ours.ndim else expected[0]
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-4)
    again = regard.load(tmp_path / "hf")
    examples = run.held_out()["test"]
    assert [one.output for one in again.predictor.predict(examples)] == [
        one.output for one in run.predictor.predict(examples)
    ]


def test_attention_is_there_for_every_answer(run: regard.Run) -> None:
    text = "The cat number 3 was lovely."
    found: Any = {
        "classify": lambda: run.classify([text]),
        "tag": lambda: run.tag([text]),
        "choose": lambda: run.choose([text], [["one", "two"]]),
        "answer": lambda: run.answer(["Who?"], [text]),
    }[run.config.task]()
    record = found[0].attention
    assert list(record.sites) == ["encoder.0.self", "encoder.1.self"]
    np.testing.assert_allclose(record.sites["encoder.1.self"].weights.sum(-1), 1, atol=1e-5)


def test_the_command_line_answers_as_python_does(run: regard.Run, tmp_path: Path) -> None:
    text, context = "The cat number 7 was lovely again .", "The cat ate the apple."
    calls: dict[str, tuple[list[str], str]] = {
        "classify": ([text], "label"),
        "tag": ([text], "tags"),
        "answer": (["Who ate it?", "--context", context], "answer"),
        "choose": (["The cat 7", "it was lovely", "it was awful"], "choice"),
    }
    arguments, key = calls[run.config.task]
    result = CliRunner().invoke(app, [run.config.task, str(run.folder.path), *arguments, "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = {
        "classify": lambda: run.classify([text])[0].label,
        "tag": lambda: run.tag([text])[0].tags,
        "answer": lambda: run.answer(["Who ate it?"], [context])[0].text,
        "choose": lambda: run.choose(["The cat 7"], [["it was lovely", "it was awful"]])[0].text,
    }
    assert json.loads(result.stdout)[key] == found[run.config.task]()
    main = MAIN[run.config.task]
    assert run.score()["test"][main] == pytest.approx(run.scores["test"][main], rel=1e-3)
    rows = tmp_path / "rows.jsonl"
    scored = CliRunner().invoke(app, ["evaluate", str(run.folder.path), "--out", str(rows)])
    assert scored.exit_code == 0, scored.output
    if run.config.task != "answer":
        assert all("probabilities" in json.loads(line) for line in rows.read_text(encoding="utf8").splitlines())


def test_a_file_as_in_training_is_answered_row_by_row(run: regard.Run, tmp_path: Path) -> None:
    """And the answers that stand in it are not needed."""
    task = run.config.task
    path = write(tmp_path, task)
    known = run.predictor.read([str(path)], run.config.data, BadLines())
    if task in ("classify", "choose"):
        bare = path.read_text(encoding="utf8").replace("\tgood\n", "\t\n").replace('"label": ', '"was": ')
        path.write_text(bare, encoding="utf8")
    result = CliRunner().invoke(app, [task, str(run.folder.path), str(path), "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    key = {"classify": "label", "tag": "tags", "answer": "answer", "choose": "choice"}[task]
    expected = {
        "classify": lambda: [one.label for one in run.classify([example.text for example in known])],
        "tag": lambda: [one.tags for one in run.tag([example.words for example in known])],
        "answer": lambda: [
            one.text for one in run.answer([one.question for one in known], [one.context for one in known])
        ],
        "choose": lambda: [
            one.text for one in run.choose([one.context for one in known], [one.options for one in known])
        ],
    }[task]()
    assert [row[key] for row in rows] == expected
    assert len(rows) == 160


def test_one_text_is_not_its_letters(run: regard.Run) -> None:
    text = "The cat number 3 was lovely."
    if run.config.task == "classify":
        assert run.classify(text)[0].label == run.classify([text])[0].label
        both = run.classify(["red cat", "blue dog"], seconds="red")
        assert [one.second for one in both] == ["red", "red"], "one for all"
        with pytest.raises(UserError, match="seconds: 2 beside 1 texts"):
            run.classify(text, ["a", "b"])
    elif run.config.task == "tag":
        assert run.tag(text)[0].tags == run.tag([text])[0].tags
    elif run.config.task == "answer":
        assert [one.text for one in run.answer(["Who?"] * 2, text)] == [run.answer("Who?", text)[0].text] * 2
        with pytest.raises(UserError, match="contexts: 1 beside 2 questions"):
            run.answer(["Who?", "What?"], [text])
    else:
        assert run.choose(text, ["one", "two"])[0].text == run.choose([text], [["one", "two"]])[0].text
        with pytest.raises(UserError, match="a list of texts for each situation"):
            run.choose([text], ["one", "two"])
    np.testing.assert_array_equal(run.embed(text), run.embed([text]))
    with pytest.raises(UserError, match=r"is scored by run\.score"):
        run.evaluate("a.tsv")


def test_an_empty_line_has_an_empty_answer(run: regard.Run, tmp_path: Path) -> None:
    """As many lines out as in: what is written beside a file stays beside it."""
    if run.config.task != "classify":
        pytest.skip("the tags of a sentence are several lines")
    path = tmp_path / "texts.txt"
    path.write_text("The cat was lovely.\n\nThe dog was awful.\n", encoding="utf8")
    lines = CliRunner().invoke(app, ["classify", str(run.folder.path), str(path)]).stdout.split("\n")
    assert [bool(line) for line in lines] == [True, False, True, False]
    rows = CliRunner().invoke(app, ["classify", str(run.folder.path), str(path), "--json"]).stdout.splitlines()
    assert [json.loads(row)["label"] is None for row in rows] == [False, True, False]


def test_questions_of_one_article_are_divided_by_paragraph(tmp_path: Path) -> None:
    path = write(tmp_path, "answer")
    data = json.loads(path.read_text(encoding="utf8"))["data"]
    one = [{"title": "all", "paragraphs": [paragraph for article in data for paragraph in article["paragraphs"]]}]
    path.write_text(json.dumps({"data": one}), encoding="utf8")
    config, _ = settle("answer", [str(path)], None, None, SMALL)
    examples = Answer.prepare(config, tmp_path, Silent()).examples
    contexts = [{one.context for one in part} for part in (examples.train, examples.valid, examples.tests["test"])]
    assert all(contexts)
    assert not contexts[0] & contexts[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options.metric": "accuracy"}, "labels are numbers, so one of pearson, spearman"),
        ({"options.class_weights": "balanced"}, "labels are numbers and have no classes"),
        ({"options.metric": "pearson", "options.numbers": False}, "labels are classes, so one of accuracy"),
    ],
)
def test_scores_must_fit_the_labels(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n" + "".join(f"text {n}\t{n % 7}.5\n" for n in range(60)), encoding="utf8")
    config, _ = settle("classify", [str(path)], None, None, {**SMALL, **settings})
    with pytest.raises(UserError, match=message):
        Classify.prepare(config, tmp_path, Silent())


def test_labels_of_questions_and_choices_are_not_smoothed() -> None:
    for task in ("answer", "choose"):
        with pytest.raises(UserError, match=r"train\.label_smoothing = 0\.1: must be 0"):
            settle(task, ["a.json"], None, None, {"train.label_smoothing": 0.1})


def test_rare_classes_can_weigh_more_and_another_score_can_decide(tmp_path: Path) -> None:
    rows = [f"text number {number}\t{'rare' if number % 4 == 0 else 'common'}" for number in range(400)]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(["text\tlabel", *rows]), encoding="utf8")
    settings = {**SMALL, "options.class_weights": "balanced", "options.metric": "macro_f1"}
    config, _ = settle("classify", [str(path)], None, None, settings)
    task = Classify.prepare(config, tmp_path, Silent())
    counts = np.bincount([int(row.target) for row in task.rows])
    assert task.class_weights.tolist() == pytest.approx((counts.sum() / (2 * counts)).tolist())
    model = task.build(config, task.vocabulary, task.facts)
    batch = task.batch(range(40), seed=0)
    logits = model.eval()(batch.inputs.ids, batch.inputs.segments)
    weights = task.class_weights[batch.target]
    expected = (F.cross_entropy(logits, batch.target, reduction="none") * weights).sum()
    torch.testing.assert_close(task.loss(model, batch), expected)
    validation = task.validate(model, join("cpu"))
    assert validation.score == validation.metrics["macro_f1"] != validation.metrics["accuracy"]


def test_a_run_begins_with_another_and_frozen_layers_stay(tmp_path: Path) -> None:
    short = {**SMALL, "train.epochs": 1.0}
    first = train("classify", [str(write(tmp_path, "classify"))], out=tmp_path / "one", settings=short)
    settings = {"start": str(first.path), "train.epochs": 2.0, "train.freeze": 1, "train.device": "cpu"}
    settings |= {"train.learning_rate": 1e-2, "train.batch_tokens": 256}
    second = train("tag", [str(write(tmp_path, "tag"))], out=tmp_path / "two", settings=settings)
    before, after = load_tensors(first.model)[0], load_tensors(second.model)[0]
    kept = [name for name in after if name in before and torch.equal(before[name], after[name])]
    frozen = [name for name in after if name.startswith(("encoder.words", "encoder.positions", "encoder.encoder.0."))]
    assert set(frozen) <= set(kept)
    assert not any(name.startswith(("encoder.encoder.1.", "head")) for name in kept)
    with pytest.raises(UserError, match="--model bert-tiny: is settled by --from"):
        settle("tag", ["x"], "bert-tiny", None, settings)
    with pytest.raises(UserError, match=r"model = 'transformer': cannot classify; these can: .*bert"):
        settle("classify", ["x"], "transformer", None, {})


def test_numbers_are_learned_too(tmp_path: Path) -> None:
    rows = [f"{sentence(number)[0]}\t{number % 2 * 2.5}" for number in range(160)]
    (tmp_path / "n.tsv").write_text("text\tscore\n" + "\n".join(rows), encoding="utf8")
    run = regard.train("classify", tmp_path / "n.tsv", out=tmp_path / "run", settings=SMALL, quiet=True)
    assert run.scores["test"]["pearson"] > 90
    low, high = run.classify(["The cat number 6 was awful again.", "The dog number 1 was fine again."])
    assert low.number is not None
    assert high.number is not None
    assert low.number < high.number


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            "text\tlabel\n" + "".join(f"{n}\tx\n" for n in range(30)),
            "all examples have the label 'x'; two classes are needed",
        ),
        ("a\tb\tc\n" * 30, "3 columns without names; choose, for example --columns 0,1"),
        ("one\ttwo\tlabel\n" + "a\tb\t1\n" * 30, "no column for the text; there are one, two, label"),
    ],
)
def test_a_table_that_cannot_be_used_is_explained(tmp_path: Path, rows: str, expected: str) -> None:
    (tmp_path / "bad.tsv").write_text(rows, encoding="utf8")
    with pytest.raises(UserError, match=expected):
        train("classify", [str(tmp_path / "bad.tsv")], out=tmp_path / "run", settings=SMALL)


@pytest.fixture(scope="module")
def tokenizer() -> Subwords:
    return Subwords.learn([sentence(n)[0] for n in range(50)], kind="wordpiece", vocabulary=120, lowercase=True)


@pytest.mark.parametrize("most", [6, 9, 40])
def test_long_sentences_are_parted_between_words(tokenizer: Subwords, most: int) -> None:
    words = ["the", "unbelievably", "long", "sentence", "\x07", "about", "a", "horse", "and", "numberless", "cows"]
    parts = list(split(tokenizer, words, most))
    assert sum(len(firsts(part)) for part in parts) == len(words), "every word has its place in one part"
    assert all(len(part.ids) <= most for part in parts)


def test_the_target_of_a_window_is_the_answer(tokenizer: Subwords) -> None:
    from regard.data.questions import Answer, Question

    context = " ".join(sentence(number)[0] for number in range(12))
    start = context.index("horse")
    question = Question("1", "t", "who was it", context, [Answer("horse number 4", start)])
    (group,) = windows(tokenizer, ["who was it"], [context], 40, AnswerOptions(overlap=10, most_question=12))
    found = 0
    for window in group:
        first, last = target_of(question, window, tokenizer)
        if first != 0:
            found += 1
            assert context[window.offsets[first][0] : window.offsets[last][1]] == "horse number 4"
    assert found, "some window holds the answer"


@pytest.mark.parametrize("features", ["sum-last-four", "concat-last-four"])
def test_features_of_a_frozen_encoder_are_enough_to_tag(tmp_path: Path, features: str) -> None:
    """Devlin 2019, section 5.3: only the head is trained."""
    settings = {**SMALL, "train.freeze": -1, "model.features": features, "train.learning_rate": 2e-2}
    run = regard.train("tag", write(tmp_path, "tag"), out=tmp_path / "run", settings=settings, quiet=True)
    assert run.scores["test"]["f1"] > 80
    read = open_saved(run.folder.path).weights["head.output.weight"].shape[1]
    assert read == (64 if features == "concat-last-four" else 32), "both layers side by side, or their sum"


def test_lower_layers_learn_more_slowly() -> None:
    from regard.config import TrainConfig
    from regard.models import named, parse_model
    from regard.models.heads import build_headed
    from regard.training.optimizer import build_optimizer, rate_shares

    model = build_headed(parse_model(named("bert-mini")), 100, "sequence", 2)
    shares = rate_shares(model, 0.5)
    assert shares["head.output.weight"] == shares["encoder.pooler.weight"] == 1
    assert shares["encoder.encoder.3.feed_forward.inner.weight"] == 0.5
    assert shares["encoder.encoder.0.feed_forward.inner.weight"] == 0.5**4
    assert shares["encoder.words.weight"] == 0.5**5
    groups = build_optimizer(model, TrainConfig(layer_decay=0.5)).param_groups
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    assert {group["share"] for group in groups} == {0.5**power for power in range(6)}


def test_labels_that_were_not_trained_on_are_left_out_and_said(run: regard.Run, tmp_path: Path) -> None:
    rows = {"classify": "text\tlabel\nThe cat\tgood\nThe dog\tstrange\n", "tag": "The\tO\n\ncat\tB-strange\n\n"}
    if run.config.task not in rows:
        pytest.skip("has no classes")
    path = tmp_path / "more.tsv"
    path.write_text(rows[run.config.task], encoding="utf8")
    bad = BadLines()
    assert len(run.predictor.read([str(path)], run.config.data, bad)) == 1
    assert "1 of a class that is not trained on" in bad.summary()


def test_a_tokenizer_that_encoders_cannot_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.kind = 'char': not for this task"):
        train("classify", [str(write(tmp_path, "classify"))], out=tmp_path / "run", settings={"tokenizer.kind": "char"})


def test_layers_are_frozen_in_encoders_only(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train\.freeze = 9: the model has 2 layers"):
        settle("classify", ["reviews.csv"], "bert-tiny", None, {"train.freeze": 9})
    with pytest.raises(UserError, match=r"train\.freeze: is for encoders"):
        settle("translate", ["english-french"], None, None, {"train.freeze": 1})


def test_features_of_several_layers_are_for_tagging_and_have_no_published_layout(tmp_path: Path) -> None:
    config = parse_model({"kind": "bert", "layers": 4, "width": 8, "inner": 8, "heads": 1, "features": "sum-last-four"})
    assert isinstance(config, EncoderConfig)
    with pytest.raises(UserError, match=r"model\.features = 'sum-last-four': is for tagging"):
        build_headed(config, 20, "sequence", 2)
    weights = weights_of(build_headed(config, 20, "token", 2))
    with pytest.raises(UserError, match=r"model\.features = 'sum-last-four': has no published layout"):
        write_encoder(tmp_path, PublishedEncoder(config, "token", weights))
