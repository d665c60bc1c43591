"""Orthogonal steps: what they are, which weights take them, and that a stopped run goes on the same."""

from __future__ import annotations

import pytest
import torch

from regard.config import TrainConfig
from regard.models import build, parse_model
from regard.training.muon import Muon, orthogonal
from regard.training.optimizer import build_optimizer, inner_matrices, optimizer_tensors, restore_optimizer

SETTINGS = {"layers": 2, "width": 16, "heads": 2, "max_length": 16}


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 64)])
def test_singular_values_become_about_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    _, turned, _ = orthogonal([torch.randn(16, 16), matrix, torch.randn(16, 48)])  # its neighbours change nothing
    torch.testing.assert_close(turned, orthogonal([matrix])[0], atol=1e-5, rtol=1e-4)
    values = torch.linalg.svdvals(turned)
    assert values.min() > 0.5
    assert values.max() < 1.3
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(turned.flatten(), (u @ v).flatten(), dim=0) > 0.95


def test_products_in_bfloat16_are_good_enough() -> None:
    """The loop takes the optimiser's step in the run's precision."""
    torch.manual_seed(0)
    matrix = torch.randn(48, 32)
    with torch.autocast("cpu", torch.bfloat16):
        (turned,) = orthogonal([matrix])
    assert turned.dtype == torch.bfloat16, "the products were made in bfloat16"
    values = torch.linalg.svdvals(turned.float())
    assert values.min() > 0.5
    assert values.max() < 1.3


@pytest.mark.parametrize(("kind", "maps"), [("gpt", 3 + 1 + 1 + 1), ("llama", 1 + 2 + 1 + 2 + 1)])
def test_all_matrices_of_layers_and_no_others(kind: str, maps: int) -> None:
    model = build(parse_model({"kind": kind, **SETTINGS}), 20)
    found = inner_matrices(model)
    assert sum(found.values()) == 2 * maps
    weights = dict(model.named_parameters())
    assert all(name.startswith("decoder.") and weights[name].ndim == 2 for name in found)
    assert {name for name, weight in weights.items() if weight.ndim > 1} - found.keys() <= {
        "words.weight", "places.weight", "output.weight",
    }  # fmt: skip


@pytest.mark.parametrize(("cell", "gates"), [("gru", 3), ("lstm", 4)])
def test_gates_of_recurrent_cells_turn_one_by_one(cell: str, gates: int) -> None:
    found = inner_matrices(build(parse_model({"kind": "rnn-attention", "cell": cell, "embedding": 6, "width": 8}), 20))
    assert set(found.values()) == {gates}
    assert {name.split(".")[0] for name in found} == {"encoder", "decoder"}
    assert len(found) == 2 * 2 + 2  # of inputs and states: both directions, and the decoder


def test_a_restored_optimizer_goes_on_the_same() -> None:
    def steps(model: torch.nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
        for number in range(first, last):
            ids = torch.randint(0, 20, (3, 9), generator=torch.Generator().manual_seed(number))
            model.output(model(ids)).logsumexp(dim=-1).sum().backward()  # type: ignore[operator]
            optimizer.step()
            optimizer.zero_grad()

    config = TrainConfig(optimizer="muon", weight_decay=0.1)
    models = []
    for stop in (6, 3):
        torch.manual_seed(0)
        model = build(parse_model({"kind": "gpt", "dropout": 0.0, "attention_dropout": 0.0, **SETTINGS}), 20)
        optimizer = build_optimizer(model, config)
        assert isinstance(optimizer, Muon)
        for group in optimizer.param_groups:
            group["lr"] = 1e-3
        steps(model, optimizer, 0, stop)
        if stop < 6:
            kept = {name: tensor.clone() for name, tensor in optimizer_tensors(model, optimizer).items()}
            optimizer = build_optimizer(model, config)
            restore_optimizer(model, optimizer, kept)
            steps(model, optimizer, stop, 6)
        models.append(model)
    one, other = (dict(model.named_parameters()) for model in models)
    assert all(torch.equal(one[name], other[name]) for name in one)
