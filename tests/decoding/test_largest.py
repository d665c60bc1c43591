"""The few largest numbers are those of `topk`."""

import pytest
import torch

from regard.decoding.largest import BLOCK, largest


@pytest.mark.parametrize("size", [3, BLOCK, 7 * BLOCK, 40 * BLOCK, 40 * BLOCK + 1, 41 * BLOCK - 1])
@pytest.mark.parametrize("few", [1, 2, 10])
def test_they_are_those_of_topk(size: int, few: int) -> None:
    torch.manual_seed(size)
    numbers = torch.randn(5, size)
    numbers[0] = numbers[0].sort().values  # the largest are side by side, behind the last block
    numbers[1] = numbers[1].sort(descending=True).values
    numbers[2, : size // 2] = float("-inf")
    found, places = largest(numbers, few)
    expected, _ = numbers.topk(min(few, size), dim=1)
    assert torch.equal(found, expected)
    assert torch.equal(numbers.gather(1, places), found)
    assert all(len(set(row)) == len(row) for row in places.tolist())


def test_no_number_stays_none() -> None:
    numbers = torch.zeros(1, 40 * BLOCK)
    numbers[0, 7] = float("nan")
    assert largest(numbers, 2)[0].isnan().any()
