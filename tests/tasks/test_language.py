"""The language task: blocks, borders without leaks, a run that learns, is resumed and is published."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from regard.cli import app
from regard.config import SearchConfig
from regard.data.prepare import Silent
from regard.hub.published import export
from regard.models import build, parse_model
from regard.models.decoder import Decoder
from regard.run import Run
from regard.tasks.language import LanguageModelling
from regard.training import start
from regard.training.saved import open_saved

SMALL = {
    "model.layers": 1, "model.width": 32, "model.heads": 2, "model.dropout": 0.0, "options.block": 16,
    "train.batch_tokens": 256, "train.steps": 120, "train.validate_every": 60, "train.optimizer": "muon",
    "train.warmup": 5,
    "train.learning_rate": 0.01, "train.device": "cpu", "train.average": 0.9, "tokenizer.vocabulary": 400,
}  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("the cat sat on the mat and the dog sat on the log. " * 80, encoding="utf8")
    return path


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "stories.jsonl"
    lines = [json.dumps({"text": f"the {name} sat"}) for name in ("cat", "dog", "cow", "hen", "pig")] * 20
    path.write_text("\n".join(lines), encoding="utf8")
    return path


@pytest.fixture(scope="module", params=["gpt", "llama"])
def run(request: pytest.FixtureRequest, text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "poet"
    settings = {**SMALL, "tokenizer.kind": "char", "model.max_length": 32}
    start.train("language", [str(text)], out=out, model=f"{request.param}-nano", settings=settings)
    return out


def test_a_run_learns_and_continues(run: Path) -> None:
    opened = Run.load(run)
    assert opened.scores["valid"]["loss"] < 1.0
    (found,) = opened.generate("the cat sat on the", SearchConfig(method="greedy", max_length=30))
    assert "sat on the" in found.text
    assert "".join(opened.write("the cat sat on the", method="greedy", max_length=30)) == found.text
    near, far = (opened.score(stride=stride)["valid"]["loss"] for stride in (1, None))
    assert near <= far + 0.05
    opened = Run.load(run, weights="int8")
    assert "sat on the" in opened.generate("the cat sat on the", SearchConfig(method="greedy", max_length=30))[0].text


def test_the_command_line_writes_and_scores(run: Path, text: Path) -> None:
    def ask(*arguments: str, **given: str) -> str:
        result = CliRunner().invoke(app, [*arguments], **given)  # type: ignore[arg-type]
        assert result.exit_code == 0, result.output
        return result.output

    first = ask("generate", str(run), "the cat", "--tokens", "20", "--temperature", "0.5", "--seed", "4")
    assert first.startswith("the cat")
    assert first == ask("generate", str(run), "the cat", "--tokens", "20", "--temperature", "0.5", "--seed", "4")
    piped = ask("generate", str(run), "--tokens", "5", "--seed", "3", input="the cat\nsat on\n")
    assert piped.startswith("the cat\nsat on"), "all of it is one prompt, as a file would be"
    file = text.with_name("prompt.txt")
    file.write_text("the cat\nsat on\n", encoding="utf8")
    assert ask("generate", str(run), str(file), "--tokens", "5", "--seed", "3") == piped
    file.write_text("the cat\n\n", encoding="utf8")
    from_file = ask("generate", str(run), str(file), "--tokens", "5", "--seed", "3")
    assert from_file == ask("generate", str(run), "-", "--tokens", "5", "--seed", "3", input="the cat\n\n")
    result = CliRunner().invoke(app, ["generate", str(run), "promt.txt"])
    assert "promt.txt: no such file" in str(result.exception)
    result = CliRunner().invoke(app, ["generate", str(run), "-"], input=b"\xff")
    assert "standard input: line 1 is not UTF-8" in str(result.exception)
    chosen = ask("generate", str(run), "the cat", "--choice", " sat", "--choice", " xxq", "--method", "greedy")
    assert chosen.strip() == "sat"
    chosen = ask("generate", str(run), "--choice", " sat", "--choice", " xxq", "--method", "greedy", input="the cat\n")
    assert chosen.strip() == "sat"
    several = ask("generate", str(run), "the", "--samples", "2", "--tokens", "4", "--json").splitlines()
    assert len(several) == 2
    assert json.loads(several[0])["prompt"] == "the"
    scores = json.loads(ask("evaluate", str(run), str(text), "--json"))["text.txt"]
    assert scores["perplexity"] == pytest.approx(np.exp(scores["loss"]))
    near = json.loads(ask("evaluate", str(run), "--stride", "1", "--json"))["valid"]
    assert near["loss"] <= json.loads(ask("evaluate", str(run), "--json"))["valid"]["loss"] + 0.05
    result = CliRunner().invoke(app, ["generate", str(run), "the", "--temperature", "0"])
    assert "decode.temperature" in str(result.exception)


def test_published_and_opened_again_it_says_the_same(run: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    export(open_saved(run), tmp_path / "hf")
    options = SearchConfig(method="greedy", max_length=8)
    ours, again = (Run.load(path).generate("the cat", options)[0] for path in (run, tmp_path / "hf"))
    assert again.text == ours.text
    peer = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    theirs = peer.generate(torch.tensor([ours.prompt_ids]), do_sample=False, max_new_tokens=8, pad_token_id=0)
    assert theirs[0, len(ours.prompt_ids) :].tolist()[: len(ours.ids)] == ours.ids


def test_a_run_is_begun_with_another(run: Path, text: Path, tmp_path: Path) -> None:
    settings = {**_train(), "start": str(run), "train.steps": 1, "train.learning_rate": 1e-6, "train.average": 0.0}
    start.train("language", [str(text)], out=tmp_path / "b", settings=settings)
    before, after = open_saved(run).weights, open_saved(tmp_path / "b").weights
    assert before.keys() == after.keys()
    for name, weight in before.items():
        torch.testing.assert_close(after[name], weight, atol=1e-4, rtol=0)


def _train() -> dict[str, object]:
    return {key: value for key, value in SMALL.items() if key.startswith(("train", "options"))}


def test_blocks_follow_from_the_seed(text: Path, tmp_path: Path) -> None:
    config, _ = start.settle("language", [str(text)], "gpt-nano", None, {**SMALL, "tokenizer.kind": "char"})
    task = LanguageModelling.prepare(config, tmp_path, Silent())
    one, same, other = (task.batch([0, 1, 2], seed) for seed in (1, 1, 2))
    assert one.ids.shape == (3, 17)
    assert torch.equal(one.ids, same.ids)
    assert not torch.equal(one.ids, other.ids)
    stream = task.data.train.ids.tolist()
    row = one.ids[0].tolist()
    assert any(stream[place : place + 17] == row for place in range(len(stream)))


@pytest.mark.parametrize("kind", ["gpt", "llama"])
def test_nothing_leaks_across_the_border_of_documents(stories: Path, tmp_path: Path, kind: str) -> None:
    """What stands in a document changes nothing in another one of the same block; alone it gives the same."""
    config, _ = start.settle("language", [str(stories)], f"{kind}-nano", None, SMALL)
    task = LanguageModelling.prepare(config, tmp_path, Silent())
    batch = task.batch(range(8), 1)
    assert batch.documents is not None
    assert (batch.documents[:, -1] > 0).all(), "every block has a border"
    torch.manual_seed(0)
    settings = {"kind": kind, "layers": 2, "width": 16, "heads": 2, "max_length": 32}
    model = build(parse_model(settings), task.vocabulary).eval()
    assert isinstance(model, Decoder)
    ids, documents = batch.ids[:, :-1], batch.documents
    with torch.no_grad():
        together = model(ids, documents=documents)
        for row in range(len(ids)):
            for number in documents[row].unique():
                own = documents[row] == number
                torch.testing.assert_close(together[row, own], model(ids[row, own][None])[0], atol=1e-5, rtol=1e-4)
        changed = ids.clone()
        last = documents == documents[:, -1:]
        changed[~last] = (changed[~last] + 7) % task.vocabulary
        torch.testing.assert_close(model(changed, documents=documents)[last], together[last], atol=1e-6, rtol=1e-5)
