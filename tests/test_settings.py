"""Every setting can be listed, with its value for a task and a model, and with what it means."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli import app
from regard.cli.settings import explained
from regard.errors import UserError
from regard.models import MODELS
from regard.tasks import TASKS
from regard.training.start import settle, usual_settings


def shown(*arguments: str) -> str:
    return CliRunner().invoke(app, ["settings", *arguments]).output


def test_settings_may_be_nested(pairs_file: Path) -> None:
    config, _ = settle("classify", [str(pairs_file)], None, None, {"train": {"steps": 7}})
    assert (config.train.steps, config.train.epochs) == (7, None)


def test_settings_are_explained_with_their_values() -> None:
    (line,) = [line for line in shown("language").splitlines() if "train.optimizer" in line]
    assert line.split()[:2] == ["train.optimizer", "adamw"], "the task's own default"
    assert line.strip().endswith("(adam, adamw, muon)")
    assert "model.score" in shown("translate", "--model", "rnn-attention")
    with pytest.raises(UserError, match="did you mean 'classify'"):
        usual_settings("clasify", None)
    with pytest.raises(UserError, match="cannot tag"):
        usual_settings("tag", "t5")


@pytest.mark.parametrize("task", TASKS)
def test_every_setting_has_a_meaning(task: str) -> None:
    for kind, family in MODELS.items():
        if issubclass(family.model, TASKS[task].promise):
            config = usual_settings(task, kind)
            assert not [name for name, _, meaning in explained(config) if not meaning or meaning.startswith(" ")], kind
