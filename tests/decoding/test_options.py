"""What sampling may choose, against transformers' definitions; penalties, choices and stops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from regard.config import SearchConfig, validated
from regard.decoding.choices import Choices
from regard.decoding.one_by_one import truncate
from regard.decoding.search import Limits, next_log_probs
from regard.errors import UserError

transformers = pytest.importorskip("transformers")


def logits(seed: int = 0, rows: int = 6, vocabulary: int = 40) -> Tensor:
    return 3 * torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("options", "peer"),
    [
        ({"min_p": 0.1}, lambda: transformers.MinPLogitsWarper(0.1)),
        ({"min_p": 0.9}, lambda: transformers.MinPLogitsWarper(0.9)),
        ({"typical_p": 0.5}, lambda: transformers.TypicalLogitsWarper(0.5)),
        ({"typical_p": 0.95}, lambda: transformers.TypicalLogitsWarper(0.95)),
        ({"top_p": 0.7}, lambda: transformers.TopPLogitsWarper(0.7)),
        ({"top_k": 5}, lambda: transformers.TopKLogitsWarper(5)),
        ({"temperature": 0.3}, lambda: transformers.TemperatureLogitsWarper(0.3)),
    ],
)
def test_truncation_is_that_of_transformers(options: dict[str, float], peer: object) -> None:
    scores = logits()
    expected = peer()(torch.zeros(6, 1, dtype=torch.long), scores.clone()).softmax(dim=-1)  # type: ignore[operator]
    found = truncate(torch.log_softmax(scores, dim=-1), SearchConfig(method="sample", **options))
    torch.testing.assert_close(found / found.sum(dim=-1, keepdim=True), expected)


def test_the_repetition_penalty_counts_prompt_and_output() -> None:
    scores, history = logits(), torch.tensor([[1, 2], [3, 3], [4, 5], [0, 9], [7, 8], [2, 2]])
    said = [[11, 12]] * 6
    peer = transformers.RepetitionPenaltyLogitsProcessor(1.7)
    before = torch.cat([torch.tensor(said), history], dim=1)
    expected = torch.log_softmax(peer(before, scores.clone()), dim=-1)
    limits = Limits(0, 39, [9] * 6, said=said)
    options = SearchConfig(method="greedy", repetition_penalty=1.7)
    torch.testing.assert_close(next_log_probs(scores, history, range(6), options, limits), expected)


def test_choices_follow_their_tree() -> None:
    choices = Choices([[5, 6], [5, 7, 8], [5]], end=2)
    assert choices([]) == [5]
    assert sorted(choices([5])) == [2, 6, 7]
    assert choices([5, 7]) == [8]
    assert choices([5, 6]) == [2]
    assert choices([9]) == []
    with pytest.raises(UserError, match="choices: an empty one"):
        Choices([[1], []], end=2)


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", 0), ("top_p", 0), ("min_p", 1), ("typical_p", 1.5), ("repetition_penalty", 0)]
)
def test_impossible_settings_are_named(name: str, value: float) -> None:
    with pytest.raises(UserError, match=rf"decode\.{name} = {value}: must be"):
        validated(SearchConfig, {name: value}, "decode.")
