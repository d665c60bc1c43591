"""The training loop: how a batch is divided changes nothing; interrupted in the middle, nothing is lost."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import VARIANTS
from numpy.typing import NDArray
from small_runs import SMALL, flags

from regard.config import Config, TrainConfig
from regard.errors import UserError
from regard.models import build
from regard.nn.weights import load_tensors, weights_of
from regard.tasks import settings_of
from regard.tasks.base import Share, Validation
from regard.tasks.translate import Translate
from regard.training.display import Display
from regard.training.distributed import Ranks
from regard.training.folder import RunFolder
from regard.training.interrupt import Interrupt
from regard.training.loop import Trainer, in_bfloat16
from regard.training.optimizer import learning_rate
from regard.training.start import settle, train

ALONE = Ranks(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def task(pairs_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Translate:
    config, _ = settle("translate", [str(pairs_file)], "transformer-tiny", None, SMALL)
    folder = tmp_path_factory.mktemp("task")
    return Translate.prepare(config, folder / "cache", Display())


def trainer(task: Translate, folder: Path, model: dict[str, object], **settings: object) -> Trainer:
    """A fresh trainer of the task's data with other settings."""
    settings = {"precision": "float32", **settings}
    layers = [
        ("model", {"model": model}),
        ("test", {"task": "translate", "data.max_length": 30, **{f"train.{k}": v for k, v in settings.items()}}),
    ]
    config: Config = settings_of(layers)[0]
    torch.manual_seed(config.train.seed)
    run = RunFolder(folder)
    run.create()
    return Trainer(build(config.model, task.vocabulary), Translate(config, task.data), config.train, run, ALONE)


class OneBatch(Trainer):
    """Always the same rows, in the given parts."""

    parts: list[NDArray[np.int64]]

    def take(self, count: int) -> tuple[list[NDArray[np.int64]], tuple[int, int]]:
        assert count == len(self.parts), "as many micro-batches as parts"
        return self.parts, (0, 0)


def test_one_times_thirty_two_is_thirty_two_times_one(task: Translate, tmp_path: Path) -> None:
    rows = np.arange(32)
    results = {}
    for pieces in (1, 2, 32):
        made = trainer(
            task, tmp_path, {**VARIANTS["transformer"], "dropout": 0.0}, accumulate=pieces, clip=0, average=0
        )
        made.__class__ = OneBatch
        assert isinstance(made, OneBatch)
        made.parts = np.array_split(rows, pieces)
        made.optimizer = torch.optim.SGD(
            [{"params": list(made.model.parameters()), "share": 1.0}], lr=1.0
        )  # its steps are the gradients themselves
        made.model.train()
        results[pieces] = made.step(1.0), {name: w.clone() for name, w in weights_of(made.model).items()}
    for pieces in (2, 32):
        assert results[pieces][0][0] == pytest.approx(results[1][0][0], rel=1e-6), "the same loss"
        assert results[pieces][0][1] == results[1][0][1], "the same tokens"
        for name, weight in results[1][1].items():
            torch.testing.assert_close(results[pieces][1][name], weight, atol=1e-6, rtol=1e-5)


