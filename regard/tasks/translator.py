"""Sentences in, translations out, each with the attention that belongs to it.

texts -> ids -> batches of like length -> search -> text          (fused kernels, nothing recorded)
translation.attention -> the finished hypothesis replayed once, with a record
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import SearchConfig
from regard.data.batching import pad, plan
from regard.data.tokenizers import BOS, EOS, PAD, Tokenizer
from regard.decoding import Limits, search
from regard.models.base import EncoderDecoder
from regard.nn.record import AttentionRecord, Axis, Recording, records

WINDOW = 4096
"""Sentences read before translating: sorted by length within, given back in order. Memory stays constant."""


@dataclass(frozen=True)
class Batch:
    source: Tensor  # (B, S), each row ends with </s>
    target: Tensor  # (B, T + 1), each row is <s> ... </s>
    tokens: int  # of the target that are predicted

    def to(self, device: torch.device) -> Batch:
        return replace(self, source=self.source.to(device), target=self.target.to(device))


Ids = Sequence[int] | NDArray[np.unsignedinteger]


def source_tensor(sources: Sequence[Ids]) -> Tensor:
    return torch.from_numpy(pad([np.append(row, EOS) for row in sources], PAD))


def make_batch(sources: Sequence[Ids], targets: Sequence[Ids]) -> Batch:
    target = pad([np.concatenate(([BOS], row, [EOS])) for row in targets], PAD)
    return Batch(source_tensor(sources), torch.from_numpy(target), sum(len(row) + 1 for row in targets))


@dataclass(frozen=True)
class Translation:
    """One translated sentence. `others` are the next best; `truncated` says that the source was too long to read."""

    source: str
    text: str
    score: float
    source_ids: list[int]
    target_ids: list[int]
    translator: Translator = field(repr=False)
    others: list[Translation] = field(default_factory=list)
    truncated: bool = False

    @cached_property
    def attention(self) -> AttentionRecord:
        """All sites, heads and rows of this very translation."""
        return self.look(Recording())

    def look(self, recording: Recording) -> AttentionRecord:
        """As `attention`, but only the sites, heads and rows that `recording` asks for."""
        return next(self.translator.replay([self.source_ids], [self.target_ids], recording))


class Translator:
    """A trained model with its tokenizer."""

    def __init__(self, model: EncoderDecoder, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def translate(
        self,
        texts: Iterable[str],
        options: SearchConfig,
        prefixes: Iterable[str] | None = None,
        window: int | None = None,
    ) -> Iterator[Translation]:
        """Translations in the order of the texts; texts may be endless. A prefix is how an output must begin.

        `window` texts are read before the first is translated; 1 for a person who waits.
        """
        numbered = enumerate(texts)
        begun = None if prefixes is None else iter(prefixes)
        while read := list(islice(numbered, window or WINDOW)):
            wishes = [] if begun is None else self.tokenizer.encode_batch(list(islice(begun, len(read))))
            yield from self._window(read, options, wishes)

    def _window(
        self, window: list[tuple[int, str]], options: SearchConfig, wishes: list[list[int]]
    ) -> list[Translation]:
        texts = [text.strip() for _, text in window]
        limit = self.model.max_length or 10**9
        read = self.tokenizer.encode_batch(texts)
        ids = [row[: limit - 1] for row in read]
        done = {place: Translation(texts[place], "", 0.0, [], [], self) for place, row in enumerate(ids) if not row}
        todo = [place for place, row in enumerate(ids) if row]
        lengths = np.array([[len(ids[place]) + 1] for place in todo], dtype=np.int32).reshape(-1, 1)
        for batch in plan(lengths, batch_tokens=options.batch_tokens, shuffle=False):
            places = [todo[row] for row in batch]
            limits = Limits(
                begin=BOS,
                end=EOS,
                lengths=[min(options.max_length or 10 + 2 * len(ids[place]), limit - 1) for place in places],
                never=(PAD, BOS),
                prefixes=[wishes[place] for place in places] if wishes else (),
                numbers=[window[place][0] for place in places],
            )
            source = source_tensor([ids[place] for place in places]).to(self.device)
            for place, best in zip(places, search(self.model, source, options, limits), strict=True):
                found = [
                    Translation(
                        texts[place], self.tokenizer.decode(one.ids), one.score, ids[place], one.ids, self,
                        truncated=len(read[place]) > len(ids[place]),
                    )
                    for one in best
                ]  # fmt: skip
                done[place] = replace(found[0], others=found[1:])
        return [done[place] for place in range(len(window))]

    @torch.inference_mode()
    def replay(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]], wanted: Recording
    ) -> Iterator[AttentionRecord]:
        """The attention of finished translations that `wanted` asks for, from one forward pass over them."""
        recording = wanted.again()
        batch = make_batch(sources, targets).to(self.device)
        self.model(batch.source, batch.target[:, :-1], record=recording)
        return records(recording, len(sources), lambda site, index: self.axes(site, sources[index], targets[index]))

    def axes(self, site: str, source: list[int], target: list[int]) -> tuple[Axis, Axis]:
        """The tokens that ask at `site`, and those that they look at."""
        if self.model.joined:
            both = self._axis([*source, EOS, BOS, *target])
            return both, both
        read = self._axis([*source, EOS])
        if site.startswith("encoder"):
            return read, read
        if site.endswith("cross"):  # a query is named after the word that it led to
            return self._axis([*target, EOS]), read
        written = self._axis([BOS, *target])
        return written, written

    def _axis(self, ids: list[int]) -> Axis:
        return Axis(self.tokenizer.tokens(ids), self.tokenizer.word_groups(ids))
