"""Encoders (BERT and its family), as the page sees them: every token looks at every token; a head may answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
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
    Filler: "For a guess, write {mask} in place of a word.",
}
"""What a run needs before it can answer."""

Answers = list[tuple[str, float]]


@dataclass(frozen=True)
class Answer:
    """What a run makes of a text, and the tokens that it read for it; `cut` says which, if not all."""

    output: str
    answers: Answers
    row: Encoding
    cut: str


class Read(Scene):
    """A text, or a pair of texts, that an encoder has read."""

    output, score = "", None

    def __init__(self, reader: Reader, parts: list[str], answer: Answer | None) -> None:
        self.reader, tokenizer = reader, reader.tokenizer
        self.specials = frozenset(tokenizer.tokens(sorted(tokenizer.special.ids)))
        self.row: Encoding = (
            tokenizer.inputs(parts[:1], parts[1:2] or None, most=reader.most, masks=True)[0]
            if answer is None
            else answer.row
        )
        self.empty = not any(parts)
        if answer is not None:
            self.output, self.answers = answer.output, answer.answers
        if cut := (_beginning(self.row) if answer is None else answer.cut):
            self.note = f"Only {len(self.row.ids):,} tokens of this text were read at once: {cut}."

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
        long = sum(map(len, predictor.reader.tokenizer.encode_batch(parts)))
        if long > TOKENS:
            raise too_long(long)
        answer = _answered(predictor, parts) if any(parts) else None
        scene = Read(predictor.reader, parts, answer)
        if answer is None and any(parts):
            scene.note = scene.note or WISHES.get(type(predictor), "").format(mask=predictor.reader.tokenizer.mask_text)
        return scene


def _answered(predictor: EncoderPredictor[Any] | Filler, parts: list[str]) -> Answer | None:
    """What the run makes of a text and what else belongs to it; its answers, best first, or in the order of words. None
    where it needs something else."""
    match predictor, parts:
        case Classifier(), [text, *second]:
            (classified,) = predictor.classify([text], second[:1] or None)
            best, row = _best(classified.probabilities.items()), classified.attention_of
            return Answer(classified.label, best, row, _beginning(row))
        case Tagger(), [text, *_] if words := split_words(text):
            (tagged,) = predictor.tag([words])
            named = [f"{word} {tag}" for word, tag in zip(tagged.words, tagged.tags, strict=True)]
            chances = list(zip(named, tagged.probabilities, strict=True))
            return Answer(
                " ".join(tagged.tags), chances, tagged.parts[0], "the first are shown" if len(tagged.parts) > 1 else ""
            )
        case Answerer(), [question, context, *_]:
            (found,) = predictor.answer([question], [context])
            tokens = sum(map(len, predictor.reader.tokenizer.encode_batch([question, context])))
            read = len(found.window.ids) - sum(found.window.special_tokens_mask)
            cut = "the part with the answer is shown" if read < tokens else ""
            return Answer(found.text, [(found.text or "no answer", found.probability)], found.window, cut)
        case Chooser(), [context, *choices] if len(choices) > 1:
            (chosen,) = predictor.choose([context], [choices])
            row = chosen.encodings[chosen.number]
            best = _best(zip(choices, chosen.probabilities, strict=True))
            return Answer(chosen.text, best, row, _beginning(row))
        case Filler(), [text, *_] if predictor.facts["head"] and predictor.has_mask(text):
            (filled,) = predictor.fill([text])
            guesses = filled.masks[0] if len(filled.masks) == 1 else [several[0] for several in filled.masks]
            chances = [(guess.word, guess.probability) for guess in guesses]
            return Answer(filled.text, chances, filled.encoding, _beginning(filled.encoding))
    return None


def _beginning(row: Encoding) -> str:
    return "the model takes no more" if row.overflowing else ""


def _best(answers: Iterable[tuple[str, float]]) -> Answers:
    return sorted(answers, key=lambda one: -one[1])[:MOST]
