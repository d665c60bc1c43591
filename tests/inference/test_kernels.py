"""Every kernel equals the plain lines it stands for: any sizes, strides, masks, and numbers of threads."""

from __future__ import annotations

import time

import pytest
import torch
import torch.nn.functional as F
from conftest import VARIANTS, small_model
from test_contract import close, ids

from regard.inference import kernels, pack
from regard.inference.kernels import CODES, attend, normed_sum, panels, pool, product, said_if_slow, store
from regard.inference.linear import PackedLinear
from regard.nn.attention import attention
from regard.nn.layers import ACTIVATIONS, Activation

pytestmark = pytest.mark.skipif(pool() is None, reason="PyTorch runs on another OpenMP here")


@pytest.fixture(params=[1, 2, 3])
def _threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All work is divided, however small."""
    monkeypatch.setattr(kernels, "ALONE", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 8, 33])
@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (3, 8), (100, 65), (301, 512), (29, 2100)])
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu-tanh"])
def test_products(rows: int, shape: tuple[int, int], activation: Activation | None) -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(*shape) * shape[1] ** -0.5, torch.randn(shape[0])
    inputs = 3 * torch.randn(rows, 2, shape[1])[:, 0]
    after = ACTIVATIONS[activation] if activation else None
    expected = F.linear(inputs, weight, bias)
    close(
        product(inputs, panels(weight), panels(bias), len(weight), CODES[after]), after(expected) if after else expected
    )


@pytest.mark.usefixtures("_threads")
def test_a_row_does_not_depend_on_its_neighbours() -> None:
    """To the bit: however many rows are multiplied at once, each sum is formed in the same order."""
    torch.manual_seed(0)
    inputs, weight, bias = torch.randn(21, 65), panels(torch.randn(101, 65)), panels(torch.randn(101))
    alone = torch.cat([product(row[None], weight, bias, 101) for row in inputs])
    for rows in range(1, 22):
        assert torch.equal(product(inputs[:rows], weight, bias, 101), alone[:rows])


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("keys", [1, 9, 70])
def test_attention(width: int, masked: bool, biased: bool, keys: int) -> None:
    torch.manual_seed(0)
    groups, heads, size = 2, 3, 10
    query = 9 * torch.randn(groups * width, 1, heads, size).transpose(1, 2)
    key, value = torch.randn(2, groups, heads, keys + 5, size)[:, :, :, :keys]  # in a buffer with room for more
    mask = torch.rand(groups, 1, 1, keys) < 0.6 if masked else None
    bias = torch.randn(1, heads, width, keys) if biased else None
    if mask is not None:
        mask[1] = False  # nothing to look at: zeros
    asked = query.view(groups, width, heads, size).transpose(1, 2)
    expected = attention(asked, key, value, mask=mask, bias=bias).transpose(1, 2).reshape(groups * width, 1, -1)
    close(attend(query, key, value, mask, bias, size**-0.5), expected)


def test_where_a_bias_forbids_nothing_is_seen() -> None:
    query, pairs, bias = torch.randn(1, 1, 1, 4), torch.randn(2, 1, 1, 3, 4), torch.zeros(1, 1, 1, 3)
    bias[..., 1:] = float("-inf")
    close(attend(query, *pairs, None, bias, 1.0), pairs[1, :, 0, :1])


def test_a_key_that_is_no_number_is_seen_in_the_output() -> None:
    query, pairs = torch.randn(1, 1, 1, 4), torch.randn(2, 1, 1, 3, 4)
    pairs[0, ..., 1, :] = float("nan")
    assert attend(query, *pairs, None, None, 1.0).isnan().all()


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("shape", [(1, 1, 8), (5, 2, 33)])
def test_norms(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x, y = 5 + torch.randn(*shape), torch.randn(*reversed(shape)).permute(2, 1, 0)
    weight, bias = torch.randn(2, shape[-1])
    close(normed_sum(x, y, weight, bias, 1e-5), F.layer_norm(x + y, shape[-1:], weight, bias, 1e-5))


@pytest.mark.usefixtures("_threads")
def test_what_is_stored() -> None:
    parts, buffer = torch.randn(6, 1, 3, 4, 5), torch.zeros(2, 3, 4, 7, 2, 5)  # 3 sentences of 2 beams, 4 heads
    expected = buffer.clone()
    expected[:, :, :, 3] = parts[:, 0, 1:].view(3, 2, 2, 4, 5).permute(2, 0, 3, 1, 4)
    store(parts[:, :, 1:], buffer, 3)
    assert torch.equal(buffer, expected)


def test_what_takes_long_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with said_if_slow("soon done", after=30):
        pass
    assert not caplog.messages
    with said_if_slow("not soon done", after=0.01):
        time.sleep(0.5)
    assert caplog.messages == ["not soon done"]


@torch.no_grad()
@pytest.mark.parametrize("variant", VARIANTS)
def test_without_the_pool_a_packed_model_is_the_same(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = small_model(variant)
    monkeypatch.setattr("regard.inference.LARGE", 0)
    monkeypatch.setattr(kernels, "pool", lambda: None)
    packed = pack(plain)
    assert not any(isinstance(module, PackedLinear) for module in packed.modules())
    state, other = plain.start(ids(3, 5)), packed.start(ids(3, 5))
    for place in range(3):
        expected, state = plain.step(ids(3, seed=place), state)
        found, other = packed.step(ids(3, seed=place), other)
        close(found, expected)
