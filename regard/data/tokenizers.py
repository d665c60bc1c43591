"""Text to token ids and back, losslessly, over Hugging Face `tokenizers`.

Every kind of tokenizer shares one word splitter (`regard.data.words`), one set of special ids and one way back to
text: join the pieces and turn `▁` into spaces. A character that the training text did not have becomes its UTF-8
bytes, so nothing a person types is lost (only `word`, which is closed by nature, answers `<unk>`).
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, get_args

import tokenizers
from tokenizers import decoders, models, normalizers, trainers

from regard.data.special import THEIR_ROLES, Special
from regard.data.tables import not_utf8
from regard.data.words import SPACE, bare, splitter
from regard.errors import UserError, nearest

Kind = Literal["bpe", "wordpiece", "unigram", "char", "word"]
PAD, UNK, BOS, EOS = range(4)
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
BYTES = tuple(f"<0x{value:02X}>" for value in range(256))
_MODEL_KINDS = {"BPE": "bpe", "WordPiece": "wordpiece", "Unigram": "unigram", "WordLevel": "word"}
UNSPACED = re.compile(  # Thai, Lao, Tibetan, Myanmar, Khmer, kana, Han: scripts that put no space between words
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


class Tokenizer:
    """A trained tokenizer; ids 0 to 3 are `<pad> <unk> <s> </s>`, and the text can never produce them."""

    def __init__(self, inner: tokenizers.Tokenizer) -> None:
        inner.encode_special_tokens = True  # "</s>" typed by a person is four ordinary characters
        self.inner = inner
        self._vocabulary: dict[str, int] = inner.get_vocab()
        self._pieces = [""] * len(self._vocabulary)
        for piece, index in self._vocabulary.items():
            self._pieces[index] = piece
        values = {piece: bytes([value]) for value, piece in enumerate(BYTES)}
        self._bytes = [values.get(piece) or piece.encode() for piece in self._pieces]
        self._bytes[UNK] = (SPACE + SPECIALS[UNK]).encode()
        self._bytes[PAD] = self._bytes[BOS] = self._bytes[EOS] = b""

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        kind: Kind = "bpe",
        vocabulary: int = 8000,
        lowercase: bool = False,
    ) -> "Tokenizer":
        """Learns from `texts`, streaming; the same texts give the same tokenizer, byte for byte.

        `vocabulary` is an upper bound that counts the special tokens and the 256 bytes. Where the characters alone
        would fill it (Chinese, say), the rarest are left to the bytes.
        """
        if kind not in get_args(Kind):
            raise UserError(f"tokenizer kind = {kind!r}: unknown{nearest(kind, get_args(Kind))}")
        least = 5 if kind == "word" else 300
        if vocabulary < least:
            raise UserError(
                f"tokenizer.vocabulary = {vocabulary}: a {kind} tokenizer needs at least {least}"
                + ("" if kind == "word" else " (4 special tokens, 256 bytes and some characters)")
                + f" (try {'10000' if kind == 'word' else '8000'})"
            )
        with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
            again = _Spool(texts, spool) if isinstance(texts, Iterator) else texts
            return cls(_train(again, kind, vocabulary, lowercase))

    @property
    def kind(self) -> str:
        model = self.inner.model
        if isinstance(model, models.BPE) and not json.loads(self.inner.to_str())["model"]["merges"]:
            return "char"
        return _MODEL_KINDS[type(model).__name__]

    @property
    def special(self) -> Special:
        return Special(pad=PAD, unknown=UNK, begin=BOS, end=EOS, separator=EOS)

    @property
    def names(self) -> dict[str, str]:
        """The special tokens, by the names that published folders have for their roles."""
        found = {theirs: getattr(self.special, role) for role, theirs in THEIR_ROLES.items()}
        return {theirs: self._pieces[index] for theirs, index in found.items() if index is not None}

    @property
    def before(self) -> tuple[int, ...]:
        """The special tokens that it puts before a text by itself: <s> in BART, none in ours."""
        some = self.inner.encode("a")
        marked = zip(some.ids, some.special_tokens_mask, strict=True)
        return tuple(token for token, _ in takewhile(lambda one: one[1], marked))

    def __len__(self) -> int:
        return len(self._pieces)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without BOS and EOS: where they go is the task's business."""
        rows: list[list[int]] = [encoding.ids for encoding in encoded(self.inner, texts)]
        if isinstance(self.inner.model, models.WordPiece):
            rows = [self._spell(text) if UNK in row else row for text, row in zip(texts, rows, strict=True)]
        return rows

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode_batch`, for texts of the language that is written, where that one is encoded in its own way."""
        return self.encode_batch(texts)

    def decode(self, ids: Iterable[int]) -> str:
        """The text again; PAD, BOS and EOS are dropped, bytes that are no UTF-8 become U+FFFD."""
        return self.spelled(ids).replace(SPACE, " ").removeprefix(" ")

    def spelled(self, ids: Iterable[int]) -> str:
        """The text as it is cut into pieces, with `▁` for spaces."""
        return b"".join([self._bytes[index] for index in ids]).decode(errors="replace")

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """A label for each token, for pictures: `["L'", "homme", "dort", ".", "</s>"]`."""
        pieces = (self._pieces[index] for index in ids)
        return [piece.removeprefix(SPACE) or SPACE for piece in pieces]

    def word_groups(self, ids: Sequence[int]) -> list[list[int]]:
        """The positions of the tokens of each word, in order; every position is in exactly one group.

        Without special tokens there are as many groups as `split_words` finds words in the decoded text, except in
        scripts without spaces, where a "word" would be the whole sentence: there each token stands alone.
        """
        groups: list[list[int]] = []
        run: list[int] = []
        for position, index in enumerate(ids):
            if index < len(SPECIALS):
                groups += self._run_groups(ids, run)
                groups.append([position])
                run = []
            else:
                run.append(position)
        return groups + self._run_groups(ids, run)

    @property
    def fingerprint(self) -> str:
        """All that its ids depend on."""
        return f"{self.inner.to_str()} {self.special}"

    def save(self, path: str | Path) -> None:
        Path(path).write_text(self.inner.to_str(pretty=True), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Opens what `save` wrote."""
        try:
            inner = tokenizers.Tokenizer.from_str(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise UserError(f"{path}: there is no such tokenizer file") from None
        except Exception as problem:  # the library raises bare Exception for what it cannot parse
            raise UserError(f"{path}: not a readable tokenizer.json ({problem}); make it again by training") from None
        if tuple(inner.id_to_token(index) for index in range(4)) != SPECIALS:
            raise UserError(
                f"{path}: this tokenizer was not made by Regard: its first four tokens must be {' '.join(SPECIALS)}"
            )
        return cls(inner)

    def _spell(self, text: str) -> list[int]:
        """WordPiece gives up a whole word over one unknown character; here only that character becomes bytes."""
        normal = self.inner.normalizer.normalize_str(text)
        ids: list[int] = []
        for piece, _ in splitter.pre_tokenize_str(normal):
            found = [token.id for token in self.inner.model.tokenize(piece)]
            if UNK not in found:
                ids += found
                continue
            for letter in piece:
                known = self._vocabulary.get(letter)
                ids += [self._vocabulary[BYTES[value]] for value in letter.encode()] if known is None else [known]
        return ids

    def _run_groups(self, ids: Sequence[int], run: list[int]) -> list[list[int]]:
        """Groups the tokens at positions `run`, none of them special, by the word that their first byte is in."""
        if not run:
            return []
        pieces = [self._bytes[ids[position]] for position in run]
        letters = b"".join(pieces).decode(errors="surrogateescape")
        letter_of = [n for n, letter in enumerate(letters) for _ in letter.encode(errors="surrogateescape")]
        text = re.sub("[\ud800-\udfff]", "\ufffd", letters)
        word_of, alone = _words_of(text)
        groups: list[list[int]] = []
        begin, last = 0, 0  # the token's first byte, and the letter that the token before it ended in
        for position, piece in zip(run, pieces, strict=True):
            letter = letter_of[begin]
            begin += len(piece)
            parted = word_of[letter] in alone and letter != last and text[last] != SPACE
            if not groups or word_of[letter] != word_of[last] or parted:
                groups.append([])
            groups[-1].append(position)
            last = letter_of[begin - 1]
        return groups


def encoded(inner: tokenizers.Tokenizer, texts: Sequence[str]) -> list[Any]:
    """The encodings of texts without special tokens."""
    try:
        return list(inner.encode_batch_fast(list(texts), add_special_tokens=False))
    except TypeError:  # half of a character, or what was no UTF-8 on the command line
        raise not_utf8(texts) from None


def _words_of(text: str) -> tuple[list[int], set[int]]:
    """For each letter the number of its word, and the words in scripts without spaces. A mere space joins the next."""
    pieces = splitter.pre_tokenize_str(text)
    final = max((n for n, (piece, _) in enumerate(pieces) if bare(piece)), default=0)
    word_of: list[int] = []
    alone: set[int] = set()
    word = 0
    for n, (piece, (_, end)) in enumerate(pieces):
        word_of += [word] * (end - len(word_of))
        if UNSPACED.search(piece):
            alone.add(word)
        if bare(piece) and n < final:
            word += 1
    return word_of, alone


class _Spool:
    """Keeps a one-shot iterator in a temporary file, so that it can be read twice in constant memory."""

    def __init__(self, texts: Iterator[str], file: Any) -> None:
        self.file = file
        for text in texts:
            file.write(json.dumps(text) + "\n")

    def __iter__(self) -> Iterator[str]:
        self.file.seek(0)
        return map(json.loads, self.file)


def _train(texts: Iterable[str], kind: Kind, vocabulary: int, lowercase: bool) -> tokenizers.Tokenizer:
    normal: Any = normalizers.NFC()
    if lowercase:
        normal = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    room = vocabulary - len(SPECIALS) - len(BYTES)
    limit = room if kind == "char" else max(min(256, room - 1), room // 2)  # -1: a full Unigram grows past its bound
    trained = _fit(texts, kind, vocabulary, normal)
    alphabet = {piece for piece in trained.get_vocab() if len(piece) == 1}
    if kind != "word" and len(alphabet) > limit:
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(normal.normalize_str(text))
        rare = sorted(alphabet - {SPACE}, key=lambda letter: (-counts[letter], letter))[limit - 1 :]
        blank = str.maketrans(dict.fromkeys(rare, " "))
        trained = _fit((normal.normalize_str(text).translate(blank) for text in texts), kind, vocabulary, normal)
    if trained.get_vocab_size() <= len(SPECIALS) + (kind != "word") * len(BYTES):
        raise UserError("the tokenizer was given no text to learn from: is the training data empty?")
    return _finish(trained, kind)


def _fit(texts: Iterable[str], kind: Kind, vocabulary: int, normal: Any) -> tokenizers.Tokenizer:
    model: Any
    trainer: Any
    reserved = [*SPECIALS] if kind == "word" else [*SPECIALS, *BYTES]
    if kind == "word":
        model = models.WordLevel(unk_token=SPECIALS[UNK])
        trainer = trainers.WordLevelTrainer(vocab_size=vocabulary, special_tokens=reserved, show_progress=False)
    elif kind == "unigram":
        model = models.Unigram()
        trainer = trainers.UnigramTrainer(
            vocab_size=vocabulary, special_tokens=reserved, unk_token=SPECIALS[UNK], show_progress=False
        )
    else:  # characters are byte pair encoding without a merge; WordPiece takes its vocabulary and reads it greedily
        model = models.BPE(unk_token=SPECIALS[UNK], byte_fallback=True)
        trainer = trainers.BpeTrainer(
            vocab_size=1 if kind == "char" else vocabulary,
            min_frequency=2,
            special_tokens=reserved,
            show_progress=False,
        )
    inner = tokenizers.Tokenizer(model)
    inner.normalizer = normal
    inner.pre_tokenizer = splitter
    inner.train_from_iterator(iter(texts), trainer)
    return inner


def _finish(trained: tokenizers.Tokenizer, kind: Kind) -> tokenizers.Tokenizer:
    """The trained tokenizer as it is saved: bytes are plain tokens, and nothing depends on the run's hash order."""
    trained.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    state = json.loads(trained.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in SPECIALS]
    model = state["model"]
    if kind == "unigram":
        # The library sums in hash order, so scores differ in their last bits from run to run.
        reserved = len(SPECIALS) + len(BYTES)
        scores = [(piece, round(score, 6)) for piece, score in model["vocab"]]
        model["vocab"] = scores[:reserved] + sorted(scores[reserved:], key=lambda entry: (-entry[1], entry[0]))
        model["byte_fallback"] = True
    elif kind == "wordpiece":
        # No "##": the mark ▁ at the start of words already tells a continuation from a beginning.
        state["model"] = {
            "type": "WordPiece",
            "unk_token": SPECIALS[UNK],
            "continuing_subword_prefix": "",
            "max_input_chars_per_word": 100,
            "vocab": model["vocab"],
        }
    return tokenizers.Tokenizer.from_str(json.dumps(state))
