"""Tokenizers as the papers and the published models have them: WordPiece with `##`, byte-level BPE, Unigram.

Our own `Tokenizer` is made for translation: it brings back any text to the byte. These are made to be compatible.
How special tokens are put around one text or two is the tokenizer's own business (its post-processor), as is which
segment each token belongs to:

    BERT     [CLS] a [SEP] b [SEP]        RoBERTa   <s> a </s> </s> b </s>        XLNet   a <sep> b <sep> <cls>
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import (
    AddedToken,
    Encoding,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)  # fmt: skip

from regard.data.special import Special
from regard.data.tables import not_utf8
from regard.data.tokenizers import Tokenizer, encoded
from regard.errors import UserError, nearest

Papers = Literal["wordpiece", "byte-bpe", "unigram"]
_ROLES: dict[str, tuple[str, ...]] = {
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
    "begin": ("<s>", "<|begin_of_text|>", "<|endoftext|>"),
    "end": ("</s>", "<|end_of_text|>", "<|endoftext|>"),
    "first": ("[CLS]", "<cls>", "<s>"),
    "separator": ("[SEP]", "<sep>", "</s>"),
    "mask": ("[MASK]", "<mask>"),
}
ROLES = "special_tokens_map.json"
Ids = NDArray[np.int64]
_WORD_STARTS = ("Ġ", "▁")


class Subwords(Tokenizer):
    """A tokenizer of the `tokenizers` library, whoever made it."""

    def __init__(self, inner: tokenizers.Tokenizer, names: dict[str, str] | None = None) -> None:
        inner.no_padding()
        inner.no_truncation()
        self.inner = inner
        self._vocabulary = inner.get_vocab()
        self._pieces = [""] * (max(self._vocabulary.values(), default=-1) + 1)
        for piece, index in self._vocabulary.items():
            self._pieces[index] = piece
        known = self._vocabulary
        found = {role: next((known[name] for name in usual if name in known), None) for role, usual in _ROLES.items()}
        found |= {role: known[name] for role, name in (names or {}).items() if name in known}
        self._special = Special(**found)

    @classmethod
    def learn(cls, texts: Iterable[str], *, kind: str, vocabulary: int, lowercase: bool = False) -> Subwords:
        """A new one from texts, of one of the kinds that the papers use. The same texts give the same one, except that
        Unigram's scores of the rarest characters follow the order of the library's hash tables."""
        return cls(_learn(texts, kind, vocabulary, lowercase))

    @property
    def kind(self) -> str:
        return type(self.inner.model).__name__.lower()

    @property
    def special(self) -> Special:
        return self._special

    def encode_batch(self, texts: Sequence[str], special: bool = False) -> list[list[int]]:
        """As every tokenizer's; "[SEP]" typed by a person is ordinary text, unless it is asked to be `special`."""
        self.inner.encode_special_tokens = not special
        return [found.ids for found in encoded(self.inner, texts)]

    def inputs(
        self,
        first: Sequence[str] | Sequence[Sequence[str]],
        second: Sequence[str] | None = None,
        *,
        most: int,
        overlap: int | None = None,
        words: bool = False,
        masks: bool = False,
    ) -> list[Encoding]:
        """Texts, or pairs of them, with the special tokens around: ids, segments, and where each token came from.

        What is longer than `most` tokens is cut: the longer text of a pair first; with `overlap` only the second, into
        windows that share so many tokens (`overflowing`). `words`: a text is a list of words. `masks`: the mask token
        may be written in the text.
        """
        self.inner.encode_special_tokens = not masks
        strategy = "longest_first" if overlap is None else "only_second"
        self.inner.enable_truncation(most, stride=overlap or 0, strategy=strategy)
        try:
            given: list[Any] = list(first) if second is None else list(zip(first, second, strict=True))
            return list(self.inner.encode_batch(given, is_pretokenized=words))
        except TypeError:
            flat = [one for text in [*first, *(second or ())] for one in ([text] if isinstance(text, str) else text)]
            raise not_utf8(flat) from None
        except Exception as problem:  # the library raises bare Exception: the first text alone is too long, ...
            raise UserError(f"max_length = {most}: the input cannot be cut to it ({problem}); raise it") from None
        finally:
            self.inner.no_truncation()

    def surround(self, first: Ids, second: Ids | None = None) -> tuple[Ids, Ids]:
        """As `inputs`, for token ids: one text or two with the special tokens around, and their segments."""
        ids: list[Ids] = []
        segments: list[Ids] = []
        for side, index, segment in self._around[second is not None]:
            part = np.array([index]) if side is None else first if side == 0 or second is None else second
            ids.append(part)
            segments.append(np.full(len(part), segment))
        return np.concatenate(ids), np.concatenate(segments)

    def around(self, *, pairs: bool) -> int:
        """How many special tokens there are around a text, or around two and between them."""
        return sum(side is None for side, _, _ in self._around[pairs])

    @cached_property
    def _around(self) -> dict[bool, list[tuple[int | None, int, int]]]:
        """How one text and how two are put together: for each part which text, or which special token; and segment."""
        some = next(piece for piece, index in self._vocabulary.items() if index not in self.special.ids)
        found = {}
        for two in (False, True):
            (row,) = self.inner.encode_batch([([some], [some])] if two else [[some]], is_pretokenized=True)
            parts = list(zip(row.sequence_ids, row.ids, row.type_ids, strict=True))
            # A text is one part, however many tokens it has; each special token is a part of its own.
            begins = [n for n, part in enumerate(parts) if part[0] is None or n == 0 or parts[n - 1][0] != part[0]]
            found[two] = [parts[begin] for begin in begins]
        return found

    def of_one_segment(self) -> Subwords:
        """One that tells the two texts of a pair apart by the marks between them only."""
        state = json.loads(self.inner.to_str())
        for form in ("single", "pair"):
            for part in (state["post_processor"] or {}).get(form, ()):
                for values in part.values():
                    values["type_id"] = 0
        names = {role: self._pieces[index] for role, index in vars(self.special).items() if index is not None}
        return Subwords(tokenizers.Tokenizer.from_str(json.dumps(state)), names)

    @property
    def mask_text(self) -> str:
        """How a mask is written in a text."""
        return "" if self.special.mask is None else self._pieces[self.special.mask]

    def save(self, path: str | Path) -> None:
        """With a file beside it that says which token plays which role: tokenizer.json itself does not."""
        super().save(path)
        if Path(path).name == "tokenizer.json":
            Path(path).with_name(ROLES).write_text(
                json.dumps(self.names, indent=1, ensure_ascii=False), encoding="utf8"
            )

    def decode(self, ids: Iterable[int]) -> str:
        return str(self.inner.decode(list(ids), skip_special_tokens=True))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return [self._labels[index] for index in ids]

    def word_groups(self, ids: Sequence[int]) -> list[list[int]]:
        """The positions of the tokens of each word, by the marks of continuation or of beginning."""
        groups: list[list[int]] = []
        for position, index in enumerate(ids):
            if groups and self.continues(index) and ids[position - 1] not in self.special.ids:
                groups[-1].append(position)
            else:
                groups.append([position])
        return groups

    def continues(self, index: int) -> bool:
        """Whether a token goes on with the word before it."""
        piece = self._pieces[index]
        if index in self.special.ids:
            return False
        return piece.startswith("##") if self._marks_continuation else not piece.startswith(_WORD_STARTS)

    @cached_property
    def _marks_continuation(self) -> bool:
        return isinstance(self.inner.model, models.WordPiece)

    @cached_property
    def _labels(self) -> list[str]:
        """How each piece is shown: without its marks, and as text where it is bytes."""
        decoder = self.inner.decoder
        shown = []
        for index, piece in enumerate(self._pieces):
            text = piece if index in self.special.ids or decoder is None else decoder.decode([piece])
            shown.append(text.removeprefix("##").strip() or piece)
        return shown


