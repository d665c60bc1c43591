"""Translation runs, as the page sees them: the source is read, the output is searched for, both can be looked at."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.data.tokenizers import BOS, EOS, PAD, SPECIALS, Tokenizer
from regard.decoding import Limits, Trace, beam
from regard.explorer.scene import TOKENS, Scene, Subject, Wish, too_long
from regard.inference.silence import without
from regard.models.base import EncoderDecoder
from regard.nn.layers import Stack
from regard.nn.record import Axis, Recording
from regard.tasks.translator import make_batch, source_tensor

CANDIDATES = 8
"""Tokens shown for each step."""


class Translated(Scene):
    """A sentence and its translation. The search is traced, so that it can be replayed on the page."""

    specials = frozenset(SPECIALS)

    @torch.inference_mode()
    def __init__(
        self, model: EncoderDecoder, tokenizer: Tokenizer, text: str, options: SearchConfig, forced: tuple[int, ...]
    ) -> None:
        self.model, self.tokenizer, self.forced = model, tokenizer, forced
        read = tokenizer.encode(text)
        limit = min(model.max_length or TOKENS, TOKENS)
        if len(read) > TOKENS:
            raise too_long(len(read))
        self.source = read[: limit - 1]
        if len(read) > len(self.source):
            self.note = f"Only the first {limit - 1:,} of {len(read):,} tokens were read: the model takes no more."
        self.trace: Trace = []
        self.target: list[int] = []
        self.score = None
        if self.source:
            most = min(options.max_length or 10 + 2 * len(self.source), limit - 1)
            limits = Limits(BOS, EOS, [max(most, len(forced) + 1)], (PAD, BOS), [list(forced)])
            best = beam(model, self._source, options, limits, self.trace)[0][0]
            self.target, self.score = best.ids, best.score
        self.output = tokenizer.decode(self.target)

    @property
    def _source(self) -> Tensor:
        return source_tensor([self.source]).to(next(self.model.parameters()).device)

    @torch.inference_mode()
    def replay(self, recording: Recording) -> None:
        if self.source:
            self._hidden(recording)

    def _hidden(self, recording: Recording | None) -> Tensor:
        batch = make_batch([self.source], [self.target]).to(self._source.device)
        hidden: Tensor = self.model(batch.source, batch.target[:, :-1], record=recording)
        return hidden  # (1, T, M)

    def axes(self, site: str) -> tuple[Axis, Axis]:
        source = self._axis([*self.source, EOS])
        if site.startswith("encoder"):
            return source, source
        if site.endswith("cross"):  # a query is named after the word that it led to
            return self._axis([*self.target, EOS]), source
        read = self._axis([BOS, *self.target])
        return read, read

    def _axis(self, ids: list[int]) -> Axis:
        return Axis(self.tokenizer.tokens(ids), self.tokenizer.word_groups(ids))

    @property
    def longest(self) -> int:
        return max(len(self.source), len(self.target)) + 1

    @torch.inference_mode()
    def decoding(self) -> dict[str, Any]:
        """The likeliest tokens of each step of the output, and the tree of the search."""
        if not self.source:
            return {"steps": [], "tree": []}
        log_probs = torch.log_softmax(self.model.output(self._hidden(None)[0]).float(), dim=-1)  # (T, V)
        log_probs[:, [PAD, BOS]] = float("-inf")
        values, ids = log_probs.topk(min(CANDIDATES, log_probs.shape[1]), dim=-1)
        chosen = [*self.target, EOS]
        steps = [
            {
                "chosen": {
                    "id": token,
                    "token": self._label(token),
                    "probability": log_probs[step, token].exp().item(),
                },
                "forced": step < len(self.forced),
                "candidates": [
                    {"id": one, "token": self._label(one), "probability": share}
                    for one, share in zip(ids[step].tolist(), values[step].exp().tolist(), strict=True)
                ],
            }
            for step, token in enumerate(chosen)
        ]
        tree = [
            [
                {
                    "parent": branch.parent, "id": branch.token, "token": self._label(branch.token),
                    "log_prob": branch.log_prob, "score": branch.score, "kept": branch.kept, "ended": branch.ended,
                }
                for branch in step
            ]
            for step in self.trace
        ]  # fmt: skip
        return {"steps": steps, "tree": tree, "source": self.tokenizer.decode(self.source)}

    def _label(self, token: int) -> str:
        """As the text has it: a mark shows where a word begins."""
        piece = self.tokenizer.inner.id_to_token(token)
        return str(piece) if piece else "?"


class Translator(Subject):
    """A run that translates."""

    def __init__(
        self,
        name: str,
        kind: str,
        model: EncoderDecoder,
        tokenizer: Tokenizer,
        options: SearchConfig,
        examples: list[str],
    ) -> None:
        # Only layers of multi-head attention have parts that can be switched off one by one.
        layered = any(isinstance(part, Stack) for part in model.children())
        verbs = frozenset({"decode", "switch"} if layered else {"decode"})
        super().__init__(name, kind, "translate", model, examples, verbs=verbs)
        self.translator, self.tokenizer = model, tokenizer
        self.options = options.model_copy(update={"method": "beam", "n_best": 1})

    def look(self, wish: Wish) -> Scene:
        model = without(self.translator, wish.off)
        return Translated(model, self.tokenizer, wish.text.strip(), self.options, wish.forced)
