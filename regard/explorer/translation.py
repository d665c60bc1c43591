"""Translation runs, as the page sees them: the source is read, the output is searched for, both can be looked at."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.config import SearchConfig
from regard.data.readers import one_line
from regard.data.tokenizers import SPECIALS
from regard.decoding import Limits, Trace, beam
from regard.explorer.scene import TOKENS, Scene, Subject, Wish, check_forced, too_long
from regard.explorer.steps import told_steps
from regard.inference.silence import without
from regard.nn.layers import Stack
from regard.nn.record import Axis, Recording
from regard.tasks.translator import Translator


class Translated(Scene):
    """A sentence and its translation. The search is traced, so that it can be replayed on the page."""

    specials = frozenset(SPECIALS)

    @torch.inference_mode()
    def __init__(self, translator: Translator, text: str, options: SearchConfig, forced: tuple[int, ...]) -> None:
        check_forced(forced, translator.tokenizer)
        self.translator, self.forced = translator, forced
        self.model, self.tokenizer = model, tokenizer = translator.model, translator.tokenizer
        (read,), marks = translator.encode([text]), translator.marks
        limit = TOKENS - marks.room
        if len(read) > TOKENS:
            raise too_long(len(read))
        self.source = read[: min(limit, translator.reads)]
        if len(read) > len(self.source):
            self.note = (
                f"Only the first {len(self.source):,} of {len(read):,} tokens were read: the model takes no more."
            )
        self.trace: Trace = []
        self.target: list[int] = []
        self.score, self.ended = None, True
        if self.source:
            opening = len(marks.opening)
            wanted = options.max_length or 10 + 2 * len(self.source)
            most = opening + max(min(wanted, limit, translator.writes), len(forced) + 1)
            limits = Limits(marks.start, marks.end, [most], marks.never, [list(forced)], opening=marks.opening)
            best = beam(model, self._source, options, limits, self.trace)[0][0]
            del self.trace[:opening]  # what every output begins with is no choice
            self.target, self.score, self.ended = best.ids[opening:], best.score, best.ended
        self.output = tokenizer.decode(self.target)

    @property
    def _source(self) -> Tensor:
        return self.translator.marks.sources([self.source]).to(self.translator.device)

    @torch.inference_mode()
    def replay(self, recording: Recording) -> None:
        if self.source:
            self._hidden(recording)

    def _hidden(self, recording: Recording | None) -> Tensor:
        batch = self.translator.marks.batch([self.source], [self.target]).to(self.translator.device)
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
        marks = self.translator.marks
        hidden = self._hidden(None)[0, len(marks.opening) :]
        log_probs = torch.log_softmax(self.model.output(hidden).float(), dim=-1)  # (T, V)
        log_probs[:, list(marks.never)] = float("-inf")
        chosen = [*self.target, *([marks.end] if self.ended else [])]
        return told_steps(log_probs[: len(chosen)], chosen, len(self.forced), self.trace, self.tokenizer)


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
        return Translated(self.translator.using(model), one_line(wish.text), self.options, wish.forced)
