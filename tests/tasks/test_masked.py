"""Pre-training: what is asked, that it is learned, and that its run can be used."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertForPreTraining
from typer.testing import CliRunner

import regard
from regard.cli import app
from regard.data.prepare import Silent
from regard.errors import UserError
from regard.hub.published import export
from regard.tasks.masked import Masked
from regard.training.saved import open_saved, trained_model
from regard.training.start import settle

SMALL: dict[str, object] = {
    "tokenizer.vocabulary": 150,
    "tokenizer.lowercase": True,
    "data.max_length": 24,
    "model.layers": 1,
    "model.width": 32,
    "model.inner": 64,
    "model.heads": 4,
    "model.dropout": 0.0,
    "model.attention_dropout": 0.0,
    "train.steps": 80,
    "train.batch_tokens": 512,
    "train.learning_rate": 5e-3,
    "train.warmup": 10,
    "train.validate_every": 40,
    "train.device": "cpu",
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents that keep to one animal: the second sentence follows, or it does not."""
    path = tmp_path_factory.mktemp("text") / "animals.txt"
    names = ("cat", "dog", "cow")
    lines = []
    for number in range(120):
        name = names[number % 3]
        lines += [f"the {name} is here", f"a {name} came home", f"we see the {name}", f"the {name} ate", ""]
    path.write_text("\n".join(lines), encoding="utf8")
    return path


@pytest.fixture(scope="module")
def run(text: Path, tmp_path_factory: pytest.TempPathFactory) -> regard.Run:
    return regard.train("masked", text, out=tmp_path_factory.mktemp("masked") / "run", settings=SMALL, quiet=True)


@pytest.fixture(scope="module")
def task(run: regard.Run) -> Masked:
    return Masked.open(run.config, run.folder.data)


def test_words_are_guessed_from_their_neighbours(run: regard.Run) -> None:
    assert run.scores["test"]["guessed"] > 40, run.scores  # the commonest word alone would be 20%
    assert run.score()["test"]["guessed"] == pytest.approx(run.scores["test"]["guessed"], abs=0.1), "scored again"
    (filled,) = run.fill(["the [MASK] is here"], top=3)
    assert len(filled.masks[0]) == 3
    assert filled.masks[0][0].probability >= filled.masks[0][1].probability
    assert list(filled.attention.sites) == ["encoder.0.self"]


def test_a_batch_is_a_function_of_rows_and_seed(task: Masked) -> None:
    one, same, other = task.batch([0, 3, 5], 7), task.batch([0, 3, 5], 7), task.batch([0, 3, 5], 8)
    assert torch.equal(one.inputs.ids, same.inputs.ids)
    assert not torch.equal(one.inputs.ids, other.inputs.ids)
    special = task.tokenizer.special
    for row, place, word in zip(one.rows, one.places, one.words, strict=True):
        assert int(word) not in special.ids, "a special token is never asked for"
        assert int(one.inputs.ids[row, place]) not in set(special.ids) - {special.mask}, "nor hidden"
    assert len(one.words) == one.tokens > 0


def test_half_of_the_second_sentences_follow(task: Masked) -> None:
    rows = np.arange(len(task.train))
    follows = torch.cat([task.batch(rows, seed).follows for seed in range(20)])  # type: ignore[misc]
    assert follows.float().mean().item() == pytest.approx(0.5, abs=0.05)
    batch = task.batch(rows, 0)
    assert batch.inputs.ids.shape[1] <= 24
    assert batch.follows is not None
    ids = batch.inputs.ids.clone()
    ids[batch.rows, batch.places] = batch.words
    named = [
        [set(task.tokenizer.decode(row[part == number].tolist()).split()) & {"cat", "dog", "cow"} for number in (0, 1)]
        for row, part in zip(ids, batch.inputs.segments, strict=True)
    ]  # a document is about one animal
    alike = [first == second for first, second in named]
    assert all(same for same, label in zip(alike, batch.follows.tolist(), strict=True) if label == 0)
    assert not all(same for same, label in zip(alike, batch.follows.tolist(), strict=True) if label == 1)


