"""Pre-training: guess hidden words, and whether one sentence follows another (Devlin 2019, section 3.1).

text files -> sentences -> blocks of neighbours (data/documents) -> [CLS] a [SEP] b [SEP] -> some tokens hidden
(data/masking), anew in every epoch (Liu 2019, section 4.1) -> encoder -> head

loss    cross-entropy of the hidden words, and of "b follows a" where that is asked for
score   the loss on held-out text; with it the share of words that were guessed
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config, DataConfig, Settings, Values
from regard.data.badlines import BadLines
from regard.data.batching import plan
from regard.data.documents import Blocks, Layout, sentences, store_sentences
from regard.data.folders import building, link_or_copy
from regard.data.prepare import Progress
from regard.data.store import Store
from regard.data.subwords import Subwords
from regard.data.tokenizer_files import open_tokenizer
from regard.errors import UserError
from regard.models.base import Encoder
from regard.models.distilbert import student_weights
from regard.models.heads import Head, Headed, MaskedWords, PreTraining, build_headed
from regard.nn.loss import projected_loss
from regard.tasks.base import Sample, Share, Task, Validation
from regard.tasks.encoder import encoder_config
from regard.tasks.filler import Filler
from regard.tasks.marks import check_padding
from regard.tasks.masker import MaskedBatch, Masker
from regard.tasks.reading import Reader, subwords, tokenizer_for
from regard.tasks.saved import Facts, Saved
from regard.tasks.teacher import Teacher, check_teacher

PRE_TRAINING: Values = {
    "tokenizer.kind": "wordpiece",
    "data.max_length": 128,
    "train.optimizer": "adamw",
    "train.weight_decay": 0.01,
    "train.learning_rate": 1e-3,
    "train.schedule": "linear",
    "train.label_smoothing": 0.0,
    "train.average": 0.0,
}


LEAST = 8
"""Tokens of an input, of which up to four are marks."""
RARE = 0.05
"""A larger share of tokens that the tokenizer does not know is worth a warning."""


class MaskedOptions(Settings):
    rate: float = Field(default=0.15, gt=0, lt=1, description="share of the tokens to guess")
    whole_words: bool = Field(default=False, description="hide all pieces of a word, or none")
    next_sentence: bool | None = Field(default=None, description="guess whether b follows a; None: if the model can")
    layout: Layout = Field(default="auto", description="lines: a sentence each; prose: any text")
    teacher: str | None = Field(default=None, description="a run or a published folder to be a smaller student of")


@dataclass(frozen=True)
class Guesses:
    """How well hidden words were guessed."""

    nats: float = 0.0
    right: int = 0
    words: int = 0
    followed: int = 0
    pairs: int = 0

    def __add__(self, other: Guesses) -> Guesses:
        mine, theirs = vars(self).values(), vars(other).values()
        return Guesses(*(one + another for one, another in zip(mine, theirs, strict=True)))

    @property
    def scores(self) -> dict[str, Any]:
        loss = self.nats / max(1, self.words)
        found = {"loss": loss, "perplexity": float(np.exp(loss)), "guessed": 100 * self.right / max(1, self.words)}
        return found | ({"next_sentence": 100 * self.followed / self.pairs} if self.pairs else {})


class Masked(Task):
    promise = Encoder
    default_model = "bert-tiny"
    as_papers = True
    defaults: ClassVar[Values] = PRE_TRAINING
    marks = 0
    unit = "hidden words"
    Options = MaskedOptions

    def __init__(self, config: Config, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.tokenizer = subwords(open_tokenizer(folder / "tokenizer.json"))
        self.report = json.loads((folder / "report.json").read_text(encoding="utf8"))
        options, pairs = self.options, self.facts["head"] == "pretraining"
        check_padding(self.tokenizer, encoder_config(config))
        self.masker = Masker(self.tokenizer, encoder_config(config), options.rate, options.whole_words, pairs)
        self.train, self.valid, *tests = (
            Blocks.cut(Store.open(folder / name), config.data.max_length - self.masker.around)
            for name in ("train", "valid", *self.report["tests"])
        )
        self._teacher: Teacher | None = None
        self._tests = dict(zip(self.report["tests"], tests, strict=True))
        if not len(self.train) or not len(self.valid):
            raise UserError("data.train: too little text to train on and to validate")

    @property
    def options(self) -> MaskedOptions:
        assert isinstance(self.config.options, MaskedOptions), "the task's own options"
        return self.config.options

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        if config.data.max_length < LEAST:
            raise UserError(f"data.max_length = {config.data.max_length}: at least {LEAST}, for words and their marks")

    @classmethod
    def build(cls, config: Config, vocabulary: int, facts: Facts) -> Headed:
        """A published encoder may come without a head: it has vectors, but guesses nothing."""
        if facts["head"] is not None:
            return build_headed(config.model, vocabulary, facts["head"])
        bare = super().build(config, vocabulary, facts)
        assert isinstance(bare, Encoder), "settled before: the task needs an encoder"
        return Headed(bare, Head())

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Filler:
        return Filler(Reader(model, saved.tokenizer, saved.config.data.max_length), saved.facts)

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Masked:
        """Sentences are kept in the cache under the names of their splits; `keep` moves them into the run."""
        options, data, bad = config.options, config.data, BadLines()
        assert isinstance(options, MaskedOptions), "the task's own options"
        splits = _splits(data, options.layout, bad)
        named = config.tokenizer.file or options.teacher
        tokenizer = tokenizer_for(config.tokenizer.model_copy(update={"file": named}), splits["train"], progress)
        progress.start("encoding", None)
        sizes = ", ".join(f"{sum(map(bool, part)):,} {name}" for name, part in splits.items())
        tests = [name for name in splits if name not in ("train", "valid")]
        longest = data.max_length - tokenizer.around(pairs=True)
        place = cache / f"text-{uuid4().hex}"
        with building(place) as folder:
            tokenizer.save(folder / "tokenizer.json")
            for name, texts in splits.items():
                store_sentences(iter(texts), tokenizer, folder / name, longest)
            strange = _strange(Store.open(folder / "train"), tokenizer)
            report = {"summary": f"{sizes} sentences\n{bad.summary()}{strange}", "tests": tests}
            (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf8")
        progress.finish()
        return cls(config, place)

    @property
    def teacher(self) -> str | None:
        return self.options.teacher

    def check_teacher(self, saved: Saved, model: nn.Module) -> None:
        check_teacher(saved, model, self.config, self.tokenizer)

    def taught(self, saved: Saved, model: nn.Module, progress: Progress) -> Mapping[str, Tensor]:
        assert isinstance(model, Headed), "checked before"
        self._teacher = Teacher(model.eval().requires_grad_(False))
        return student_weights(saved.all_weights)

    @classmethod
    def open(cls, config: Config, folder: Path) -> Masked:
        return cls(config, folder)

    def keep(self, folder: Path) -> None:
        link_or_copy(self.folder, folder)
        shutil.rmtree(self.folder)

    @property
    def vocabulary(self) -> int:
        return len(self.tokenizer)

    @property
    def facts(self) -> Facts:
        config = encoder_config(self.config)
        able = config.pooler and config.segments > 1 and self.options.teacher is None
        wanted = self.options.next_sentence
        if wanted and not able:
            raise UserError(
                f"options.next_sentence: {config.kind} has no summary or no segments to tell it by, or a teacher"
            )
        return {"head": "pretraining" if (able if wanted is None else wanted) else "masked"}

    @property
    def summary(self) -> str:
        return str(self.report["summary"])

    @property
    def tests(self) -> Mapping[str, Blocks]:  # type: ignore[override]
        return self._tests

    @property
    def lengths(self) -> NDArray[np.int32]:
        return (self.train.sizes[:, None] + self.masker.around).astype(np.int32)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> MaskedBatch:
        return self.masker.batch(self.train, rows, seed)

    def loss(self, model: nn.Module, batch: MaskedBatch) -> Tensor:
        if self._teacher is not None:
            return self._teacher.loss(model, batch, encoder_config(self.config).pad)
        vectors, follows, head = self._vectors(model, batch)
        loss = projected_loss(head.transform(vectors), head.output.weight, head.output.bias, batch.words, 0.0)
        if batch.follows is None or follows is None:
            return loss
        return loss + F.cross_entropy(follows, batch.follows) * batch.tokens  # both means weigh the same

    @torch.no_grad()
    def validate(self, model: nn.Module, share: Share) -> Validation:
        mine = sum(share.gather(self._guess(model, self.valid, share.rank, share.size)), Guesses())
        scores = mine.scores
        filler = Filler(Reader(model, self.tokenizer, self.config.data.max_length), self.facts)
        return Validation(-scores["loss"], scores["loss"], scores, self._samples(filler))

    @torch.no_grad()
    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        return {name: self._guess(model, blocks, 0, 1).scores for name, blocks in self._tests.items()}

    def _guess(self, model: nn.Module, blocks: Blocks, rank: int, size: int) -> Guesses:
        lengths = blocks.sizes[:, None] + self.masker.around
        batches = plan(lengths, batch_tokens=4096, shuffle=False)
        device = next(model.parameters()).device
        total = Guesses()
        for number in range(rank, len(batches), size):
            batch = self.masker.batch(blocks, batches[number], seed=number).to(device)
            vectors, follows, head = self._vectors(model, batch)
            logits = head(vectors)
            right = int((logits.argmax(dim=-1) == batch.words).sum())
            total += Guesses(F.cross_entropy(logits, batch.words, reduction="sum").item(), right, batch.tokens)
            if batch.follows is not None and follows is not None:
                said = follows.argmax(dim=-1)
                total += Guesses(followed=int((said == batch.follows).sum()), pairs=len(said))
        return total

    def _vectors(self, model: nn.Module, batch: MaskedBatch) -> tuple[Tensor, Tensor | None, MaskedWords]:
        """What the hidden words are guessed from (N, M), the logits of "b follows a" (B, 2) if asked for, the head."""
        assert isinstance(model, Headed), "an encoder with a head"
        encoder, head, inputs = model.encoder, model.head, batch.inputs
        assert isinstance(head, MaskedWords), "a head that guesses words"
        if not isinstance(head, PreTraining):
            return encoder.guess(inputs.ids, inputs.segments, batch.rows, batch.places, batch.words), None, head
        hidden = encoder(inputs.ids, inputs.segments)
        return hidden[batch.rows, batch.places], head.next_sentence(encoder.summary(hidden, inputs.ids)), head

    def _samples(self, filler: Filler) -> list[Sample]:
        """Three held-out sentences, a word of each hidden."""
        samples = []
        mask = self.tokenizer.mask_text
        for number in range(min(3, len(self.valid))):
            words = self.tokenizer.decode(self.valid.sentences(number)[0].tolist()).split()[:20]
            place = len(words) // 2
            hidden = " ".join([*words[:place], mask, *words[place + 1 :]])
            (filled,) = filler.fill([hidden], top=1)
            if filled.text is not None and words:
                samples.append(Sample(hidden, filled.text, " ".join(words)))
        return samples


def _splits(data: DataConfig, layout: Layout, bad: BadLines) -> dict[str, list[str]]:
    """Sentences to train on, to validate on and to test on: the ends of the text unless files are given."""
    train = list(sentences(data.train, layout, bad))
    held: dict[str, list[str]] = {}
    for name, files, count in (("test", data.test, data.test_count), ("valid", data.valid, data.valid_count)):
        if files:
            held[name] = list(sentences(files, layout, bad))
        elif count:
            places = [place for place, sentence in enumerate(train) if sentence]  # the others are borders
            cut = places[-max(1, min(count, len(places) // 20))] if places else 0
            train, held[name] = train[:cut], train[cut:]
    bad.check(data.max_bad_share)
    if not any(train):
        raise UserError(f"{', '.join(data.train)}: too little text: nothing is left to train on, or to hold out")
    return {"train": train, "valid": held.pop("valid"), **held}


def _strange(store: Store, tokenizer: Subwords) -> str:
    """A line about tokens that stand for what the tokenizer does not know, if they are many."""
    tokens = store.flat("tokens")
    share = np.count_nonzero(tokens == tokenizer.special.unknown) / max(1, len(tokens))
    return f"\nwarning: the tokenizer does not know {share:.0%} of the tokens of the text" if share > RARE else ""
