"""Corpora that code writes: nothing to download, every pair the same for everyone, gold alignments for free."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from regard.data.corpora import dates as _dates
from regard.data.corpora import english_french as _english_french
from regard.data.corpora import symbols as _symbols
from regard.data.pairs import Pair
from regard.errors import UserError, nearest


@dataclass(frozen=True)
class Corpus:
    name: str
    description: str
    """One line, for the command line."""
    splits: Mapping[str, Callable[[], Iterator[Pair]]]
    settings: Mapping[str, object]
    """Dotted config keys recommended for this corpus."""


_QUICK = {
    "model.dropout": 0.0,
    "train.steps": 900,
    "train.batch_tokens": 1536,
    "train.learning_rate": 4e-3,
    "train.schedule": "cosine",
    "train.warmup": 200,
    "train.validate_every": 225,
    "train.validate_sentences": 200,
}
"""Made-up sentences follow rules without exceptions, and a few minutes suffice."""

CORPORA: dict[str, Corpus] = {
    made.name: made
    for made in (
        Corpus(
            "english-french",
            "Everyday English to French, with agreement and word order (50,000).",
            {split: partial(_english_french.english_french, split) for split in _english_french.SIZES},
            {**_QUICK, "tokenizer.vocabulary": 2000},
        ),
        Corpus(
            "dates",
            "Any written date to ISO, such as 2024-03-05 (20,000).",
            {split: partial(_dates.dates, split) for split in _dates.SIZES},
            {**_QUICK, "tokenizer.kind": "char"},
        ),
        Corpus(
            "reverse",
            "Three to twelve letters, backwards (10,000).",
            {split: partial(_symbols.symbols, split, reverse=True) for split in _symbols.SIZES},
            {**_QUICK, "tokenizer.kind": "word"},
        ),
        Corpus(
            "copy",
            "Three to twelve letters, unchanged (10,000).",
            {split: partial(_symbols.symbols, split, reverse=False) for split in _symbols.SIZES},
            {**_QUICK, "tokenizer.kind": "word"},
        ),
    )
}


def corpus(name: str) -> Corpus:
    """The built-in corpus of that name."""
    if name not in CORPORA:
        raise UserError(f"no built-in corpus {name!r}{nearest(name, CORPORA)}")
    return CORPORA[name]
