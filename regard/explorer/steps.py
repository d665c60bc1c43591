"""Decoding, for the page: the candidates of every step of a finished output, and the tree of the search for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.data.tokenizers import Tokenizer
from regard.decoding import Trace

CANDIDATES = 8
"""Tokens shown for each step."""


def told_steps(
    log_probs: Tensor, chosen: Sequence[int], forced: int, trace: Trace, tokenizer: Tokenizer
) -> dict[str, Any]:
    """`log_probs` (T, V) of each step, what was `chosen` there, and how many of them were `forced`."""

    def told(token: int, log_prob: Tensor) -> dict[str, Any]:
        return {"id": token, "token": label(tokenizer, token), "probability": log_prob.exp().item()}

    values, ids = log_probs.topk(min(CANDIDATES, log_probs.shape[1]), dim=-1)
    steps = [
        {
            "chosen": told(token, log_probs[step, token]),
            "forced": step < forced,
            "candidates": [told(one, value) for one, value in zip(ids[step].tolist(), values[step], strict=True)],
        }
        for step, token in enumerate(chosen)
    ]
    tree = [
        [
            {
                "parent": branch.parent, "id": branch.token, "token": label(tokenizer, branch.token),
                "log_prob": branch.log_prob, "score": branch.score, "kept": branch.kept, "ended": branch.ended,
            }
            for branch in step
        ]
        for step in trace
    ]  # fmt: skip
    return {"steps": steps, "tree": tree}


def label(tokenizer: Tokenizer, token: int) -> str:
    """As text, with the mark `▁` where a word begins."""
    piece = str(tokenizer.inner.id_to_token(token))
    if piece in ("▁", "Ġ"):
        return "▁"
    shown = tokenizer.tokens([token])[0]
    return f"▁{shown}" if piece.startswith(("▁", "Ġ")) else shown
