"""The one attention against a naive loop, each score against its formula, masks against their meaning."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.attention import SCORES, attention, causal_mask, padding_mask, scaled_dot, window_mask
from regard.nn.record import Recording


def tensors(*shapes: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(*shape) for shape in shapes]


FORMULAS = {
    "dot": lambda score, q, k: float(q @ k),
    "scaled-dot": lambda score, q, k: float(q @ k) / math.sqrt(len(q)),
    "general": lambda score, q, k: float(q @ (score.weight.weight @ k)),
    "additive": lambda score, q, k: float(
        score.v.weight[0] @ torch.tanh(score.query_weight.weight @ q + score.key_weight.weight @ k)
    ),
    "concat": lambda score, q, k: float(score.v.weight[0] @ torch.tanh(score.weight.weight @ torch.cat([q, k]))),
    "cosine": lambda score, q, k: float(score.sharpness * (q @ k) / (q.norm() * k.norm())),
}


@pytest.mark.parametrize("name", SCORES)
@torch.no_grad()
def test_each_score_is_its_formula(name: str) -> None:
    score = SCORES[name](6, 6)
    query, memory = tensors((2, 3, 4, 6), (2, 3, 5, 6))
    scores = score(query, score.key(memory))
    for b, h, q, k in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        expected = FORMULAS[name](score, query[b, h, q], memory[b, h, k])
        assert scores[b, h, q, k].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [2, 8])  # of many short rows the fused kernel is the slower one
@torch.no_grad()
def test_attention_is_the_naive_loop(name: str, masked: bool, biased: bool, rows: int) -> None:
    score = SCORES[name](6, 6)
    query, memory, value, bias = tensors((rows, 3, 4, 6), (rows, 3, 5, 6), (rows, 3, 5, 6), (1, 3, 4, 5))
    mask = torch.rand(rows, 1, 4, 5) > 0.4 if masked else None
    bias = bias if biased else None
    key = score.key(memory)
    looked = attention(query, key, value, mask=mask, bias=bias, score=score)
    scores = score(query, key)
    for b in range(0, rows, rows // 2):
        for h in range(3):
            for q in range(4):
                allowed = [k for k in range(5) if mask is None or mask[b, 0, q, k]]
                exps = [math.exp(scores[b, h, q, k] + (bias[0, h, q, k] if bias is not None else 0)) for k in allowed]
                expected = sum(
                    (e / sum(exps) * value[b, h, k] for e, k in zip(exps, allowed, strict=True)), torch.zeros(6)
                )
                torch.testing.assert_close(looked[b, h, q], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("rows", [2, 8])
@pytest.mark.parametrize("record", [None, Recording()])
def test_dot_products_take_the_fused_kernel_unless_rows_are_many_and_short(
    rows: int, record: Recording | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    fused = F.scaled_dot_product_attention

    def counted(*arguments: Any, **named: Any) -> torch.Tensor:
        calls.append(1)
        return fused(*arguments, **named)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    query, key, value = tensors((rows, 3, 4, 6), (rows, 3, 5, 6), (rows, 3, 5, 6))
    attention(query, key, value, record=record, site="here")
    assert len(calls) == (1 if rows == 2 else 0)


@pytest.mark.parametrize("name", SCORES)
def test_a_row_that_may_attend_to_nothing_gives_zeros_and_no_nan(name: str) -> None:
    score = SCORES[name](6, 6)
    query, memory, value = (t.requires_grad_() for t in tensors((1, 2, 3, 6), (1, 2, 4, 6), (1, 2, 4, 6)))
    mask = torch.ones(1, 1, 3, 4, dtype=torch.bool)
    mask[0, 0, 1] = False
    record = Recording()
    looked = attention(query, score.key(memory), value, mask=mask, score=score, record=record, site="here")
    assert (looked[:, :, 1] == 0).all()
    assert (record.batch("here")[:, :, 1] == 0).all()
    looked.sum().backward()
    assert all(t.grad is not None and t.grad.isfinite().all() for t in (query, memory, value))


@pytest.mark.parametrize("name", SCORES)
def test_what_is_recorded_makes_the_output_and_is_taken_before_dropout(name: str) -> None:
    score = SCORES[name](6, 6)
    query, memory, value = tensors((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 6))
    clean, dropped = Recording(), Recording()
    looked = attention(query, score.key(memory), value, score=score, record=clean, site="a")
    torch.testing.assert_close(clean.batch("a") @ value, looked, atol=1e-5, rtol=1e-4)
    attention(query, score.key(memory), value, score=score, dropout=0.5, record=dropped, site="a")
    assert torch.equal(clean.batch("a"), dropped.batch("a"))


def test_dropout_changes_the_output_and_keeps_its_mean() -> None:
    query, key, value = tensors((1, 1, 2, 4), (1, 1, 6, 4), (1, 1, 6, 4))
    additive = SCORES["additive"](4, 4)
    for score in (scaled_dot, additive):
        projected = score.key(key)
        expected = attention(query, projected, value, score=score)
        torch.manual_seed(0)
        drawn = [attention(query, projected, value, score=score, dropout=0.3) for _ in range(3000)]
        assert not torch.equal(drawn[0], expected)
        torch.testing.assert_close(torch.stack(drawn).mean(dim=0), expected, atol=0.06, rtol=0.1)


def test_masks_mean_what_they_say() -> None:
    assert padding_mask(torch.tensor([[5, 6, 0]]), 0).tolist() == [[[[True, True, False]]]]
    assert causal_mask(2, 4)[0, 0].tolist() == [[True, True, True, False], [True, True, True, True]]
    window = window_mask(4, 4, 1)[0, 0]
    assert [[abs(i - j) <= 1 for j in range(4)] for i in range(4)] == window.tolist()
    assert (causal_mask(4, 4) & window_mask(4, 4, 1))[0, 0].sum() == 7


def test_the_softmax_of_attention_is_written_once() -> None:
    import re
    from pathlib import Path

    import regard

    package = Path(str(regard.__file__)).parent
    homes = {
        path.name
        for folder in ("nn", "models", "inference", "hub")
        for path in (package / folder).glob("*.py")
        if re.search(r"(torch|F|\w+)\.softmax\(", path.read_text(encoding="utf8"))
    }
    assert homes - {"loss.py"} == {"attention.py"}, "the loss has one of its own, over the vocabulary"
