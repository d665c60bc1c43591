"""Question answering: the span of a context that answers a question (Devlin 2019, sections 4.2 and 4.3).

A context that is too long is read in windows that overlap. Each token gets two scores, for starting and for ending the
answer; the best pair over all windows is the answer. Where a question may have no answer, the first token's pair
stands for "none", and the best span must beat it by a threshold that was found on the validation questions.

loss    cross-entropy of the start and of the end, each over the tokens of the window
score   F1 of words and exact match, as SQuAD counts them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Encoding
from torch import Tensor, nn

from regard.config import Config, DataConfig, Settings, Values
from regard.data.badlines import BadLines, Location
from regard.data.examples import Examples
from regard.data.questions import Answer as Reference
from regard.data.questions import Question, read_questions
from regard.data.subwords import Subwords
from regard.nn.record import AttentionRecord
from regard.tasks.encoder import FINE_TUNING, EncoderBatch, EncoderPredictor, EncoderTask, Predicted, encoder_config
from regard.tasks.reading import Reader, pad_inputs
from regard.tasks.saved import Facts


class AnswerOptions(Settings):
    overlap: int = Field(default=128, ge=0, description="tokens that neighbouring windows of a context share")
    longest: int = Field(default=30, ge=1, description="most tokens of an answer")
    most_question: int = Field(default=64, ge=4, description="most tokens of a question; the rest is cut off")


@dataclass(frozen=True)
class Row:
    encoding: Encoding
    target: tuple[int, int]  # the tokens where the answer starts and ends


@dataclass(frozen=True)
class Found:
    """An answer. `text` is empty where the context has none; `probability` is among the spans that were weighed."""

    question: str
    text: str
    start: int  # the character of the context
    score: float
    probability: float
    window: Encoding
    answerer: Answerer

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        row = {"question": self.question, "answer": self.text, "start": self.start, "probability": self.probability}
        return row | ({"truncated": True} if self.truncated else {})

    @property
    def truncated(self) -> bool:
        """Whether the question was too long, and only its beginning was read; of a context all is."""
        sides = zip(self.window.offsets, self.window.sequence_ids, strict=True)
        return bool(self.question[max((end for (_, end), side in sides if side == 0), default=0) :].strip())

    @property
    def attention(self) -> AttentionRecord:
        """What every head looked at in the window that the answer is in."""
        return self.answerer.reader.look(self.window)


@dataclass(frozen=True)
class _Span:
    score: float
    start: int
    end: int
    window: int


class Answerer(EncoderPredictor[Question]):
    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Question]:
        return [example for example, _ in read_questions(files, bad, columns=data.columns)]

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[Found]:
        return [found for found, *_ in self._answers(questions, contexts)]

    def predict(self, examples: Sequence[Question]) -> list[Predicted]:
        found = []
        asked = [example.question for example in examples], [example.context for example in examples]
        for example, (best, ahead, read) in zip(examples, self._answers(*asked), strict=True):
            truth = [answer.text for answer in example.answers]
            row = {"question": example.question, "predicted": best.text, "answers": truth, "id": example.id}
            loss = self._loss(example, read)
            found.append(Predicted((best.text, ahead), {**row, "probability": round(best.probability, 4)}, loss))
        return found

    def _loss(self, example: Question, read: Sequence[tuple[Encoding, Tensor]]) -> float:
        """As in training, of the windows that hold the answer, or that say there is none."""
        tokenizer, losses = self.reader.tokenizer, []
        for window, logits in read:
            target, none = target_of(example, window, tokenizer), place_of_none(window, tokenizer)
            if self.none or target != (none, none):
                losses.append(float(F.cross_entropy(logits.T.float(), torch.tensor(target))))
        return float(np.mean(losses)) if losses else 0.0

    def score(self, examples: Sequence[Question], found: Sequence[Predicted]) -> dict[str, Any]:
        return answer_scores(examples, [one.output[0] for one in found])

    def _answers(
        self, questions: Sequence[str], contexts: Sequence[str]
    ) -> Iterator[tuple[Found, float, list[tuple[Encoding, Tensor]]]]:
        """The best answer to each question, by how much it is better than none, and its windows with their scores."""
        several = windows(self.reader.tokenizer, questions, contexts, self.reader.most, _options(self.config))
        scores = iter(self.reader.logits([window for group in several for window in group]))
        for question, context, group in zip(questions, contexts, several, strict=True):
            read = [(window, next(scores)) for window in group]
            spans, nothing = self._spans(read)
            if not spans:  # not a word in the context
                yield Found(question, "", 0, nothing, 1.0, group[0], self), -np.inf, read
                continue
            best = max(spans, key=lambda span: span.score)
            weights = np.exp(np.array([span.score for span in spans] + ([nothing] if self.none else [])) - best.score)
            ahead = best.score - nothing
            if self.none and ahead < self.facts.get("threshold", 0.0):
                chance = float(np.exp(nothing - best.score) / weights.sum())
                yield Found(question, "", 0, nothing, chance, group[best.window], self), ahead, read
                continue
            text, chance = context[best.start : best.end], float(1 / weights.sum())
            yield Found(question, text, best.start, best.score, chance, group[best.window], self), ahead, read

    @property
    def none(self) -> bool:
        """Whether a question may have no answer."""
        return bool(self.facts["none"])

    def _spans(self, read: Sequence[tuple[Encoding, Tensor]]) -> tuple[list[_Span], float]:
        """The best spans over all windows of a context, and the lowest score of there being no answer."""
        spans, nothing = [], float("inf")
        for number, (window, logits) in enumerate(read):
            inside = [place for place, side in enumerate(window.sequence_ids) if side == 1]
            first = place_of_none(window, self.reader.tokenizer)
            nothing = min(nothing, float(logits[first].sum()))
            if not inside:
                continue
            begin, end = logits[inside, 0], logits[inside, 1]  # (K)
            both = begin[:, None] + end[None, :]
            allowed = torch.ones_like(both, dtype=torch.bool).triu().tril(_options(self.config).longest - 1)
            both = both.masked_fill(~allowed, float("-inf")).flatten()
            for score, flat in zip(*(part.tolist() for part in both.topk(min(20, len(both)))), strict=True):
                start, stop = divmod(flat, len(inside))
                if score > float("-inf"):
                    letters = window.offsets[inside[start]][0], window.offsets[inside[stop]][1]
                    spans.append(_Span(score, *letters, number))
        return spans, nothing


class Answer(EncoderTask[Question]):
    Options = AnswerOptions
    smooths = False
    head = "span"
    kind = Answerer
    defaults: ClassVar[Values] = {**FINE_TUNING, "data.max_length": 384, "train.batch_tokens": 3072}

    @classmethod
    def read(cls, files: Sequence[str], data: DataConfig, bad: BadLines) -> Iterator[tuple[Question, Location]]:
        return read_questions(files, bad, columns=data.columns)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Question:
        return Question(**{**values, "answers": [Reference(**one) for one in values["answers"]]})

    @classmethod
    def learn(cls, config: Config, examples: Examples[Question]) -> Facts:
        return {"none": any(not example.answers for example in examples.train), "threshold": 0.0}

    @classmethod
    def texts(cls, example: Question) -> list[str]:
        return [example.question, example.context]

    @cached_property
    def rows(self) -> list[Row]:
        train = self.examples.train
        asked = [example.question for example in train], [example.context for example in train]
        several = windows(self.tokenizer, *asked, self.most, _options(self.config))
        rows = [
            Row(window, target_of(example, window, self.tokenizer))
            for example, group in zip(train, several, strict=True)
            for window in group
        ]
        if self.facts["none"]:
            return rows
        none = [place_of_none(row.encoding, self.tokenizer) for row in rows]
        return [row for row, place in zip(rows, none, strict=True) if row.target != (place, place)]

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> EncoderBatch:
        chosen = [self.rows[row] for row in rows]
        inputs = pad_inputs([row.encoding for row in chosen], encoder_config(self.config))
        return EncoderBatch(inputs, torch.tensor([row.target for row in chosen]), len(chosen))

    def loss(self, model: nn.Module, batch: EncoderBatch) -> Tensor:
        logits = model(batch.inputs.ids, batch.inputs.segments)  # (B, T, 2)
        real = (batch.inputs.ids != encoder_config(self.config).pad).unsqueeze(-1)
        logits = logits.masked_fill(~real, torch.finfo(logits.dtype).min)
        return F.cross_entropy(logits, batch.target, reduction="sum") / 2  # classes are the tokens, twice

    def settled(self, model: nn.Module) -> Facts:
        """Where a question may have none: with the threshold that gives the best F1 on the validation questions."""
        if not self.facts["none"]:
            return self.facts
        never = Answerer(
            Reader(model, self.tokenizer, self.config.data.max_length),
            {**self.facts, "threshold": -np.inf},
            self.config,
        )
        examples, found = self.examples.valid, never.predict(self.examples.valid)
        ahead = [one.output[1] for one in found if np.isfinite(one.output[1])]
        if not ahead:
            return self.facts

        def quality(threshold: float) -> float:
            texts = [one.output[0] if one.output[1] >= threshold else "" for one in found]
            return float(answer_scores(examples, texts)["f1"])

        tried = np.quantile(ahead, np.linspace(0, 1, 33))
        self._facts = {**self.facts, "threshold": float(max(tried, key=quality))}
        return self._facts


def windows(
    tokenizer: Subwords, questions: Sequence[str], contexts: Sequence[str], most: int, options: AnswerOptions
) -> list[list[Encoding]]:
    """Each question with its context, in as many parts as that needs."""
    short = []
    for question, row in zip(questions, tokenizer.inputs(questions, most=options.most_question), strict=True):
        ends = [end for (_, end), side in zip(row.offsets, row.sequence_ids, strict=True) if side == 0]
        short.append(question[: max(ends, default=0)])
    room = most - options.most_question
    overlap = max(0, min(options.overlap, room // 2))
    rows = tokenizer.inputs(short, contexts, most=most, overlap=overlap)
    return [[row, *row.overflowing] for row in rows]


def target_of(example: Question, window: Encoding, tokenizer: Subwords) -> tuple[int, int]:
    """The tokens of the window that hold the first reference; the place of "none" twice where it is not inside."""
    none = place_of_none(window, tokenizer)
    if not example.answers:
        return none, none
    begin = example.answers[0].start
    end = begin + len(example.answers[0].text)
    inside = [place for place, side in enumerate(window.sequence_ids) if side == 1]
    starts = [place for place in inside if window.offsets[place][0] <= begin < window.offsets[place][1]]
    ends = [place for place in inside if window.offsets[place][0] < end <= window.offsets[place][1]]
    return (starts[0], ends[-1]) if starts and ends else (none, none)


def place_of_none(window: Encoding, tokenizer: Subwords) -> int:
    """The token that stands for the whole input stands for "no answer" too."""
    assert tokenizer.special.first is not None, "settled when the tokenizer was opened"
    return int(window.ids.index(tokenizer.special.first))


def answer_scores(examples: Sequence[Question], found: Sequence[str]) -> dict[str, Any]:
    """F1 of words and exact match, in percent; a question without an answer is right only with none."""
    from torchmetrics.functional.text import squad

    asked = [(example, text) for example, text in zip(examples, found, strict=True) if example.answers]
    totals = {"f1": 0.0, "exact_match": 0.0}
    if asked:
        predicted = [{"prediction_text": text, "id": str(n)} for n, (_, text) in enumerate(asked)]
        truth: list[dict[str, Any]] = []
        for number, (one, _) in enumerate(asked):
            places = [answer.start for answer in one.answers]
            texts = {"text": [answer.text for answer in one.answers], "answer_start": places}
            truth.append({"answers": texts, "id": str(number)})
        totals = {name: float(value) * len(asked) for name, value in squad(predicted, truth).items()}
    silent = sum(not example.answers and not text for example, text in zip(examples, found, strict=True))
    scores = {name: (totals[name] + 100 * silent) / max(1, len(examples)) for name in ("f1", "exact_match")}
    if len(asked) < len(examples):
        scores["without_answer"] = 100 * silent / (len(examples) - len(asked))
    return scores


def _options(config: Config) -> AnswerOptions:
    options = config.options
    assert isinstance(options, AnswerOptions), "the task's own options"
    return options
