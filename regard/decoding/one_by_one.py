"""Greedy search and sampling: one token is chosen, and the choice is never taken back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding.search import Decodable, Hypothesis, Limits, constrain

Choose = Callable[[Tensor, list[int]], Tensor]
"""From log-probabilities (R, V) and whose row each is, one token for each row (R,)."""


def greedy(model: Decodable, source: Tensor, options: SearchConfig, limits: Limits) -> list[list[Hypothesis]]:
    """The likeliest token at every step."""
    return _one_by_one(model, source, options, limits, lambda log_probs, _: log_probs.argmax(dim=-1))


def sample(model: Decodable, source: Tensor, options: SearchConfig, limits: Limits) -> list[list[Hypothesis]]:
    """Tokens drawn from the model's distribution, sharpened by `temperature`, cut by `top_k` and `top_p`.

    Each sentence has a stream of random numbers of its own, so that its neighbours in the batch change nothing.
    """
    copies = options.n_best
    rows = torch.arange(len(source), device=source.device).repeat_interleave(copies)
    numbers = limits.numbers or range(len(source))
    streams = [np.random.default_rng((options.seed, numbers[row // copies], row % copies)) for row in range(len(rows))]

    def choose(log_probs: Tensor, sentences: list[int]) -> Tensor:
        probs, order = truncate(log_probs, options).sort(dim=-1, descending=True)
        drawn = torch.tensor([streams[row].random() for row in sentences], device=probs.device)[:, None]
        place = (probs.cumsum(dim=-1) < drawn * probs.sum(dim=-1, keepdim=True)).sum(dim=-1, keepdim=True)
        last = (probs > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not step past the last possible token
        return order.gather(1, place.minimum(last))[:, 0]

    first = limits.beginnings(len(source))
    spread = Limits(
        [first[row // copies] for row in range(len(rows))],
        limits.end,
        [limits.lengths[row // copies] for row in range(len(rows))],
        limits.never,
        [limits.prefix(row // copies) for row in range(len(rows))],
    )
    found = _one_by_one(model, source[rows], options, spread, choose)
    drawn = [[one for (one,) in found[first : first + copies]] for first in range(0, len(found), copies)]
    return [sorted(several, key=lambda one: -one.score) for several in drawn]


def truncate(log_probs: Tensor, options: SearchConfig) -> Tensor:
    """Probabilities (R, V) after temperature, zero outside the `top_k` likeliest and the `top_p` share."""
    probs = torch.softmax(log_probs / options.temperature, dim=-1)
    if options.top_k:
        least = probs.topk(min(options.top_k, probs.shape[-1]), dim=-1).values[:, -1:]
        probs = probs.masked_fill(probs < least, 0.0)
    if options.top_p < 1:
        ordered, order = probs.sort(dim=-1, descending=True)
        before = ordered.cumsum(dim=-1) - ordered  # the share of all that are likelier
        outside = before >= options.top_p * ordered.sum(dim=-1, keepdim=True)
        probs = probs.masked_fill(outside.gather(1, order.argsort(dim=-1)), 0.0)
    return probs


def _one_by_one(
    model: Decodable, source: Tensor, options: SearchConfig, limits: Limits, choose: Choose
) -> list[list[Hypothesis]]:
    device = source.device
    state = model.start(source)
    sentences = list(range(len(source)))  # whose row each is; a finished sentence leaves the batch
    ids = torch.tensor(limits.beginnings(len(source)), device=device)
    history = torch.empty((len(source), 0), dtype=torch.long, device=device)
    totals = torch.zeros(len(source), device=device)
    found: list[list[Hypothesis]] = [[] for _ in sentences]
    while sentences:
        logits, state = model.step(ids, state)
        log_probs = constrain(torch.log_softmax(logits.float(), dim=-1), history, sentences, options, limits)
        ids = choose(log_probs, sentences)
        totals = totals + log_probs.gather(1, ids[:, None])[:, 0]
        history = torch.cat([history, ids[:, None]], dim=1)
        length = history.shape[1]
        going = []
        for row, (sentence, token) in enumerate(zip(sentences, ids.tolist(), strict=True)):
            if token != limits.end and length < limits.lengths[sentence]:
                going.append(row)
                continue
            kept = history[row].tolist()
            score = totals[row].item() / length**options.length_penalty
            found[sentence] = [Hypothesis(kept[: length - (token == limits.end)], score, token == limits.end)]
        if len(going) < len(sentences):
            rows = torch.tensor(going, dtype=torch.long, device=device)
            state, ids, history, totals = state.select(rows), ids[rows], history[rows], totals[rows]
            sentences = [sentences[row] for row in going]
    return found
