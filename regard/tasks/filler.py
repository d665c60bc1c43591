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

    def has_mask(self, text: str) -> bool:
        return self.reader.tokenizer.mask_text in self._marked(text)

    def fill(self, texts: Sequence[str], top: int = 5) -> list[Filled]:
        """The likeliest words behind each mask, which may be written as any tokenizer writes it: [MASK] or <mask>."""
        if self.facts["head"] is None:
            raise UserError("this encoder has no head that guesses words; it has vectors (try: regard embed)")
        if top < 1:
            raise UserError(f"top = {top}: at least 1 guess")
        tokenizer = self.reader.tokenizer
        marked = [self._marked(text) for text in texts]
        rows = tokenizer.inputs(marked, most=self.reader.most, masks=True)
        asked = [[place for place, token in enumerate(row.ids) if token == tokenizer.special.mask] for row in rows]
        for text, places in zip(marked, asked, strict=True):
            if len(places) < text.count(tokenizer.mask_text):
                raise UserError(
                    f"{text[:60]!r}: has a {tokenizer.mask_text} beyond the {self.reader.most} tokens that are read"
                )
            if not places:
                raise UserError(f"{text!r}: has no {tokenizer.mask_text} to fill; write it where a word is missing")
        found = []
        for source, text, row, logits in zip(texts, marked, rows, self.reader.guesses(rows, asked), strict=True):
            known = logits[:, : len(tokenizer)]  # a published model may have rows that are no word's
            best = torch.softmax(known, dim=-1).topk(min(top, known.shape[-1]), dim=-1)
            masks = [
                [Guess(self._shown(token), chance) for token, chance in zip(tokens, chances, strict=True)]
                for tokens, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ]
            found.append(Filled(source, self._with(text, best.indices[:, 0].tolist()), masks, row, self))
        return found

    def _marked(self, text: str) -> str:
        """With masks as this tokenizer writes them."""
        mask = self.reader.tokenizer.mask_text
        if not mask or mask in text:
            return text
        return text.replace("[MASK]", mask).replace("<mask>", mask)

    def _shown(self, token: int) -> str:
        tokenizer = self.reader.tokenizer
        (label,) = tokenizer.tokens([token])
        return f"##{label}" if tokenizer.kind == "wordpiece" and tokenizer.continues(token) else label

    def _with(self, text: str, tokens: Sequence[int]) -> str:
        """The text as it was written, with tokens in the places of its masks."""
        tokenizer = self.reader.tokenizer
        filled, *rest = text.split(tokenizer.mask_text)
        for token, after in zip(tokens, rest, strict=True):
            if tokenizer.continues(token):
                filled = filled.rstrip()
            elif filled[-1:].isalnum():
                filled += " "
            filled += tokenizer.tokens([token])[0] + after
        return filled