def test_the_exported_folder_gives_equal_logits(run: regard.Run, tmp_path: Path) -> None:
    export(open_saved(run.folder.path), tmp_path / "hf")
    theirs = BertForPreTraining.from_pretrained(tmp_path / "hf").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    (row,) = run.predictor.reader.tokenizer.inputs(["the [MASK] is here"], most=24, masks=True)
    with torch.no_grad():
        answer = theirs(**tokenizer("the [MASK] is here", return_tensors="pt"))
    torch.testing.assert_close(run.predictor.reader.logits([row])[0], answer.prediction_logits[0], atol=1e-5, rtol=1e-4)
    again = regard.load(tmp_path / "hf").fill(["the [MASK] is here"])
    assert again[0].text == run.fill(["the [MASK] is here"])[0].text


def test_the_command_line_fills_and_embeds(run: regard.Run, tmp_path: Path) -> None:
    path, text = str(run.folder.path), "the [MASK] is here"
    filled = CliRunner().invoke(app, ["fill", path, text])
    assert filled.stdout.splitlines()[0] == run.fill([text])[0].text
    (tmp_path / "a.txt").write_text("the cat\n\na dog\n", encoding="utf8")
    made = CliRunner().invoke(app, ["embed", path, str(tmp_path / "a.txt"), "--out", str(tmp_path / "a.npy")])
    assert made.exit_code == 0, made.output
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), run.embed(["the cat", "", "a dog"]), atol=1e-6)
    assert len(CliRunner().invoke(app, ["embed", path, "the cat", "a dog"]).stdout.splitlines()) == 2


def test_vectors_do_not_depend_on_their_neighbours(run: regard.Run) -> None:
    texts = ["the cat is here", "a dog", "we see the cow and the cat came home"]
    together = run.embed(texts)
    for number, text in enumerate(texts):
        np.testing.assert_allclose(run.embed([text])[0], together[number], atol=1e-5)
    assert run.embed(texts, layers="concat-last-four").shape == (3, 32)
    assert run.embed(texts, pooling="first").shape == (3, 32)
    with pytest.raises(UserError, match="pooling = 'max': unknown"):
        run.embed(texts, pooling="max")


def test_without_next_sentence_there_is_one_segment(text: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "options.next_sentence": False, "options.whole_words": True, "train.steps": 2}
    run = regard.train("masked", text, out=tmp_path / "run", settings=settings, quiet=True)
    batch = Masked.open(run.config, run.folder.data).batch([0, 1], 1)
    assert batch.follows is None
    assert batch.inputs.segments.max() == 0
    assert "next_sentence" not in run.scores["test"]


def test_mistakes_are_explained(text: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf8")
    with pytest.raises(UserError, match=r"empty\.txt: too little text"):
        regard.train("masked", tmp_path / "empty.txt", out=tmp_path / "run", settings=SMALL, quiet=True)
    with pytest.raises(UserError, match=r"options\.mask_rate: unknown key"):
        settle("masked", [str(text)], None, None, {"options.mask_rate": 0.2})


@pytest.mark.parametrize(
    ("model", "tokens", "mask"), [("roberta", "byte-bpe", "<mask>"), ("xlnet", "unigram", "<mask>")]
)
def test_other_families_are_trained_as_their_papers_say(
    model: str, tokens: str, mask: str, text: Path, tmp_path: Path
) -> None:
    settings = {**SMALL, "tokenizer.vocabulary": 300, "train.steps": 20}
    run = regard.train("masked", text, out=tmp_path / "run", model=model, settings=settings, quiet=True)
    assert run.config.tokenizer.kind == tokens
    assert run.saved.facts["head"] == "masked", "no next sentence"
    (filled,) = run.fill([f"the cat is {mask}"])
    assert len(filled.masks[0]) == 5
    task = Masked.open(run.config, run.folder.data)
    fresh = task.build(run.config, task.vocabulary, task.facts).train()
    task.loss(fresh, task.batch([0, 1, 2], 1)).backward()
    assert [name for name, weight in fresh.named_parameters() if weight.grad is None] == []


def test_a_tokenizer_that_pads_with_another_number_is_refused(task: Masked) -> None:
    model = task.config.model.model_copy(update={"pad": 3})
    with pytest.raises(UserError, match=r"model.pad = 3: the tokenizer pads with 0"):
        Masked.open(task.config.model_copy(update={"model": model}), task.folder)


def test_a_student_begins_as_its_teacher_and_learns_from_it(run: regard.Run, text: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "options.teacher": str(run.folder.path), "train.steps": 10, "train.learning_rate": 1e-6}
    student = regard.train("masked", text, out=tmp_path / "run", model="distilbert", settings=settings, quiet=True)
    assert student.config.model.kind == "distilbert"
    assert student.saved.facts["head"] == "masked"
    ids = range(len(run.saved.tokenizer))
    assert student.saved.tokenizer.tokens(ids) == run.saved.tokenizer.tokens(ids)
    name = "encoder.encoder.0.attention.weight"
    theirs, mine = (open_saved(one.folder.path).weights[name] for one in (run, student))
    torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=0)
    knowing_nothing = np.log(len(ids))
    assert student.scores["test"]["loss"] < 0.7 * knowing_nothing, "it begins with what its teacher knows"


