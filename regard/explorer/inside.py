"""Inside one head: how the weight of one pair of tokens is computed, step by step, with the real numbers.

The vectors come from the forward pass itself (`Recording.vectors`). Each step is one line of the score's formula; its
result is what the next step uses. The last steps, softmax and weighted sum, are the same for every score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import UserError
from regard.explorer.seen import Seen
from regard.nn.attention import Additive, Concat, Cosine, Dot, General, ScaledDot, Score, attention_weights
from regard.nn.record import Operands, Recording


@dataclass(frozen=True)
class Line:
    """One line of the computation: a vector, a number, or both; `of` says how it comes from the lines above."""

    name: str
    of: str
    vector: list[float] | None = None
    number: float | None = None


Lines = Callable[[Any, Tensor, Tensor], list[Line]]
"""(score, query (D), key (D)) -> the lines of the score, the last of which ends in the score's number."""


def _vector(name: str, of: str, vector: Tensor, number: float | None = None) -> Line:
    return Line(name, of, vector.tolist(), number)


def _dot(score: Dot, query: Tensor, key: Tensor) -> list[Line]:
    scale, width = score.scale(len(query)), len(query)
    product = query * key
    lines = [
        _vector("q", "the query: what this token asks for", query),
        _vector("k", "the key: what that token offers", key),
        _vector("q · k", "multiplied place by place, and added up", product, product.sum().item()),
    ]
    if isinstance(score, ScaledDot):
        lines.append(
            Line("q · k / √D", f"divided by √{width} = {width**0.5:.3f}", None, (product.sum() * scale).item())
        )
    return lines


def _general(score: General, query: Tensor, key: Tensor) -> list[Line]:
    product = query * key
    return [
        _vector("q", "the query: the decoder's state", query),
        _vector("W k", "the key, through the learned matrix W", key),
        _vector("q · W k", "multiplied place by place, and added up", product, product.sum().item()),
    ]


def _hidden(names: tuple[str, str, str], projected: Tensor, key: Tensor, v: Tensor, query: Tensor) -> list[Line]:
    left, right, joined = names
    hidden = torch.tanh(projected + key)
    return [
        _vector("q", "the query: the decoder's state", query),
        _vector(left, "the query, through a learned matrix", projected),
        _vector(right, "the key, through a learned matrix", key),
        _vector(f"tanh({joined})", "added, and squashed between -1 and 1", hidden),
        _vector("v", "a learned vector, the same for all pairs", v),
        _vector(
            f"v · tanh({joined})", "multiplied place by place, and added up", v * hidden, (v * hidden).sum().item()
        ),
    ]


def _additive(score: Additive, query: Tensor, key: Tensor) -> list[Line]:
    return _hidden(("W q", "U k", "W q + U k"), score.query_weight(query), key, score.v.weight[0], query)


def _concat(score: Concat, query: Tensor, key: Tensor) -> list[Line]:
    projected = F.linear(query, score.weight.weight[:, : score.query_width])
    return _hidden(("W₁ q", "W₂ k", "W [q; k]"), projected, key, score.v.weight[0], query)


def _cosine(score: Cosine, query: Tensor, key: Tensor) -> list[Line]:
    unit, sharpness = F.normalize(query, dim=-1), score.sharpness.item()
    cosine = (unit * key).sum().item()
    return [
        _vector("q", "the query: what this token asks for", query),
        _vector("q / |q|", "the query at length 1", unit),
        _vector("k / |k|", "the key at length 1", key),
        _vector("cos(q, k)", "multiplied place by place, and added up", unit * key, cosine),
        Line("g · cos(q, k)", f"times the learned sharpness g = {sharpness:.3f}", None, sharpness * cosine),
    ]


LINES: dict[type[Score], Lines] = {
    ScaledDot: _dot,
    Dot: _dot,
    General: _general,
    Additive: _additive,
    Concat: _concat,
    Cosine: _cosine,
}


@torch.inference_mode()
def inside(seen: Seen, site: str, head: int, query: int, key: int) -> dict[str, Any]:
    """The computation of weight (query, key) of one head, from its vectors to what the head passes on."""
    heads, queries, keys = seen.site(site).weights.shape
    for name, number, count in (("head", head, heads), ("query", query, queries), ("key", key, keys)):
        if number >= count:
            raise UserError(f"{name} = {number}: {site} has {count} here, counted from 0")
    recording = Recording(sites=site, heads=[head], rows=[query], vectors=True)
    seen.scene.replay(recording)
    part = recording.operands[site][-1]
    score = part.score
    assert isinstance(score, Score), f"a score function, not {type(score).__name__}"
    q, offered, values = part.query[0, 0, 0], part.key[0, 0], part.value[0, 0]
    row = attention_weights(part.query, part.key, part.mask, part.bias, score)[0, 0, 0]
    scores = score(part.query, part.key)[0, 0, 0]
    bias, mask = _row(part, part.bias), _row(part, part.mask)
    lines = LINES[type(score)](score, q, offered[key])
    if bias is not None:
        lines.append(Line("score + bias", f"the bias of this pair: {bias[key]:.3f}", None, (scores + bias)[key].item()))
    weighted = row[key] * values[key]
    return {
        "formula": (type(score).__doc__ or "").partition("=")[2].partition("  (")[0].strip(),
        "source": (type(score).__doc__ or "").partition("  (")[2].rstrip(").\n").partition(")")[0],
        "lines": [asdict(line) for line in lines],
        "scores": (scores if bias is None else scores + bias).tolist(),
        "allowed": [True] * len(row) if mask is None else mask.tolist(),
        "weights": row.tolist(),
        "value": values[key].tolist(),
        "weighted": weighted.tolist(),
        "output": (row @ values).tolist(),
    }


def _row(part: Operands, term: Tensor | None) -> Tensor | None:
    """The row (K) of a mask or a bias."""
    return None if term is None else term.expand(1, 1, 1, part.key.shape[2])[0, 0, 0]
