"""A packed model keeps the contract of all models, finds what the plain one finds, and never loses a shared past."""

from __future__ import annotations

import sys

import pytest
import torch
from conftest import BOS, EOS, PAD, VARIANTS, small_model
from test_contract import (  # noqa: F401  collected here again, with the packed `model` below
    close,
    ids,
    test_a_batch_equals_its_sentences_one_by_one,
    test_a_record_of_some_heads_and_rows_equals_that_part_of_all,
    test_cached_equals_uncached,
    test_decoding_a_batch_equals_one_by_one,
    test_padding_changes_nothing,
    test_recording_changes_nothing_and_rows_sum_to_one,
    test_selected_rows_go_on_as_they_were,
    test_the_future_does_not_change_the_past,
)
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding import Limits, search
from regard.errors import UserError
from regard.inference import Weights, pack
from regard.inference.kernels import multiplies_bytes, pool
from regard.inference.linear import (
    FEW,
    ByteLinear,
    Int8Linear,
    PackedEmbedding,
    PackedInt8Linear,
    PackedLinear,
    SharedLinear,
)
from regard.models.base import EncoderDecoder
from regard.nn.layers import ACTIVATIONS, Activation

TRANSFORMERS = [name for name in VARIANTS if not name.startswith("rnn")]


@pytest.fixture(autouse=True)
def _kernels_for_small_models_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inference.LARGE", 0)


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return pack(small_model(request.param))


@pytest.fixture
def _vnni() -> None:
    if ByteLinear not in int8_kinds():
        pytest.skip("this processor has no VNNI")


def int8_kinds() -> list[type[ByteLinear] | type[PackedInt8Linear]]:
    """The linear maps in 8 bits by our kernels, where there are any."""
    if pool() is None:
        return []
    return [PackedInt8Linear, *([ByteLinear] if multiplies_bytes() else [])]