class StopAfter(Interrupt):
    """Asks to stop after a number of steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def wanted(self) -> bool:  # type: ignore[override]
        self.left -= 1
        return self.left == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_interrupted_and_resumed_equals_uninterrupted(variant: str, task: Translate, tmp_path: Path) -> None:
    settings = {"steps": 7, "validate_every": 3, "validate_sentences": 0, "batch_tokens": 64, "accumulate": 2}
    model = {**VARIANTS[variant], "dropout": 0.3}
    quiet = trainer(task, tmp_path / "quiet", model, **settings)
    quiet.fit(Display(), StopAfter(0))
    went = []
    for stop in (1, 3, 10):
        part = trainer(task, tmp_path / "parts", model, **settings)
        part.resume()
        began = part.progress.step
        part.fit(Display(), StopAfter(stop))
        went.append((began, part.progress.step))
    assert went == [(0, 1), (1, 4), (4, 7)]
    assert part.progress.done
    assert (part.progress.step, part.progress.best) == (7, quiet.progress.best)
    for name, weight in weights_of(quiet.model).items():
        assert torch.equal(weights_of(part.model)[name], weight), name
    assert (tmp_path / "quiet/model.safetensors").read_bytes() == (tmp_path / "parts/model.safetensors").read_bytes()


def test_the_best_weights_are_kept_and_without_progress_it_ends(task: Translate, tmp_path: Path) -> None:
    made = trainer(task, tmp_path, VARIANTS["transformer"], steps=50, validate_every=1, patience=2, average=0)
    scores, seen = iter([1.0, 3.0, 2.0, 2.0, 2.0]), []

    class Told(Translate):
        def validate(self, model: torch.nn.Module, share: Share) -> Validation:
            seen.append({name: weight.clone() for name, weight in weights_of(model).items()})
            return Validation(next(scores), 0.0, {})

    made.task.__class__ = Told
    try:
        made.fit(Display(), StopAfter(0))
    finally:
        made.task.__class__ = Translate
    assert (made.progress.step, made.progress.best_step, made.progress.done) == (4, 2, True)
    for name, weight in load_tensors(tmp_path / "model.safetensors")[0].items():
        assert torch.equal(weight, seen[1][name]), name


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_ranks_equal_one(accumulate: int, pairs_file: Path, tmp_path: Path) -> None:
    """Two processes, with dropout, against one with twice the micro-batches: the same losses and weights."""
    settings = {**SMALL, "train.steps": 40, "train.validate_every": 20, "model.dropout": 0.1}
    one = {**settings, "train.accumulate": 2 * accumulate}
    train("translate", [str(pairs_file)], out=tmp_path / "one", model="transformer-tiny", settings=one)
    two = flags({**settings, "train.accumulate": accumulate})
    arguments = ["train", "translate", str(pairs_file), "--out", str(tmp_path / "two"), "--model", "transformer-tiny"]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*launch, "-m", "regard", *arguments, *two], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    expected, found = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    )
    for row, other in zip(expected, found, strict=True):
        for key in set(row) - {"tokens_per_second"}:
            assert other[key] == pytest.approx(row[key], rel=1e-4, abs=1e-4), f"{key} at step {row['step']}"
    weights, again = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("one", "two"))
    for name, weight in weights.items():
        keys = slice(16, 32) if name.endswith(("attention.bias", "cross.bias")) else slice(0)
        weight[keys] = again[name][keys] = 0  # no gradient but rounding: a softmax is blind to what all keys share
        torch.testing.assert_close(again[name], weight, atol=1e-4, rtol=1e-3)


def test_a_training_that_diverges_says_so(task: Translate, tmp_path: Path) -> None:
    made = trainer(task, tmp_path, VARIANTS["transformer"], steps=5)
    with torch.no_grad():
        next(made.model.parameters()).fill_(float("nan"))
    with pytest.raises(UserError, match=r"the loss is nan at step 1: .* Try a lower train\.learning_rate"):
        made.fit(Display(), StopAfter(0))


def test_bfloat16_learns_nearly_the_same(task: Translate, tmp_path: Path) -> None:
    losses = {}
    for precision in ("float32", "bfloat16"):
        made = trainer(task, tmp_path, {**VARIANTS["transformer"], "dropout": 0.0}, precision=precision)
        made.model.train()
        losses[precision] = [made.step(1e-2)[0] for _ in range(10)]
        assert all(weight.dtype == torch.float32 for weight in made.model.parameters()), (
            "only the arithmetic is reduced"
        )
    assert losses["bfloat16"][-1] < losses["bfloat16"][0] - 0.3
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["bfloat16"] != losses["float32"]


@pytest.mark.parametrize(
    ("able", "expected"), [({"avx512_bf16": True}, True), ({"amx_bf16": True}, True), ({"avx2": True}, False)]
)
def test_auto_is_bfloat16_where_the_processor_multiplies_in_it(
    able: dict[str, bool], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert in_bfloat16(TrainConfig(), ALONE) == expected
    assert in_bfloat16(TrainConfig(precision="bfloat16"), ALONE)
    assert not in_bfloat16(TrainConfig(precision="float32"), ALONE)


def test_every_epoch_uses_each_example_once(task: Translate, tmp_path: Path) -> None:
    made = trainer(task, tmp_path, VARIANTS["transformer"], batch_tokens=64)
    seen: list[int] = []
    while made.progress.epoch == 0:
        rows, (epoch, position) = made.take(1)
        seen += [int(row) for part in rows for row in part]
        made.progress = made.progress.__class__(epoch=epoch, position=position)
    assert sorted(seen) == list(range(len(task.lengths)))


def test_the_average_is_the_moving_average(task: Translate, tmp_path: Path) -> None:
    made = trainer(task, tmp_path, VARIANTS["transformer"], average=0.9)
    assert made.average is not None
    name = next(iter(made.average.weights))
    expected = weights_of(made.model)[name].clone()
    for step in range(1, 4):
        made.step(1e-2)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weights_of(made.model)[name]
    torch.testing.assert_close(made.average.weights[name], expected)
    with made.averaged():
        assert torch.equal(weights_of(made.model)[name], made.average.weights[name])
    assert not torch.equal(weights_of(made.model)[name], made.average.weights[name])


def test_learning_rates() -> None:
    paper = TrainConfig(schedule="inverse-sqrt", warmup=100, learning_rate=0.1)
    assert learning_rate(50, paper) == pytest.approx(0.05)
    assert learning_rate(100, paper) == pytest.approx(0.1)
    assert learning_rate(400, paper) == pytest.approx(0.05)
    cosine = TrainConfig(schedule="cosine", warmup=100, learning_rate=0.1, steps=1100)
    assert [learning_rate(step, cosine) for step in (100, 600, 1100)] == pytest.approx([0.1, 0.05, 0.0])
    linear = TrainConfig(schedule="linear", warmup=100, learning_rate=0.1, steps=1100)
    assert [learning_rate(step, linear) for step in (50, 100, 600, 1100)] == pytest.approx([0.05, 0.1, 0.05, 0.0])
    assert learning_rate(5, TrainConfig(schedule="constant", warmup=0, learning_rate=0.1)) == 0.1