def tells_spaces(tokenizer: Tokenizer) -> bool:
    """Whether a word after a space is another token than at the beginning of a text."""
    before = tokenizer.inner.pre_tokenizer
    return isinstance(before, pre_tokenizers.ByteLevel) and not before.add_prefix_space


def _learn(texts: Iterable[str], kind: str, vocabulary: int, lowercase: bool) -> tokenizers.Tokenizer:
    trainer: Any
    if kind == "wordpiece":
        inner = wordpiece(models.WordPiece(unk_token="[UNK]"), lowercase)
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        texts = list(texts)
        first = [*special, *_letters(texts, inner.normalizer, max(1, vocabulary // 4))]
        trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=first, show_progress=False)
    elif kind == "byte-bpe":
        inner = byte_level(models.BPE(), lowercase=lowercase)
        special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
    elif kind == "unigram":
        inner = _unigram(lowercase)
        special = ["<pad>", "<unk>", "<s>", "</s>", "<cls>", "<sep>", "<mask>"]
        trainer = trainers.UnigramTrainer(
            vocab_size=vocabulary, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    else:
        raise UserError(f"tokenizer.kind = {kind!r}: not for this task{nearest(kind, get_args(Papers))}")
    try:
        inner.train_from_iterator(iter(texts), trainer)
    except Exception as problem:  # the library raises bare Exception, of Unigram: fewer entries than characters
        raise UserError(f"tokenizer.vocabulary = {vocabulary}: {problem}; raise it") from None
    inner = _same_every_time(inner, special)
    if inner.get_vocab_size() <= len(special):
        raise UserError("the tokenizer was given no text to learn from: is the training data empty?")
    _surround(inner)
    return inner


def _letters(texts: Iterable[str], normal: Any, most: int) -> list[str]:
    """The commonest characters, each at the beginning of a word and inside one.

    Given to the trainer before all else they have numbers that do not depend on the order of its hash tables, and so
    it decides between equally common pairs in the same way every time.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normal.normalize_str(text))
    common = sorted((letter for letter in counts if not letter.isspace()), key=lambda one: (-counts[one], one))[:most]
    return [mark + letter for mark in ("", "##") for letter in sorted(common)]


def _same_every_time(inner: tokenizers.Tokenizer, special: list[str]) -> tokenizers.Tokenizer:
    """Letters are plain tokens, not special ones; and the library's sums in hash order differ in their last bits."""
    state = json.loads(inner.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in special]
    if state["model"]["type"] == "Unigram":
        scores = [(piece, round(score, 6)) for piece, score in state["model"]["vocab"]]
        learned = sorted(scores[len(special) :], key=lambda entry: (-entry[1], entry[0]))
        state["model"]["vocab"] = scores[: len(special)] + learned
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def wordpiece(
    model: models.WordPiece, lowercase: bool, accents: bool | None = None, chinese: bool = True
) -> tokenizers.Tokenizer:
    """Devlin 2019, as in the published code: cleaned text, words and single punctuation marks, `##` inside words.

    `accents`: whether they are kept; by default where letters keep their case. `chinese`: each sign is a word.
    """
    inner = tokenizers.Tokenizer(model)
    strip = None if accents is None else not accents
    inner.normalizer = normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip, handle_chinese_chars=chinese
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    inner.add_special_tokens([name for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if _has(inner, name)])
    _surround(inner)
    return inner


def byte_level(model: models.BPE, lowercase: bool = False, first_space: bool = False) -> tokenizers.Tokenizer:
    """Radford 2019: no character is unknown, since all are bytes. `first_space`: a text begins as if after a space."""
    inner = tokenizers.Tokenizer(model)
    if lowercase:
        inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=first_space)
    inner.decoder = decoders.ByteLevel()
    names = ("<s>", "<pad>", "</s>", "<unk>", "<|endoftext|>")
    inner.add_special_tokens([name for name in names if _has(inner, name)])
    if _has(inner, "<mask>"):
        inner.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    _surround(inner)
    return inner


def _unigram(lowercase: bool) -> tokenizers.Tokenizer:
    """Kudo 2018, SentencePiece's marks: `▁` begins a word."""
    inner = tokenizers.Tokenizer(models.Unigram())
    steps: list[Any] = [normalizers.NFKC(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
    inner.normalizer = normalizers.Sequence([*steps, *([normalizers.Lowercase()] if lowercase else [])])
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    return inner


def _surround(inner: tokenizers.Tokenizer) -> None:
    """The special tokens around one text and around two, with their segments."""
    for first, separator in (("[CLS]", "[SEP]"), ("<cls>", "<sep>"), ("<s>", "</s>")):
        if not (_has(inner, first) and _has(inner, separator)):
            continue
        marks = [(name, inner.token_to_id(name)) for name in (first, separator)]
        one, two = f"{first} $A {separator}", f"{first} $A {separator} $B:1 {separator}:1"
        if first == "<cls>":
            one, two = f"$A {separator} {first}:2", f"$A {separator} $B:1 {separator}:1 {first}:2"
        elif first == "<s>":
            two = f"{first} $A {separator} {separator} $B {separator}"
        inner.post_processor = processors.TemplateProcessing(single=one, pair=two, special_tokens=marks)
        return


def _has(inner: tokenizers.Tokenizer, name: str) -> bool:
    return inner.token_to_id(name) is not None
