"""Greedy search and sampling: one token is chosen, and the choice is never taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding.search import Decodable, Hypothesis, Limits, next_log_probs

Choose = Callable[[Tensor, list[int]], Tensor]
"""From log-probabilities (R, V) and whose row each is, one token for each row (R,)."""


def greedy(model: Decodable, source: Tensor, options: SearchConfig, limits: Limits) -> list[list[Hypothesis]]:
    """The likeliest token at every step."""
    written = steps(model, source, options, limits, likeliest)
    return [[one] for one in _collected(written, len(source), options, limits)]


def likeliest(log_probs: Tensor, sentences: list[int]) -> Tensor:
    return log_probs.argmax(dim=-1)


def drawn(streams: Sequence[np.random.Generator], options: SearchConfig) -> Choose:
    """A choice by chance, with a stream of random numbers for each sentence."""

    def choose(log_probs: Tensor, sentences: list[int]) -> Tensor:
        probs, order = truncate(log_probs, options).sort(dim=-1, descending=True)
        points = torch.tensor([streams[row].random() for row in sentences], device=probs.device)[:, None]
        place = (probs.cumsum(dim=-1) < points * probs.sum(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
        last = (probs > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not step past the last possible token
        return order.gather(1, place.minimum(last))[:, 0]

    return choose


def sample(model: Decodable, source: Tensor, options: SearchConfig, limits: Limits) -> list[list[Hypothesis]]:
    """Tokens drawn from the model's distribution, sharpened by `temperature`, cut as the options say.

    Each sentence has a stream of random numbers of its own, so that its neighbours in the batch change nothing.
    """
    copies = options.n_best
    rows = torch.arange(len(source), device=source.device).repeat_interleave(copies)
    numbers = limits.numbers or range(len(source))
    streams = [np.random.default_rng((options.seed, numbers[row // copies], row % copies)) for row in range(len(rows))]

    owners = [row // copies for row in range(len(rows))]
    first = limits.beginnings(len(source))
    spread = replace(
        limits,
        begin=[first[owner] for owner in owners],
        lengths=[limits.lengths[owner] for owner in owners],
        prefixes=[limits.prefix(owner) for owner in owners],
        said=[limits.said[owner] for owner in owners] if limits.said else (),
    )
    written = steps(model, source[rows], options, spread, drawn(streams, options))
    found = _collected(written, len(rows), options, spread)
    several = [found[first : first + copies] for first in range(0, len(found), copies)]
    return [sorted(one, key=lambda output: -output.score) for one in several]


def truncate(log_probs: Tensor, options: SearchConfig) -> Tensor:
    """Probabilities (R, V) after temperature, zero outside the `top_k` likeliest, the `top_p` share,
    what has at least `min_p` of the likeliest's chance (Nguyen 2024), and the most typical of `typical_p`."""
    probs = torch.softmax(log_probs / options.temperature, dim=-1)
    if options.top_k:
        least = probs.topk(min(options.top_k, probs.shape[-1]), dim=-1).values[:, -1:]
        probs = probs.masked_fill(probs < least, 0.0)
    if options.top_p < 1:
        ordered, order = probs.sort(dim=-1, descending=True)
        before = ordered.cumsum(dim=-1) - ordered  # the share of all that are likelier
        outside = before >= options.top_p * ordered.sum(dim=-1, keepdim=True)
        probs = probs.masked_fill(outside.gather(1, order.argsort(dim=-1)), 0.0)
    if options.min_p:
        probs = probs.masked_fill(probs < options.min_p * probs.amax(dim=-1, keepdim=True), 0.0)
    if options.typical_p < 1:
        probs = _typical(probs / probs.sum(dim=-1, keepdim=True), options.typical_p)
    return probs


def _typical(probs: Tensor, share: float) -> Tensor:
    """Zero outside the tokens whose surprise is closest to the expected one, up to a share (Meister 2022, eq. 6)."""
    surprise = -probs.log()
    expected = (probs * surprise).nan_to_num(0.0).sum(dim=-1, keepdim=True)  # 0 log 0 = 0
    order = (surprise - expected).abs().argsort(dim=-1)
    ordered = probs.gather(1, order)
    outside = ordered.cumsum(dim=-1) - ordered >= share
    return probs.masked_fill(outside.gather(1, order.argsort(dim=-1)), 0.0)


@dataclass(frozen=True)
class Step:
    """One token of each output that was still being written; `ended` says whether the output is complete by it."""

    sentences: list[int]
    tokens: list[int]
    log_probs: list[float]
    ended: list[bool]


def steps(model: Decodable, source: Tensor, options: SearchConfig, limits: Limits, choose: Choose) -> Iterator[Step]:
    """The outputs, token by token, as they are written."""
    device = source.device
    state = model.start(source)
    sentences = list(range(len(source)))  # whose row each is; a finished sentence leaves the batch
    ids = torch.tensor(limits.beginnings(len(source)), device=device)
    history = torch.empty((len(source), 0), dtype=torch.long, device=device)
    while sentences:
        logits, state = model.step(ids, state)
        log_probs = next_log_probs(logits, history, sentences, options, limits)
        ids = choose(log_probs, sentences)
        history = torch.cat([history, ids[:, None]], dim=1)
        length, tokens = history.shape[1], ids.tolist()
        ended = [
            token == limits.end or (limits.stop is not None and limits.stop(history[row].tolist()))
            for row, token in enumerate(tokens)
        ]
        yield Step(sentences, tokens, log_probs.gather(1, ids[:, None])[:, 0].tolist(), ended)
        going = [row for row, ends in enumerate(ended) if not ends and length < limits.lengths[sentences[row]]]
        if len(going) < len(sentences):
            rows = torch.tensor(going, dtype=torch.long, device=device)
            state, ids, history = state.select(rows), ids[rows], history[rows]
            sentences = [sentences[row] for row in going]


def _collected(written: Iterator[Step], sentences: int, options: SearchConfig, limits: Limits) -> list[Hypothesis]:
    """The finished outputs."""
    ids: list[list[int]] = [[] for _ in range(sentences)]
    totals, ended = [0.0] * sentences, [False] * sentences
    for step in written:
        for sentence, token, log_prob, end in zip(step.sentences, step.tokens, step.log_probs, step.ended, strict=True):
            totals[sentence] += log_prob
            ids[sentence].append(token)
            ended[sentence] = end
    found = []
    for tokens, total, end in zip(ids, totals, ended, strict=True):
        score = total / len(tokens) ** options.length_penalty
        found.append(Hypothesis(tokens[:-1] if tokens[-1] == limits.end else tokens, score, end))
    return found
