"""The tokenizer of a published folder: its own file, and what `transformers` asks for beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import tokenizers

from regard.data.sentencepieces import TwoSided
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError


def write_tokenizer(
    out: Path,
    tokenizer: Tokenizer,
    inner: tokenizers.Tokenizer,
    segments: bool = False,
    more: Mapping[str, str] | None = None,
) -> None:
    """`inner` is the tokenizer with the marks around a text that theirs must put by itself. `segments`: the model reads
    them too. `more`: settings of theirs. Without a class that says so, theirs would be guessed from the model, and cut
    texts in another way."""
    if isinstance(tokenizer, TwoSided):
        raise UserError("a tokenizer for each language (source.spm, target.spm): cannot be written as one folder's")
    inner.save(str(out / "tokenizer.json"))
    inputs = ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"]
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": inputs,
        **tokenizer.names,
        **(more or {}),
    }
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    (out / "tokenizer_config.json").write_text(text + "\n", encoding="utf8")
