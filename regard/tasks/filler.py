"""Guessing what stands behind a mask: "The animal did not cross the [MASK]." -> street."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokenizers import Encoding

from regard.errors import UserError
from regard.nn.record import AttentionRecord
from regard.tasks.reading import Reader
from regard.tasks.saved import Facts


@dataclass(frozen=True)
class Guess:
    word: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """A text with its masks: for each the likeliest words, and the text with the likeliest in their place."""

    source: str
    text: str
    masks: list[list[Guess]]
    encoding: Encoding
    filler: Filler

    @property
    def row(self) -> dict[str, Any]:
        """As JSON."""
        masks = [[(guess.word, guess.probability) for guess in guesses] for guesses in self.masks]
        return {"source": self.source, "text": self.text, "masks": masks}

    @property
    def attention(self) -> AttentionRecord:
        """What every head looked at in the text with its masks."""
        return self.filler.reader.look(self.encoding)


class Filler:
    """A pre-trained encoder."""

    def __init__(self, reader: Reader, facts: Facts) -> None:
        self.reader, self.facts = reader, facts

    def fill(self, texts: Sequence[str], top: int = 5) -> list[Filled]:
        if self.facts["head"] is None:
            raise UserError("this encoder has no head that guesses words; it has vectors (try: regard embed)")
        if top < 1:
            raise UserError(f"top = {top}: at least 1 guess")
        tokenizer = self.reader.tokenizer
        rows = tokenizer.inputs(texts, most=self.reader.most, masks=True)
        asked = [[place for place, token in enumerate(row.ids) if token == tokenizer.special.mask] for row in rows]
        for text, places in zip(texts, asked, strict=True):
            if not places and tokenizer.mask_text in text:
                raise UserError(
                    f"{text[:60]!r}: its {tokenizer.mask_text} is beyond the {self.reader.most} tokens that are read"
                )
            if not places:
                raise UserError(f"{text!r}: has no {tokenizer.mask_text} to fill; write it where a word is missing")
        found = []
        for text, row, places, logits in zip(texts, rows, asked, self.reader.guesses(rows, asked), strict=True):
            best = torch.softmax(logits, dim=-1).topk(min(top, logits.shape[-1]), dim=-1)
            masks = [
                [Guess(tokenizer.tokens([token])[0], chance) for token, chance in zip(tokens, chances, strict=True)]
                for tokens, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ]
            ids = list(row.ids)
            for place, tokens in zip(places, best.indices.tolist(), strict=True):
                ids[place] = tokens[0]
            found.append(Filled(text, tokenizer.decode(ids), masks, row, self))
        return found
