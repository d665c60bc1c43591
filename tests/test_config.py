"""Settings: layers and their origins, round trips, and what is said of wrong ones."""

from pathlib import Path

import pytest

from regard.config import SearchConfig, TrainConfig, dump, flatten, nest, read_origins, read_yaml, validated
from regard.errors import UserError
from regard.models import named
from regard.tasks import settings_of
from regard.training.start import settle

ROOT = Path(__file__).parent.parent


def test_later_layers_win_and_origins_are_kept(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("train: {steps: 7, clip: 0.5}\nmodel: {kind: transformer, size: small, dropout: 0.4}\n")
    config, origins = settle("translate", ["copy"], None, recipe, {"train.steps": 9})
    assert (config.train.steps, config.train.clip, config.train.schedule) == (9, 0.5, "cosine")
    assert (config.model.model_dump()["width"], config.model.model_dump()["dropout"]) == (256, 0.4)
    path = tmp_path / "config.yaml"
    path.write_text(dump(config, origins))
    read = read_origins(path)
    assert read["train.steps"] == "command"
    assert read["train.clip"] == str(recipe)
    assert read["train.schedule"] == "corpus copy"
    assert read["model.width"] == "transformer-small"
    assert read["train.betas"] == "default"
    again, _ = settings_of([("", read_yaml(path))])
    assert again == config, "what is written is what is read"


def test_a_model_named_on_the_command_line_replaces_the_recipes(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("model: {kind: transformer, size: small, heads: 2}\n")
    config, _ = settle("translate", ["copy"], "rnn-attention", recipe, {})
    assert config.model.kind == "rnn-attention"


@pytest.mark.parametrize("recipe", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_recipe_is_valid(recipe: Path) -> None:
    settle(None, ["some.tsv"], None, recipe, {})


def test_flatten_and_nest_are_inverse() -> None:
    nested = {"a": {"b": 1, "c": {"d": [2]}}, "e": None}
    assert nest(dict(flatten(nested))) == nested
    with pytest.raises(UserError, match=r"a\.b: 'a' is a value, not a section"):
        nest({"a": 1, "a.b": 2})


def test_a_name_stands_for_its_settings() -> None:
    assert named("transformer")["size"] == "tiny"
    assert named("rnn-attention-luong")["input_feeding"] is True


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"temperature": 1e-40}, "temperature"),
        ({"repetition_penalty": 1e-45}, "repetition_penalty"),
        ({"method": "greedy", "temperature": 5.0}, r"temperature = 5: is for sampling, and the method is greedy"),
        (
            {"method": "greedy", "beam": 5},
            r"beam = 5: is for beam search, and the method is greedy \(try method = beam",
        ),
        ({"method": "sample", "beam": 5}, r"beam = 5: is for beam search, and the method is sample"),
        ({"beam": 4, "top_k": 3}, r"top_k = 3: is for sampling, and the method is beam \(try method = sample\)"),
    ],
)
def test_settings_that_would_do_nothing_or_break_are_refused(wishes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SearchConfig(method="sample").wishing(wishes)


def test_several_outputs_of_a_greedy_run_are_those_of_a_beam() -> None:
    greedy = SearchConfig(method="greedy", beam=1)  # as a published folder says it
    found = [greedy.wishing(wishes) for wishes in ({}, {"beam": 5}, {"n_best": 3}, {"method": "beam"}, {"beam": 1})]
    assert [(one.method, one.beam) for one in found] == [
        ("greedy", 1), ("beam", 5), ("beam", 4), ("beam", 4), ("greedy", 1),
    ]  # fmt: skip
    assert SearchConfig(method="sample").wishing({"n_best": 3}).method == "sample"


def test_adam_has_no_weight_decay() -> None:
    with pytest.raises(UserError, match=r"weight_decay = 0.1: adam has none \(try optimizer = adamw\)"):
        validated(TrainConfig, {"weight_decay": 0.1})
    assert validated(TrainConfig, {"weight_decay": 0.1, "optimizer": "muon"}).weight_decay == 0.1