def sharper(model: EncoderDecoder) -> EncoderDecoder:
    """Random weights that are larger, so that outputs differ and beams change places."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.mul_(3)
    return model


@pytest.mark.parametrize("variant", TRANSFORMERS)
@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_the_search_finds_the_same(variant: str, method: str) -> None:
    plain = sharper(small_model(variant))
    source = ids(9, 7)
    source[2, 4:], source[5, 2:] = PAD, PAD
    options = SearchConfig(method=method, beam=4, n_best=1 if method == "greedy" else 3)
    limits = Limits(BOS, EOS, [12, 20, 8, 20, 5, 20, 20, 3, 20], never=(PAD, BOS))
    expected, found = (search(one, source, options, limits) for one in (plain, pack(plain)))
    assert [[one.ids for one in best] for best in found] == [[one.ids for one in best] for best in expected]
    scores = [one.score for best in expected for one in best]
    assert [one.score for best in found for one in best] == pytest.approx(scores, abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("variant", TRANSFORMERS)
def test_beams_may_be_reordered_in_every_way(variant: str) -> None:
    """Fan out, reorder, drop sentences, leave the groups, fan out again: always as the plain model."""
    plain = small_model(variant)
    states = [(one, one.start(ids(3, 5))) for one in (plain, pack(plain))]
    orders = [
        [0, 1, 2],
        [0, 0, 0, 1, 1, 1, 2, 2, 2],
        [2, 0, 0, 3, 4, 5, 8, 8, 6],
        [3, 3, 5, 6, 8, 8],
        [1, 0, 2, 3, 4, 4],
        [5, 0, 3],
        [0, 0, 2, 2],
        [3, 1, 0, 2],
        [2],
    ]
    for place, rows in enumerate(orders):
        chosen = torch.tensor(rows)
        states = [(one, state.select(chosen)) for one, state in states]
        tokens = ids(len(rows), seed=place)
        (expected, one), (found, other) = (one.step(tokens, state) for one, state in states)
        close(found, expected)
        states = [(states[0][0], one), (states[1][0], other)]


@torch.no_grad()
def test_a_state_can_be_continued_twice() -> None:
    """What one continuation writes must not appear in the past of another."""
    for width in (1, 3):
        model = pack(small_model("transformer"))
        state = model.start(ids(2, 5)).select(torch.arange(2).repeat_interleave(width))
        for place in range(3):
            _, state = model.step(ids(2 * width, seed=place), state)
        first, _ = model.step(ids(2 * width, seed=8), model.step(ids(2 * width, seed=7), state)[1])
        model.step(ids(2 * width, seed=6), model.step(ids(2 * width, seed=5), state)[1])
        again, _ = model.step(ids(2 * width, seed=8), model.step(ids(2 * width, seed=7), state)[1])
        assert torch.equal(first, again)


@torch.no_grad()
def test_a_past_outgrows_its_first_buffer() -> None:
    plain = small_model("transformer")
    target = ids(4, 60)
    expected = plain.output(plain(ids(4, 5), target))
    packed = pack(plain)
    state = packed.start(ids(4, 5))
    for place in range(target.shape[1]):
        logits, state = packed.step(target[:, place], state)
        close(logits, expected[:, place])


@torch.no_grad()
@pytest.mark.parametrize("rows", [0, 1, 2, 7, 32, 300])
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
@pytest.mark.parametrize("bias", [False, True])
def test_linear_maps_equal_the_plain_product(rows: int, activation: Activation | None, bias: bool) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Linear(24, 37, bias=bias)
    inputs = torch.randn(rows, 1, 24)
    after = ACTIVATIONS[activation] if activation else None
    expected = after(plain(inputs)) if after else plain(inputs)
    quick = pool() is not None
    for kind in (SharedLinear, PackedLinear) if quick else (SharedLinear,):
        close(kind(plain.weight, plain.bias, after)(inputs), expected)
    for kind in (Int8Linear, *int8_kinds()) if rows else ():
        rounded: Tensor = kind(plain.weight, plain.bias, after)(inputs)
        assert (rounded - expected).abs().max() < 0.03 * expected.abs().max(), "8 and 7 bits: an error of a hundredth"


@torch.no_grad()
@pytest.mark.skipif(pool() is None, reason="PyTorch runs on another OpenMP here")
@pytest.mark.parametrize("rows", [1, 3, 4, FEW])
@pytest.mark.parametrize("outputs", [3, 37, 64])
def test_in_8_bits_few_rows_stay_as_they_are(rows: int, outputs: int) -> None:
    """Only the weights are rounded, to the nearest of 255 steps."""
    torch.manual_seed(0)
    weight, bias, inputs = torch.randn(outputs, 24), torch.randn(outputs), torch.randn(rows, 24)
    step = weight.abs().amax(dim=1, keepdim=True) / 127
    expected = torch.nn.functional.linear(inputs, (weight / step).round() * step, bias)
    close(PackedInt8Linear(weight, bias)(inputs), expected)


@torch.no_grad()
@pytest.mark.usefixtures("_vnni")
@pytest.mark.parametrize("rows", [1, 3, 4, 8, 9, 33])
@pytest.mark.parametrize("shape", [(3, 1), (37, 23), (64, 24), (301, 130), (29, 2100)])
def test_rows_and_weights_in_8_bits(rows: int, shape: tuple[int, int]) -> None:
    """Each is rounded to the nearest of 255 steps, and their product is exact: no sum overflows."""
    torch.manual_seed(0)
    weight, bias, inputs = torch.randn(shape), torch.randn(shape[0]), 5 * torch.randn(rows, shape[1])
    weight[0], inputs[0] = weight[0].abs().max(), inputs[0].abs().max()  # the largest sum there is
    inputs[-1] = 0
    step, own = (one.abs().amax(dim=1, keepdim=True) / 127 for one in (weight, inputs))
    whole = (inputs / own).nan_to_num().round().double() @ (weight / step).round().double().T
    found = ByteLinear(weight, bias)(inputs)
    torch.testing.assert_close(found, (whole * own * step.T + bias).float(), rtol=1e-5, atol=1e-5)
    assert torch.equal(found[-1], bias), "a row of zeros"


@torch.no_grad()
@pytest.mark.usefixtures("_vnni")
def test_in_8_bits_a_row_does_not_depend_on_its_neighbours() -> None:
    """Nor on what of them is no number, nor on how many threads there are."""
    torch.manual_seed(0)
    linear, inputs = ByteLinear(torch.randn(101, 65), None), torch.randn(21, 65)
    alone = torch.cat([linear(row[None]) for row in inputs])
    for rows in range(1, 22):
        assert torch.equal(linear(inputs[:rows]), alone[:rows])
    inputs[3, 7] = float("nan")
    found = linear(inputs)
    assert found[3].isnan().all()
    assert torch.equal(torch.cat([found[:3], found[4:]]), torch.cat([alone[:3], alone[4:]]))


@torch.no_grad()
@pytest.mark.usefixtures("_vnni")
def test_in_8_bits_other_numbers_take_the_long_way() -> None:
    torch.manual_seed(0)
    weight, bias, inputs = torch.randn(37, 23), torch.randn(37), torch.randn(5, 23)
    linear = ByteLinear(weight, bias, torch.nn.functional.relu)
    wanted = inputs.clone().requires_grad_()
    with torch.enable_grad():
        found = linear(wanted)
        found.sum().backward()
    assert wanted.grad is not None
    assert (found - linear(inputs)).abs().max() < 0.2, "the same weights; only the rows are not rounded"


@torch.no_grad()
@pytest.mark.parametrize("vnni", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_int8_stays_close(variant: str, vnni: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if vnni and ByteLinear not in int8_kinds():
        pytest.skip("this processor has no VNNI")
    monkeypatch.setattr("regard.inference.multiplies_bytes", lambda: vnni)
    plain = small_model(variant)
    source, target = ids(4, 6), ids(4, 5, seed=2)
    expected, found = (one.output(one(source, target)) for one in (plain, pack(plain, "int8")))
    assert (found - expected).std() < 0.1 * expected.std()
    assert not torch.equal(found, expected), "it is rounded"
    packed = pack(plain, "int8")
    one, other = plain.start(source), packed.start(source)
    for rows in ([0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 4, 5], [3, 2, 4, 4]):
        one, other = one.select(torch.tensor(rows)), other.select(torch.tensor(rows))
        tokens = ids(len(rows), seed=len(rows))
        (expected, one), (found, other) = plain.step(tokens, one), packed.step(tokens, other)
        assert (found - expected).std() < 0.1 * expected.std()


@pytest.mark.parametrize("variant", VARIANTS)
def test_linear_maps_are_packed(variant: str) -> None:
    plain = small_model(variant)
    kinds = {type(module) for module in pack(plain).modules()}
    assert (PackedLinear if sys.platform == "linux" else SharedLinear) in kinds, "PyTorch's threads are found"
    assert not {PackedLinear, SharedLinear} <= kinds
    kinds = {type(module) for module in pack(plain, "int8").modules()}
    assert kinds & {Int8Linear, ByteLinear}


@pytest.mark.parametrize("variant", TRANSFORMERS)
def test_where_the_kernels_do_not_fit_pytorch_goes_on(variant: str) -> None:
    """Other kinds of numbers, and gradients, are not theirs."""
    plain = small_model(variant)
    packed, source, target = pack(plain), ids(3, 5), ids(3, 1)
    with torch.autocast("cpu", torch.bfloat16):
        close_enough = (packed(source, target) - plain(source, target)).abs().max()
    assert close_enough < 0.1
    hidden = plain(source, target).detach().requires_grad_()
    packed.output(hidden).logsumexp(-1).sum().backward()
    assert hidden.grad is not None


def test_packing_changes_nothing_in_the_model() -> None:
    plain = small_model("transformer")
    before = {name: weight.clone() for name, weight in plain.state_dict().items()}
    pack(plain), pack(plain, "int8")
    assert {name: weight.shape for name, weight in plain.state_dict().items()} == {
        n: w.shape for n, w in before.items()
    }
    assert all(torch.equal(weight, before[name]) for name, weight in plain.state_dict().items())


def test_int8_of_other_numbers_is_refused() -> None:
    with pytest.raises(UserError, match=r"int8 is made from weights of float32, not of torch.float64"):
        pack(small_model("transformer").double(), "int8")


def test_int8_away_from_the_cpu_is_refused() -> None:
    elsewhere = small_model("transformer").to("meta")
    assert pack(elsewhere) is elsewhere
    with pytest.raises(UserError, match="CPU only"):
        pack(elsewhere, "int8")


@torch.no_grad()
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_that_is_not_kept_gives_up_its_weights(variant: str, weights: Weights) -> None:
    """And its twin is the same: tied weights are still there for those who share them."""
    plain, given = small_model(variant), small_model(variant)
    before = sum(weight.numel() for weight in given.parameters())
    expected, found = pack(plain, weights), pack(given, weights, keep=False)
    assert torch.equal(found.output(found(ids(3, 5), ids(3, 4))), expected.output(expected(ids(3, 5), ids(3, 4))))
    assert sum(weight.numel() for weight in given.parameters()) < before


@torch.no_grad()
@pytest.mark.skipif(pool() is None, reason="PyTorch runs on another OpenMP here")
def test_tied_weights_are_held_once() -> None:
    plain = small_model("transformer")
    packed = pack(plain)
    assert {type(packed.source_embedding), type(packed.target_embedding)} == {PackedEmbedding}
    for shape in ((), (3,), (2, 5)):
        assert torch.equal(packed.source_embedding(ids(*shape)), plain.source_embedding(ids(*shape)))
