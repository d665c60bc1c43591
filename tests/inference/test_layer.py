"""A layer in one kernel is the layer: any norm, activation, number of threads, order of beams; and it is what runs."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from conftest import VARIANTS, small_model
from test_contract import close, ids

from regard.inference import kernels, pack
from regard.inference.kernels import multiplies_bytes, pool
from regard.inference.layer import Table, advance
from regard.inference.linear import FEW
from regard.inference.silence import without
from regard.models.transformer import DecoderLayer

pytestmark = pytest.mark.skipif(pool() is None, reason="PyTorch runs on another OpenMP here")

FUSED = [
    name
    for name, settings in VARIANTS.items()
    if settings["kind"] in ("transformer", "bart", "gpt") and "score" not in settings
]
ORDERS = [[0, 0, 1, 1, 2, 2], [1, 0, 2, 2, 4, 5], [3, 2, 4, 4]]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every step that the kernel took through all layers."""
    rows: list[int] = []

    def counted(tables: list[Table], x: torch.Tensor, *given: Any) -> Any:
        assert len(tables) > 1, "all at once"
        rows.append(len(x))
        return advance(tables, x, *given)

    monkeypatch.setattr("regard.inference.layer.advance", counted)
    monkeypatch.setattr("regard.inference.LARGE", 0)
    return rows


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("variant", FUSED)
def test_it_equals_the_plain_layer(
    variant: str, threads: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "ALONE", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    plain = small_model(variant)
    packed, source = pack(plain), ids(3, 5)
    source[1, 3:] = 0
    one, other = plain.start(source), packed.start(source)
    taken.clear()
    for rows in ORDERS:
        one, other = one.select(torch.tensor(rows)), other.select(torch.tensor(rows))
        for seed in range(2):
            tokens = ids(len(rows), seed=seed)
            (expected, one), (found, other) = plain.step(tokens, one), packed.step(tokens, other)
            close(found, expected)
    assert taken == [len(rows) for rows in ORDERS for _ in range(2)], "every step"


@torch.no_grad()
@pytest.mark.parametrize("off", ["decoder.1.cross.1", "decoder.0.self.0", "decoder.1"])
def test_what_is_switched_off_stays_off(off: str, taken: list[int]) -> None:
    plain = small_model("transformer")
    parts = without(plain, [off]), without(pack(plain), [off])
    (expected, _), (found, _) = (one.step(ids(2), one.start(ids(2, 4))) for one in parts)
    close(found, expected)
    assert not taken, "it takes all layers or none"


@torch.no_grad()
def test_other_numbers_take_the_long_way(taken: list[int]) -> None:
    """A memory in bfloat16 is no place for addresses of float32."""
    plain = small_model("transformer")
    packed = pack(plain)
    with torch.autocast("cpu", torch.bfloat16):
        one, other = plain.start(ids(1, 4)), packed.start(ids(1, 4))
        halves = [replace(held, key=held.key.bfloat16(), value=held.value.bfloat16()) for held in other.memory]  # type: ignore[attr-defined]
        (expected, _), (found, _) = plain.step(ids(1), one), packed.step(ids(1), replace(other, memory=tuple(halves)))  # type: ignore[call-arg]
    assert (found - expected).abs().max() < 0.1
    assert not taken


@torch.no_grad()
def test_a_layer_made_from_one_keeps_its_own_way(taken: list[int]) -> None:
    class Half(DecoderLayer):
        def forward(self, x: torch.Tensor, *given: Any, **named: Any) -> Any:
            y, present = super().forward(x, *given, **named)
            return y / 2, present

    plain = small_model("transformer")
    for layer in plain.decoder:  # type: ignore[attr-defined]
        layer.__class__ = Half
    (expected, _), (found, _) = (one.step(ids(2), one.start(ids(2, 4))) for one in (plain, pack(plain)))
    close(found, expected)
    assert not taken


def test_addresses_are_not_copied(taken: list[int]) -> None:
    with pytest.raises(TypeError, match="packed from"):
        copy.deepcopy(pack(small_model("gpt")))


@torch.no_grad()
def test_other_layers_take_the_long_way(taken: list[int]) -> None:
    for variant in ("t5", "llama", "transformer, additive"):
        model = pack(small_model(variant))
        model.step(ids(2), model.start(ids(2, 4)))
    assert not taken


@torch.no_grad()
@pytest.mark.parametrize("variant", ["transformer", "gpt"])
def test_in_8_bits_few_rows_take_it(variant: str, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inference.multiplies_bytes", lambda: False)
    packed = pack(small_model(variant), "int8")
    state = packed.start(ids(FEW, 4))
    found, _ = packed.step(ids(FEW), state)
    assert taken == [FEW]
    with monkeypatch.context() as patch:
        patch.setattr("regard.inference.layer._quick", lambda *_: [])
        close(found, packed.step(ids(FEW), state)[0])
    taken.clear()
    packed.step(ids(FEW + 1), packed.start(ids(FEW + 1, 4)))
    assert not taken, "more rows are FBGEMM's"


@torch.no_grad()
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 8, 9, 20])
@pytest.mark.parametrize("variant", ["transformer", "gpt"])
def test_with_vnni_any_number_of_rows_takes_it(
    variant: str, rows: int, threads: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not multiplies_bytes():
        pytest.skip("this processor has no VNNI")
    monkeypatch.setattr(kernels, "ALONE", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    packed = pack(small_model(variant), "int8")
    state = packed.start(ids(rows, 4))
    found, _ = packed.step(ids(rows), state)
    assert taken == [rows]
    monkeypatch.setattr("regard.inference.layer._quick", lambda *_: [])
    expected, _ = packed.step(ids(rows), state)
    assert (found - expected).abs().max() < 0.01 * expected.abs().max(), "rounding may turn where sums differ by a bit"


@torch.no_grad()
def test_layers_that_were_interrupted_between_go_the_long_way(taken: list[int]) -> None:
    plain = small_model("transformer")
    packed, source, tokens = pack(plain), ids(3, 5), ids(3)
    (_, one), (_, other) = plain.step(tokens, plain.start(source)), packed.step(tokens, packed.start(source))
    other.past[0].longer(1)  # as by a step that did not come to its second layer
    taken.clear()
    for seed in range(3):
        tokens = ids(3, seed=seed)
        (expected, one), (found, other) = plain.step(tokens, one), packed.step(tokens, other)
        close(found, expected)
    assert len(taken) < 3, "the first of them at least"


@torch.no_grad()
def test_beams_in_other_numbers_are_those_of_the_plain_model() -> None:
    plain = small_model("transformer").double()
    packed, source = pack(plain), ids(3, 5)
    every = torch.arange(3).repeat_interleave(3)
    one, other = plain.start(source).select(every), packed.start(source).select(every)
    for seed in range(9):
        tokens = ids(9, seed=seed)
        (expected, one), (found, other) = plain.step(tokens, one), packed.step(tokens, other)
        close(found, expected)
        order = torch.tensor([1, 0, 2, 3, 3, 4, 8, 7, 6])
        one, other = one.select(order), other.select(order)
