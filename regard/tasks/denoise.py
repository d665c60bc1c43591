"""Denoising: text alone in, a pre-trained encoder-decoder out (BART, T5), to be fine-tuned with --from.

examples   blocks of text, damaged anew whenever they are seen (see `regard.data.denoising`)
             BART's ways   damaged text </s>            ->  <s> the text itself </s>
             spans         text with sentinels </s>     ->  <s> sentinels with what they hid </s>
loss       -log p, summed over the target's tokens
score      the loss on held-out text, damaged always in the same way
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config, Settings, Values
from regard.data.denoising import (
    Noise,
    NoiseName,
    add_sentinels,
    choose_spans,
    corrupt_spans,
    sentence_ends,
    sentinels_of,
)
from regard.data.folders import link_or_copy
from regard.data.language import Language, Stream, prepare_text
from regard.data.prepare import Progress
from regard.data.tokenizer_files import FILES as TOKENIZER_FILES
from regard.errors import UserError
from regard.models.base import EncoderDecoder
from regard.tasks.base import Share, Task, Validation
from regard.tasks.marks import Batch, Marks, check_padding
from regard.tasks.saved import Saved
from regard.tasks.translate import target_loss
from regard.tasks.translation_scores import Forced
from regard.tasks.translator import Translator


class DenoiseOptions(Settings):
    noise: list[NoiseName | Literal["spans"]] = Field(
        default=["permutation", "infilling"], min_length=1, description="BART's ways, in this order; or [spans], T5's"
    )
    share: float = Field(default=0.3, gt=0, lt=1, description="of the tokens that are damaged; T5 has 0.15")
    mean: float = Field(default=3.0, gt=0, description="mean length of a span")
    block: int = Field(default=256, ge=4, description="tokens of a text that are damaged together")
    sentinels: int = Field(default=100, ge=2, description="for spans: so many are added to a new tokenizer")
    valid_share: float = Field(default=0.05, gt=0, lt=1, description="of the text, held out where data.valid is empty")
    validate_blocks: int = Field(default=200, ge=1, description="most blocks of held-out text at a validation")


class Denoise(Task):
    promise = EncoderDecoder
    default_model = "bart"
    as_papers = True
    Options = DenoiseOptions
    defaults: ClassVar[Values] = {
        "tokenizer.kind": "byte-bpe",
        "train.label_smoothing": 0.0,
        "train.optimizer": "adamw",
        "train.weight_decay": 0.01,
    }

    def __init__(self, config: Config, data: Language) -> None:
        self.config, self.data, self.options = config, data, _options(config)
        tokenizer, options = data.tokenizer, self.options
        self.around = Marks.of(tokenizer, getattr(config.model, "decoder_start", None))
        check_padding(tokenizer, config.model)
        if len(data.train.ids) <= options.block:
            raise UserError(
                f"options.block = {options.block}: the training text has only {len(data.train.ids):,} tokens"
            )
        self.sentinels = sentinels_of(tokenizer)
        self.noise: Noise | None = None
        if "spans" not in options.noise:
            kinds = [kind for kind in options.noise if kind != "spans"]
            mask = tokenizer.special.mask
            if mask is None and {"masking", "infilling"} & set(kinds):
                raise UserError("options.noise: the tokenizer has no mask token (try tokenizer.kind=byte-bpe)")
            self.noise = Noise(kinds, options.share, options.mean, mask or 0, sentence_ends(tokenizer))
        elif options.noise != ["spans"]:
            raise UserError(f"options.noise = {options.noise}: spans stand alone (try [spans])")

    @classmethod
    def check(cls, config: Config) -> None:
        most, options = config.model.longest_input, _options(config)
        if most is not None and options.block + 2 > most:
            raise UserError(
                f"options.block = {options.block}: must be at most model.max_length - 2 = {most - 2}, for the marks"
            )

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Translator:
        assert isinstance(model, EncoderDecoder), "settled with the task"
        return Translator(model, saved.tokenizer)

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Denoise:
        options = _options(config)
        prepared = prepare_text(config.data, config.tokenizer, options.valid_share, cache, progress)
        if "spans" in options.noise and not sentinels_of(prepared.tokenizer):
            add_sentinels(prepared.tokenizer, options.sentinels)
        return cls(config, prepared)

    @classmethod
    def open(cls, config: Config, folder: Path) -> Denoise:
        return cls(config, Language.open(folder))

    def keep(self, folder: Path) -> None:
        link_or_copy(self.data.folder, folder)
        for name in TOKENIZER_FILES:  # links to the cache's, which has no sentinels
            (folder / name).unlink(missing_ok=True)
        self.data.tokenizer.save(folder / "tokenizer.json")

    @property
    def vocabulary(self) -> int:
        tokenizer = self.data.tokenizer
        return max(len(tokenizer), tokenizer.inner.get_vocab_size())  # it may have got sentinels since it was opened

    @property
    def summary(self) -> str:
        return self.data.summary

    @property
    def lengths(self) -> NDArray[np.int32]:
        """An epoch is as many blocks as the text has, though they begin anywhere."""
        blocks = max(1, len(self.data.train.ids) // self.options.block)
        return np.full((blocks, 2), self.options.block + self.around.room, dtype=np.int32)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> Batch:
        random = np.random.default_rng(seed)
        begins = random.integers(0, len(self.data.train.ids) - self.options.block, len(rows))
        return self._damaged(self.data.train, begins, random)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        assert isinstance(model, EncoderDecoder), "settled with the task"
        return target_loss(model, batch, self.around.pad, self.config.train.label_smoothing)

    @torch.no_grad()
    def validate(self, model: nn.Module, share: Share) -> Validation:
        blocks = list(self._held_out(self.data.valid, self.options.validate_blocks))[share.rank :: share.size]
        forced = sum(share.gather(self._forced(model, blocks)), Forced())
        return Validation(-forced.loss, forced.loss, _scores(forced))

    @property
    def tests(self) -> Mapping[str, Sequence[Any]]:
        """The files that were given for it; without any, the text that was held out to choose the weights by."""
        streams = self.data.tests or {"valid": self.data.valid}
        return {name: list(self._held_out(stream, most=None)) for name, stream in streams.items()}

    @torch.no_grad()
    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        found = {name: self._forced(model, batches) for name, batches in self.tests.items()}
        return {
            name: {"tokens": forced.tokens, "loss": forced.loss, **_scores(forced)} for name, forced in found.items()
        }

    def _damaged(self, stream: Stream, begins: Sequence[int] | NDArray[np.int64], random: np.random.Generator) -> Batch:
        sources, targets = [], []
        for ids in stream.blocks(begins, min(self.options.block, len(stream.ids))):
            if self.noise is not None:
                source, target = self.noise(ids, random), ids
            else:
                most = len(self.sentinels) - 1
                spans = choose_spans(len(ids), self.options.share, self.options.mean, most, random)
                source, target = corrupt_spans(ids, spans, self.sentinels)
            sources.append(source[: self.options.block])  # empty spans could make it longer
            targets.append(target)
        return self.around.batch(sources, targets)

    def _held_out(self, stream: Stream, most: int | None, together: int = 8) -> Iterator[Batch]:
        """Blocks that follow each other, `most` of them, damaged in the same way every time."""
        length = min(self.options.block, len(stream.ids))
        begins = np.arange(0, len(stream.ids) - length + 1, length)[:most]
        for first in range(0, len(begins), together):
            yield self._damaged(stream, begins[first : first + together], np.random.default_rng(first))

    def _forced(self, model: nn.Module, batches: Sequence[Batch]) -> Forced:
        assert isinstance(model, EncoderDecoder), "settled with the task"
        total = Forced()
        for held in batches:
            batch = held.to(next(model.parameters()).device)
            answers = batch.target[:, 1:]
            real = answers != self.around.pad
            logits = model.output(model(batch.source, batch.target[:, :-1])[real]).float()  # (N, V)
            nats = F.cross_entropy(logits, answers[real], reduction="sum").item()
            total += Forced(nats, int((logits.argmax(dim=-1) == answers[real]).sum()), batch.tokens)
        return total


def _scores(forced: Forced) -> dict[str, float]:
    return {"perplexity": math.exp(min(forced.loss, 50)), "token_accuracy": 100 * forced.accuracy}


def _options(config: Config) -> DenoiseOptions:
    assert isinstance(config.options, DenoiseOptions), "settled with the task"
    return config.options
