"""Searches against their definitions, on models small enough to try every output."""

import itertools
import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding import Hypothesis, Limits, search
from regard.decoding.one_by_one import truncate
from regard.nn.state import State

PAD, BOS, EOS = 0, 1, 2
VOCABULARY, LONGEST = 5, 4


@dataclass(frozen=True)
class TableState(State):
    row: Tensor
    past: Tensor


class Table:
    """A random distribution for every source and every beginning of an output."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def start(self, source: Tensor) -> TableState:
        return TableState(source[:, 0], torch.zeros(len(source), 0, dtype=torch.long))

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, TableState]:
        assert isinstance(state, TableState)
        past = torch.cat([state.past, ids[:, None]], dim=1)
        logits = torch.stack([self.logits(int(row), tuple(p.tolist())) for row, p in zip(state.row, past, strict=True)])
        return logits, TableState(state.row, past)

    def logits(self, row: int, past: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, row, past)) % 2**31)
        return 2 * torch.randn(VOCABULARY, generator=generator)

    def log_prob(self, row: int, output: tuple[int, ...]) -> float:
        past, total = (BOS,), 0.0
        for token in output:
            total += torch.log_softmax(self.logits(row, past), dim=-1)[token].item()
            past += (token,)
        return total


def limits(rows: int, longest: int = LONGEST) -> Limits:
    return Limits(BOS, EOS, [longest] * rows, never=(PAD, BOS))


def every_output(longest: int = LONGEST) -> list[tuple[int, ...]]:
    """All outputs: words, then the end mark; or as many words as are allowed."""
    words = [3, 4]
    ended = [(*w, EOS) for n in range(longest) for w in itertools.product(words, repeat=n)]
    return ended + list(itertools.product(words, repeat=longest))


def exhaustive(table: Table, row: int, penalty: float) -> list[tuple[list[int], float]]:
    scored = [
        ([t for t in output if t != EOS], table.log_prob(row, output) / len(output) ** penalty)
        for output in every_output()
    ]
    return sorted(scored, key=lambda item: -item[1])


SOURCE = torch.tensor([[10], [11], [12]])


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_what_exhaustive_search_finds(penalty: float, seed: int) -> None:
    table = Table(seed)
    options = SearchConfig(method="beam", beam=40, n_best=5, length_penalty=penalty)
    for row, found in zip(SOURCE[:, 0].tolist(), search(table, SOURCE, options, limits(3)), strict=True):
        expected = exhaustive(table, row, penalty)[:5]
        assert [one.ids for one in found] == [ids for ids, _ in expected]
        assert [one.score for one in found] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_a_beam_of_one_is_greedy_and_wider_is_never_worse_here() -> None:
    for seed in range(10):
        table = Table(seed)
        greedy = search(table, SOURCE, SearchConfig(method="greedy", length_penalty=0), limits(3))
        one = search(table, SOURCE, SearchConfig(method="beam", beam=1, length_penalty=0), limits(3))
        wide = search(table, SOURCE, SearchConfig(method="beam", beam=40, length_penalty=0), limits(3))
        assert [g[0].ids for g in greedy] == [o[0].ids for o in one]
        assert all(w[0].score >= g[0].score - 1e-5 for w, g in zip(wide, greedy, strict=True))


def test_greedy_takes_the_likeliest_word_each_time() -> None:
    table = Table()
    (found,) = search(table, SOURCE[:1], SearchConfig(method="greedy"), limits(1))
    past: tuple[int, ...] = (BOS,)
    for token in [*found[0].ids, EOS][:LONGEST]:
        logits = table.logits(10, past).clone()
        logits[[PAD, BOS]] = -math.inf
        assert int(logits.argmax()) == token
        past += (token,)


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_limits_are_kept(method: str) -> None:
    def run(**options: object) -> list[list[Hypothesis]]:
        return search(Table(7), SOURCE, SearchConfig.model_validate({"method": method, **options}), wish)

    wish = Limits(BOS, EOS, [2, 5, 9], never=(PAD, BOS))
    for found, longest in zip(run(), wish.lengths, strict=True):
        assert all(len(one.ids) + one.ended <= longest for one in found)
    wish = limits(3, longest=9)
    assert all(len(one.ids) >= 5 for found in run(min_length=5) for one in found)
    wish = Limits(BOS, EOS, [8] * 3, never=(PAD, BOS), prefixes=[[3, 4, 4], [], [4]])
    for found, prefix in zip(run(), wish.prefixes, strict=True):
        assert all(one.ids[: len(prefix)] == list(prefix) for one in found)
    wish = limits(3, longest=12)
    for found in run(no_repeat_ngram=2, min_length=4):
        for one in found:
            pairs = list(itertools.pairwise(one.ids))
            assert len(pairs) == len(set(pairs)), f"a pair of words repeats in {one.ids}"


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
@pytest.mark.parametrize("stops", [True, False])
def test_an_output_that_is_complete_at_its_limit_has_ended(method: str, stops: bool) -> None:
    given = Limits(BOS, EOS, [3] * 3, never=(PAD, BOS, EOS), stop=(lambda ids: len(ids) == 3) if stops else None)
    for found in search(Table(), SOURCE, SearchConfig(method=method), given):
        assert all((len(one.ids), one.ended) == (3, stops) for one in found)


def test_an_output_that_nothing_may_follow_ends() -> None:
    for method in ("greedy", "beam", "sample"):
        options = SearchConfig(method=method, no_repeat_ngram=1, min_length=9)
        for found in search(Table(), SOURCE, options, limits(3, longest=12)):
            assert sorted(found[0].ids) == [3, 4], "each word once, and then there is none left"


def test_sampling_follows_the_distribution() -> None:
    table = Table(3)
    options = SearchConfig(method="sample", n_best=4000, seed=5)
    (found,) = search(table, SOURCE[:1], options, Limits(BOS, EOS, [1], never=(PAD, BOS)))
    logits = table.logits(10, (BOS,)).clone()
    expected = torch.softmax(logits, dim=-1)
    expected[[PAD, BOS]] = 0
    expected /= expected.sum()
    for token in (3, 4):
        share = sum(one.ids == [token] for one in found) / len(found)
        assert share == pytest.approx(expected[token].item(), abs=0.03)


def test_sampling_is_repeatable_and_its_seed_matters() -> None:
    def outputs(seed: int) -> list[list[int]]:
        options = SearchConfig(method="sample", n_best=20, seed=seed)
        return [one.ids for found in search(Table(), SOURCE, options, limits(3)) for one in found]

    assert outputs(1) == outputs(1)
    assert outputs(1) != outputs(2)


def test_truncation_keeps_the_likeliest() -> None:
    probs = torch.tensor([[0.5, 0.3, 0.15, 0.05]])
    assert truncate(probs.log(), SearchConfig(top_k=2))[0].nonzero().flatten().tolist() == [0, 1]
    assert truncate(probs.log(), SearchConfig(top_p=0.79))[0].nonzero().flatten().tolist() == [0, 1]
    assert truncate(probs.log(), SearchConfig(top_p=0.81))[0].nonzero().flatten().tolist() == [0, 1, 2]
    assert truncate(probs.log(), SearchConfig(top_p=0.01))[0].nonzero().flatten().tolist() == [0]
    cold = truncate(probs.log(), SearchConfig(temperature=0.1))[0]
    assert cold[0] > 0.99
