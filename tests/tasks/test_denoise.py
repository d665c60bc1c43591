"""Pre-training by denoising: seeded batches, a loss that falls, and a run to begin with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.denoising import restore_spans, sentinels_of
from regard.data.prepare import Silent
from regard.errors import UserError
from regard.tasks.denoise import Denoise
from regard.training.saved import open_saved
from regard.training.start import settle, train

TEXT = "".join(
    f"The {a} {b} sees the {c}. Does it sleep? "
    for a in ("red", "big")
    for b in ("cat", "dog", "owl")
    for c in ("sun", "moon", "sea", "hill")
)
SETTINGS = {
    "tokenizer.vocabulary": 300, "options.block": 24, "options.valid_share": 0.2, "model.encoder_layers": 1,
    "model.decoder_layers": 1, "model.width": 16, "model.inner": 16, "model.heads": 2, "train.batch_tokens": 200,
    "train.steps": 60, "train.validate_every": 20, "train.warmup": 5, "train.learning_rate": 0.01,
}  # fmt: skip
SPANS = {"tokenizer.vocabulary": 60}  # T5's own: Unigram learns few pieces from so little text


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT * 6, encoding="utf8")
    return path


def opened(file: Path, folder: Path, model: str, more: dict[str, object]) -> Denoise:
    config, _ = settle("denoise", [str(file)], model, None, {**SETTINGS, **more})
    Denoise.prepare(config, folder / "cache", Silent()).keep(folder / "data")
    return Denoise.open(config, folder / "data")


@pytest.mark.parametrize(("model", "more"), [("bart-tiny", {}), ("t5-tiny", SPANS)])
def test_batches_follow_from_their_seed(text_file: Path, tmp_path: Path, model: str, more: dict[str, object]) -> None:
    task = opened(text_file, tmp_path, model, more)
    one, same, other = (task.batch([0, 1, 2], seed) for seed in (5, 5, 6))
    assert torch.equal(one.source, same.source)
    assert torch.equal(one.target, same.target)
    assert not torch.equal(one.source, other.source)


def test_what_spans_hide_is_told_by_the_target(text_file: Path, tmp_path: Path) -> None:
    task = opened(text_file, tmp_path, "t5-tiny", SPANS)
    assert len(sentinels_of(task.data.tokenizer)) == 100
    assert task.vocabulary == len(task.data.tokenizer)
    batch, marks = task.batch([0, 1], 3), task.around
    text = task.data.train.ids.tolist()
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        read = [one for one in source if one not in (marks.pad, marks.end)]
        hidden = [one for one in target[1:] if one not in (marks.pad, marks.end)]
        whole = restore_spans(np.array(read), np.array(hidden), task.sentinels).tolist()
        assert any(text[n : n + len(whole)] == whole for n in range(len(text))), "a piece of the text"


@pytest.mark.parametrize(("model", "more"), [("bart-tiny", {}), ("t5-tiny", {**SPANS, "model.head_width": 8})])
def test_the_loss_falls_and_another_run_begins_with_it(
    text_file: Path, tmp_path: Path, model: str, more: dict[str, object]
) -> None:
    train("denoise", [str(text_file)], out=tmp_path / "run", model=model, settings={**SETTINGS, **more})
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    losses = [line["valid_loss"] for line in lines if "valid_loss" in line]
    assert losses[-1] < losses[0] - 0.2
    assert json.loads((tmp_path / "run" / "scores.json").read_text())["valid"]["loss"] > 0, "no test file was given"
    rows = [{"source": f"The red cat sees the {n} sea. It sleeps.", "target": "red cat"} for n in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    settings = {"start": str(tmp_path / "run"), "train.steps": 2, "train.validate_every": 1, "data.max_length": 64}
    settings |= {"train.learning_rate": 1e-6, "train.average": 0.0}
    train("summarize", [str(tmp_path / "a.jsonl")], out=tmp_path / "fine", settings=settings)
    before, after = open_saved(tmp_path / "run"), open_saved(tmp_path / "fine")
    assert before.weights.keys() == after.weights.keys()
    for name, weight in before.weights.items():
        torch.testing.assert_close(after.weights[name], weight, atol=1e-4, rtol=0)
    assert before.tokenizer.inner.to_str() == after.tokenizer.inner.to_str()


def test_settings_that_do_not_go_together_are_explained(text_file: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"options\.block = 2000: must be at most model\.max_length - 2 = 1022"):
        settle("denoise", [str(text_file)], "bart-tiny", None, {"options.block": 2000})
    with pytest.raises(UserError, match="the tokenizer has no mask token"):
        opened(text_file, tmp_path / "a", "bart-tiny", {"tokenizer.kind": "bpe", "tokenizer.vocabulary": 400})
    with pytest.raises(UserError, match="spans stand alone"):
        opened(text_file, tmp_path / "b", "t5-tiny", {**SPANS, "options.noise": ["spans", "masking"]})
    with pytest.raises(UserError, match="'bert': cannot denoise"):
        settle("denoise", [str(text_file)], "bert-tiny", None, {})
