"""THE attention: one function that every model in the package calls, its score functions and its masks.

Shapes, everywhere in the package:

    B batch   S source length   T target length   Q queries   K keys
    H heads   D head width      M model width     V vocabulary

    query (B, H, Q, D)     key (B, H, K, D)     value (B, H, K, D)
      \\_______score________/                     |
           (B, H, Q, K)  + bias, mask            |
                 | softmax over K                |
           weights (B, H, Q, K) ------- @ -------'   ->  (B, H, Q, D)

Masks are boolean, True = *may attend*, broadcastable to (B, H, Q, K), combined with `&`; additive terms are called
`bias`. A query that may attend to nothing receives zeros.

To add a score function: write a `Score` below, and add its name to `ScoreName` and its line to `SCORES`.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.record import Operands, Recording


class Score(nn.Module):
    """How well a key answers a query: (B, H, Q, D), (B, H, K, D) -> (B, H, Q, K).

    `key` turns what is attended to into what `forward` compares with; it is separate because a decoder projects its
    memory once and asks many queries of it.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()

    def key(self, memory: Tensor) -> Tensor:
        return memory

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        raise NotImplementedError


class Dot(Score):
    """score(q, k) = q · k  (Luong 2015, eq. 8, "dot")."""

    def scale(self, width: int) -> float:
        return 1.0

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        scale = self.scale(query.shape[-1])
        return (query if scale == 1.0 else query * scale) @ key.transpose(-2, -1)


class ScaledDot(Dot):
    """score(q, k) = q · k / √D  (Vaswani 2017, eq. 1)."""

    def scale(self, width: int) -> float:
        return float(width**-0.5)


class General(Score):
    """score(q, k) = q · W k  (Luong 2015, eq. 8, "general")."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.weight = nn.Linear(key_width, query_width, bias=False)

    def key(self, memory: Tensor) -> Tensor:
        return _projected(self.weight, memory)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-2, -1)


class Additive(Score):
    """score(q, k) = v · tanh(W q + U k)  (Bahdanau 2015, section A.1.2)."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.query_weight = nn.Linear(query_width, query_width, bias=False)
        self.key_weight = nn.Linear(key_width, query_width, bias=False)
        self.v = nn.Linear(query_width, 1, bias=False)

    def key(self, memory: Tensor) -> Tensor:
        return _projected(self.key_weight, memory)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        hidden = (self.query_weight(query).unsqueeze(-2) + key.unsqueeze(-3)).tanh_()  # (B, H, Q, K, D)
        scores: Tensor = self.v(hidden).squeeze(-1)
        return scores


class Concat(Score):
    """score(q, k) = v · tanh(W [q; k])  (Luong 2015, eq. 8, "concat").

    W [q; k] is computed as its two halves, so that the half of the memory is projected once.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.query_width = query_width
        self.weight = nn.Linear(query_width + key_width, query_width, bias=False)
        self.v = nn.Linear(query_width, 1, bias=False)

    def key(self, memory: Tensor) -> Tensor:
        return F.linear(memory, self.weight.weight[:, self.query_width :])

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        query = F.linear(query, self.weight.weight[:, : self.query_width])
        scores: Tensor = self.v((query.unsqueeze(-2) + key.unsqueeze(-3)).tanh_()).squeeze(-1)
        return scores


class Cosine(Score):
    """score(q, k) = g · cos(q, k)  (Graves 2014, eq. 5-6), with a learned sharpness g.

    Without g the scores stay within [-1, 1] and the softmax could never become sharp.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.sharpness = nn.Parameter(torch.tensor(10.0))
        self.weight = nn.Linear(key_width, query_width, bias=False) if key_width != query_width else nn.Identity()

    def key(self, memory: Tensor) -> Tensor:
        return F.normalize(_projected(self.weight, memory), dim=-1)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.sharpness * (F.normalize(query, dim=-1) @ key.transpose(-2, -1))


ScoreName = Literal["dot", "scaled-dot", "general", "additive", "concat", "cosine"]
SCORES: dict[ScoreName, type[Score]] = {
    "dot": Dot,
    "scaled-dot": ScaledDot,
    "general": General,
    "additive": Additive,
    "concat": Concat,
    "cosine": Cosine,
}

