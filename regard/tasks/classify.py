"""Classification: a text, or a pair of texts, in; a class with its probability out. Or a number: regression.

loss    cross-entropy of the class, weighted by class if asked for; squared error of a number;
        with a teacher the mean of that and of the same towards what the teacher expects
score   accuracy (or F1, Matthews); Pearson's and Spearman's correlation of numbers
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from tokenizers import Encoding
from torch import Tensor, nn

from regard.config import Config, DataConfig, Settings
from regard.data.badlines import BadLines, Location
from regard.data.examples import Examples
from regard.data.labelled import Labelled, read_labelled
from regard.data.prepare import Progress
from regard.errors import UserError, listed, nearest
from regard.nn.loss import soft_loss
from regard.nn.record import AttentionRecord
from regard.tasks.class_scores import best_threshold, class_scores, number_scores
from regard.tasks.encoder import EncoderBatch, EncoderPredictor, EncoderTask, Predicted, encoder_config, unlearnt
from regard.tasks.reading import pad_inputs
from regard.tasks.saved import Facts, Saved


class ClassifyOptions(Settings):
    numbers: bool | None = Field(
        default=None, description="regression; null: where every label is a number and some have a fraction"
    )
    class_weights: Literal["none", "balanced"] | dict[str, Annotated[float, Field(ge=0)]] = Field(
        default="none", description="balanced: errors in rare classes cost more; or a number for each class"
    )
    threshold: Literal["half", "tuned"] = Field(
        default="half", description="from where on the second of two classes is said; tuned by validation"
    )
    metric: Literal["accuracy", "macro_f1", "matthews", "pearson", "spearman"] | None = Field(
        default=None, description="what chooses the best weights; null: as the labels are"
    )
    teacher: str | None = Field(
        default=None, description="a run or a published folder that knows these classes, to learn from too"
    )


TEMPERATURE = 2.0
"""How much a teacher's answers are softened, as for DistilBERT's fine-tuning with a teacher (Sanh 2019, section 4)."""
ASKED_AT_ONCE = 4096
"""Examples between two signs of progress while a teacher is asked."""


@dataclass(frozen=True)
class Row:
    encoding: Encoding
    target: float  # the number of the class, or the number itself


@dataclass(frozen=True)
class Classified:
    """The answer for a text, or two. `probabilities` are by class; a regression has a `number` instead."""

    text: str
    second: str | None
    label: str
    probabilities: dict[str, float]
    number: float | None
    attention_of: Encoding
    classifier: Classifier

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        texts = {"text": self.text, **({} if self.second is None else {"second": self.second})}
        row = {**texts, "label": self.label, "probabilities": self.probabilities, "number": self.number}
        return row | ({"truncated": True} if self.truncated else {})

    @property
    def truncated(self) -> bool:
        """Whether the text was too long, and only its beginning was read."""
        return bool(self.attention_of.overflowing)

    @property
    def attention(self) -> AttentionRecord:
        """What every head looked at in this text."""
        return self.classifier.reader.look(self.attention_of)


class Classifier(EncoderPredictor[Labelled]):
    @property
    def labels(self) -> list[str]:
        return list(self.facts["labels"])

    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Labelled]:
        located = read_labelled(files, data.columns, bad)
        return [example for example, where in located if self._known(example.label, where, bad)]

    def _known(self, label: str, where: Location, bad: BadLines) -> bool:
        """Whether a label can be scored: a class that was trained on, or a number where numbers are predicted."""
        known = _is_number(label) if self.facts["numbers"] else label in self.facts["labels"]
        if not known:
            trained = "numbers" if self.facts["numbers"] else listed(self.labels)
            bad.hints["label"] = f"such as {label!r}: these are {trained}"
            bad.add("label", where, label)
        return known

    def classify(self, texts: Sequence[str], seconds: Sequence[str] | None = None) -> list[Classified]:
        rows = self.reader.tokenizer.inputs(texts, seconds, most=self.reader.most)
        found = []
        others: Sequence[str | None] = seconds or [None] * len(texts)
        for text, second, row, logits in zip(texts, others, rows, self.reader.logits(rows), strict=True):
            if self.facts["numbers"]:
                found.append(Classified(text, second, f"{logits.item():.3f}", {}, logits.item(), row, self))
                continue
            probabilities = torch.softmax(logits, dim=-1).tolist()
            named = dict(zip(self.labels, probabilities, strict=True))
            found.append(Classified(text, second, self._said(probabilities), named, None, row, self))
        return found

    def _said(self, probabilities: Sequence[float]) -> str:
        """The likeliest class. Of two, the second if it is over the threshold, which need not be a half."""
        if len(probabilities) == 2:
            return self.labels[int(probabilities[1] > self.facts["threshold"])]
        return self.labels[int(np.argmax(probabilities))]

    def answers(self, examples: Sequence[Labelled]) -> list[Classified]:
        seconds = [example.second or "" for example in examples]
        return self.classify([example.text for example in examples], seconds if any(seconds) else None)

    def predict(self, examples: Sequence[Labelled]) -> list[Predicted]:
        return [self._predicted(*both) for both in zip(examples, self.answers(examples), strict=True)]

    def score(self, examples: Sequence[Labelled], found: Sequence[Predicted]) -> dict[str, Any]:
        truth = [example.label for example in examples]
        if self.facts["numbers"]:
            scores = number_scores([float(label) for label in truth], [one.output for one in found])
        else:
            scores = class_scores(truth, [one.output for one in found], self.labels)
        first = getattr(self.config.options, "metric", None)
        if first is None:
            return scores
        if first not in scores:
            raise UserError(f"options.metric = {first!r}: not a score of this task{nearest(first, scores)}")
        return {first: scores[first], **scores}

    def _predicted(self, example: Labelled, one: Classified) -> Predicted:
        pair = {} if example.second is None else {"second": example.second}
        row = {"text": example.text, "predicted": one.label, "label": example.label, **pair}
        if one.number is not None:
            return Predicted(one.number, {**row, "number": one.number}, (one.number - float(example.label)) ** 2)
        probability = one.probabilities.get(example.label, 0.0)
        rounded = {name: round(value, 4) for name, value in one.probabilities.items()}
        return Predicted(one.label, {**row, "probabilities": rounded}, float(-np.log(max(probability, 1e-12))))


class Classify(EncoderTask[Labelled]):
    Options = ClassifyOptions
    head = "sequence"
    kind = Classifier
    _expected: Tensor | None = None  # (examples, classes), what the teacher says: logits, or the number itself

    @property
    def options(self) -> ClassifyOptions:
        assert isinstance(self.config.options, ClassifyOptions), "the task's own options"
        return self.config.options

    @property
    def teacher(self) -> str | None:
        return self.options.teacher

    def check_teacher(self, saved: Saved, model: nn.Module) -> None:
        if saved.config.task != "classify":
            raise UserError(f"options.teacher = {self.teacher}: does not classify (train it by: regard train classify)")
        known, labels = saved.facts["labels"], self.facts["labels"]
        if sorted(known) != sorted(labels):
            knows = f"has {listed(known) or 'numbers'}, the training texts {listed(labels) or 'numbers'}"
            raise UserError(f"options.teacher = {self.teacher}: must know the same classes; it {knows}")

    def taught(self, saved: Saved, model: nn.Module, progress: Progress) -> Mapping[str, Tensor]:
        """The teacher is asked about every training text once, before the training: it may have any tokenizer, and a
        step costs no more than without it."""
        teacher, labels = Classifier.of(saved, model.eval()), self.facts["labels"]
        train, expected = self.examples.train, []
        progress.start("asking the teacher", len(train))
        for begin in range(0, len(train), ASKED_AT_ONCE):
            said = teacher.answers(train[begin : begin + ASKED_AT_ONCE])
            expected += [
                [one.probabilities[label] for label in labels] if one.number is None else [one.number] for one in said
            ]
            progress.advance(len(said))
        progress.finish()
        found = torch.tensor(expected)
        self._expected = found if self.facts["numbers"] else found.clamp(min=1e-12).log()
        return {}

    @classmethod
    def read(cls, files: Sequence[str], data: DataConfig, bad: BadLines) -> Iterator[tuple[Labelled, Location]]:
        return read_labelled(files, data.columns, bad)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Labelled:
        return Labelled(**values)

    @classmethod
    def learn(cls, config: Config, examples: Examples[Labelled]) -> Facts:
        labels = Counter(example.label for example in examples.train)
        options = config.options
        assert isinstance(options, ClassifyOptions), "the task's own options"
        numbers = all(map(_is_number, labels)) and any("." in label for label in labels)
        numbers = numbers if options.numbers is None else options.numbers
        allowed = ("pearson", "spearman") if numbers else ("accuracy", "macro_f1", "matthews")
        if options.metric is not None and options.metric not in allowed:
            what = "numbers" if numbers else "classes"
            raise UserError(f"options.metric = {options.metric!r}: labels are {what}, so one of {', '.join(allowed)}")
        for name, usual in (("class_weights", "none"), ("threshold", "half")):
            if numbers and (given := getattr(options, name)) != usual:
                raise UserError(f"options.{name} = {given!r}: labels are numbers and have no classes")
        if numbers:
            given = [*labels, *(example.label for example in examples.held_out)]
            if wrong := next((label for label in given if not _is_number(label)), None):
                raise UserError(f"options.numbers: the label {wrong!r} is no number")
            return {"numbers": True, "labels": []}
        if len(labels) < 2:
            raise UserError(f"data.train: all examples have the label {next(iter(labels))!r}; two classes are needed")
        if len(labels) > 1000:
            raise UserError(
                f"data.train: {len(labels):,} different labels; is it the right column? (for numbers: "
                "--set options.numbers=true)"
            )
        if len(labels) > 2 and options.threshold != "half":
            raise UserError(
                f"options.threshold = {options.threshold!r}: is between two classes; here are {len(labels)}"
            )
        weighted = options.class_weights if isinstance(options.class_weights, dict) else {}
        if unknown := next((name for name in weighted if name not in labels), None):
            raise UserError(f"options.class_weights: no example has the label {unknown!r}{nearest(unknown, labels)}")
        numbered = all(label.isdecimal() for label in labels)
        return {"numbers": False, "labels": sorted(labels, key=int if numbered else str), "threshold": 0.5}

    def settled(self, model: nn.Module) -> Facts:
        """If asked for, with the threshold between two classes that gives the best score on the validation texts."""
        if self.options.threshold == "half":
            return self.facts
        classifier = self.predicting(model)
        assert isinstance(classifier, Classifier), "the predictor of this task"
        examples, labels = self.examples.valid, self.facts["labels"]
        seconds = np.array([one.probabilities[labels[1]] for one in classifier.answers(examples)])
        truth = np.array([example.label == labels[1] for example in examples])
        threshold = best_threshold(truth, seconds, self.options.metric or "accuracy")
        self._facts = {**self.facts, "threshold": threshold}
        return self._facts

    @property
    def summary(self) -> str:
        if self.facts["numbers"]:
            return f"{super().summary}\nlearning numbers (--set options.numbers=false: each is a class)"
        names = self.facts["labels"]
        shown = f"{super().summary}\n{len(names)} classes: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
        return shown + unlearnt(names, [example.label for example in self.examples.held_out])

    @classmethod
    def texts(cls, example: Labelled) -> list[str]:
        return [example.text] if example.second is None else [example.text, example.second]

    @classmethod
    def classes(cls, facts: Facts) -> int:
        return 1 if facts["numbers"] else len(facts["labels"])

    @cached_property
    def rows(self) -> list[Row]:
        train = self.examples.train
        seconds = [example.second or "" for example in train]
        encoded = self.tokenizer.inputs(
            [example.text for example in train], seconds if any(seconds) else None, most=self.most
        )
        numbers = {label: number for number, label in enumerate(self.facts["labels"])}
        return [
            Row(row, float(example.label) if self.facts["numbers"] else numbers[example.label])
            for row, example in zip(encoded, train, strict=True)
        ]

    @cached_property
    def class_weights(self) -> Tensor:
        """Balanced: rare classes weigh more, so that each class has the same weight in all. Or by name, else 1."""
        counts = np.bincount([int(row.target) for row in self.rows], minlength=self.classes(self.facts))
        if (given := self.options.class_weights) == "none":
            return torch.ones(len(counts))
        if isinstance(given, dict):
            return torch.tensor([given.get(label, 1.0) for label in self.facts["labels"]])
        return torch.tensor(len(self.rows) / (len(counts) * np.maximum(counts, 1)), dtype=torch.float32)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> EncoderBatch:
        chosen = [self.rows[row] for row in rows]
        inputs = pad_inputs([row.encoding for row in chosen], encoder_config(self.config))
        kind = torch.float32 if self.facts["numbers"] else torch.long
        target = torch.tensor([row.target for row in chosen], dtype=kind)
        return EncoderBatch(inputs, target, len(chosen), None if self._expected is None else self._expected[rows])

    def loss(self, model: nn.Module, batch: EncoderBatch) -> Tensor:
        logits = model(batch.inputs.ids, batch.inputs.segments)
        true = self._loss(logits, batch.target)
        if batch.expected is None:
            return true
        if self.facts["numbers"]:
            return (true + F.mse_loss(logits, batch.expected, reduction="sum")) / 2
        return (true + soft_loss(logits, batch.expected, TEMPERATURE)) / 2

    def _loss(self, logits: Tensor, target: Tensor) -> Tensor:
        if self.facts["numbers"]:
            return F.mse_loss(logits[:, 0], target, reduction="sum")
        smoothing, weights = self.config.train.label_smoothing, self.class_weights.to(logits.device)
        return F.cross_entropy(logits, target, weights, reduction="sum", label_smoothing=smoothing)


def _is_number(label: str) -> bool:
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False
