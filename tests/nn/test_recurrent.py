"""Recurrent layers in training are those of PyTorch, there and back."""

import pytest
import torch
from torch import Tensor, nn

from regard.nn.recurrent import Bridge, Cell, Recurrent
from regard.nn.state import Hidden

EVERY = [(cell, layers, both_ways) for cell in ("gru", "lstm") for layers in (1, 2) for both_ways in (False, True)]


def grown(weights: nn.Module, given: list[Tensor], results: list[Tensor]) -> list[Tensor]:
    """The results, and the gradients of a number that depends on all of them."""
    torch.manual_seed(7)
    sum((result * torch.randn(result.shape)).sum() for result in results).backward()  # type: ignore[union-attr]
    found = [leaf.grad for leaf in [*given, *weights.parameters()]]
    assert all(grad is not None for grad in found), "everything learns"
    for leaf in [*given, *weights.parameters()]:
        leaf.grad = None
    return [*results, *(grad for grad in found if grad is not None)]


@pytest.mark.parametrize(("cell", "layers", "both_ways"), EVERY)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_sequences_and_their_gradients_are_those_of_pytorch(
    monkeypatch: pytest.MonkeyPatch,
    cell: Cell,
    layers: int,
    both_ways: bool,
    padded: bool,
    started: bool,
    kind: torch.dtype,
) -> None:
    torch.manual_seed(1)
    module = Recurrent(cell, 5, 6, layers=layers, both_ways=both_ways).to(kind)
    inputs = torch.randn(4, 7, 5, dtype=kind, requires_grad=True)
    lengths = torch.tensor([7, 3, 1, 5]) if padded else None
    size = (4, layers * (1 + both_ways), 6)
    memories = [torch.randn(size, dtype=kind, requires_grad=True) for _ in range(1 + (cell == "lstm"))]
    state = Hidden(*memories) if started else None
    found = []
    for learns in (True, False):
        if not learns:
            monkeypatch.setattr(Recurrent, "_learns", lambda self: False)
        outputs, last = module(inputs, state, lengths)
        results = [outputs, last.hidden, *([last.cell] if last.cell is not None else [])]
        found.append(grown(module, [inputs, *(memories if started else [])], results))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("cell", "layers"), [("gru", 1), ("gru", 2), ("lstm", 1), ("lstm", 2)])
def test_steps_in_turn_have_the_gradients_of_the_sequence(cell: Cell, layers: int) -> None:
    torch.manual_seed(1)
    module = Recurrent(cell, 5, 6, layers=layers)
    inputs = torch.randn(4, 7, 5, requires_grad=True)
    memories = [torch.randn(4, layers, 6, requires_grad=True) for _ in range(1 + (cell == "lstm"))]
    whole, _ = module(inputs, Hidden(*memories))
    expected = grown(module, [inputs, *memories], [whole])
    read, state, outputs = module.unrolled(), Hidden(*memories), []
    for token in inputs.split(1, dim=1):
        output, state = read(token, state)
        outputs.append(output)
    for ours, theirs in zip(grown(module, [inputs, *memories], [torch.cat(outputs, dim=1)]), expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_second_pass_back_adds_the_same_gradient() -> None:
    module = Recurrent("gru", 5, 6)
    total = module(torch.randn(4, 7, 5))[0].sum()
    total.backward(retain_graph=True)
    once = [weight.grad.clone() for weight in module.parameters() if weight.grad is not None]
    total.backward()
    for weight, grad in zip(module.parameters(), once, strict=True):
        torch.testing.assert_close(weight.grad, 2 * grad)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_way_back_that_ends_at_the_inputs_leaves_nothing(cell: Cell) -> None:
    module, inputs = Recurrent(cell, 5, 6), torch.randn(4, 7, 5, requires_grad=True)
    outputs, _ = module(inputs)
    expected = torch.autograd.grad(outputs.sum(), list(module.parameters()), retain_graph=True)
    torch.autograd.grad(outputs[:, :3].sum(), [inputs], retain_graph=True)
    outputs.sum().backward()
    for weight, grad in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.grad, grad)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_products_in_bfloat16_are_near(cell: Cell) -> None:
    torch.manual_seed(1)
    module = Recurrent(cell, 16, 32, both_ways=True)
    inputs = torch.randn(4, 7, 16, requires_grad=True)
    expected = grown(module, [inputs], [module(inputs)[0]])
    with torch.autocast("cpu", torch.bfloat16):
        outputs, last = module(inputs)
        found = grown(module, [inputs], [outputs])
    assert outputs.dtype == torch.bfloat16, "what others multiply need not be rounded again"
    assert last.hidden.dtype == torch.float32, "what is carried on is not rounded"
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_decoder_starts_with_a_state_that_is_not_rounded(cell: Cell) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        state = Bridge(8, 6, 2, cell)(torch.randn(4, 8))
    assert {memory.dtype for memory in (state.hidden, state.cell) if memory is not None} == {torch.float32}
