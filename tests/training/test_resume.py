"""A run that was killed at any moment and resumed is the same run, to the bit."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_runs import SMALL, flags

from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.nn.weights import load_tensors
from regard.training.folder import Progress, RunFolder
from regard.training.loop import Trainer
from regard.training.start import resume, settle, train

REGARD = [sys.executable, "-m", "regard"]


def command(pairs: Path, out: Path, model: str, settings: dict[str, object]) -> list[str]:
    return [*REGARD, "train", "translate", str(pairs), "--out", str(out), "--model", model, *flags(settings)]


def told(folder: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "tokens_per_second"} for row in rows]


def assert_same_run(one: Path, other: Path) -> None:
    assert (one / "model.safetensors").read_bytes() == (other / "model.safetensors").read_bytes(), "the best weights"
    newest, again = RunFolder(one).checkpoints()[0], RunFolder(other).checkpoints()[0]
    assert newest.name == again.name
    expected, found = load_tensors(newest)[0], load_tensors(again)[0]
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected), "weights, optimiser and average"
    assert told(one) == told(other), "no step is told twice or left out"
    assert json.loads((one / "scores.json").read_text()) == json.loads((other / "scores.json").read_text())


def kill_and_resume(pairs: Path, folder: Path, kills: int, model: str, settings: dict[str, object]) -> None:
    """Kill a training `kills` times in the middle, at random moments, let it finish, compare with a quiet run.

    A kill counts only if the process was alive and the run not finished. The moments spread around the time that a
    process needs to start, so that they fall into preparation, training, validation and saving.
    """
    quiet, killed = folder / "quiet", folder / "killed"
    began = time.monotonic()
    process = subprocess.Popen(command(pairs, quiet, model, settings), stdout=subprocess.DEVNULL)
    while not (quiet / "metrics.jsonl").exists():
        assert process.poll() in (None, 0), "the quiet run failed"
        time.sleep(0.01)
    starting = time.monotonic() - began
    assert process.wait() == 0
    slice_of_training = (time.monotonic() - began - starting) / kills
    chance, landed = random.Random(kills), 0
    for _ in range(3 * kills):
        process = subprocess.Popen(next_command(pairs, killed, model, settings), stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=max(0.1, starting + chance.uniform(-0.5, 1.2) * slice_of_training))
        except subprocess.TimeoutExpired:
            process.kill()
        landed += process.wait() == -signal.SIGKILL
        if landed >= kills and RunFolder(killed).checkpoints():  # there is something to go on from
            break
    assert landed >= kills, f"only {landed} kills landed before the run was finished"
    assert not (killed / "scores.json").exists(), "the run was still under way at the last kill"
    done = subprocess.run(next_command(pairs, killed, model, settings), check=True, capture_output=True, text=True)
    assert re.search(r"Going on from step [1-9]", done.stdout), done.stdout
    assert_same_run(quiet, killed)


def next_command(pairs: Path, out: Path, model: str, settings: dict[str, object]) -> list[str]:
    if (out / "config.yaml").exists():
        return [*REGARD, "train", "--resume", str(out)]
    return command(pairs, out, model, settings)


def test_killed_three_times(pairs_file: Path, tmp_path: Path) -> None:
    kill_and_resume(pairs_file, tmp_path, 3, "transformer-tiny", {**SMALL, "train.steps": 400})


@pytest.mark.slow
@pytest.mark.parametrize("model", ["transformer-tiny", "rnn-attention-tiny"])
def test_killed_twenty_times(pairs_file: Path, tmp_path: Path, model: str) -> None:
    settings = {key: value for key, value in SMALL.items() if model.startswith("transformer") or "model." not in key}
    kill_and_resume(pairs_file, tmp_path, 20, model, {**settings, "train.steps": 2000, "train.patience": 0})


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(pairs_file: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "train.steps": 60}
    whole, hurt = tmp_path / "whole", tmp_path / "hurt"
    for folder in (whole, hurt):
        train("translate", [str(pairs_file)], out=folder, model="transformer-tiny", settings=settings)
    newest, _ = RunFolder(hurt).checkpoints()
    newest.write_bytes(newest.read_bytes()[:-100])
    progress, _, warnings = RunFolder(hurt).load_checkpoint() or pytest.fail("there is a checkpoint")
    assert progress.step == 50
    assert newest.name in warnings[0]
    assert "damaged or cut short" in warnings[0]
    resume(hurt)
    assert_same_run(whole, hurt)
    for path in RunFolder(hurt).checkpoints():
        path.write_bytes(b"nonsense")
    with pytest.raises(UserError, match="no checkpoint can be read"):
        resume(hurt)


def test_a_full_disk_is_said_and_what_was_saved_stays(
    pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from regard.training import folder as folders

    folder = RunFolder(tmp_path)
    folder.create()
    folder.save_checkpoint(Progress(step=1), {"a": torch.ones(3)})

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(folders, "save_file", full)
    with pytest.raises(UserError, match=r"the disk is full.*What was saved before is intact"):
        folder.save_checkpoint(Progress(step=2), {"a": torch.zeros(3)})
    progress, tensors, warnings = folder.load_checkpoint() or pytest.fail("the first checkpoint is there")
    assert (progress.step, warnings) == (1, [])
    assert torch.equal(tensors["a"], torch.ones(3))
    assert [path.name for path in (tmp_path / "training").iterdir()] == ["step-000000001.safetensors"]


@pytest.mark.parametrize("sign", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_saves_and_says_how_to_go_on(pairs_file: Path, tmp_path: Path, sign: str) -> None:
    out = tmp_path / "run"
    settings = {**SMALL, "train.steps": 100_000, "train.patience": 0, "train.checkpoint_every": 50_000}
    process = subprocess.Popen(
        command(pairs_file, out, "transformer-tiny", settings), stdout=subprocess.PIPE, text=True
    )
    while not (out / "metrics.jsonl").exists() or not (out / "metrics.jsonl").stat().st_size:
        time.sleep(0.05)
    process.send_signal(signal.Signals[sign])
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    progress, _, _ = RunFolder(out).load_checkpoint() or pytest.fail("a checkpoint was saved")
    assert f"Stopped at step {progress.step:,}, all saved. Go on: regard train --resume {out}" in said


def test_a_finished_run_given_more_steps_goes_on(pairs_file: Path, tmp_path: Path) -> None:
    train(
        "translate",
        [str(pairs_file)],
        out=tmp_path / "a",
        model="transformer-tiny",
        settings={**SMALL, "train.steps": 60},
    )
    resume(tmp_path / "a", settings={"train.steps": 120})
    train("translate", [str(pairs_file)], out=tmp_path / "b", model="transformer-tiny", settings=SMALL)
    assert_same_run(tmp_path / "a", tmp_path / "b")
    said = (tmp_path / "a" / "config.yaml").read_text()
    assert "  steps: 120                              # on resuming" in said
    assert "  width: 16                               # command" in said


def test_one_that_is_killed_before_its_first_further_step_still_goes_on(
    pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train("translate", [str(pairs_file)], out=tmp_path / "a", model="transformer-tiny", settings=_until(60))
    with monkeypatch.context() as killed:
        killed.setattr(Trainer, "step", _killed)
        with pytest.raises(SystemError, match="killed"):
            resume(tmp_path / "a", settings={"train.steps": 120})
    resume(tmp_path / "a")
    train("translate", [str(pairs_file)], out=tmp_path / "b", model="transformer-tiny", settings=SMALL)
    assert_same_run(tmp_path / "a", tmp_path / "b")


def test_data_is_kept_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"the {word} number {number},{word}" for number in range(40) for word in ("cat", "dog")]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]))
    shape = {"model.layers": 1, "model.width": 8, "model.inner": 8, "model.heads": 1, "train.steps": 2}
    settings = {**shape, "tokenizer.vocabulary": 100, "train.device": "cpu"}
    with monkeypatch.context() as killed:
        killed.setattr(Subwords, "save", _killed)
        with pytest.raises(SystemError, match="killed"):
            train("classify", [str(tmp_path / "texts.csv")], out=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run" / "data").exists()
    resume(tmp_path / "run")
    assert (tmp_path / "run" / "scores.json").is_file()


def test_a_vocabulary_that_is_too_small_costs_no_run(pairs_file: Path, tmp_path: Path) -> None:
    given = [str(pairs_file)]
    train("translate", given, out=tmp_path / "run", model="transformer-tiny", settings=_until(2))
    few = {**SMALL, "model.vocabulary": 5}
    with pytest.raises(UserError, match=r"model\.vocabulary = 5: the tokenizer has \d+ entries; leave it out"):
        train("translate", given, out=tmp_path / "run", model="transformer-tiny", settings=few, overwrite=True)
    assert (tmp_path / "run" / "model.safetensors").is_file()


def _until(steps: int) -> dict[str, object]:
    return {**SMALL, "train.steps": steps}


def _killed(*_: object) -> None:
    raise SystemError("killed")


def test_other_settings_neither_reopen_a_run_nor_go_unchecked(pairs_file: Path, tmp_path: Path) -> None:
    """One that patience ended stays ended when only its search is changed; its scores are made anew."""
    stopped = {**SMALL, "train.learning_rate": 1e-30, "train.average": 0.0, "train.patience": 1}
    train("translate", [str(pairs_file)], out=tmp_path / "run", model="transformer-tiny", settings=stopped)
    before = RunFolder(tmp_path / "run").load_checkpoint() or pytest.fail("it was saved")
    assert before[0].step < SMALL["train.steps"], "patience ended it"
    (tmp_path / "run" / "scores.json").unlink()
    resume(tmp_path / "run", settings={"decode.beam": 2})
    after = RunFolder(tmp_path / "run").load_checkpoint() or pytest.fail("it is there")
    assert (after[0].step, after[0].done) == (before[0].step, True)
    assert (tmp_path / "run" / "scores.json").is_file()
    with pytest.raises(UserError, match=r"train\.freeze: is for encoders"):
        resume(tmp_path / "run", settings={"train.freeze": 1})


def test_two_processes_do_not_train_one_run(pairs_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("translate", [str(pairs_file)], out=out, model="transformer-tiny", settings={**SMALL, "train.steps": 20})
    other = RunFolder(out)
    other.hold()
    with pytest.raises(UserError, match=rf"is being trained by another process \({os.getpid()}\)"):
        resume(out, settings={"train.steps": 40})
    with pytest.raises(UserError, match="is being trained by another process"):
        train("translate", [str(pairs_file)], out=out, settings=SMALL, overwrite=True)
    assert RunFolder(out).model.is_file()
    other.release()
    resume(out, settings={"train.steps": 40})
    assert not (out / ".lock").exists()


def test_a_folder_of_ones_own_is_no_run(tmp_path: Path) -> None:
    mine = tmp_path / "data" / "pairs.tsv"
    mine.parent.mkdir()
    mine.write_text("one\tun\n" * 30, encoding="utf8")
    with pytest.raises(UserError, match=r"holds other files \(data\) and is not a run"):
        train("translate", [str(mine)], out=tmp_path, settings=SMALL)
    assert mine.is_file()


def test_a_run_is_not_replaced_by_what_begins_with_it(classifier_run: Path) -> None:
    with pytest.raises(UserError, match="is what this run begins with"):
        train("classify", ["a.tsv"], out=classifier_run, settings={"start": str(classifier_run)}, overwrite=True)
    assert RunFolder(classifier_run).model.is_file()


def test_larger_batches_on_resuming_begin_the_next_epoch(pairs_file: Path, tmp_path: Path) -> None:
    train("translate", [str(pairs_file)], out=tmp_path / "run", settings={**SMALL, "train.batch_tokens": 32})
    steps = RunFolder(tmp_path / "run").load_checkpoint()
    assert steps is not None
    assert steps[0].position > 2
    more = {"train.batch_tokens": 100_000, "train.steps": steps[0].step + 2}
    resume(tmp_path / "run", settings=more)
    found = RunFolder(tmp_path / "run").load_checkpoint()
    assert found is not None
    assert found[0].step == steps[0].step + 2


def test_steps_that_are_asked_for_are_not_overruled_by_epochs(tmp_path: Path) -> None:
    assert settle("classify", ["a.tsv"], None, None, {})[0].train.epochs == 3
    assert settle("classify", ["a.tsv"], None, None, {"train.steps": 50})[0].train.epochs is None
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("train: {epochs: 7}", encoding="utf8")
    assert settle("classify", ["a.tsv"], None, recipe, {})[0].train.epochs == 7
    config, _ = settle("classify", ["a.tsv"], None, recipe, {"train.steps": 50})
    assert (config.train.steps, config.train.epochs) == (50, None)


def test_another_optimizer_on_resuming_is_refused(classifier_run: Path) -> None:
    with pytest.raises(UserError, match=r"train\.optimizer: cannot be changed"):
        resume(classifier_run, settings={"train.optimizer": "muon"})


def test_what_cannot_be_changed_is_said(pairs_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train("translate", [str(pairs_file)], out=out, model="transformer-tiny", settings={**SMALL, "train.steps": 20})
    before = (out / "config.yaml").read_text(encoding="utf8")
    with pytest.raises(UserError, match=r"train.learning_rate: .* has ended, so this would change nothing"):
        resume(out, settings={"train.learning_rate": 0.5})
    with pytest.raises(UserError, match=r"train.validate_sentences: cannot be changed on resuming"):
        resume(out, settings={"train.validate_sentences": 0, "train.steps": 40})
    assert (out / "config.yaml").read_text(encoding="utf8") == before
    progress, tensors, _ = RunFolder(out).load_checkpoint() or pytest.fail("it was saved")
    RunFolder(out).save_checkpoint(replace(progress, done=False), tensors)
    with pytest.raises(UserError, match=r"train.steps = 10: .* is at step 20 already"):
        resume(out, settings={"train.steps": 10})
    assert (out / "config.yaml").read_text(encoding="utf8") == before, "nothing untrue is kept"


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    left = [
        folder.path / "training" / ".step-000000500.safetensors.99999.tmp",
        folder.path / ".model.safetensors.9.tmp",
    ]
    for path in left:
        path.touch()
    left.append(folder.path / ".data~host~99999.tmp")
    left[-1].mkdir()
    (left[-1] / "train.jsonl").touch()
    folder.hold()
    assert not any(path.exists() for path in left)
    left[0].touch()
    with pytest.raises(UserError, match="is being trained by another process"):
        RunFolder(tmp_path / "run").hold()
    assert left[0].exists(), "it may be what the other process writes"
    folder.release()


def test_weights_that_are_no_numbers_are_never_kept(pairs_file: Path, tmp_path: Path) -> None:
    """The step before a validation is the bad one: its loss was still good."""
    good = {**SMALL, "train.steps": 40, "train.validate_every": 5, "train.warmup": 0}
    wild = {**good, "train.learning_rate": 1e38, "train.clip": 0.0, "train.validate_every": 1}
    with pytest.raises(UserError, match="has diverged"):
        train("translate", [str(pairs_file)], out=tmp_path / "a", model="transformer-tiny", settings=wild)
    assert not (tmp_path / "a" / "model.safetensors").exists()
    assert not RunFolder(tmp_path / "a").checkpoints()
    unseen = {**wild, "train.validate_every": 30, "train.checkpoint_every": 1}
    with pytest.raises(UserError, match="has diverged"):
        train("translate", [str(pairs_file)], out=tmp_path / "b", model="transformer-tiny", settings=unseen)
    assert not RunFolder(tmp_path / "b").checkpoints()


def test_a_warm_up_longer_than_the_training_is_shortened(pairs_file: Path, tmp_path: Path) -> None:
    settings = {**SMALL, "train.steps": 30, "train.warmup": 400, "train.learning_rate": 1e-3}
    train("translate", [str(pairs_file)], out=tmp_path / "a", model="transformer-tiny", settings=settings)
    rates = [row["learning_rate"] for row in told(tmp_path / "a") if "learning_rate" in row]
    assert max(rates) > 3e-4, "without it the rate would end at 30 of 400 parts"
