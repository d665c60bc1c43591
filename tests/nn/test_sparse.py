"""Gathered blocks give what the mask over all keys gives, there and back; what is drawn is what the paper says."""

import pytest
import torch
from torch import Tensor

from regard.models.bigbird import drawn_blocks, seen_blocks
from regard.nn.attention import SCORES, attention
from regard.nn.sparse import NOTHING, block_attention, seen_counts

HEADS, BLOCKS, SIZE, RANDOM = 2, 13, 3, 2


def patterns() -> dict[str, Tensor]:
    drawn = seen_blocks(HEADS, BLOCKS, RANDOM, drawn_blocks(HEADS, BLOCKS, RANDOM, 7))
    return {
        "drawn": drawn,
        "the first again": seen_blocks(HEADS, BLOCKS, RANDOM, None),
        "no random": seen_blocks(HEADS, BLOCKS, 0, None),
        "itself alone": torch.arange(1, BLOCKS - 1)[None, :, None].expand(HEADS, -1, -1),
    }


@pytest.mark.parametrize("score", ["scaled-dot", "cosine"])
@pytest.mark.parametrize("pattern", patterns())
def test_blocks_equal_the_mask(pattern: str, score: str) -> None:
    torch.manual_seed(0)
    seen, how, length = patterns()[pattern], SCORES[score](5, 5), BLOCKS * SIZE
    parts = [torch.randn(2, HEADS, length, 5, requires_grad=True) for _ in range(3)]
    mask = torch.ones(2, 1, 1, length, dtype=torch.bool)
    mask[1, :, :, -2:] = False
    mask[1, :, :, 5] = False
    counts = seen_counts(seen, SIZE)
    plain = attention(*parts, mask=mask & (counts > 0), bias=counts.float().log().expand(2, -1, -1, -1), score=how)
    sparse = block_attention(*parts, seen, mask, score=how)
    torch.testing.assert_close(sparse, plain, atol=1e-5, rtol=1e-5)
    wanted = torch.autograd.grad(plain.square().sum(), parts)
    found = torch.autograd.grad(sparse.square().sum(), parts)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_window_ends_and_random_blocks_are_the_papers() -> None:
    drawn = drawn_blocks(HEADS, BLOCKS, RANDOM, 3)
    assert torch.equal(drawn, drawn_blocks(HEADS, BLOCKS, RANDOM, 3)), "the same in every pass"
    assert not torch.equal(drawn, drawn_blocks(HEADS, BLOCKS, RANDOM, 4)), "others in every layer"
    assert not torch.equal(drawn[0], drawn[1]), "others in every head"
    for head in range(HEADS):
        for number, row in enumerate(seen_blocks(HEADS, BLOCKS, RANDOM, drawn)[head].tolist(), start=1):
            kept = [block for block in row if block != NOTHING]
            assert len(kept) == len(set(kept)) == (4 if number in (1, BLOCKS - 2) else 5) + RANDOM, "none twice"
            assert {0, BLOCKS - 1, number - 1, number, number + 1} <= set(kept)


def test_counts_count() -> None:
    counts = seen_counts(seen_blocks(1, 7, 2, None), 2)[0]
    assert counts[0].tolist() == counts[-1].tolist() == [1] * 14
    assert counts[6].tolist() == [3, 3, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1], "the first block, three times"