def test_the_loss_of_a_student_is_least_for_its_teacher_itself(run: regard.Run, task: Masked) -> None:
    options = task.options.model_copy(update={"teacher": "somewhere", "next_sentence": False})
    student = Masked.open(task.config.model_copy(update={"options": options}), task.folder)
    saved = open_saved(run.folder.path)
    teacher = trained_model(saved)
    student.taught(saved, teacher, Silent())
    batch = student.batch([0, 1, 2, 3], 1)
    same = student.loss(teacher, batch)
    torch.manual_seed(0)
    other = student.loss(student.build(student.config, student.vocabulary, student.facts), batch)
    guessed = teacher.head(teacher.encoder(batch.inputs.ids, batch.inputs.segments)[batch.rows, batch.places])
    words = torch.nn.functional.cross_entropy(guessed, batch.words)
    assert same.item() == pytest.approx(2 * words.item() * batch.tokens, rel=1e-4), "only the words are left to learn"
    assert other.item() > 2 * same.item()


def test_a_teacher_that_does_not_fit_is_refused(run: regard.Run, text: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "options.teacher": str(run.folder.path)}
    with pytest.raises(UserError, match=r"model.width = 16: must be that of options.teacher, 32"):
        regard.train("masked", text, out=tmp_path / "a", model="distilbert", settings={**settings, "model.width": 16})


def test_a_teacher_is_checked_before_a_run_is_replaced(run: regard.Run, text: Path, tmp_path: Path) -> None:
    first = regard.train("masked", text, out=tmp_path / "a", settings={**SMALL, "train.steps": 2}, quiet=True)
    before = first.folder.model.read_bytes()
    settings = {**SMALL, "model.width": 16, "options.teacher": str(run.folder.path)}
    with pytest.raises(UserError, match=r"must be that of options\.teacher"):
        regard.train("masked", text, out=tmp_path / "a", model="distilbert", settings=settings, overwrite=True)
    assert first.folder.model.read_bytes() == before


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        ("xlnet", {}, "neither teach nor be taught"),
        ("distilbert", {"tokenizer.file": "OTHER"}, "has another tokenizer than the student"),
        ("distilbert", {"model.vocabulary": 200}, "vectors for 52 tokens, the student for 200"),
        (
            "distilbert",
            {"model.max_length": 64, "data.max_length": 48},
            "must be at most 40, as options.teacher has it",
        ),
    ],
)
def test_a_teacher_of_other_words_is_refused(
    text: Path, tmp_path: Path, model: str, more: dict[str, object], message: str
) -> None:
    short = {**SMALL, "train.steps": 2}
    teacher = regard.train("masked", text, out=tmp_path / "t", settings={**short, "model.max_length": 40}, quiet=True)
    swapped = tmp_path / "other.txt"
    swapped.write_text(text.read_text(encoding="utf8").replace("cat", "tac"), encoding="utf8")
    other = regard.train("masked", swapped, out=tmp_path / "o", settings=short, quiet=True)
    given = {name: str(other.folder.path) if value == "OTHER" else value for name, value in more.items()}
    settings = {**short, "options.teacher": str(teacher.folder.path), **given}
    with pytest.raises(UserError, match=message):
        regard.train("masked", text, out=tmp_path / "s", model=model, settings=settings, quiet=True)


