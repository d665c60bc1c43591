"""Products by oneDNN equal PyTorch's own, there and back."""

import pytest
import torch
import torch.nn.functional as F

from regard.nn import products
from regard.nn.products import FEWEST_ROWS, by_onednn, linear, product, transposed_product


@pytest.fixture(autouse=True)
def slow_mkl(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor where oneDNN is taken; it multiplies on any."""
    monkeypatch.setattr(products, "mkl_is_slow", lambda: True)


@pytest.mark.parametrize("shape", [(FEWEST_ROWS, 12), (3, 50, 12), (2, 5, 20, 12)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("outputs", [5, 40])
def test_linear_and_its_gradients_are_those_of_pytorch(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], biased: bool, outputs: int
) -> None:
    used = []
    monkeypatch.setattr(products, "product", lambda *given: used.append(1) or product(*given))
    grown = []
    for form in (F.linear, linear):
        torch.manual_seed(1)
        inputs, weight = torch.randn(shape, requires_grad=True), torch.randn(outputs, 12, requires_grad=True)
        bias = torch.randn(outputs, requires_grad=True) if biased else None
        output = form(inputs, weight, bias)
        (output * torch.randn(output.shape)).sum().backward()
        grown.append([output, inputs.grad, weight.grad, *([bias.grad] if bias is not None else [])])
    assert len(used) == 3, "forwards, and back to the inputs and to the weight"
    for one, other in zip(*grown, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
        assert other.is_contiguous()


def test_inputs_that_are_not_learned_get_no_gradient() -> None:
    inputs, weight = torch.randn(FEWEST_ROWS, 4), torch.randn(3, 4, requires_grad=True)
    linear(inputs, weight).sum().backward()
    assert inputs.grad is None
    torch.testing.assert_close(weight.grad, inputs.sum(dim=0).expand(3, 4))


@pytest.mark.parametrize(("rows", "columns"), [(3, 7), (7, 3)])
def test_transposed_product(rows: int, columns: int) -> None:
    left, right = torch.randn(9, rows), torch.randn(9, columns)
    torch.testing.assert_close(transposed_product(left, right), left.t() @ right, atol=1e-5, rtol=1e-5)


def test_what_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.randn(FEWEST_ROWS, 4)
    assert by_onednn(rows)
    assert not by_onednn(rows[1:]), "too few"
    assert not by_onednn(rows.double())
    with torch.autocast("cpu", torch.bfloat16):
        assert not by_onednn(rows)
        assert linear(rows, torch.randn(3, 4, requires_grad=True)).dtype == torch.bfloat16
    monkeypatch.setattr(products, "mkl_is_slow", lambda: False)
    assert not by_onednn(rows)
