"""Attention that can be seen: `Recording` collects weights during a forward pass, `AttentionRecord` keeps them.

A `Recording` is an ordinary argument of every model's forward pass. It says beforehand which sites, heads and query
rows are wanted, so that long inputs do not blow memory up, and receives the weights of a whole batch. Each sentence of
the batch then becomes one `AttentionRecord`: site -> weights (heads, queries, keys), with the tokens on both sides.

Sites have stable names: `encoder.3.self`, `decoder.3.self`, `decoder.3.cross`; `decoder.cross` for RNN attention.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.errors import UserError, nearest

Weights = npt.NDArray[np.float32]
Groups = list[list[int]]
"""For each word the indices of its tokens."""
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


@dataclass(frozen=True)
class Operands:
    """What weights were computed from, as `attention` received it: the chosen heads and rows of a batch."""

    query: Tensor  # (B, H, Q, D)
    key: Tensor  # (B, H, K, D), as the score function compares it
    value: Tensor  # (B, H, K, D)
    mask: Tensor | None
    bias: Tensor | None
    score: nn.Module


@dataclass
class Recording:
    """What to record, and what has been recorded, for one forward pass over a batch.

    `sites` is a shell-style pattern (`decoder.*.cross`); `heads` and `rows` are indices, None for all of them. With
    `vectors` also the queries, keys and values are kept, in `operands`: one entry for each call with rows to record.
    """

    sites: str = "*"
    heads: Sequence[int] | None = None
    rows: Sequence[int] | None = None
    vectors: bool = False
    operands: dict[str, list[Operands]] = field(default_factory=dict)
    weights: dict[str, list[Tensor]] = field(default_factory=dict)
    kept_heads: dict[str, list[int]] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows is not None:
            self.rows = sorted(set(self.rows))  # the order in which an RNN decoder comes to them
        if any(number < 0 for number in [*(self.rows or ()), *(self.heads or ())]):
            raise UserError(f"rows = {self.rows}, heads = {self.heads}: are counted from 0")

    def again(self) -> Recording:
        """The same wishes, with nothing recorded yet."""
        return Recording(self.sites, self.heads, self.rows, self.vectors)

    def wants(self, site: str) -> bool:
        return fnmatchcase(site, self.sites)

    def select(self, site: str, heads: int, queries: int) -> tuple[list[int], list[int]]:
        """The heads and the rows of this call that are wanted.

        RNN decoders call once per target word, so the rows of one site arrive over several calls and are counted on.
        """
        first = self._seen.get(site, 0)
        self._seen[site] = first + queries
        chosen = list(range(heads)) if self.heads is None else [head for head in self.heads if 0 <= head < heads]
        if not chosen:
            raise UserError(f"heads = {list(self.heads or ())}: {site} has heads 0 to {heads - 1}")
        self.kept_heads[site] = chosen
        if self.rows is None:
            return chosen, list(range(queries))
        return chosen, [row - first for row in self.rows if first <= row < first + queries]

    def add(self, site: str, weights: Tensor) -> None:
        """Keep `weights` (B, H, Q, K); the queries of repeated calls at one site are joined."""
        self.weights.setdefault(site, []).append(weights.detach().float().cpu())

    def keep(self, site: str, operands: Operands) -> None:
        self.operands.setdefault(site, []).append(operands)

    def batch(self, site: str) -> Tensor:
        """All that was recorded at `site`: (B, H, Q, K)."""
        return torch.cat(self.weights[site], dim=2)


def _spelled(word: str) -> str:
    """With letters in place of their bytes ("<0xE2><0x82><0xAC>"), as which tokenizers spell what they do not know, and
    without the mark of the space before it."""
    text = _BYTES.sub(lambda found: bytes.fromhex(found[0][3:-1].replace("><0x", "")).decode(errors="replace"), word)
    return text.removeprefix("▁") or text


@dataclass(frozen=True)
class Axis:
    """One side of a matrix: its tokens, and which of them make up each word."""

    tokens: list[str]
    words: Groups

    @classmethod
    def plain(cls, tokens: list[str]) -> Axis:
        """Each token is a word."""
        return cls(tokens, [[place] for place in range(len(tokens))])

    def select(self, places: Sequence[int]) -> Axis:
        moved = {place: index for index, place in enumerate(places)}
        words = ([moved[place] for place in group if place in moved] for group in self.words)
        return Axis([self.tokens[place] for place in places], [group for group in words if group])

    def joined(self) -> Axis:
        """The words in the place of the tokens."""
        return Axis.plain([_spelled("".join(self.tokens[place] for place in group)) for group in self.words])


@dataclass(frozen=True)
class Heads:
    """What the heads of one site looked at: (heads, queries, keys). `numbers` names the heads."""

    weights: Weights
    queries: Axis
    keys: Axis
    numbers: list[int]

    def __post_init__(self) -> None:
        expected = (len(self.numbers), len(self.queries.tokens), len(self.keys.tokens))
        assert self.weights.shape == expected, f"weights {self.weights.shape} for labels {expected}"

    @property
    def axes(self) -> tuple[Axis, Axis]:
        return self.queries, self.keys

    def head(self, number: int) -> Weights:
        """(queries, keys) of one head."""
        chosen: Weights = self.select([number], None).weights[0]
        return chosen

    def mean(self) -> Weights:
        """(queries, keys), the mean over the heads."""
        mean: Weights = self.weights.mean(axis=0)
        return mean

    def select(self, heads: Sequence[int] | None, rows: Sequence[int] | None) -> Heads:
        numbers = self.numbers if heads is None else list(heads)
        places = range(len(self.queries.tokens)) if rows is None else list(rows)
        if missing := [number for number in numbers if number not in self.numbers]:
            raise UserError(f"head = {missing[0]}: the record holds heads {self.numbers}")
        if missing := [row for row in places if not 0 <= row < len(self.queries.tokens)]:
            raise UserError(f"row = {missing[0]}: the record holds rows 0 to {len(self.queries.tokens) - 1}")
        weights = self.weights[[self.numbers.index(number) for number in numbers]][:, list(places)]
        return Heads(weights, self.queries.select(places), self.keys, numbers)

    def words(self) -> Heads:
        """Weights into a word add up (a word received what its subwords received); weights out of a word are averaged
        over its subwords, so that rows still sum to 1."""
        into = np.stack([self.weights[:, :, group].sum(axis=2) for group in self.keys.words], axis=2)
        weights = np.stack([into[:, group].mean(axis=1) for group in self.queries.words], axis=1)
        return Heads(weights, self.queries.joined(), self.keys.joined(), self.numbers)


@dataclass(frozen=True)
class AttentionRecord:
    """The attention of one finished input and output, by site."""

    sites: dict[str, Heads]

    def __getitem__(self, site: str) -> Heads:
        if site not in self.sites:
            raise UserError(f"site = {site!r}: not in the record{nearest(site, self.sites)}")
        return self.sites[site]

    @property
    def alignment_site(self) -> str:
        """Where the output looks at the input: the last cross-attention, else the last site recorded."""
        if not self.sites:
            raise UserError("the record is empty: this model has no attention, or no site matched the selection")
        cross = [site for site in self.sites if site.endswith("cross")]
        return (cross or list(self.sites))[-1]

    def matrix(self, site: str | None = None, head: int | None = None) -> Weights:
        """(queries, keys) of one head, or the mean over the heads; without a site, `alignment_site`."""
        heads = self[site or self.alignment_site]
        return heads.mean() if head is None else heads.head(head)

    def select(
        self, sites: str = "*", heads: Sequence[int] | None = None, rows: Sequence[int] | None = None
    ) -> AttentionRecord:
        """A smaller record: sites by pattern, heads and query rows by number."""
        kept = {site: held.select(heads, rows) for site, held in self.sites.items() if fnmatchcase(site, sites)}
        if not kept:
            raise UserError(f"sites = {sites!r}: matches nothing{nearest(sites, self.sites)}")
        return AttentionRecord(kept)

    def words(self) -> AttentionRecord:
        """The record over words instead of subwords."""
        return AttentionRecord({site: heads.words() for site, heads in self.sites.items()})

    @property
    def size(self) -> int:
        """Weights in it."""
        return sum(heads.weights.size for heads in self.sites.values())

    def plain(self) -> dict[str, Any]:
        """As JSON has it: dictionaries, lists, texts and numbers."""
        return {
            "sites": {
                site: {
                    "weights": heads.weights.tolist(),
                    "queries": asdict(heads.queries),
                    "keys": asdict(heads.keys),
                    "numbers": heads.numbers,
                }
                for site, heads in self.sites.items()
            }
        }

    def to_json(self) -> str:
        return json.dumps(self.plain(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> AttentionRecord:
        return cls(
            {
                site: Heads(
                    np.asarray(read["weights"], dtype=np.float32),
                    Axis(**read["queries"]),
                    Axis(**read["keys"]),
                    read["numbers"],
                )
                for site, read in json.loads(text)["sites"].items()
            }
        )


def records(
    recording: Recording, sentences: int, axes: Callable[[str, int], tuple[Axis, Axis]]
) -> Iterator[AttentionRecord]:
    """One `AttentionRecord` per sentence of the batch, its padding cut away; empty for a model without attention.

    `axes(site, sentence)` gives the queries and the keys there.
    """
    batches = {site: recording.batch(site).numpy() for site in recording.weights}
    for sentence in range(sentences):
        sites = {}
        for site, batch in batches.items():
            queries, keys = axes(site, sentence)
            if recording.rows is not None:
                kept = [row for row in recording.rows if row < len(queries.tokens)]
                if not kept:
                    raise UserError(f"rows = {recording.rows}: {site} has rows 0 to {len(queries.tokens) - 1}")
                queries = queries.select(kept)
            weights = batch[sentence, :, : len(queries.tokens), : len(keys.tokens)]
            sites[site] = Heads(weights, queries, keys, recording.kept_heads[site])
        yield AttentionRecord(sites)
