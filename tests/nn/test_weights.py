"""Weights on disk and in memory: read when asked for, and built without values where they are read next."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from regard.errors import UserError
from regard.models import build, named, parse_model
from regard.nn.weights import StoredTensors, Unfilled


def test_stored_tensors_are_those_of_all_files(tmp_path: Path) -> None:
    tensors = {name: torch.randn(3, 4) for name in "abc"}
    save_file({"a": tensors["a"], "b": tensors["b"]}, tmp_path / "one.safetensors")
    save_file({"c": tensors["c"]}, tmp_path / "two.safetensors")
    stored = StoredTensors(tmp_path / "one.safetensors", tmp_path / "two.safetensors")
    assert stored.keys() == tensors.keys()
    assert all(torch.equal(stored[name], tensor) for name, tensor in tensors.items())


def test_stored_tensors_own_their_memory(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    save_file({"a": torch.ones(3), "b": torch.ones(1000)}, path)
    assert StoredTensors(path)["a"].tolist() == [1, 1, 1]
    StoredTensors(path)["a"].zero_()
    assert StoredTensors(path)["a"].sum() == 3


def test_damaged_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "cut.safetensors").write_bytes(b"123")
    with pytest.raises(UserError, match=r"cut\.safetensors: damaged"):
        StoredTensors(tmp_path / "cut.safetensors")
    with pytest.raises(UserError, match=r"none\.safetensors: no such file"):
        StoredTensors(tmp_path / "none.safetensors")


@pytest.mark.parametrize("kind", ["gpt-nano", "llama-nano", "t5-tiny", "transformer-micro"])
def test_unfilled_models_draw_no_weights(kind: str) -> None:
    before = torch.get_rng_state()
    with Unfilled():
        model = build(parse_model(named(kind)), 50)
    assert torch.equal(torch.get_rng_state(), before)
    filled = build(parse_model(named(kind)), 50)
    assert [weight.shape for weight in model.parameters()] == [weight.shape for weight in filled.parameters()]
