"""Beam search (Sutskever 2014, section 3.2) with the length normalisation of Wu 2016 in its simple form.

The `beam` best unfinished outputs of each sentence are extended together. An output is ranked by
log p / length ** length_penalty, the end mark counted. A sentence is done when it has `beam` finished outputs and its
best unfinished one, at its present length, is no better than the worst of them (or at once, with `early_stopping`);
it then leaves the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding.largest import largest
from regard.decoding.search import Branch, Decodable, Hypothesis, Limits, Trace, next_log_probs


class _Finished:
    """The best `size` finished outputs of one sentence."""

    def __init__(self, size: int, early: bool) -> None:
        self.size, self.early = size, early
        self.best: list[Hypothesis] = []

    def add(self, hypothesis: Hypothesis) -> None:
        self.best = sorted([*self.best, hypothesis], key=lambda one: -one.score)[: self.size]

    def beats(self, score: float) -> bool:
        """True when nothing of that score could still enter."""
        full = len(self.best) == self.size
        return score == float("-inf") or (full and (self.early or self.best[-1].score >= score))


def beam(
    model: Decodable, source: Tensor, options: SearchConfig, limits: Limits, trace: Trace | None = None
) -> list[list[Hypothesis]]:
    """The best outputs of each sentence. `trace` receives what was considered, for a batch of one sentence."""
    assert trace is None or len(source) == 1, f"a trace is of one sentence, not of {len(source)}"
    width, device = max(options.beam, options.n_best), source.device
    state = model.start(source)
    sentences = list(range(len(source)))  # of each group of rows: one row at first, then `width`
    finished = [_Finished(width, options.early_stopping) for _ in sentences]
    ids = torch.tensor(limits.beginnings(len(source)), device=device)
    history = torch.empty((len(source), 0), dtype=torch.long, device=device)
    scores = torch.zeros((len(source), 1), device=device)
    while sentences:
        logits, state = model.step(ids, state)
        each = scores.shape[1]
        owners = [sentence for sentence in sentences for _ in range(each)]
        # Twice as many as needed: even if half of them end here, enough are left to go on with.
        likely, ids = largest(next_log_probs(logits, history, owners, options, limits), 2 * width)  # (rows, few)
        before, few = scores, likely.shape[1]
        total = (likely + scores.reshape(-1, 1)).reshape(len(sentences), -1)  # (sentences, each * few)
        scores, flat = total.topk(min(2 * width, total.shape[1]), dim=1)
        parents = flat // few + torch.arange(0, len(owners), each, device=device)[:, None]
        tokens = ids.reshape(len(sentences), -1).gather(1, flat)
        candidates = torch.cat([history[parents], tokens[:, :, None]], dim=2)  # (sentences, 2 * width, length)
        length = candidates.shape[2]

        complete = _complete(candidates, limits)
        ranked = (scores / length**options.length_penalty).tolist()
        said, stopped = tokens.tolist(), complete.tolist()
        for group, sentence in enumerate(sentences):
            at_limit = length >= limits.lengths[sentence]
            for place, token in enumerate(said[group][:width]):
                ended = token == limits.end
                if (ended or at_limit or stopped[group][place]) and ranked[group][place] > float("-inf"):
                    kept = candidates[group, place, : length - ended].tolist()
                    finished[sentence].add(Hypothesis(kept, ranked[group][place], ended or stopped[group][place]))

        unfinished = scores.masked_fill((tokens == limits.end) | complete, float("-inf"))
        if trace is not None:
            trace.append(_branches(before[0], parents[0], tokens[0], scores[0], width, limits.end, ranked[0]))
        scores, order = unfinished.topk(min(width, unfinished.shape[1]), dim=1)
        best = (scores[:, 0] / length**options.length_penalty).tolist()
        going = [
            group
            for group, sentence in enumerate(sentences)
            if length < limits.lengths[sentence] and not finished[sentence].beats(best[group])
        ]
        sentences = [sentences[group] for group in going]
        groups = torch.tensor(going, dtype=torch.long, device=device)
        scores, order = scores[groups], order[groups]
        rows = parents[groups].gather(1, order).flatten()
        history = candidates[groups[:, None], order].flatten(0, 1)
        state, ids = state.select(rows), history[:, -1]
    return [found.best[: options.n_best] for found in finished]


def _branches(
    before: Tensor, parents: Tensor, tokens: Tensor, scores: Tensor, width: int, end: int, ranked: list[float]
) -> list[Branch]:
    """The candidates of a step, best first: the first `width` that do not end are kept, those that end among the first
    `width` are finished outputs."""
    branches: list[Branch] = []
    log_probs = (scores - before[parents]).tolist()
    for place, (parent, token) in enumerate(zip(parents.tolist(), tokens.tolist(), strict=True)):
        ended = token == end
        kept = place < width if ended else sum(branch.kept and not branch.ended for branch in branches) < width
        if ranked[place] > float("-inf"):
            branches.append(Branch(parent, token, log_probs[place], ranked[place], kept, ended))
    return branches


def _complete(candidates: Tensor, limits: Limits) -> Tensor:
    """Which outputs (sentences, width, length) are complete without an end mark."""
    complete = torch.zeros(candidates.shape[:2], dtype=torch.bool, device=candidates.device)
    if limits.stop is not None:
        for group, outputs in enumerate(candidates.tolist()):
            for place, output in enumerate(outputs):
                complete[group, place] = limits.stop(output)
    return complete
