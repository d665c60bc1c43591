"""Sentences in, translations out, each with the attention that belongs to it.

texts -> ids -> batches of like length -> search -> text          (fused kernels, nothing recorded)
translation.attention -> the finished hypothesis replayed once, with a record
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import torch

from regard.config import SearchConfig
from regard.data.batching import plan
from regard.data.pairs import Alignment
from regard.data.readers import one_line, source_line
from regard.data.tokenizers import Tokenizer
from regard.decoding import Limits, search
from regard.errors import UserError
from regard.models.base import EncoderDecoder
from regard.nn.record import AttentionRecord, Axis, Recording, records
from regard.tasks.marks import Marks

FIRST, WINDOW = 256, 4096
"""Sentences read before translating: sorted by length within, given back in order. Memory stays constant. At first
there are few of them, so that outputs come soon; then twice as many each time."""
SCORES_A_TOKEN = 2**13
"""Scores that a step of a search may hold for every token of a batch (`decode.batch_tokens`)."""


@dataclass(frozen=True)
class Translation:
    """One translated sentence. `others` are the next best; `truncated` says that the source was too long to read, and
    `ended` that the output was not cut off by a limit of its length."""

    source: str
    text: str
    score: float
    source_ids: list[int]
    target_ids: list[int]
    translator: Translator = field(repr=False)
    others: list[Translation] = field(default_factory=list)
    truncated: bool = False
    ended: bool = True

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        row: dict[str, Any] = {"source": self.source, "text": self.text, "score": self.score}
        return row | ({"truncated": True} if self.truncated else {}) | ({} if self.ended else {"ended": False})

    @cached_property
    def attention(self) -> AttentionRecord:
        """All sites, heads and rows of this very translation."""
        return self.look(Recording())

    def look(self, recording: Recording) -> AttentionRecord:
        """As `attention`, but only the sites, heads and rows that `recording` asks for."""
        return next(self.translator.replay([self.source_ids], [self.target_ids], recording))

    def links(self, site: str | None = None, head: int | None = None) -> Alignment:
        """Each word of the output with the source word it looked at most: (source, output), both counted from 0. By the
        last cross-attention and the mean of its heads, or as asked for."""
        if not self.target_ids:
            return ()
        if site is not None and not site.endswith("cross"):
            raise UserError(
                f"site = {site!r}: links are between source and output (try decoder.cross, decoder.0.cross)"
            )
        record = self.look(Recording(sites=site or "*cross"))
        if not record.sites:
            raise UserError(
                f"site = {site!r}: this model has no such attention" if site else "this model has no cross-attention"
            )
        return links(record.words(), self.translator.marks, site, head, self.translator.asked_words)


def links(
    record: AttentionRecord, marks: Marks, site: str | None = None, head: int | None = None, asked: int = 0
) -> Alignment:
    """Each target word with the source word it looked at most, from a record over words; looking at a mark, or at one
    of the `asked` words that were said before the source, is no link.

    The last row and the last column are the end marks.
    """
    before = len(marks.before) + asked
    matrix = record.matrix(site, head)[len(marks.opening) : -1]
    best = matrix.argmax(axis=1) - before
    words = matrix.shape[1] - 1 - before
    return tuple((int(source), target) for target, source in enumerate(best) if 0 <= source < words)


class Translator:
    """A trained model with its tokenizer. `ask` is said before every source: a text-to-text model has many tasks.

    `most` is the longest source, in tokens, of a model that learned from texts cut to it: more it has never seen.
    """

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer, ask: str = "", most: int | None = None) -> None:
        self.model, self.tokenizer, self.ask, self.most = model, tokenizer, ask, most
        self.marks = Marks.of(tokenizer, model.decoder_start)

    def asking(self, ask: str) -> Translator:
        """The same one, with something else said before every source."""
        return Translator(self.model, self.tokenizer, ask, self.most)

    def using(self, model: EncoderDecoder) -> Translator:
        """The same one, by another model."""
        return Translator(model, self.tokenizer, self.ask, self.most)

    @cached_property
    def asked_words(self) -> int:
        """Words that are said before every source."""
        return len(self.tokenizer.word_groups(self.tokenizer.encode(self.ask.strip())))

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def reads(self) -> int:
        """The most tokens of a source, beside its marks."""
        limit = (self.model.max_length or 10**9) - self.marks.room
        return min(limit, self.most or limit)

    @property
    def writes(self) -> int:
        """The most tokens of a target, beside its marks."""
        return (self.model.max_target or 10**9) - self.marks.room

    def encode(self, texts: Sequence[str], ask: str | None = None) -> list[list[int]]:
        """Sources as the model reads them, without their marks."""
        asked = self.tokenizer.encode((self.ask if ask is None else ask).strip())
        return [asked + ids for ids in self.tokenizer.encode_batch(texts)]

    def translate(
        self,
        texts: Iterable[str],
        options: SearchConfig,
        prefixes: Iterable[str] | None = None,
        window: int | None = None,
        ask: str | None = None,
    ) -> Iterator[Translation]:
        """Translations in the order of the texts; texts may be endless. A prefix is how an output must begin.

        `window` texts are read before they are translated; 1 for a person who waits. `ask` replaces the translator's
        own.
        """
        size = window or min(FIRST, WINDOW)
        numbered = enumerate(texts)
        begun = None if prefixes is None else iter(prefixes)
        while read := list(islice(numbered, size)):
            wished = [] if begun is None else [one_line(text) for text in islice(begun, len(read))]
            if begun is not None and len(wished) < len(read):
                raise UserError(f"prefixes: {len(wished)} beside {len(read)} texts; give one for each")
            wishes = self.tokenizer.encode_targets(wished)
            yield from self._window(read, options, wishes, ask)
            size = window or min(2 * size, WINDOW)

    def _window(
        self, window: list[tuple[int, str]], options: SearchConfig, wishes: list[list[int]], ask: str | None
    ) -> list[Translation]:
        texts = [source_line(text) for _, text in window]
        marks, opening = self.marks, len(self.marks.opening)
        asked = self if ask is None else self.asking(ask)
        read = self.encode(texts, ask)
        ids = [row[: self.reads] for row in read]
        done = {place: Translation(text, "", 0.0, [], [], asked) for place, text in enumerate(texts) if not text}
        todo = [place for place, text in enumerate(texts) if text]
        # What a step holds grows with the rows, the beam and the vocabulary: many short lines must not be one batch.
        least = max(options.beam, options.n_best) * len(self.tokenizer) // SCORES_A_TOKEN
        lengths = np.array([[max(least, len(ids[place]) + marks.room)] for place in todo], dtype=np.int32)
        for batch in plan(lengths.reshape(-1, 1), batch_tokens=options.batch_tokens, shuffle=False):
            places = [todo[row] for row in batch]
            limits = Limits(
                begin=marks.start,
                end=marks.end,
                lengths=[
                    opening + self._limit(len(ids[place]), len(wishes[place]) if wishes else 0, options)
                    for place in places
                ],
                never=marks.never,
                prefixes=[wishes[place] for place in places] if wishes else (),
                opening=marks.opening,
                numbers=[window[place][0] for place in places],
            )
            source = marks.sources([ids[place] for place in places]).to(self.device)
            for place, best in zip(places, search(self.model, source, options, limits), strict=True):
                found = [
                    Translation(
                        texts[place], self.tokenizer.decode(one.ids).strip(), one.score, ids[place],
                        one.ids[opening:], asked, truncated=len(read[place]) > len(ids[place]), ended=one.ended,
                    )
                    for one in best
                ]  # fmt: skip
                if not found:
                    raise UserError("no output was found: the weights of this model are no numbers; train it again")
                done[place] = replace(found[0], others=found[1:])
        return [done[place] for place in range(len(window))]

    def _limit(self, read: int, prefix: int, options: SearchConfig) -> int:
        """The most tokens of an output: twice those of the source and some, and what is asked for in any case."""
        least = max(options.min_length, prefix) + 1  # with the end mark
        limit = min(options.max_length or max(10 + 2 * read, least, prefix + 10 if prefix else 0), self.writes)
        if limit < prefix or limit < options.min_length:
            what = f"a prefix of {prefix} tokens" if limit < prefix else f"min_length = {options.min_length}"
            room = (
                f"max_length = {limit}" if limit == options.max_length else f"the model writes {limit} tokens at most"
            )
            raise UserError(f"{room}: is less than {what}")
        return limit

    @torch.inference_mode()
    def replay(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]], wanted: Recording
    ) -> Iterator[AttentionRecord]:
        """The attention of finished translations that `wanted` asks for, from one forward pass over them."""
        recording = wanted.again()
        batch = self.marks.batch(sources, targets).to(self.device)
        self.model(batch.source, batch.target[:, :-1], record=recording)
        return records(recording, len(sources), lambda site, index: self.axes(site, sources[index], targets[index]))

    def axes(self, site: str, source: list[int], target: list[int]) -> tuple[Axis, Axis]:
        """The tokens that ask at `site`, and those that they look at."""
        read, written = self.marks.source(source), self.marks.target(target)
        if self.model.joined:
            both = self._axis([*read, *written[:-1]])
            return both, both
        if site.endswith("cross"):  # a query is named after the word that it led to
            return self._axis(written[1:]), self._axis(read)
        itself = self._axis(read if site.startswith("encoder") else written[:-1])
        return itself, itself

    def _axis(self, ids: list[int]) -> Axis:
        return Axis(self.tokenizer.tokens(ids), self.tokenizer.word_groups(ids))
