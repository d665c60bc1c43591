"""Attention at every step of a decoder in training is `attention`, there and back."""

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from regard.nn.attention import SCORES, ScoreName, attention, padding_mask
from regard.nn.step_attention import StepAttention

WIDTH, STEPS = 6, 4


def looked(score: nn.Module, mask: Tensor, unrolled: bool) -> tuple[Tensor, list[Tensor]]:
    """Contexts in which each step asks with what the step before found, and what everything learns from them."""
    torch.manual_seed(3)
    memory, query = (torch.randn(shape, requires_grad=True) for shape in ((3, 1, 5, WIDTH), (3, 1, 1, WIDTH)))
    key = score.key(memory)  # type: ignore[operator]
    step = StepAttention(key, memory, mask, score)  # type: ignore[arg-type]
    contexts = []
    asked = query
    for _ in range(STEPS):
        asked = step(asked) if unrolled else attention(asked, key, memory, mask=mask, score=score)  # type: ignore[arg-type]
        contexts.append(asked)
    found = torch.cat(contexts, dim=2)
    learning = [memory, query, *score.parameters()]
    return found, list(torch.autograd.grad((found * torch.randn(found.shape)).sum(), learning))


def mask() -> Tensor:
    return padding_mask(torch.tensor([[5, 5, 5, 5, 5], [5, 5, 0, 0, 0], [0, 0, 0, 0, 0]]), 0)


@pytest.mark.parametrize("name", SCORES)
def test_contexts_and_gradients_are_those_of_attention(name: ScoreName) -> None:
    score = SCORES[name](WIDTH, WIDTH)
    (ours, grads), (theirs, expected) = (looked(score, mask(), unrolled) for unrolled in (True, False))
    torch.testing.assert_close(ours, theirs)
    for one, other in zip(grads, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_a_second_way_back_has_the_same_gradient() -> None:
    memory, query = torch.randn(2, 1, 3, WIDTH, requires_grad=True), torch.randn(2, 1, 1, WIDTH)
    everywhere = torch.ones(2, 1, 1, 3, dtype=torch.bool)
    step = StepAttention(memory, memory, everywhere, SCORES["dot"](WIDTH, WIDTH))
    total = (step(query) + step(query * 2)).sum()
    once, again = (torch.autograd.grad(total, memory, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(once, again)


def test_nothing_is_kept_after_the_way_back() -> None:
    memory = torch.randn(2, 1, 3, WIDTH, requires_grad=True)
    everywhere = torch.ones(2, 1, 1, 3, dtype=torch.bool)
    step = StepAttention(memory, memory, everywhere, SCORES["dot"](WIDTH, WIDTH))
    contexts = step(step(memory[:, :, :1] * 1))
    kept = weakref.ref(step.uses)
    contexts.sum().backward()
    del step, contexts
    gc.collect()
    assert kept() is None, "a graph that its own sums keep alive would fill the memory, step by step"


def test_products_in_bfloat16_are_near() -> None:
    score = SCORES["additive"](WIDTH, WIDTH)
    _, expected = looked(score, mask(), unrolled=False)
    with torch.autocast("cpu", torch.bfloat16):
        _, found = looked(score, mask(), unrolled=True)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert (ours - theirs).norm() < 0.03 * theirs.norm()
