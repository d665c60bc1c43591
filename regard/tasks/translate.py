"""Translation: pairs of sentences in, a translator out.

examples   source ids </s>    <s> target ids </s>
loss       label-smoothed, summed over the target tokens
score      BLEU of real decoding on held-out pairs
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config, Settings, TokenizerConfig
from regard.data.corpora import CORPORA
from regard.data.folders import link_or_copy
from regard.data.merges import Merges
from regard.data.pairs import Pair
from regard.data.prepare import BuiltIn, Files, Prepared, Progress, prepare
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Kind, Tokenizer
from regard.errors import UserError
from regard.inference import pack
from regard.models.base import EncoderDecoder
from regard.models.decoder import Decoder
from regard.models.prompted import Prompted
from regard.nn.loss import projected_loss
from regard.tasks.base import Sample, Share, Task, Validation
from regard.tasks.marks import Batch, Ids, Marks, check_padding
from regard.tasks.saved import Saved
from regard.tasks.translation_scores import Forced, Variant, bleu, evaluate, forced_scores, text_metrics
from regard.tasks.translator import Translator

SHOWN = 60
"""Letters of a sentence that is shown as an example."""


class TranslateOptions(Settings):
    ask: str = Field(
        default="", description="said before every source, for a model of many tasks: 'translate English to German:'"
    )
    bpe_dropout: float = Field(default=0.0, ge=0, lt=1, description="share of BPE's merges left out in training")
    tokenize: str = Field(
        default="auto",
        description="sacreBLEU's tokenizer: 13a, none (for text that is tokenised already), intl, zh, ...",
    )


class Translate(Task):
    promise = (EncoderDecoder, Decoder)
    default_model = "transformer"
    pairs = True
    Options = TranslateOptions

    def __init__(self, config: Config, data: Prepared) -> None:
        self.config, self.data, self.options = config, data, _options(config)
        self.around = Marks.of(data.tokenizer, getattr(config.model, "decoder_start", None))
        check_padding(data.tokenizer, config.model)
        self.asked = data.tokenizer.encode(self.options.ask.strip())
        self.merges = Merges(data.tokenizer) if self.options.bpe_dropout else None
        self.check_room(config, self.around.room + len(self.asked))

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Translator:
        model = as_encoder_decoder(model, saved.tokenizer)
        return Translator(model, saved.tokenizer, _options(saved.config).ask)

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        data, text = config.data, config.tokenizer
        for name in ("valid", "test", "columns") if _built_in(config) else ():
            if given := getattr(data, name):
                raise UserError(
                    f"data.{name} = {','.join(given)}: the corpus {data.train[0]} brings its own; leave it out, and "
                    "score other files afterwards: regard evaluate RUN FILE"
                )
        if _options(config).bpe_dropout and not text.file and text.kind != "bpe":
            raise UserError(f"options.bpe_dropout: is for tokenizer.kind = bpe, not {text.kind} (try 0)")
        if (tokenize := _options(config).tokenize) != "auto":
            text_metrics(Variant(tokenize), [])  # a wrong name should not cost a training

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Translate:
        data, text = config.data, config.tokenizer
        prepared = prepare(
            BuiltIn(data.train[0]) if _built_in(config) else Files(data.train, data.valid, data.test, data.columns),
            cache=cache,
            tokenizer=open_tokenizer(text.file) if text.file else None,
            kind=_kind(text),
            vocabulary=text.vocabulary,
            lowercase=text.lowercase,
            valid_count=data.valid_count,
            test_count=data.test_count,
            max_length=data.max_length,
            max_bad_share=data.max_bad_share,
            seed=data.seed,
            progress=progress,
        )
        return cls(config, prepared)

    @classmethod
    def open(cls, config: Config, folder: Path) -> Translate:
        return cls(config, Prepared.open(folder))

    def keep(self, folder: Path) -> None:
        link_or_copy(self.data.folder, folder)

    @property
    def vocabulary(self) -> int:
        return len(self.data.tokenizer)

    @property
    def summary(self) -> str:
        """What was read, and a pair of it: whether source and target are what one meant shows at a glance."""
        pair = next(iter(self.data.valid_pairs), None)
        if pair is None:
            return self.data.summary
        source, target = (
            side if len(side) <= SHOWN else f"{side[:SHOWN].rstrip()} …" for side in (pair.source, pair.target)
        )
        return f"{self.data.summary}\nfor example: {source} -> {target}"

    @property
    def lengths(self) -> NDArray[np.int32]:
        return self.data.train.lengths + (self.around.room + np.array([len(self.asked), 0], np.int32))

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> Batch:
        read = self.data.train.rows(rows)
        sources: Sequence[Ids] = read["source"]
        targets: Sequence[Ids] = read["target"]
        if self.merges is not None:
            given = self.options.bpe_dropout, random.Random(seed), self.config.data.max_length
            sources = [self.merges.cut(row.tolist(), *given) for row in read["source"]]
            targets = [self.merges.cut(row.tolist(), *given) for row in read["target"]]
        return self.around.batch([[*self.asked, *row] for row in sources] if self.asked else sources, targets)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        model = as_encoder_decoder(model, self.data.tokenizer)
        return target_loss(model, batch, self.around.pad, self.config.train.label_smoothing)

    @torch.no_grad()
    def validate(self, model: nn.Module, share: Share) -> Validation:
        """Loss and accuracy over all validation pairs; BLEU by real decoding, greedily, of some of them, from all
        parts of the file (which may be sorted by length)."""
        translator = self._translator(model)
        pairs = self.data.valid_pairs
        forced = sum(share.gather(forced_scores(translator, pairs[share.rank :: share.size])), Forced())
        accuracy = {"token_accuracy": 100 * forced.accuracy}
        count = min(len(pairs), self.config.train.validate_sentences)
        chosen = [pairs[number * len(pairs) // count] for number in range(count)]
        if not chosen:
            return Validation(-forced.loss, forced.loss, accuracy)
        options = self.config.decode.model_copy(update={"method": "greedy", "n_best": 1})
        mine = [pair.source for pair in chosen[share.rank :: share.size]]
        outputs = [""] * len(chosen)
        for rank, texts in enumerate(share.gather([one.text for one in translator.translate(mine, options)])):
            outputs[rank :: share.size] = texts
        score = bleu(outputs, [pair.target for pair in chosen], self.options.tokenize)
        samples = [Sample(pair.source, text, pair.target) for pair, text in zip(chosen, outputs, strict=True)]
        return Validation(score, forced.loss, {"bleu": score, **accuracy}, samples[:3])

    @property
    def tests(self) -> dict[str, list[Pair]]:
        return self.data.tests

    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        translator, search, variant = self._translator(model), self.config.decode, variant_of(self.config)
        return {
            name: asdict(evaluate(translator, pairs, search, variant)[0]) for name, pairs in self.data.tests.items()
        }

    def _translator(self, model: nn.Module) -> Translator:
        model = pack(as_encoder_decoder(model, self.data.tokenizer))
        return Translator(model, self.data.tokenizer, self.options.ask)


def _built_in(config: Config) -> bool:
    return len(config.data.train) == 1 and config.data.train[0] in CORPORA


def _kind(text: TokenizerConfig) -> Kind:
    if text.kind == "byte-bpe":
        raise UserError("tokenizer.kind = 'byte-bpe': not for translation; 'bpe' falls back to bytes too (try bpe)")
    return text.kind


def as_encoder_decoder(model: nn.Module, tokenizer: Tokenizer, target: int | None = None) -> EncoderDecoder:
    """A decoder alone reads the source as its prompt, and keeps so many tokens, or half of them, for the target."""
    if isinstance(model, Decoder):
        return Prompted(model, Marks.of(tokenizer, None).pad, target)
    assert isinstance(model, EncoderDecoder), f"the task needs a decoder, not {type(model).__name__}"
    return model


def target_loss(model: EncoderDecoder, batch: Batch, pad: int, smoothing: float) -> Tensor:
    """Label-smoothed, summed over the target's tokens."""
    hidden = model(batch.source, batch.target[:, :-1])  # (B, T, M)
    answers = batch.target[:, 1:]
    real = answers != pad
    return projected_loss(hidden[real], model.output.weight, model.output.bias, answers[real], smoothing)


def variant_of(config: Config) -> Variant:
    """How a run compares texts, in training and afterwards."""
    return Variant(_options(config).tokenize)


def _options(config: Config) -> TranslateOptions:
    assert isinstance(config.options, TranslateOptions), "settled with the task"
    return config.options
