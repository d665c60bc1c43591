"""Tagging: a tag for every word, parts of speech or names (Devlin 2019, section 5.3).

A word's tag is read from its first piece; the other pieces have none. Sentences that are too long are read in parts.

loss    cross-entropy, summed over the words
score   F1 of whole entities where tags are of the kind B-... I-...; else the accuracy
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tokenizers import Encoding
from torch import Tensor, nn

from regard.config import Config, DataConfig
from regard.data.badlines import BadLines, Location
from regard.data.batching import pad
from regard.data.conll import Tagged, read_tagged
from regard.data.examples import Examples
from regard.data.subwords import Subwords
from regard.errors import listed
from regard.nn.record import AttentionRecord
from regard.tasks.class_scores import tag_scores
from regard.tasks.encoder import EncoderBatch, EncoderPredictor, EncoderTask, Predicted, encoder_config, unlearnt
from regard.tasks.reading import pad_inputs
from regard.tasks.saved import Facts

NONE = -100
"""The target of a piece that has no tag."""


@dataclass(frozen=True)
class Row:
    encoding: Encoding
    target: list[int]


@dataclass(frozen=True)
class TaggedWords:
    """The answer for one sentence; `probabilities` are those of the chosen tags."""

    words: list[str]
    tags: list[str]
    probabilities: list[float]
    parts: list[Encoding]
    tagger: Tagger

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        return {"words": self.words, "tags": self.tags, "probabilities": self.probabilities}

    @property
    def attention(self) -> AttentionRecord:
        """What every head looked at in this sentence (in the first part of a long one)."""
        if not self.parts:
            return AttentionRecord({})
        return self.tagger.reader.look(self.parts[0])


class Tagger(EncoderPredictor[Tagged]):
    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Tagged]:
        examples = []
        for example, where in read_tagged(files, data.columns, bad):
            if unseen := next((tag for tag in example.tags if tag not in self.facts["tags"]), None):
                bad.hints["label"] = f"such as {unseen!r}: these are {listed(self.facts['tags'])}"
                bad.add("label", where, unseen)
            else:
                examples.append(example)
        return examples

    def tag(self, sentences: Sequence[list[str]]) -> list[TaggedWords]:
        """Words in, tags out."""
        return [found for found, _ in self._tagged(sentences)]

    def predict(self, examples: Sequence[Tagged]) -> list[Predicted]:
        numbers = {tag: number for number, tag in enumerate(self.facts["tags"])}
        found = []
        for example, (one, log_probs) in zip(
            examples, self._tagged([example.words for example in examples]), strict=True
        ):
            known = [(place, numbers[tag]) for place, tag in enumerate(example.tags) if tag in numbers]
            loss = -float(np.mean([log_probs[place, number] for place, number in known])) if known else 0.0
            row = {
                "words": " ".join(one.words),
                "predicted": " ".join(one.tags),
                "tags": " ".join(example.tags),
                "probabilities": [round(probability, 4) for probability in one.probabilities],
            }
            found.append(Predicted(one.tags, row, loss))
        return found

    def score(self, examples: Sequence[Tagged], found: Sequence[Predicted]) -> dict[str, Any]:
        truth = [example.tags for example in examples]
        return tag_scores(truth, [one.output for one in found], bool(self.facts["entities"]))

    def _tagged(self, sentences: Sequence[list[str]]) -> Iterator[tuple[TaggedWords, Tensor]]:
        """Each sentence with its tags, and the log-probabilities of all tags of each of its words."""
        parts = [list(split(self.reader.tokenizer, words, self.reader.most)) for words in sentences]
        logits = iter(self.reader.logits([part for several in parts for part in several]))
        for words, several in zip(sentences, parts, strict=True):
            scores = [torch.log_softmax(next(logits)[firsts(part)], dim=-1) for part in several]
            log_probs = torch.cat(scores) if scores else torch.zeros(0, len(self.facts["tags"]))
            best = log_probs.max(dim=-1)
            tags = [self.facts["tags"][number] for number in best.indices.tolist()]
            yield TaggedWords(list(words), tags, best.values.exp().tolist(), several, self), log_probs


class Tag(EncoderTask[Tagged]):
    head = "token"
    unit = "words"
    kind = Tagger

    @classmethod
    def read(cls, files: Sequence[str], data: DataConfig, bad: BadLines) -> Iterator[tuple[Tagged, Location]]:
        return read_tagged(files, data.columns, bad)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Tagged:
        return Tagged(**values)

    @classmethod
    def learn(cls, config: Config, examples: Examples[Tagged]) -> Facts:
        tags = sorted({tag for example in examples.train for tag in example.tags})
        entities = "O" in tags and all(tag == "O" or tag[1:2] == "-" for tag in tags)
        return {"tags": tags, "entities": entities}

    @property
    def summary(self) -> str:
        held_out = [tag for example in self.examples.held_out for tag in example.tags]
        return super().summary + unlearnt(self.facts["tags"], held_out)

    @classmethod
    def texts(cls, example: Tagged) -> list[str]:
        return [example.key]

    @classmethod
    def classes(cls, facts: Facts) -> int:
        return len(facts["tags"])

    @cached_property
    def rows(self) -> list[Row]:
        numbers = {tag: number for number, tag in enumerate(self.facts["tags"])}
        rows = []
        for example in self.examples.train:
            done = 0
            for part in split(self.tokenizer, example.words, self.most):
                target = [NONE] * len(part.ids)
                places = firsts(part)
                for place, tag in zip(places, example.tags[done : done + len(places)], strict=True):
                    target[place] = numbers[tag]
                done += len(places)
                rows.append(Row(part, target))
        return rows

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> EncoderBatch:
        chosen = [self.rows[row] for row in rows]
        inputs = pad_inputs([row.encoding for row in chosen], encoder_config(self.config))
        target = torch.from_numpy(pad([np.array(row.target) for row in chosen], NONE))
        return EncoderBatch(inputs, target, int((target != NONE).sum()))

    def loss(self, model: nn.Module, batch: EncoderBatch) -> Tensor:
        logits = model(batch.inputs.ids, batch.inputs.segments)
        smoothing = self.config.train.label_smoothing
        return F.cross_entropy(
            logits.flatten(0, 1), batch.target.flatten(), reduction="sum", ignore_index=NONE, label_smoothing=smoothing
        )


def split(tokenizer: Subwords, words: Sequence[str], most: int) -> Iterator[Encoding]:
    """A sentence of any length as inputs of at most `most` tokens, parted between words.

    A word without any piece (a control character, say) is read as the unknown one.
    """
    rest = [word if tokenizer.encode(word) else "?" for word in words]
    while rest:
        coming = rest[:most]  # each has a piece or more, so that no further one can fit
        (whole,) = tokenizer.inputs([coming], most=10**9, words=True)
        places = firsts(whole)
        room = most - (len(whole.ids) - (1 + max(n for n, w in enumerate(whole.word_ids) if w is not None)) + places[0])
        fitting = [n for n in range(1, len(coming) + 1) if _end(whole, places, n) - places[0] <= room]
        count = max(fitting, default=1)
        (part,) = tokenizer.inputs([rest[:count]], most=most, words=True)
        yield part
        rest = rest[count:]


def firsts(part: Encoding) -> list[int]:
    """The position of the first piece of each word."""
    seen: dict[int, int] = {}
    for place, word in enumerate(part.word_ids):
        if word is not None:
            seen.setdefault(word, place)
    return [seen[word] for word in sorted(seen)]


def _end(whole: Encoding, places: list[int], count: int) -> int:
    """The position after the last piece of the first `count` words."""
    return places[count] if count < len(places) else 1 + max(n for n, w in enumerate(whole.word_ids) if w is not None)
