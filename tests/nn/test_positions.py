"""Position encodings against their formulas."""

import math

import pytest
import torch

from regard.errors import UserError
from regard.nn.positions import Positions, binary, normalised_index, sinusoid


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


@pytest.mark.parametrize("kind", ["sinusoid", "learned", "binary", "index", "none"])
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
