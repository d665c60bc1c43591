"""Encoders (BERT and its family), as the page sees them: every token looks at every token; a head may answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from tokenizers import Encoding

from regard.data.words import split_words
from regard.explorer.scene import MOST, TOKENS, Scene, Subject, Wish, too_long
from regard.inference.silence import without
from regard.nn.layers import MultiHeadAttention
from regard.nn.record import Axis, Recording
from regard.tasks.answer import Answerer
from regard.tasks.choose import Chooser
from regard.tasks.classify import Classifier
from regard.tasks.encoder import EncoderPredictor
from regard.tasks.filler import Filler
from regard.tasks.reading import Reader, pad_inputs
from regard.tasks.tag import Tagger

PARTS = "|||"
"""What stands between the texts of a pair, a question and its context, a situation and its choices."""
WISHES: dict[type[Any], str] = {
    Answerer: f"For an answer, write a question {PARTS} and the text it is about.",
    Chooser: f"For a choice, write a situation {PARTS} one choice {PARTS} another.",
}
"""What a run needs before it can answer."""

Answers = list[tuple[str, float]]


class Read(Scene):
    """A text, or a pair of texts, that an encoder has read."""

    output, score = "", None

    def __init__(self, reader: Reader, parts: list[str]) -> None:
        self.reader, tokenizer = reader, reader.tokenizer
        self.specials = frozenset(tokenizer.tokens(sorted(tokenizer.special.ids)))
        long = sum(map(len, tokenizer.encode_batch(parts)))
        if long > TOKENS:
            raise too_long(long)
        self.row: Encoding = tokenizer.inputs(parts[:1], parts[1:2] or None, most=reader.most, masks=True)[0]
        self.empty = not any(parts)
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
    """A run that reads: it classifies, tags, answers, chooses, fills masks. Its answers are shown too."""

    def __init__(
        self, name: str, kind: str, task: str, predictor: EncoderPredictor[Any] | Filler, examples: list[str]
    ) -> None:
        model = predictor.reader.model
        able = any(isinstance(part, MultiHeadAttention) for part in model.modules())  # XLNet's heads stay on
        super().__init__(name, kind, task, model, examples, verbs=frozenset({"switch"} if able else ()))
        self.predictor = predictor

    def look(self, wish: Wish) -> Scene:
        predictor, before = copy.copy(self.predictor), self.predictor.reader
        predictor.reader = Reader(without(before.model, wish.off), before.tokenizer, before.most)
        parts = [part.strip() for part in wish.text.split(PARTS)]
        if not any(parts):
            return Read(predictor.reader, parts)
        output, answers = _answered(predictor, parts)
        scene = Read(predictor.reader, [parts[0], output] if isinstance(predictor, Chooser) and answers else parts)
        scene.output, scene.answers = output, answers
        if not answers and type(predictor) in WISHES:
            scene.note = WISHES[type(predictor)]
        return scene


def _answered(predictor: EncoderPredictor[Any] | Filler, parts: list[str]) -> tuple[str, Answers]:
    """What the run makes of a text and what else belongs to it; its answers, best first, or in the order of words."""
    match predictor, parts:
        case Classifier(), [text, *second]:
            (classified,) = predictor.classify([text], second[:1] or None)
            return classified.label, _best(classified.probabilities.items())
        case Tagger(), [text, *_]:
            (tagged,) = predictor.tag([split_words(text)])
            named = [f"{word} {tag}" for word, tag in zip(tagged.words, tagged.tags, strict=True)]
            return " ".join(tagged.tags), list(zip(named, tagged.probabilities, strict=True))
        case Answerer(), [question, context, *_]:
            (found,) = predictor.answer([question], [context])
            return found.text, [(found.text or "no answer", found.probability)]
        case Chooser(), [context, *choices] if len(choices) > 1:
            (chosen,) = predictor.choose([context], [choices])
            return chosen.text, _best(zip(choices, chosen.probabilities, strict=True))
        case Filler(), [text, *_] if predictor.facts["head"] and predictor.reader.tokenizer.mask_text in text:
            (filled,) = predictor.fill([text])
            return filled.text, [(guess.word, guess.probability) for guess in filled.masks[0]]
    return "", []


def _best(answers: Iterable[tuple[str, float]]) -> Answers:
    return sorted(answers, key=lambda one: -one[1])[:MOST]
