"""The chunked loss equals the plain one, and so do its gradients."""

import pytest
import torch

from regard.nn.loss import CHUNK, plain_loss, projected_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [1, CHUNK, 2 * CHUNK + 3])
def test_chunked_equals_plain(smoothing: float, biased: bool, rows: int) -> None:
    torch.manual_seed(0)
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
