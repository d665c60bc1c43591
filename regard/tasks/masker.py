"""Blocks of text as inputs with some words hidden, and what was hidden: a pure function of the blocks and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.documents import Blocks
from regard.data.masking import hide
from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.models.base import EncoderConfig
from regard.tasks.reading import Inputs, inputs_of

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class MaskedBatch:
    inputs: Inputs
    rows: Tensor  # (N) and
    places: Tensor  # (N): where a word is hidden
    words: Tensor  # (N): which
    follows: Tensor | None  # (B): 0 where b follows a, 1 where it does not
    tokens: int

    def to(self, device: torch.device) -> MaskedBatch:
        follows = None if self.follows is None else self.follows.to(device)
        return replace(
            self, inputs=self.inputs.to(device), rows=self.rows.to(device), places=self.places.to(device),
            words=self.words.to(device), follows=follows,
        )  # fmt: skip


@dataclass(frozen=True)
class Masker:
    """How words are hidden. `pairs`: an input has two parts, and half of the second ones are from elsewhere."""

    tokenizer: Subwords
    config: EncoderConfig
    rate: float
    whole_words: bool
    pairs: bool

    @property
    def around(self) -> int:
        """Special tokens of an input."""
        return self.tokenizer.around(pairs=self.pairs)

    @cached_property
    def words(self) -> Ids:
        """The tokens that may be swapped in: no marks, and no padding, which would be read as such."""
        return np.setdiff1d(np.arange(len(self.tokenizer)), list(self.tokenizer.special.ids))

    def batch(self, blocks: Blocks, rows: Sequence[int] | Ids, seed: int) -> MaskedBatch:
        random, special = np.random.default_rng(seed), self.tokenizer.special
        if special.mask is None:
            raise UserError("tokenizer: has no mask token, which pre-training needs")
        built = [self._input(blocks, int(row), random) for row in rows]
        hidden, places = [], []
        for ids, _, _ in built:
            groups = self.tokenizer.word_groups(ids.tolist()) if self.whole_words else [[n] for n in range(len(ids))]
            inside = [group for group in groups if ids[group[0]] not in special.ids]
            found = hide(ids, inside, random, rate=self.rate, mask=special.mask, words=self.words)
            hidden.append(found[0])
            places.append(found[1])
        numbers = np.repeat(np.arange(len(built)), [len(chosen) for chosen in places])
        words = np.concatenate([ids[chosen] for (ids, _, _), chosen in zip(built, places, strict=True)])
        inputs = inputs_of(hidden, [segment for _, segment, _ in built], self.config)
        follows = torch.tensor([follow for _, _, follow in built]) if self.pairs else None
        where = torch.from_numpy(numbers), torch.from_numpy(np.concatenate(places))
        return MaskedBatch(inputs, *where, torch.from_numpy(words), follows, len(words))

    def _input(self, blocks: Blocks, row: int, random: np.random.Generator) -> tuple[Ids, Ids, int]:
        """A block with the special tokens around, its segments, and 0 where the second part follows the first."""
        parts = blocks.sentences(row)
        if not self.pairs:
            return *self.tokenizer.surround(np.concatenate(parts)), 0
        if len(parts) > 1:
            cut = int(random.integers(1, len(parts)))
            first, second = np.concatenate(parts[:cut]), np.concatenate(parts[cut:])
        else:
            first, second = np.array_split(parts[0], 2)
        if random.random() < 0.5 or len(blocks) < 2 or not len(second):
            return *self.tokenizer.surround(first, second), 0
        other = np.concatenate(blocks.sentences((row + int(random.integers(1, len(blocks)))) % len(blocks)))
        # Where the true second part begins within a sentence, a false one must: else how it begins would tell.
        other = other if len(parts) > 1 else other[len(other) // 2 :]
        return *self.tokenizer.surround(first, other[: len(second)]), 1
