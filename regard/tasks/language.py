"""Language modelling: text in, a model that continues text out.

examples   blocks of so many tokens, from random places of the stream
loss       -log p(next token), summed
score      the loss on text that was held out; perplexity, and bits per byte, which no tokenizer changes
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from regard.config import Config, Settings
from regard.data.folders import link_or_copy
from regard.data.language import Language, Stream, prepare_text
from regard.data.prepare import Progress
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError
from regard.models.decoder import Decoder
from regard.nn.loss import projected_loss
from regard.tasks.base import Share, Task, Validation
from regard.tasks.generator import Generator
from regard.tasks.saved import Facts, Saved


class LanguageOptions(Settings):
    block: int = Field(default=256, ge=2, description="tokens of a training example, and the context when generating")
    borders: bool = Field(default=True, description="a token sees its own document only, where a block has several")
    valid_share: float = Field(default=0.1, gt=0, lt=1, description="of the text, held out where data.valid is empty")
    validate_tokens: int = Field(default=200_000, ge=1, description="most tokens of held-out text at a validation")


@dataclass(frozen=True)
class Blocks:
    ids: Tensor  # (B, T + 1): the inputs, and one further on what they are to predict
    documents: Tensor | None = None  # (B, T)

    @property
    def tokens(self) -> int:
        return self.ids[:, 1:].numel()

    def to(self, device: torch.device) -> Blocks:
        documents = None if self.documents is None else self.documents.to(device)
        return replace(self, ids=self.ids.to(device), documents=documents)


class LanguageModelling(Task):
    promise = Decoder
    default_model = "gpt"
    Options = LanguageOptions
    defaults = {  # noqa: RUF012 - of the class, and never changed
        "tokenizer.kind": "byte-bpe",
        "train.label_smoothing": 0.0,
        "train.optimizer": "adamw",
        "train.weight_decay": 0.1,
        "train.schedule": "cosine",
        "decode.method": "sample",
    }

    def __init__(self, config: Config, data: Language) -> None:
        self.config, self.data, self.options = config, data, _options(config)
        self.block = context_of(config)
        for name, stream in (("train", data.train), ("valid", data.valid)):
            if len(stream.ids) < 2 or (name == "train" and len(stream.ids) <= self.block):
                raise UserError(
                    f"options.block = {self.block}: the {name} text has only {len(stream.ids):,} tokens "
                    "(give more text, or a smaller block)"
                )

    @classmethod
    def check(cls, config: Config) -> None:
        """Whatever the block and the model's length, the smaller one is the context."""

    @classmethod
    def predictor(cls, saved: Saved, model: nn.Module) -> Generator:
        return _generator(model, saved.tokenizer, saved.facts)

    @classmethod
    def prepare(cls, config: Config, cache: Path, progress: Progress) -> LanguageModelling:
        share = _options(config).valid_share
        return cls(config, prepare_text(config.data, config.tokenizer, share, cache, progress))

    @classmethod
    def open(cls, config: Config, folder: Path) -> LanguageModelling:
        return cls(config, Language.open(folder))

    def keep(self, folder: Path) -> None:
        link_or_copy(self.data.folder, folder)

    @property
    def vocabulary(self) -> int:
        return len(self.data.tokenizer)

    @property
    def facts(self) -> Facts:
        mark = self.data.tokenizer.special.end
        before = [] if self.data.lone or mark is None else [mark]
        blank = self.data.tokenizer.encode("\n")[-1:]
        return {"context": self.block, "before": before, "blank": blank, "border": self.border}

    @property
    def border(self) -> int | None:
        """The mark that begins a document, where a token sees its own document only."""
        alone = self.data.lone or not self.options.borders
        return None if alone else self.data.tokenizer.special.end

    @property
    def summary(self) -> str:
        return self.data.summary

    @property
    def lengths(self) -> NDArray[np.int32]:
        """An epoch is as many blocks as the text has, though they begin anywhere."""
        return np.full((max(1, len(self.data.train.ids) // self.block), 1), self.block, dtype=np.int32)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], seed: int) -> Blocks:
        last = len(self.data.train.ids) - self.block
        begins = np.random.default_rng(seed).integers(0, last, len(rows))
        return self._blocks(self.data.train, begins, self.block)

    def loss(self, model: nn.Module, batch: Blocks) -> Tensor:
        model = _decoder(model)
        hidden = model(batch.ids[:, :-1], documents=batch.documents).flatten(0, 1)
        smoothing = self.config.train.label_smoothing
        return projected_loss(hidden, model.output.weight, model.output.bias, batch.ids[:, 1:].flatten(), smoothing)

    @torch.no_grad()
    def validate(self, model: nn.Module, share: Share) -> Validation:
        """The mean over held-out text, in blocks that follow each other; the first tokens of each have little past."""
        stream, model = self.data.valid, _decoder(model)
        device = model.output.weight.device
        count = min(len(stream.ids) - 1, self.options.validate_tokens)
        length = min(self.block, count)
        begins = np.arange(0, count - length + 1, length)[share.rank :: share.size]
        rows = max(1, self.config.train.batch_tokens // length)
        total, tokens = 0.0, 0
        for first in range(0, len(begins), rows):
            batch = self._blocks(stream, begins[first : first + rows], length).to(device)
            hidden = model(batch.ids[:, :-1], documents=batch.documents).flatten(0, 1)
            answers = batch.ids[:, 1:].flatten()
            total += projected_loss(hidden, model.output.weight, model.output.bias, answers, 0.0).item()
            tokens += batch.tokens
        parts = share.gather((total, tokens))
        loss = sum(part[0] for part in parts) / max(1, sum(part[1] for part in parts))
        bits = loss / math.log(2) * len(stream.ids) / stream.bytes
        return Validation(-loss, loss, {"perplexity": math.exp(min(loss, 50)), "bits_per_byte": bits})

    @property
    def tests(self) -> Mapping[str, Sequence[Stream]]:
        """The files that were given for it; without any, the text that was held out to choose the weights by."""
        return {name: [stream] for name, stream in self.data.tests.items()} or {"valid": [self.data.valid]}

    def test(self, model: nn.Module) -> dict[str, dict[str, Any]]:
        generator = _generator(model, self.data.tokenizer, self.facts)
        return {name: generator.evaluate(stream).scores for name, stream in self.tests.items()}

    def _blocks(self, stream: Stream, begins: NDArray[np.int64], length: int) -> Blocks:
        ids = torch.from_numpy(stream.blocks(begins, length + 1))
        return Blocks(ids, None if self.border is None else (ids[:, :-1] == self.border).cumsum(dim=1))


def context_of(config: Config) -> int:
    """Tokens that the model is trained to see at once."""
    block = _options(config).block
    return min(block, config.model.longest_input or block)


def _options(config: Config) -> LanguageOptions:
    assert isinstance(config.options, LanguageOptions), f"the options of a language task, not {config.options}"
    return config.options


def _generator(model: nn.Module, tokenizer: Tokenizer, facts: Facts) -> Generator:
    before, blank, border = facts["before"], facts["blank"], facts.get("border")
    return Generator(_decoder(model), tokenizer, facts["context"], before, blank, border, facts.get("ends", ()))


def _decoder(model: nn.Module) -> Decoder:
    assert isinstance(model, Decoder), f"text is continued by a decoder, not by a {type(model).__name__}"
    return model
