"""Translation runs, as the page sees them: the source is read, the output is searched for, both can be looked at."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.data.tokenizers import BOS, EOS, PAD, SPECIALS
from regard.decoding import Limits, Trace, beam
from regard.explorer.scene import TOKENS, Scene, Subject, Wish, too_long
from regard.explorer.steps import told_steps
from regard.inference.silence import without
from regard.nn.layers import Stack
from regard.nn.record import Axis, Recording
from regard.tasks.translator import Translator, make_batch, source_tensor


class Translated(Scene):
    """A sentence and its translation. The search is traced, so that it can be replayed on the page."""

    specials = frozenset(SPECIALS)

    @torch.inference_mode()
    def __init__(self, translator: Translator, text: str, options: SearchConfig, forced: tuple[int, ...]) -> None:
        self.translator, self.forced = translator, forced
        self.model, self.tokenizer = model, tokenizer = translator.model, translator.tokenizer
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
        return source_tensor([self.source]).to(self.translator.device)

    @torch.inference_mode()
    def replay(self, recording: Recording) -> None:
        if self.source:
            self._hidden(recording)

    def _hidden(self, recording: Recording | None) -> Tensor:
        batch = make_batch([self.source], [self.target]).to(self.translator.device)
        hidden: Tensor = self.model(batch.source, batch.target[:, :-1], record=recording)
        return hidden  # (1, T, M)

    def axes(self, site: str) -> tuple[Axis, Axis]:
        return self.translator.axes(site, self.source, self.target)

    @property
    def longest(self) -> int:
        both = len(self.source) + len(self.target) if self.model.joined else max(len(self.source), len(self.target))
        return both + 2

    @torch.inference_mode()
    def decoding(self) -> dict[str, Any]:
        """The likeliest tokens of each step of the output, and the tree of the search."""
        if not self.source:
            return {"steps": [], "tree": []}
        log_probs = torch.log_softmax(self.model.output(self._hidden(None)[0]).float(), dim=-1)  # (T, V)
        log_probs[:, [PAD, BOS]] = float("-inf")
        return told_steps(log_probs, [*self.target, EOS], len(self.forced), self.trace, self.tokenizer)


class Translations(Subject):
    """A run that translates."""

    def __init__(
        self, name: str, kind: str, translator: Translator, options: SearchConfig, examples: list[str]
    ) -> None:
        model = translator.model
        # Only layers of multi-head attention have parts that can be switched off one by one.
        layered = any(isinstance(part, Stack) for part in model.modules())
        verbs = frozenset({"decode", "switch"} if layered else {"decode"})
        super().__init__(name, kind, "translate", model, examples, verbs=verbs)
        self.translator, self.options = translator, options.model_copy(update={"method": "beam", "n_best": 1})

    def look(self, wish: Wish) -> Scene:
        model = without(self.translator.model, wish.off)
        translator = Translator(model, self.translator.tokenizer)
        return Translated(translator, wish.text.strip(), self.options, wish.forced)
