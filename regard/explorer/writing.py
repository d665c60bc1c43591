"""Language models, as the page sees them: the text is a prompt, what the model writes after it can be looked at too."""

from __future__ import annotations

from typing import Any

import torch

from regard.config import SearchConfig
from regard.decoding import Limits, Trace, beam
from regard.explorer.scene import TOKENS, Scene, Subject, Wish, check_forced, too_long
from regard.explorer.steps import told_steps
from regard.inference.silence import without
from regard.nn.record import Axis, Recording
from regard.tasks.generator import Generator

WRITTEN = 12
"""Tokens that the model goes on with."""


class Written(Scene):
    """A prompt and how the model goes on with it: one sequence, in which each token sees those before it."""

    @torch.inference_mode()
    def __init__(self, generator: Generator, text: str, options: SearchConfig, forced: tuple[int, ...]) -> None:
        check_forced(forced, generator.tokenizer)
        self.generator, self.forced = generator, forced
        tokenizer = generator.tokenizer
        read = generator.encode(text)
        if len(read) > TOKENS:
            raise too_long(len(read))
        room = max(WRITTEN, len(forced) + 1)
        self.prompt = read[-(generator.context - room) :] if generator.context > room else read[-1:]
        if len(read) > len(self.prompt):
            self.note = f"Only the last {len(self.prompt):,} of {len(read):,} tokens were read: the context is full."
        special = tokenizer.special
        self.specials = frozenset(tokenizer.tokens(sorted(special.ids)))
        unwanted = sorted(special.ids - {generator.end})
        limits = Limits([self.prompt[-1]], generator.end, [room], unwanted, [list(forced)])
        self.trace: Trace = []
        source = torch.tensor([self.prompt[:-1]], dtype=torch.long, device=generator.device)
        best = beam(generator.model, source, options, limits, self.trace)[0][0]
        self.ids, self.ended, self.score = best.ids, best.ended, best.score
        self.output = tokenizer.decode([*self.prompt, *best.ids])

    @torch.inference_mode()
    def replay(self, recording: Recording) -> None:
        self.generator.model(self._all(), record=recording)

    def _all(self) -> torch.Tensor:
        return torch.tensor([[*self.prompt, *self.ids]], device=self.generator.device)

    def axes(self, site: str) -> tuple[Axis, Axis]:
        ids, tokenizer = [*self.prompt, *self.ids], self.generator.tokenizer
        axis = Axis(tokenizer.tokens(ids), tokenizer.word_groups(ids))
        return axis, axis

    @property
    def longest(self) -> int:
        return len(self.prompt) + len(self.ids)

    @torch.inference_mode()
    def decoding(self) -> dict[str, Any]:
        model, chosen = self.generator.model, [*self.ids, *([self.generator.end] if self.ended else [])]
        logits = model.output(model(self._all())[0, len(self.prompt) - 1 :][: len(chosen)])
        log_probs = torch.log_softmax(logits.float(), dim=-1)
        return told_steps(log_probs, chosen, len(self.forced), self.trace, self.generator.tokenizer)


class Writings(Subject):
    """A run that continues text."""

    def __init__(self, name: str, kind: str, generator: Generator, options: SearchConfig, examples: list[str]) -> None:
        super().__init__(name, kind, "language", generator.model, examples, verbs=frozenset({"decode", "switch"}))
        self.generator, self.options = generator, options.model_copy(update={"method": "beam", "n_best": 1})

    def look(self, wish: Wish) -> Scene:
        own = self.generator
        model = without(own.model, wish.off)
        generator = own.using(model)
        return Written(generator, wish.text, self.options, wish.forced)
