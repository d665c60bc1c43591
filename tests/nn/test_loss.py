"""The chunked loss equals the plain one, and so do its gradients."""

import pytest
import torch

from regard.nn import products
from regard.nn.loss import CHUNK, direction_loss, distillation_loss, plain_loss, projected_loss, soft_loss


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [1, CHUNK, 2 * CHUNK + 3])
def test_chunked_equals_plain(
    monkeypatch: pytest.MonkeyPatch, onednn: bool, smoothing: float, biased: bool, rows: int
) -> None:
    monkeypatch.setattr(products, "mkl_is_slow", lambda: onednn)
    grown = []
    for loss in (plain_loss, projected_loss):
        torch.manual_seed(1)
        hidden = torch.randn(rows, 8, dtype=torch.float64).float().requires_grad_()
        weight = torch.randn(11, 8).requires_grad_()
        bias = torch.randn(11).requires_grad_() if biased else None
        target = torch.randint(0, 11, (rows,))
        value = loss(hidden * 1, weight, bias, target, smoothing)
        (value / 7).backward()
        grown.append([value, hidden.grad, weight.grad, *([bias.grad] if bias is not None else [])])
        with torch.no_grad():
            torch.testing.assert_close(loss(hidden, weight, bias, target, smoothing), value.detach())
    for one, other in zip(*grown, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_chunked_equals_plain_in_half_precision(smoothing: float) -> None:
    grown = []
    for loss, kind in ((plain_loss, torch.float32), (projected_loss, torch.bfloat16)):
        torch.manual_seed(1)
        hidden, weight = torch.randn(CHUNK + 3, 8, requires_grad=True), torch.randn(11, 8, requires_grad=True)
        bias, target = torch.randn(11, requires_grad=True), torch.randint(0, 11, (CHUNK + 3,))
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == torch.bfloat16):
            value = loss(hidden, weight, bias, target, smoothing)
        value.backward()
        grown.append([value, hidden.grad, weight.grad, bias.grad])
    for one, other in zip(*grown, strict=True):
        assert one is not None
        assert other is not None
        assert (one - other).norm() < 0.02 * one.norm()


def test_an_answer_that_is_thought_impossible_teaches_all_the_same() -> None:
    found = []
    for loss in (plain_loss, projected_loss):
        hidden, weight = torch.tensor([[200.0, 0.0]], requires_grad=True), torch.eye(3, 2, requires_grad=True)
        value = loss(hidden, weight, None, torch.tensor([1]), 0.1)
        value.backward()
        found.append([hidden.grad, weight.grad])
        assert 60 < value.item() < 201, "a number, and a large one"
    torch.testing.assert_close(*found)


def test_a_tied_weight_receives_both_gradients() -> None:
    torch.manual_seed(0)
    found = []
    for loss in (plain_loss, projected_loss):
        torch.manual_seed(1)
        table = torch.nn.Embedding(11, 8)
        ids = torch.randint(0, 11, (5,))
        loss(table(ids), table.weight, None, ids.roll(1), 0.1).backward()
        found.append(table.weight.grad)
    torch.testing.assert_close(*found)


def test_soft_loss_is_the_divergence_from_the_teacher() -> None:
    torch.manual_seed(0)
    student, teacher = torch.randn(4, 7), torch.randn(4, 7)
    for temperature in (1.0, 2.0):
        p, q = (torch.softmax(one / temperature, dim=-1) for one in (teacher, student))
        expected = temperature**2 * (p * (p / q).log()).sum()
        torch.testing.assert_close(soft_loss(student, teacher, temperature), expected)
    torch.testing.assert_close(soft_loss(teacher + 3, teacher, 2.0), torch.tensor(0.0), atol=1e-5, rtol=0)


def test_direction_loss_ignores_length() -> None:
    hidden = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    teacher = torch.tensor([[5.0, 0.0], [0.0, -1.0], [1.0, 0.0]])
    torch.testing.assert_close(direction_loss(hidden, teacher), torch.tensor(0 + 2 + 1 - 0.5**0.5))


def test_distillation_weighs_teacher_words_and_direction() -> None:
    torch.manual_seed(0)
    teacher, teacher_hidden, target = torch.randn(6, 9), torch.randn(12, 4), torch.randint(0, 9, (6,))
    logits, hidden = torch.randn(6, 9), torch.randn(12, 4)
    words = -torch.log_softmax(logits, dim=-1)[torch.arange(6), target].sum()
    expected = 5 * soft_loss(logits, teacher, 2.0) + 2 * words + direction_loss(hidden, teacher_hidden) / 2
    torch.testing.assert_close(distillation_loss(logits, teacher, target, hidden, teacher_hidden), expected)