scaled_dot = ScaledDot(0, 0)
"""The Transformer's score. It has no parameters, so one serves everywhere."""


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    score: Score = scaled_dot,
    dropout: float = 0.0,
    record: Recording | None = None,
    site: str = "",
) -> Tensor:
    """softmax(score(Q, K) + bias) V  (Vaswani 2017, eq. 1; Bahdanau 2015, eq. 5-6).

    Dot products take PyTorch's fused kernel, which never forms the weights, unless the explicit lines are faster.
    Recording computes the weights it was asked for beside it, before dropout, so that looking changes nothing in the
    output.
    """
    look_on(record, site, query, key, value, mask, bias, score)
    if isinstance(score, Dot) and not _short(query, key):
        terms = mask if bias is None else bias if mask is None else bias.masked_fill(~mask, float("-inf"))
        if terms is not None and terms.is_floating_point():
            terms = terms.to(query.dtype)  # the kernel misreads other kinds of numbers
        scale = score.scale(query.shape[-1])
        return F.scaled_dot_product_attention(query, key, value, attn_mask=terms, dropout_p=dropout, scale=scale)
    weights = attention_weights(query, key, mask, bias, score)
    return F.dropout(weights, dropout) @ value


def look_on(
    record: Recording | None,
    site: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    score: Score,
) -> None:
    """Record an attention, if it is asked for."""
    if record is not None and record.wants(site):
        record_weights(
            record, site, query, key, value, score,
            lambda heads, rows: (_selected(mask, heads, rows), _selected(bias, heads, rows)),
        )  # fmt: skip


def record_weights(
    record: Recording,
    site: str,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    terms: Callable[[list[int], list[int]], tuple[Tensor | None, Tensor | None]],
) -> None:
    """Keep the weights of the heads and rows that are asked for. `terms` makes the mask and the bias of those alone."""
    heads, rows = record.select(site, query.shape[1], query.shape[2])
    mask, bias = terms(heads, rows)
    asking, key, value = query[:, heads][:, :, rows], key[:, heads], value[:, heads]
    record.add(site, attention_weights(asking, key, mask, bias, score))
    if record.vectors and rows:
        record.keep(site, Operands(asking, key, value, mask, bias, score))


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, bias: Tensor | None, score: Score) -> Tensor:
    """softmax(score(Q, K) + bias): (B, H, Q, K), rows that sum to 1, or to 0 where the mask allows nothing."""
    scores = score(query, key)
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return _softmax(scores)
    # The smallest finite number, not -inf: a row that is masked throughout must not become NaN, forwards or backwards.
    penalty = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = _softmax(scores + penalty)
    allowed = mask.any(dim=-1, keepdim=True)
    return weights if bool(allowed.all()) else weights * allowed


def _softmax(scores: Tensor) -> Tensor:
    """Over keys, summed in float32 at least: in bfloat16 it would be coarse, and on a CPU six times as slow."""
    summed = torch.promote_types(scores.dtype, torch.float32)
    return torch.softmax(scores, dim=-1, dtype=summed).to(scores.dtype)


def _short(query: Tensor, key: Tensor) -> bool:
    """True where PyTorch's fused kernel for the CPU is slower than the explicit lines: many short sequences.

    Measured, 128 x 4 heads x 16 tokens, there and back: 4.0 ms against 7.9 ms; from 128 tokens on it is the faster one.
    """
    rows, queries, keys = len(query), query.shape[2], key.shape[2]
    return query.device.type == "cpu" and rows >= 8 and queries > 1 and (keys <= 64 or queries <= 8)


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """True where a key is a real token: ids (B, K) -> (B, 1, 1, K)."""
    return (ids != pad)[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """True where key j is not after query i; the last query stands at the last key: (1, 1, Q, K)."""
    rows = torch.arange(keys - queries, keys, device=device)
    return (torch.arange(keys, device=device) <= rows[:, None])[None, None]


def window_mask(queries: int, keys: int, width: int, device: torch.device | None = None) -> Tensor:
    """Restricted attention (Vaswani 2017, section 4): True where key j is within `width` of query i: (1, 1, Q, K)."""
    return _offsets(queries, keys, device).abs() <= width


def _offsets(queries: int, keys: int, device: torch.device | None) -> Tensor:
    rows = torch.arange(keys - queries, keys, device=device)
    return (torch.arange(keys, device=device)[None, :] - rows[:, None])[None, None]


def _selected(term: Tensor | None, heads: list[int], rows: list[int]) -> Tensor | None:
    """The chosen heads and rows of a mask or bias; an axis of size 1 stands for all of them."""
    if term is None:
        return None
    term = term if term.shape[1] == 1 else term[:, heads]
    return term if term.shape[2] == 1 else term[:, :, rows]


def _projected(weight: nn.Module, memory: Tensor) -> Tensor:
    projected: Tensor = weight(memory)
    return projected