@pytest.mark.parametrize(
    ("model", "kind"), [("bert", "unigram"), ("bert", "byte-bpe"), ("roberta", "wordpiece"), ("bigbird", "unigram")]
)
def test_any_tokenizer_goes_with_any_model(text: Path, tmp_path: Path, model: str, kind: str) -> None:
    settings = {**SMALL, "tokenizer.kind": kind, "tokenizer.vocabulary": 320, "train.steps": 2}
    settings |= {"model.max_length": 26, "data.max_length": 24}
    run = regard.train("masked", text, out=tmp_path / "run", model=model, settings=settings, quiet=True)
    (filled,) = run.fill(["the [MASK] is here"])
    assert filled.text.endswith("is here"), "whatever the tokenizer's own mask is called"


def test_the_text_around_a_mask_stays_as_it_was_written(run: regard.Run) -> None:
    (filled,) = run.fill(["The 🍕 [MASK], ZÜRICH  [MASK]!"], top=200)
    assert filled.text.startswith("The 🍕")
    assert ", ZÜRICH" in filled.text
    assert filled.text.endswith("!")
    assert len(filled.masks) == 2
    assert len(filled.masks[0]) == len(run.saved.tokenizer), "no more than there are"
    words = [guess.word for guess in filled.masks[0]]
    assert len(set(words)) == len(words), "a piece within a word is told from a word"
    with pytest.raises(UserError, match=r"beyond the 24 tokens"):
        run.fill(["[MASK] " + "cat " * 40 + "[MASK]"])


def test_a_file_is_filled_line_by_line(run: regard.Run, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("the [MASK] is here\n\nno mask\na [MASK] came home\n", encoding="utf8")
    result = CliRunner().invoke(app, ["fill", str(run.folder.path), str(file), "--json"])
    assert result.exit_code == 0
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(row["masks"]) for row in rows] == [1, 0, 0, 1]
    assert rows[2]["text"] == "no mask"
    assert "1 lines have no mask" in result.stderr


def test_long_texts_are_said_to_be_cut(run: regard.Run, tmp_path: Path) -> None:
    out = tmp_path / "v.npy"
    result = CliRunner().invoke(app, ["embed", str(run.folder.path), "cat " * 60, "a cat", "--out", str(out)])
    assert result.exit_code == 0
    assert "1 texts are longer than 24 tokens" in result.stderr


def test_unknown_text_is_said_and_does_not_stop_a_training(run: regard.Run, text: Path, tmp_path: Path) -> None:
    file = tmp_path / "strange.txt"
    file.write_text(text.read_text(encoding="utf8") + "\n" + "🍕 🍕\n\n" * 300, encoding="utf8")
    settings = {
        **SMALL,
        "train.steps": 3,
        "train.batch_tokens": 24,
        "data.valid": [str(text)],
        "data.test": [str(text)],
    }
    found = regard.train(
        "masked", file, out=tmp_path / "a", settings={**settings, "start": str(run.folder.path)}, quiet=True
    )
    assert "the tokenizer does not know" in json.loads((found.folder.data / "report.json").read_text())["summary"]


def test_too_few_tokens_are_refused(text: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data.max_length = 3: at least 8"):
        regard.train("masked", text, out=tmp_path / "a", settings={**SMALL, "data.max_length": 3}, quiet=True)
    settings = {**SMALL, "tokenizer.vocabulary": 12}
    with pytest.raises(UserError, match=r"tokenizer.vocabulary = 12: .*; raise it"):
        regard.train("masked", text, out=tmp_path / "b", model="xlnet", settings=settings, quiet=True)
