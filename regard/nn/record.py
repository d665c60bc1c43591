"""Attention that can be seen: `Recording` collects weights during a forward pass, `AttentionRecord` keeps them.

A `Recording` is an ordinary argument of every model's forward pass. It says beforehand which sites, heads and query
rows are wanted, so that long inputs do not blow memory up, and receives the weights of a whole batch. Each sentence of
the batch then becomes one `AttentionRecord`: site -> (heads, queries, keys), with the tokens on both sides.

Sites have stable names: `encoder.3.self`, `decoder.3.self`, `decoder.3.cross`; `decoder.cross` for RNN attention.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.errors import UserError, nearest

Weights = npt.NDArray[np.float32]
Groups = list[list[int]]
"""For each word the indices of its tokens."""


@dataclass
class Recording:
    """What to record, and what has been recorded, for one forward pass over a batch.

    `sites` is a shell-style pattern (`decoder.*.cross`); `heads` and `rows` are indices, None for all of them.
    """

    sites: str = "*"
    heads: Sequence[int] | None = None
    rows: Sequence[int] | None = None
    weights: dict[str, list[Tensor]] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def wants(self, site: str) -> bool:
        return fnmatchcase(site, self.sites)

    def select(self, site: str, heads: int, queries: int) -> tuple[list[int], list[int]]:
        """The heads and the rows of this call that are wanted.

        RNN decoders call once per target word, so the rows of one site arrive over several calls and are counted on.
        """
        first = self._seen.get(site, 0)
        self._seen[site] = first + queries
        chosen_heads = list(range(heads)) if self.heads is None else [h for h in self.heads if h < heads]
        if self.rows is None:
            return chosen_heads, list(range(queries))
        return chosen_heads, [row - first for row in self.rows if first <= row < first + queries]

    def add(self, site: str, weights: Tensor) -> None:
        """Keep `weights` (B, H, Q, K); the queries of repeated calls at one site are joined."""
        self.weights.setdefault(site, []).append(weights.detach().float().cpu())

    def batch(self, site: str) -> Tensor:
        """All that was recorded at `site`: (B, H, Q, K)."""
        return torch.cat(self.weights[site], dim=2)


@dataclass(frozen=True)
class AttentionRecord:
    """The attention of one finished input and output.

    `weights[site]` is (heads, queries, keys); `queries[site]` and `keys[site]` are the tokens along its two axes, and
    `query_words` and `key_words` say which of them make up each word. `heads` names the heads, when not all are held.
    """

    weights: dict[str, Weights]
    queries: dict[str, list[str]]
    keys: dict[str, list[str]]
    heads: list[int] | None = None
    query_words: dict[str, Groups] = field(default_factory=dict)
    key_words: dict[str, Groups] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for site, weights in self.weights.items():
            expected = (len(self.queries[site]), len(self.keys[site]))
            assert weights.shape[1:] == expected, f"{site}: weights {weights.shape}, labels {expected}"

    @property
    def sites(self) -> list[str]:
        return list(self.weights)

    def matrix(self, site: str | None = None, head: int | None = None) -> Weights:
        """(queries, keys) of one head, or the mean over the heads; without a site, `alignment_site`."""
        weights = self.weights[self._known(site or self.alignment_site)]
        if head is None:
            mean: Weights = weights.mean(axis=0)
            return mean
        indices = self.heads or list(range(len(weights)))
        if head not in indices:
            raise UserError(f"head = {head}: the record holds heads {indices}")
        chosen: Weights = weights[indices.index(head)]
        return chosen

    @property
    def alignment_site(self) -> str:
        """Where the output looks at the input: the last cross-attention, else the last site recorded."""
        if not self.weights:
            raise UserError("the record is empty: this model has no attention, or no site matched the selection")
        cross = [site for site in self.weights if site.endswith("cross")]
        return (cross or list(self.weights))[-1]

    def select(
        self, sites: str = "*", heads: Sequence[int] | None = None, rows: Sequence[int] | None = None
    ) -> AttentionRecord:
        """A smaller record: sites by pattern, heads and query rows by index."""
        kept = [site for site in self.weights if fnmatchcase(site, sites)]
        if not kept:
            raise UserError(f"sites = {sites!r}: matches nothing{nearest(sites, self.weights)}")
        held = self.heads or list(range(max(len(self.weights[site]) for site in kept)))
        wanted = held if heads is None else [head for head in heads if head in held]
        weights, queries, query_words = {}, {}, {}
        for site in kept:
            chosen = self.weights[site][[held.index(head) for head in wanted]]
            picked = range(chosen.shape[1]) if rows is None else [row for row in rows if row < chosen.shape[1]]
            weights[site] = chosen[:, list(picked)]
            queries[site] = [self.queries[site][row] for row in picked]
            query_words[site] = _narrowed(self.query_words.get(site, []), picked)
        keys = {site: self.keys[site] for site in kept}
        key_words = {site: self.key_words[site] for site in kept if site in self.key_words}
        return AttentionRecord(weights, queries, keys, wanted, query_words, key_words)

    def words(self) -> AttentionRecord:
        """The record over words instead of subwords.

        Weights into a word add up (a word received what its subwords received); weights out of a word are averaged
        over its subwords, so that rows still sum to 1.
        """
        weights, queries, keys = {}, {}, {}
        for site, matrix in self.weights.items():
            rows, columns = self.query_words[site], self.key_words[site]
            summed = np.stack([matrix[:, :, group].sum(axis=2) for group in columns], axis=2)
            weights[site] = np.stack([summed[:, group].mean(axis=1) for group in rows], axis=1)
            queries[site] = ["".join(self.queries[site][i] for i in group) for group in rows]
            keys[site] = ["".join(self.keys[site][i] for i in group) for group in columns]
        return AttentionRecord(weights, queries, keys, self.heads)

    def to_json(self) -> str:
        sites = {
            site: {
                "queries": self.queries[site],
                "keys": self.keys[site],
                "query_words": self.query_words.get(site),
                "key_words": self.key_words.get(site),
                "weights": matrix.tolist(),
            }
            for site, matrix in self.weights.items()
        }
        return json.dumps({"heads": self.heads, "sites": sites}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> AttentionRecord:
        read = json.loads(text)

        def column(name: str) -> dict[str, Any]:
            return {site: entry[name] for site, entry in read["sites"].items() if entry[name] is not None}

        weights = {site: np.asarray(matrix, dtype=np.float32) for site, matrix in column("weights").items()}
        labels = column("queries"), column("keys")
        return cls(weights, *labels, read["heads"], column("query_words"), column("key_words"))

    def _known(self, site: str) -> str:
        if site not in self.weights:
            raise UserError(f"site = {site!r}: not in the record{nearest(site, self.weights)}")
        return site


@dataclass(frozen=True)
class Axis:
    """One side of a matrix: its tokens and which of them make up each word."""

    tokens: list[str]
    words: Groups


def records(recording: Recording, axes: Callable[[str, int], tuple[Axis, Axis]]) -> Iterator[AttentionRecord]:
    """One `AttentionRecord` per sentence of the batch, its padding cut away.

    `axes(site, sentence)` gives the queries and the keys there.
    """
    batches = {site: recording.batch(site).numpy() for site in recording.weights}
    for index in range(max((len(batch) for batch in batches.values()), default=0)):
        whole = AttentionRecord({}, {}, {}, None if recording.heads is None else list(recording.heads))
        for site, batch in batches.items():
            queries, keys = axes(site, index)
            length = len(queries.tokens)
            rows = range(length) if recording.rows is None else [row for row in recording.rows if row < length]
            whole.weights[site] = batch[index, :, : len(rows), : len(keys.tokens)]
            whole.queries[site], whole.keys[site] = [queries.tokens[row] for row in rows], keys.tokens
            whole.query_words[site], whole.key_words[site] = _narrowed(queries.words, rows), keys.words
        yield whole


def _narrowed(groups: Groups, rows: Sequence[int]) -> Groups:
    """The words when only some rows are kept: their indices among those rows."""
    place = {row: index for index, row in enumerate(rows)}
    narrowed = ([place[row] for row in group if row in place] for group in groups)
    return [group for group in narrowed if group]
