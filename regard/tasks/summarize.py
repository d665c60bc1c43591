"""Summarisation: long texts in, short ones out, by the same encoder-decoders that translate.

examples   text </s>    <s> summary </s>      what is too long is cut off
loss       label-smoothed, summed over the summary's tokens
score      ROUGE (Lin 2004) of real decoding, beside that of each text's first sentence (lead-1)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config, DataConfig, SearchConfig, Settings, Values
from regard.data.articles import Article, read_articles
from regard.data.badlines import BadLines
from regard.data.examples import Examples
from regard.data.pairs import Pair
from regard.data.prepare import Progress
from regard.data.subwords import Subwords
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Tokenizer
from regard.inference import pack
from regard.models.base import EncoderDecoder
from regard.models.decoder import Decoder
from regard.tasks.base import Evaluation, Predictor, Sample, Share, Task, Validation
from regard.tasks.marks import Batch, Marks, check_padding
from regard.tasks.rouge import rouge
from regard.tasks.saved import Saved
from regard.tasks.translate import as_encoder_decoder, target_loss
from regard.tasks.translation_scores import Forced, forced_scores
from regard.tasks.translator import Translation, Translator


class SummarizeOptions(Settings):
    ask: str = Field(default="", description="said before every text, for a model of many tasks: 'summarize:'")
    max_summary: int = Field(default=128, ge=1, description="longest summary, in tokens")


class Summarizer(Predictor):
    """A trained model with the verb `summarize`."""

    def __init__(self, translator: Translator, search: SearchConfig) -> None:
        self.translator, self.search = translator, search

    def summarize(
        self,
        texts: Iterable[str],
        options: SearchConfig | None = None,
        window: int | None = None,
        ask: str | None = None,
    ) -> Iterator[Translation]:
        """Summaries in the order of the texts, each with its attention."""
        plain = (" ".join(text.split()) for text in texts)
        return self.translator.translate(plain, options or self.search, window=window, ask=ask)

    def read(self, files: Sequence[str], data: DataConfig, bad: BadLines) -> list[Article]:
        return [article for article, _ in read_articles(files, data.columns, bad)]

    def evaluate(self, examples: Sequence[Article]) -> Evaluation:
        found = [one.text for one in self.summarize(article.text for article in examples)]
        references = [article.summaries for article in examples]
        leads = [article.lead for article in examples]
        scores: dict[str, Any] = {"examples": len(examples), **rouge(found, references)}
        scores |= {f"lead_{name}": value for name, value in rouge(leads, references).items()}
        forced = forced_scores(self.translator, [Pair(article.text, article.summaries[0]) for article in examples])
        scores |= {
            "perplexity": float(np.exp(forced.loss)),
            "words": float(np.mean([len(one.split()) for one in found])),
        }
        rows = [
            {"text": article.text, "summary": text, "references": article.summaries}
            for article, text in zip(examples, found, strict=True)
        ]
        return Evaluation(scores, rows)


class Summarize(Task):
    promise = (EncoderDecoder, Decoder)
    default_model = "transformer"
    pairs = True
    Options = SummarizeOptions
    defaults: ClassVar[Values] = {
        "data.max_length": 400,
        "train.validate_sentences": 100,
        "decode.no_repeat_ngram": 3,
        "decode.max_length": 128,
    }

    def __init__(self, config: Config, examples: Examples[Article], tokenizer: Tokenizer) -> None:
        self.config, self.examples, self.tokenizer = config, examples, tokenizer
        self.options = _options(config)
        self.around = Marks.of(tokenizer, getattr(config.model, "decoder_start", None))
        check_padding(tokenizer, config.model)
        self.check_room(config, self.around.room)

    @classmethod
    def target_room(cls, config: Config, most: int, marks: int) -> int:
        """A summary is shorter than its text."""
        return min(most // 2, _options(config).max_summary + marks)

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Summarizer:
        config = saved.config
        model = _reading(model, saved.tokenizer, config)
        translator = Translator(model, saved.tokenizer, _options(config).ask, config.data.max_length)
        return Summarizer(translator, config.decode)

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> Summarize:
        examples = Examples[Article].read(
            config.data, lambda files, bad: read_articles(files, config.data.columns, bad)
        )
        if config.tokenizer.file:
            return cls(config, examples, open_tokenizer(config.tokenizer.file))
        progress.start("learning the vocabulary", None)
        texts = [text for one in examples.train for text in (one.text, one.summaries[0])]
        tokenizer = learned(texts, config)
        progress.finish()
        return cls(config, examples, tokenizer)

    @classmethod
    def open(cls, config: Config, folder: Path) -> Summarize:
        examples = Examples[Article].open(folder, lambda values: Article(values["sentences"], values["summaries"]))
        return cls(config, examples, open_tokenizer(folder / "tokenizer.json"))

    def keep(self, folder: Path) -> None:
        self.examples.save(folder)
        self.tokenizer.save(folder / "tokenizer.json")

    @property
    def vocabulary(self) -> int:
        return len(self.tokenizer)

    @property
    def summary(self) -> str:
        return self.examples.summary

    @property
    def tests(self) -> Mapping[str, Sequence[Article]]:
        return self.examples.tests

    @cached_property
    def rows(self) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """The training examples as tokens, cut to what may be read and written."""
        asked = self.tokenizer.encode(self.options.ask.strip())
        texts = self.tokenizer.encode_batch([one.text for one in self.examples.train])
        summaries = self.tokenizer.encode_targets([one.summaries[0] for one in self.examples.train])
        longest, short = self.config.data.max_length, min(self.options.max_summary, self.config.data.max_length)
        return [
            (np.array((asked + text)[:longest], np.int32), np.array(summary[:short], np.int32))
            for text, summary in zip(texts, summaries, strict=True)
        ]

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        return np.array([[len(text), len(summary)] for text, summary in self.rows], np.int32) + self.around.room

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> Batch:
        chosen = [self.rows[row] for row in rows]
        return self.around.batch([text for text, _ in chosen], [summary for _, summary in chosen])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        model = _reading(model, self.tokenizer, self.config)
        return target_loss(model, batch, self.around.pad, self.config.train.label_smoothing)

    @torch.no_grad()
    def validate(self, model: nn.Module, share: Share) -> Validation:
        """Loss over all validation examples; ROUGE by real decoding, greedily, of the first of them."""
        summarizer = self._summarizer(model)
        articles = self.examples.valid
        mine = [Pair(one.text, one.summaries[0]) for one in articles[share.rank :: share.size]]
        forced = sum(share.gather(forced_scores(summarizer.translator, mine)), Forced())
        chosen = articles[: self.config.train.validate_sentences]
        if not chosen:
            return Validation(-forced.loss, forced.loss, {"token_accuracy": 100 * forced.accuracy})
        options = self.config.decode.model_copy(update={"method": "greedy", "n_best": 1})
        outputs = [""] * len(chosen)
        texts = [one.text for one in chosen[share.rank :: share.size]]
        for rank, part in enumerate(share.gather([one.text for one in summarizer.summarize(texts, options)])):
            outputs[rank :: share.size] = part
        scores = rouge(outputs, [one.summaries for one in chosen])
        samples = [
            Sample(shorten(one.text, 200), text, one.summaries[0]) for one, text in zip(chosen, outputs, strict=True)
        ]
        return Validation(scores["rouge1"], forced.loss, scores, samples[:3])

    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        summarizer = self._summarizer(model)
        return {name: summarizer.evaluate(examples).scores for name, examples in self.tests.items()}

    def _summarizer(self, model: nn.Module) -> Summarizer:
        model = pack(_reading(model, self.tokenizer, self.config))
        translator = Translator(model, self.tokenizer, self.options.ask, self.config.data.max_length)
        return Summarizer(translator, self.config.decode)


def _reading(model: nn.Module, tokenizer: Tokenizer, config: Config) -> EncoderDecoder:
    """A decoder alone leaves room for a summary, not for another text."""
    most, marks = config.model.longest_input, Marks.of(tokenizer, None).room
    return as_encoder_decoder(model, tokenizer, most and Summarize.target_room(config, most, marks))


def learned(texts: Sequence[str], config: Config) -> Tokenizer:
    """A new tokenizer of the config's kind: the papers' byte-level BPE, or one of our own."""
    text = config.tokenizer
    if text.kind == "byte-bpe":
        return Subwords.learn(texts, kind=text.kind, vocabulary=text.vocabulary, lowercase=text.lowercase)
    return Tokenizer.train(texts, kind=text.kind, vocabulary=text.vocabulary, lowercase=text.lowercase)


def _options(config: Config) -> SummarizeOptions:
    assert isinstance(config.options, SummarizeOptions), "settled with the task"
    return config.options
