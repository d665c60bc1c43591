"""Classifying images: learned from files, kept in a run, used by Python and by the command line, exported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

from regard.cli import app
from regard.config import Config
from regard.data.badlines import BadLines
from regard.errors import UserError
from regard.explorer.pictures import contact_sheet, gaze, rollout
from regard.hub.published import export
from regard.run import Run
from regard.tasks.image import Image as ImageTask
from regard.tasks.image import ImageOptions
from regard.tasks.image_classifier import ImageClassifier, ImageModel
from regard.tasks.image_scores import mean_loss, scores, top
from regard.training.display import Display
from regard.training.saved import open_saved
from regard.training.start import settle, train

SETTINGS: dict[str, object] = {
    "model.image": 12,
    "model.patch": 4,
    "model.layers": 2,
    "model.width": 16,
    "model.inner": 32,
    "model.heads": 2,
    "train.steps": 60,
    "train.batch_tokens": 160,
    "train.validate_every": 30,
    "train.learning_rate": 5e-3,
    "train.warmup": 5,
    "train.device": "cpu",
}
CLASSES = {"down": 0, "left": 1, "up": 2}


def picture(label: str, number: int) -> NDArray[np.uint8]:
    """A bar at one side of a noisy square, in a colour of its own."""
    random = np.random.default_rng([number, len(label)])
    values = random.integers(0, 90, (12, 14, 3), np.uint8)
    rows = {"down": slice(8, 12), "left": slice(0, 12), "up": slice(0, 4)}[label]
    values[rows, 1 : 5 if label == "left" else 13, CLASSES[label]] += 150
    return values


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    for label in CLASSES:
        (root / label).mkdir()
        for number in range(40):
            Image.fromarray(picture(label, number)).save(root / label / f"{number}.png")
    return root


@pytest.fixture(scope="module")
def folder(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "photos"
    train("image", [str(photos)], out=out, settings={**SETTINGS, "options.flip": False, "options.shift": 1})
    return out


def config_of(photos: Path, **settings: object) -> Config:
    return settle("image", [str(photos)], None, None, {**SETTINGS, **settings})[0]


def task_of(photos: Path, cache: Path, **settings: object) -> ImageTask:
    return ImageTask.prepare(config_of(photos, **settings), cache, Display())


def test_a_run_learns_and_holds_all_it_needs(folder: Path, photos: Path) -> None:
    run = Run.load(folder, device="cpu")
    assert run.scores["test"]["top1"] == 100.0
    facts = json.loads((folder / "facts.json").read_text(encoding="utf8"))
    assert facts["classes"] == sorted(CLASSES)
    assert len(facts["mean"]) == 3
    found = list(run.predictor.classify([photos / label / "1.png" for label in CLASSES]))
    assert [one.label for one in found] == list(CLASSES)
    for one in found:
        assert sum(one.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert next(iter(one.probabilities)) == one.label


def test_the_model_of_a_run_equals_the_one_that_was_trained(folder: Path, photos: Path) -> None:
    """Packed and plain, alone and in a batch."""
    run = Run.load(folder, device="cpu")
    plain = ImageTask.build(run.config, 0, run.saved.facts).eval()
    plain.load_state_dict(open_saved(run.folder.path).weights)
    slow, fast = ImageClassifier(plain, run.saved.facts), run.predictor
    pixels = np.stack([fast.framing.pixels(photos / label / "7.png") for label in CLASSES])
    np.testing.assert_allclose(fast.probabilities(pixels), slow.probabilities(pixels), atol=1e-5)
    for row, one in enumerate(pixels):
        np.testing.assert_allclose(fast.probabilities(one[None])[0], slow.probabilities(pixels)[row], atol=1e-5)


def test_attention_belongs_to_the_image_and_rollout_follows_it(folder: Path, photos: Path) -> None:
    run = Run.load(folder, device="cpu")
    one, other = run.predictor.classify([photos / "up" / "2.png", photos / "down" / "2.png"])
    record = one.attention
    assert list(record.sites) == ["encoder.0.self", "encoder.1.self"]
    assert record["encoder.0.self"].keys.tokens == ["[class]", *(f"{r},{c}" for r in range(3) for c in range(3))]
    whole = rollout(record)
    np.testing.assert_allclose(whole.sum(axis=1), 1, atol=1e-5)
    first, second = record["encoder.0.self"].mean(), record["encoder.1.self"].mean()
    half = (np.eye(10) + first) / 2
    np.testing.assert_allclose(whole, (np.eye(10) + second) / 2 @ half, atol=1e-6)
    looked = gaze(record)
    assert looked.shape == (3, 3)
    np.testing.assert_allclose(looked, whole[0, 1:].reshape(3, 3) / whole[0, 1:].sum(), atol=1e-6)
    np.testing.assert_allclose(
        gaze(record, "encoder.1.self", 1), _patches(record["encoder.1.self"].head(1)[0]), atol=1e-6
    )
    assert not np.allclose(looked, gaze(other.attention), atol=1e-3)
    with pytest.raises(UserError, match="head = 0: of which layer"):
        gaze(record, None, 0)


def _patches(row: NDArray[np.float32]) -> NDArray[np.float32]:
    shares: NDArray[np.float32] = row[1:].reshape(3, 3) / row[1:].sum()
    return shares


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"crop": "none", "flip": False},
        {"crop": "resized", "colour": 0.4},
        {"changes": 2, "magnitude": 0.5},
        {"mixup": 0.4, "cutmix": 1.0},
    ],
)
def test_batches_follow_from_their_seed(photos: Path, tmp_path: Path, changed: dict[str, object]) -> None:
    task = task_of(photos, tmp_path, **{f"options.{name}": value for name, value in changed.items()})
    rows = np.arange(20)
    one, again, other = task.batch(rows, 1), task.batch(rows, 1), task.batch(rows, 2)
    assert torch.equal(one.images, again.images)
    assert torch.equal(one.targets, again.targets)
    assert torch.equal(one.images, other.images) == (changed.get("crop") == "none")
    assert one.images.shape == (20, 3, 12, 12)
    assert one.tokens == 20
    torch.testing.assert_close(one.targets.sum(1), torch.ones(20))
    if "mixup" not in changed:
        labels = task.data.labels[task.data.rows["train"][rows]]
        assert one.targets.argmax(1).tolist() == labels.tolist()
    if changed.get("crop") == "none":
        expected = task.data.framing.shown(task.data.pixels[task.data.rows["train"][rows]])
        torch.testing.assert_close(one.images, expected)


def test_two_heads_have_two_losses_and_one_mean(photos: Path, tmp_path: Path) -> None:
    task = task_of(photos, tmp_path, **{"model.distillation": "head", "train.label_smoothing": 0.0})
    torch.manual_seed(0)
    model = ImageTask.build(task.config, 0, task.facts)
    assert isinstance(model, ImageModel)
    batch = task.batch(np.arange(8), 1)
    one, other = model.each(batch.images)
    torch.testing.assert_close(model(batch.images), (one + other) / 2)
    answers = batch.targets.argmax(1)
    losses = [torch.nn.functional.cross_entropy(logits, answers, reduction="sum") for logits in (one, other)]
    torch.testing.assert_close(task.loss(model, batch), sum(losses) / 2)


def test_a_run_goes_on_from_another(folder: Path, photos: Path, tmp_path: Path) -> None:
    """The second is shown images as the first was, though its own images have another mean."""
    dark = tmp_path / "dark"
    for label in ("left", "up"):
        (dark / label).mkdir(parents=True)
        for number in range(20):
            Image.fromarray(picture(label, number) // 2).save(dark / label / f"{number}.png")
    settings = {"start": str(folder), "train.steps": 2, "train.batch_tokens": 80, "train.device": "cpu"}
    settings |= {"train.learning_rate": 1e-6, "train.average": 0.0}
    train("image", [str(dark)], out=tmp_path / "second", settings=settings)
    first, second = Run.load(folder, device="cpu"), Run.load(tmp_path / "second", device="cpu")
    assert second.predictor.framing == first.predictor.framing
    assert second.predictor.classes == ["left", "up"]
    assert second.config.model.model_dump() == first.config.model.model_dump()
    before, after = open_saved(folder).weights, open_saved(tmp_path / "second").weights
    for name in (name for name in before if not name.startswith("head.")):
        torch.testing.assert_close(after[name], before[name], atol=1e-4, rtol=0)


def test_positions_of_another_grid_are_stretched(folder: Path, photos: Path, tmp_path: Path) -> None:
    settings = {"start": str(folder), "model.image": 24, "train.steps": 1, "train.device": "cpu"}
    settings |= {"train.learning_rate": 1e-9, "train.average": 0.0}
    train("image", [str(photos)], out=tmp_path / "larger", settings=settings)
    assert Run.load(tmp_path / "larger", device="cpu").predictor.framing.stored == 24, "the whole image, as before"
    before, after = (open_saved(path).weights["encoder.positions"] for path in (folder, tmp_path / "larger"))
    assert (before.shape[1], after.shape[1]) == (10, 37)
    torch.testing.assert_close(after[:, :1], before[:, :1], atol=1e-5, rtol=0)
    middle = after[:, 1:].unflatten(1, (6, 6))[:, 2:4, 2:4].mean(dim=(1, 2))  # the four patches where one was
    torch.testing.assert_close(middle, before[:, 5], atol=0.02, rtol=0)


def test_numbered_classes_that_were_named_are_scored_by_their_numbers(photos: Path, tmp_path: Path) -> None:
    rows = [f"{file},{CLASSES[file.parent.name] + 1}" for file in sorted(photos.rglob("*.png"))]
    (tmp_path / "labels.csv").write_text("\n".join(["path,label", *rows]))
    names = {"options.class_names": ["unten", "links", "oben"], "options.flip": False, "options.shift": 1}
    train("image", [str(tmp_path / "labels.csv")], out=tmp_path / "run", settings={**SETTINGS, **names})
    run = Run.load(tmp_path / "run", device="cpu")
    found = run.predictor.read([str(tmp_path / "labels.csv")], run.config.data, BadLines())
    assert [one.label for one in found] == [CLASSES[file.parent.name] for file in sorted(photos.rglob("*.png"))]


def test_exported_it_gives_the_same_logits(folder: Path, photos: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    run = Run.load(folder, device="cpu")
    export(open_saved(run.folder.path), tmp_path / "published")
    peer = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / "published").eval()
    pixels = run.predictor.framing.pixels(photos / "left" / "3.png")[None]
    with torch.no_grad():
        expected = peer(run.predictor.framing.shown(pixels)).logits.softmax(-1).numpy()
    np.testing.assert_allclose(run.predictor.probabilities(pixels), expected, atol=1e-5)
    again = Run.load(tmp_path / "published", device="cpu")
    np.testing.assert_allclose(again.predictor.probabilities(pixels), expected, atol=1e-5)
    assert again.predictor.classes == run.predictor.classes


def command(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return 2, str(result.exception)
    return result.exit_code, result.output


def test_from_the_command_line(folder: Path, photos: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no image")
    code, said = command("classify", folder, photos / "up" / "1.png", bad, "--attention", tmp_path / "a.png")
    assert code == 0, said
    assert "up\t" in said
    assert "bad.jpg: cannot be classified" in said
    assert (tmp_path / "a-1.png").exists()
    for name, more in (("b.svg", ["--grid"]), ("c.png", ["--site", "encoder.1.self", "--head", "1"]), ("d.json", [])):
        code, said = command("classify", folder, photos / "up" / "1.png", "--attention", tmp_path / name, *more)
        assert code == 0, said
        assert (tmp_path / name).stat().st_size > 500
    code, said = command("classify", folder, photos / "up" / "1.png", "--json")
    assert json.loads(said)["label"] == "up"
    for arguments, text in (
        ([bad], "no image could be read"),
        ([tmp_path / "none.png"], "there is no such file"),
        ([], "which image"),
        ([photos / "up" / "1.png", "--attention", tmp_path / "x.bmp"], "cannot draw"),
        ([photos / "up" / "1.png", "--attention", tmp_path / "x.png", "--site", "encoder.9.self"], "encoder.9.self"),
    ):
        code, said = command("classify", folder, *arguments)
        assert code == 2, said
        assert text in said


def test_the_worst_errors_are_drawn(folder: Path, tmp_path: Path) -> None:
    """Images whose labels were exchanged are errors, all of them."""
    for label, other in (("up", "down"), ("down", "up")):
        (tmp_path / "wrong" / label).mkdir(parents=True)
        for number in range(3):
            Image.fromarray(picture(other, number)).save(tmp_path / "wrong" / label / f"{number}.png")
    code, said = command(
        "evaluate", folder, tmp_path / "wrong", "--worst", tmp_path / "worst.png", "--out", tmp_path / "rows.jsonl",
        "--json",
    )  # fmt: skip
    assert code == 0, said
    with Image.open(tmp_path / "worst.png") as sheet:
        assert min(sheet.size) > 200
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf8").splitlines()]
    assert {(row["label"], row["predicted"]) for row in rows} == {("up", "down"), ("down", "up")}
    (tmp_path / "again").symlink_to(tmp_path / "wrong")
    code, said = command("evaluate", folder, tmp_path / "wrong", tmp_path / "again", "--worst", tmp_path / "two.png")
    assert code == 0, said
    assert (tmp_path / "two-1.png").read_bytes() == (tmp_path / "two-2.png").read_bytes(), "a sheet for each"
    code, said = command("evaluate", folder, "--worst", tmp_path / "none.png")
    assert code == 0, "the scores are shown all the same"
    assert "there is no error to show" in said


def test_a_dollar_in_a_name_is_a_dollar(tmp_path: Path) -> None:
    contact_sheet([picture("up", 1)], ["$1 as $_$"], tmp_path / "sheet.svg", "a$_$b.png")
    drawn = (tmp_path / "sheet.svg").read_text()
    assert "a$_$b.png" in drawn
    assert "$1 as $_$" in drawn


def test_no_title_leaves_the_sheet(tmp_path: Path) -> None:
    name = "Screenshot 2026-11-18 of my grandmother's favourite cat, who sleeps.png"
    contact_sheet([picture("up", 1)], ["up"], tmp_path / "sheet.svg", f"cat (97%): {name}")
    drawn = (tmp_path / "sheet.svg").read_text()
    assert "cat (97%):" in drawn
    assert name not in drawn, "it goes on in further lines"
    assert all(word in drawn for word in ("grandmother", "sleeps.png"))


def test_an_image_is_one_however_it_is_held(folder: Path, photos: Path) -> None:
    run, path = Run.load(folder, device="cpu"), photos / "up" / "1.png"
    with Image.open(path) as image:
        held = [path, str(path), path.read_bytes(), np.asarray(image), image]
        found = [run.classify(one) for one in held]
        together = run.classify(held)
    assert [len(one) for one in found] == [1] * 5
    assert {one.probability for (one,) in found} == {one.probability for one in together}
    assert len({one.probability for one in together}) == 1
    assert together[3].source == together[4].source == "an image of 14 x 12 pixels"
    for given, text in (
        (np.zeros((4, 4, 3)), "its pixels are float64; bytes from 0 to 255"),
        (photos, "it is a folder; name its files"),
    ):
        with pytest.raises(UserError, match=text):
            run.classify(given)
    with pytest.raises(UserError, match="seconds: are for pairs of texts"):
        run.classify(path, "a text")


def test_scores_are_what_they_say() -> None:
    probabilities = np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7], [0.2, 0.5, 0.3]])
    labels = np.array([0, 1, 2, 0])
    assert top(probabilities, labels, 1) == 0.5
    assert top(probabilities, labels, 2) == 0.75
    assert mean_loss(probabilities, labels) == pytest.approx(-np.log([0.6, 0.4, 0.7, 0.2]).mean())
    found = scores(probabilities, labels, ["a", "b", "c"])
    assert found["confusion"] == {
        "a": {"as a": 1, "as b": 1, "as c": 0},
        "b": {"as a": 1, "as b": 0, "as c": 0},
        "c": {"as a": 0, "as b": 0, "as c": 1},
    }
    assert (found["images"], found["top1"], found["top5"]) == (4, 50.0, 100.0)


def test_mistakes_are_said(photos: Path, tmp_path: Path) -> None:
    for settings, text in (
        ({"options.mean": [0.5, 0.5, 0.5]}, "options.mean, options.deviation: give both"),
        ({"options.mean": [0.5], "options.deviation": [0.5]}, "needs a number for each of the 3 channels"),
        ({"options.stored": 8}, "options.stored = 8: must be at least model.image = 12"),
        ({"options.scale": [0.5, 0.2]}, r"options.scale = \[0.5, 0.2\]: must be two shares from 0 to 1"),
        ({"options.deviation": [0.5, 0.0, 0.5]}, r"options.deviation = .*: must be above 0"),
        ({"model.patch": 5}, "model.patch = 5: must divide model.image = 12, or the last 2 pixels"),
    ):
        with pytest.raises(UserError, match=text):
            task_of(photos, tmp_path, **settings)
    with pytest.raises(UserError, match=r"options\.flop: unknown key; did you mean 'flip'"):
        config_of(photos, **{"options.flop": True})
    with pytest.raises(UserError, match="cannot image; these can: vit"):
        settle("image", [str(photos)], "transformer-tiny", None, {})
    assert ImageOptions().crop == "shift"
