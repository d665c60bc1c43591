"""Position encodings against their formulas."""

import math

import pytest
import torch

from regard.errors import UserError
from regard.nn.positions import Positions, RelativeBias, binary, normalised_index, sinusoid, sinusoid_halves


def test_sinusoid_is_the_papers() -> None:
    table = sinusoid(7, 6)
    for p in range(7):
        for i in range(3):
            angle = p / 10000 ** (2 * i / 6)
            assert table[p, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[p, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)
    assert sinusoid(4, 5).shape == (4, 5)


def test_binary_code_counts() -> None:
    table = binary(16)
    assert table.shape == (16, 4)
    assert [int(sum(bit * 2**place for place, bit in enumerate(row))) for row in table.tolist()] == list(range(16))


def test_normalised_index_runs_from_zero_to_one() -> None:
    table = normalised_index(10)[:, 0]
    assert table[0] == 0
    assert table[-1] < 1
    assert (table.diff() > 0).all()


@pytest.mark.parametrize("kind", ["sinusoid", "sinusoid-halves", "learned", "binary", "index", "none"])
@pytest.mark.parametrize("join", ["add", "concatenate"])
@torch.no_grad()
def test_positions_go_on_where_they_stopped(kind: str, join: str) -> None:
    torch.manual_seed(0)
    positions = Positions(kind, 8, 20, join)  # type: ignore[arg-type]
    embedded = torch.randn(2, 6, 8)
    whole = positions(embedded)
    assert whole.shape == (2, 6, 8)
    torch.testing.assert_close(positions(embedded[:, 4:], first=4), whole[:, 4:])
    same = torch.ones(1, 6, 8)
    assert (kind == "none") == torch.equal(positions(same)[:, 0], positions(same)[:, 1])


def test_too_long_says_so() -> None:
    with pytest.raises(UserError, match=r"a sequence of 21 tokens: .* at most 20 \(model.max_length\)"):
        Positions("sinusoid", 8, 20)(torch.zeros(1, 21, 8))


def test_halves_are_the_same_numbers_in_another_order() -> None:
    table, halves = sinusoid(9, 6), sinusoid_halves(9, 6)
    assert torch.equal(halves[:, :3], table[:, 0::2])
    assert torch.equal(halves[:, 3:], table[:, 1::2])


def test_an_offset_leaves_rows_before_the_first_place() -> None:
    positions = Positions("learned", 4, 5, offset=2)
    assert positions.table.shape == (7, 4)
    assert torch.equal(positions(torch.zeros(1, 2, 4), first=3)[0], positions.table[5:])
    with pytest.raises(UserError, match="a sequence of 6 tokens: this model was built for at most 5"):
        positions(torch.zeros(1, 1, 4), first=5)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (6, 7)])
def test_distances_fall_into_buckets_that_widen(both_ways: bool, buckets: int, farthest: int) -> None:
    bias = RelativeBias(2, buckets, farthest, both_ways)
    left = bias.bucket(-torch.arange(300)).tolist()
    count = buckets // 2 if both_ways else buckets
    assert left[: count // 2] == list(range(count // 2)), "the nearest have a bucket each"
    assert left == sorted(left)
    assert set(left) == set(range(count))
    assert set(left[farthest:]) == {count - 1}, "beyond the farthest all are one"
    right = bias.bucket(torch.arange(1, 300)).tolist()
    assert right == [count + one for one in left[1:]] if both_ways else set(right) == {0}


def test_a_relative_bias_depends_on_the_distance_alone() -> None:
    bias = RelativeBias(3, 8, 10, both_ways=True)
    torch.nn.init.normal_(bias.table)
    whole = bias(12, 12)
    assert whole.shape == (1, 3, 12, 12)
    assert torch.equal(whole[..., 1:, 1:], whole[..., :-1, :-1])
    assert torch.equal(bias(1, 12), whole[:, :, -1:]), "the last query stands at the last key"
