"""Encoders (BERT and its family), as the page sees them: every token looks at every token; a head may answer."""

from __future__ import annotations

import copy
from typing import Any

import torch
from tokenizers import Encoding

from regard.explorer.scene import TOKENS, Scene, Subject, Wish, too_long
from regard.inference.silence import without
from regard.nn.record import Axis, Recording
from regard.tasks.classify import Classifier
from regard.tasks.encoder import EncoderPredictor
from regard.tasks.filler import Filler
from regard.tasks.reading import Reader, pad_inputs

PARTS = "|||"
"""What stands between the two texts of a pair."""


class Read(Scene):
    """A text, or a pair of texts, that an encoder has read."""

    output, score = "", None

    def __init__(self, reader: Reader, text: str) -> None:
        self.reader, tokenizer = reader, reader.tokenizer
        self.specials = frozenset(tokenizer.tokens(sorted(tokenizer.special.ids)))
        parts = [part.strip() for part in text.split(PARTS, 1)]
        long = len(tokenizer.encode_batch([text])[0])
        if long > TOKENS:
            raise too_long(long)
        second = parts[1:] or None
        self.row: Encoding = tokenizer.inputs(parts[:1], second, most=reader.most, masks=True)[0]
        self.empty = not text
        if long > len(self.row.ids):
            self.note = f"Only {len(self.row.ids):,} of {long:,} tokens were read: the model takes no more."

    @torch.inference_mode()
    def replay(self, recording: Recording) -> None:
        if not self.empty:
            inputs = pad_inputs([self.row], self.reader.config).to(self.reader.device)
            self.reader.model.encoder(inputs.ids, inputs.segments, record=recording)

    def axes(self, site: str) -> tuple[Axis, Axis]:
        axis = Axis(self.reader.tokenizer.tokens(self.row.ids), self.reader.tokenizer.word_groups(self.row.ids))
        return axis, axis

    @property
    def longest(self) -> int:
        return len(self.row.ids)


class Readings(Subject):
    """A run that reads: it classifies, fills masks, tags, ... What it answers is shown where it is one answer."""

    def __init__(
        self, name: str, kind: str, task: str, predictor: EncoderPredictor[Any] | Filler, examples: list[str]
    ) -> None:
        super().__init__(name, kind, task, predictor.reader.model, examples, verbs=frozenset({"switch"}))
        self.predictor = predictor

    def look(self, wish: Wish) -> Scene:
        predictor, before = copy.copy(self.predictor), self.predictor.reader
        predictor.reader = Reader(without(before.model, wish.off), before.tokenizer, before.most)
        text = wish.text.strip()
        scene = Read(predictor.reader, text)
        if not text:
            return scene
        parts = [part.strip() for part in text.split(PARTS, 1)]
        if isinstance(predictor, Classifier):
            (found,) = predictor.classify(parts[:1], parts[1:] or None)
            scene.output = found.label
            scene.answers = sorted(found.probabilities.items(), key=lambda one: -one[1])
        elif isinstance(predictor, Filler) and predictor.facts["head"] and predictor.reader.tokenizer.mask_text in text:
            (filled,) = predictor.fill([text])
            scene.output = filled.text
            scene.answers = [(guess.word, guess.probability) for guess in filled.masks[0]]
        return scene
