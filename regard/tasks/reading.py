"""An encoder that reads texts: batches of like length in, logits out; and what it looked at, and its vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding
from torch import Tensor, nn

from regard.config import TokenizerConfig
from regard.data.batching import pad, plan
from regard.data.prepare import Progress
from regard.data.subwords import Subwords
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.models.base import EncoderConfig, Features
from regard.models.heads import Headed, features
from regard.nn.record import AttentionRecord, Axis, Recording, records

Ids = NDArray[np.int64]
Pooling = Literal["mean", "first", "summary"]
BATCH_TOKENS = {"cpu": 1024, "cuda": 16_384}
"""Tokens read together: on a CPU no more than its caches hold (BERT-base: 1.3 times the speed of 4,096)."""


@dataclass(frozen=True)
class Inputs:
    """What an encoder reads: (B, T), or (B, N, T) where each example has several choices."""

    ids: Tensor
    segments: Tensor

    def to(self, device: torch.device) -> Inputs:
        return replace(self, ids=self.ids.to(device), segments=self.segments.to(device))


def pad_inputs(rows: Sequence[Encoding], config: EncoderConfig) -> Inputs:
    """Encoded texts side by side."""
    return inputs_of([np.array(row.ids) for row in rows], [np.array(row.type_ids) for row in rows], config)


def inputs_of(tokens: Sequence[Ids], parts: Sequence[Ids], config: EncoderConfig) -> Inputs:
    """The tokens of texts with their segments, side by side. A model that knows fewer segments than the tokenizer
    counts sees them all as one."""
    ids, segments = pad(tokens, config.pad), pad(parts)
    if segments.max(initial=0) >= max(1, config.segments):
        segments = np.zeros_like(segments)
    return Inputs(torch.from_numpy(ids), torch.from_numpy(segments))


class Reader:
    """A model with a head and its tokenizer; `most` is the longest input in tokens, special ones included."""

    def __init__(self, model: nn.Module, tokenizer: Tokenizer, most: int) -> None:
        assert isinstance(model, Headed), f"an encoder with a head, not {type(model).__name__}"
        self.model, self.tokenizer = model, subwords(tokenizer)
        self.most = min(most, model.encoder.max_length or most)
        assert isinstance(model.encoder.config, EncoderConfig), "an encoder has an encoder's config"
        self.config = model.encoder.config

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @torch.inference_mode()
    def logits(self, rows: Sequence[Encoding]) -> list[Tensor]:
        """What the head says of each input, without its padding, in the order given."""
        found: dict[int, Tensor] = {}
        for chosen, inputs in self._batches(rows):
            for place, row, answer in zip(chosen, inputs.ids, self._answers(inputs), strict=True):
                tokens = answer[: len(rows[place].ids)] if answer.ndim > 1 else answer
                assert len(row) >= len(rows[place].ids), "a batch is as long as its longest row"
                found[int(place)] = tokens.float().cpu()
        return [found[place] for place in range(len(rows))]

    @torch.inference_mode()
    def guesses(self, rows: Sequence[Encoding], places: Sequence[Sequence[int]]) -> list[Tensor]:
        """What the head, one for words, says of some places of each input: (places, V) each."""
        found: dict[int, Tensor] = {}
        for chosen, inputs in self._batches(rows):
            counts = [len(places[row]) for row in chosen]
            where = torch.repeat_interleave(torch.tensor(counts)).to(self.device)
            asked = torch.tensor([place for row in chosen for place in places[row]], device=self.device)
            logits = self.model.head(self.model.encoder.guess(inputs.ids, inputs.segments, where, asked))
            found |= {int(row): part.float().cpu() for row, part in zip(chosen, logits.split(counts), strict=True)}
        return [found[row] for row in range(len(rows))]

    @torch.inference_mode()
    def vectors(
        self, texts: Sequence[str], pooling: Pooling = "mean", layers: Features = "last"
    ) -> NDArray[np.float32]:
        """One vector for each text (features in the sense of Devlin 2019, section 5.3).

        "mean" of its tokens, the "first" token's, or the model's own "summary" (which is of the last layer).
        """
        rows = self.tokenizer.inputs(texts, most=self.most)
        found: dict[int, Tensor] = {}
        for chosen, inputs in self._batches(rows):
            hidden = self._mixed(inputs, layers)
            if pooling == "mean":
                pooled = self.model.encoder.mean(hidden, inputs.ids)
            elif pooling == "first":
                pooled = hidden[:, 0]
            else:
                pooled = self._summary(hidden, inputs, layers)
            found |= {int(place): vector.float().cpu() for place, vector in zip(chosen, pooled, strict=True)}
        ordered = [found[place] for place in range(len(rows))]
        return torch.stack(ordered).numpy() if ordered else np.zeros((0, self.model.encoder.width), np.float32)

    def cut(self, texts: Sequence[str]) -> int:
        """How many texts are longer than what is read of them."""
        return sum(bool(row.overflowing) for row in self.tokenizer.inputs(texts, most=self.most))

    @torch.inference_mode()
    def look(self, row: Encoding, wanted: Recording | None = None) -> AttentionRecord:
        """What every head looked at while it read one input."""
        recording = (wanted or Recording()).again()
        inputs = pad_inputs([row], self.config).to(self.device)
        self.model.encoder(inputs.ids, inputs.segments, record=recording)
        axis = Axis(self.tokenizer.tokens(row.ids), self.tokenizer.word_groups(row.ids))
        return next(records(recording, 1, lambda site, index: (axis, axis)))

    def _batches(self, rows: Sequence[Encoding]) -> Iterator[tuple[NDArray[np.int64], Inputs]]:
        lengths = np.array([[len(row.ids)] for row in rows], np.int32).reshape(-1, 1)
        for chosen in plan(lengths, batch_tokens=BATCH_TOKENS.get(self.device.type, 4096), shuffle=False):
            yield chosen, pad_inputs([rows[place] for place in chosen], self.config).to(self.device)

    def _answers(self, inputs: Inputs) -> Tensor:
        answers: Tensor = self.model(inputs.ids, inputs.segments)
        return answers

    def _mixed(self, inputs: Inputs, layers: Features) -> Tensor:
        return features(self.model.encoder.each_layer(inputs.ids, inputs.segments), layers)

    def _summary(self, hidden: Tensor, inputs: Inputs, layers: Features) -> Tensor:
        if layers != "last":
            raise UserError(f"layers = {layers!r}: the summary is of the last layer (try pooling = mean)")
        return self.model.encoder.summary(hidden, inputs.ids)


def subwords(tokenizer: Tokenizer) -> Subwords:
    """The tokenizer, if it knows how to put an encoder's special tokens around a text."""
    if not isinstance(tokenizer, Subwords) or tokenizer.special.first is None:
        raise UserError("tokenizer: has no special tokens for the beginning and the parts of an input, as BERT's has")
    return tokenizer


def tokenizer_for(config: TokenizerConfig, texts: Iterable[str], progress: Progress) -> Subwords:
    """The tokenizer that the settings name, or one that is learned from the texts."""
    if config.file:
        return subwords(open_tokenizer(config.file))
    progress.start("learning the vocabulary", None)
    learned = Subwords.learn(texts, kind=config.kind, vocabulary=config.vocabulary, lowercase=config.lowercase)
    progress.finish()
    return learned
