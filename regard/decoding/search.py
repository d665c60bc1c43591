"""What all searches share: the verbs they call, what they may not choose, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.nn.state import State


class Decodable(Protocol):
    """The three verbs; the third is `State.select(rows)`."""

    def start(self, source: Tensor) -> State: ...

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]: ...


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens without the end mark, the score it was ranked by, and whether it ended by itself."""

    ids: list[int]
    score: float
    ended: bool


@dataclass(frozen=True)
class Limits:
    """What a search must respect, sentence by sentence, beside the options that hold for all."""

    begin: int | Sequence[int]  # the token before the first, of all sentences or of each
    end: int  # the token after the last; -1 where there is none
    lengths: Sequence[int]  # most tokens for each sentence, the end mark included
    never: Sequence[int] = ()  # tokens that are no output: padding, the begin mark
    prefixes: Sequence[Sequence[int]] = ()  # tokens each output must begin with; empty = no such wish
    numbers: Sequence[int] = field(default=())  # of the sentences in their file: sampling depends on nothing else
    said: Sequence[Sequence[int]] = ()  # tokens before the output: saying them again is repetition too
    allowed: Callable[[Sequence[int]], Sequence[int]] | None = None  # which tokens may follow an output so far
    stop: Callable[[Sequence[int]], bool] | None = None  # whether an output is complete without an end mark
    opening: Sequence[int] = ()  # marks that every output begins with; they cost nothing

    def beginnings(self, sentences: int) -> list[int]:
        return [self.begin] * sentences if isinstance(self.begin, int) else list(self.begin)

    def prefix(self, sentence: int) -> Sequence[int]:
        return self.prefixes[sentence] if self.prefixes else ()


@dataclass(frozen=True)
class Branch:
    """One candidate of one step of a beam search: it extends the `parent`-th of those that the step before kept."""

    parent: int
    token: int
    log_prob: float
    score: float  # log p of the whole output so far / length ** length_penalty, as it was ranked
    kept: bool
    ended: bool


Trace = list[list[Branch]]
"""What a search considered, step by step, the best first; for a batch of one sentence."""


def next_log_probs(
    logits: Tensor, history: Tensor, sentences: Sequence[int], options: SearchConfig, limits: Limits
) -> Tensor:
    """Log-probabilities (R, V) of what may follow `history` (R, t), from logits; `sentences` says whose row each is."""
    logits = logits.float()
    if options.repetition_penalty != 1:
        logits = _penalised(logits, history, sentences, options.repetition_penalty, limits)
    return constrain(torch.log_softmax(logits, dim=-1), history, sentences, options, limits)


def _penalised(logits: Tensor, history: Tensor, sentences: Sequence[int], penalty: float, limits: Limits) -> Tensor:
    """What was said before is divided by the penalty, or multiplied where negative (Keskar 2019, section 4.1)."""
    logits = logits.clone()
    for row, sentence in enumerate(sentences):
        said = [*(limits.said[sentence] if limits.said else ()), *history[row].tolist()]
        tokens = torch.tensor(sorted(set(said)), dtype=torch.long, device=logits.device)
        before = logits[row, tokens]
        logits[row, tokens] = torch.where(before > 0, before / penalty, before * penalty)
    return logits


def _forbid_repeats(log_probs: Tensor, history: Tensor, size: int) -> None:
    """Log-probabilities (R, V), changed in place to -inf for what would end an n-gram that `history` (R, t) has."""
    done = history.shape[1]
    if done < size:
        return
    windows = history.unfold(1, size, 1)  # (R, t - n + 1, n)
    begun = (windows[..., :-1] == history[:, None, done - size + 1 :]).all(dim=-1)
    rows, places = begun.nonzero(as_tuple=True)
    log_probs[rows, windows[rows, places, -1]] = float("-inf")


def constrain(
    log_probs: Tensor, history: Tensor, sentences: Sequence[int], options: SearchConfig, limits: Limits
) -> Tensor:
    """Log-probabilities (R, V), changed in place to -inf where a token may not follow `history` (R, t).

    `sentences` says whose row each is.
    """
    done = history.shape[1]
    if done < len(limits.opening):
        log_probs.fill_(float("-inf"))[:, limits.opening[done]] = 0.0
        return log_probs
    full = done + 1
    done -= len(limits.opening)
    history = history[:, len(limits.opening) :]
    forced = {}  # the next token of a prefix, and its log-probability
    for row, sentence in enumerate(sentences if limits.prefixes else ()):
        for token in limits.prefix(sentence)[done : done + 1]:
            forced[row] = token, log_probs[row, token].item()
    size = options.no_repeat_ngram
    may_be_stuck = limits.end >= 0 and (size > 0 or limits.allowed is not None)
    ends = log_probs[:, limits.end].clone() if may_be_stuck else None
    early = limits.end >= 0 and done < options.min_length
    if never := [*limits.never, *([limits.end] if early else [])]:
        log_probs.index_fill_(1, torch.tensor(never, device=log_probs.device), float("-inf"))
    if size and limits.said:
        for row, sentence in enumerate(sentences):
            said = torch.tensor(limits.said[sentence], dtype=torch.long, device=history.device)
            _forbid_repeats(log_probs[row : row + 1], torch.cat([said, history[row]])[None], size)
    elif size:
        _forbid_repeats(log_probs, history, size)
    if limits.allowed is not None:
        for row, before in enumerate(history.tolist()):
            may = torch.tensor(limits.allowed(before), dtype=torch.long, device=log_probs.device)
            kept = log_probs[row, may]
            log_probs[row] = float("-inf")
            log_probs[row, may] = kept
    for row, (token, log_prob) in forced.items():
        log_probs[row] = float("-inf")
        log_probs[row, token] = log_prob
    if ends is not None:
        stuck = log_probs.isinf().all(dim=1)
        log_probs[stuck, limits.end] = ends[stuck]  # where nothing may follow, the output ends
    last = [row for row, sentence in enumerate(sentences) if options.force_end and full == limits.lengths[sentence]]
    if limits.end >= 0 and last:
        log_probs[last] = float("-inf")
        log_probs[last, limits.end] = 0.0
    return log_probs
