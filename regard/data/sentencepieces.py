"""SentencePiece's Unigram models (Kudo 2018), as T5 and the translators of OPUS-MT have them.

They become tokenizers of the `tokenizers` library: the pieces with their scores, the table of the normaliser, and `▁`
where a word begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from regard.data.subwords import Subwords
from regard.data.words import SPACE
from regard.errors import UserError

_UNKNOWN, _CONTROL, _UNUSED, _BYTE = 2, 3, 5, 6  # the kinds of pieces
_UNIGRAM = 1
TARGET = "target.json"
Proto = Any
"""What a file of SentencePiece's holds; the library's class for it has no types."""
_HIDDEN = "\ue000"
"""Before a piece that has a number and that no text is cut into: it belongs to the other language."""


def open_t5(path: Path, extra: int) -> tokenizers.Tokenizer:
    """T5's: its pieces, then `extra` sentinels, the last of them first."""
    model = _proto(path)
    pieces = [(piece.piece, piece.score) for piece in model.pieces]
    names = [piece.piece for piece in model.pieces if piece.type in (_UNKNOWN, _CONTROL)]
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(extra))]
    inner = _unigram(model, pieces + [(one, 0.0) for one in sentinels])
    inner.add_special_tokens([*names, *sentinels])
    end = inner.token_to_id("</s>")
    if end is None:
        raise UserError(f"{path}: has no </s>: it is no tokenizer of T5's")
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", end)]
    )
    return inner


def open_two_sided(folder: Path, names: dict[str, str]) -> TwoSided:
    """A tokenizer for each language, over the numbers of vocab.json."""
    try:
        numbers: dict[str, int] = json.loads((folder / "vocab.json").read_text(encoding="utf8"))
    except (OSError, ValueError) as problem:
        raise UserError(f"{folder / 'vocab.json'}: cannot be read ({problem}); source.spm needs it") from None
    source, target = (_numbered(_proto(folder / name), numbers) for name in ("source.spm", "target.spm"))
    return TwoSided(source, target, names)


class TwoSided(Subwords):
    """Two tokenizers that share their numbers: one cuts what is read, the other what is written."""

    def __init__(self, source: tokenizers.Tokenizer, target: tokenizers.Tokenizer, names: dict[str, str]) -> None:
        super().__init__(source, names)
        self.target = target
        for piece, index in target.get_vocab().items():
            if self._pieces[index].startswith(_HIDDEN):
                self._pieces[index] = piece

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self.target.to_str()}"

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        self.target.encode_special_tokens = True
        return [found.ids for found in self.target.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        kept = [self._pieces[index].removeprefix(_HIDDEN) for index in ids if index not in self.special.ids]
        return "".join(kept).replace(SPACE, " ").strip()

    def save(self, path: str | Path) -> None:
        super().save(path)
        Path(path).with_name(TARGET).write_text(self.target.to_str(), encoding="utf8")


def _proto(path: Path) -> Proto:
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2

    layout: Any = sentencepiece_model_pb2
    try:
        return layout.ModelProto.FromString(path.read_bytes())
    except (OSError, DecodeError) as problem:
        raise UserError(f"{path}: not a readable model of SentencePiece ({problem})") from None


def _numbered(model: Proto, numbers: Mapping[str, int]) -> tokenizers.Tokenizer:
    """The pieces of a model at their places in `numbers`, which has those of both languages.

    A letter that only the other language has is read, at the price of an unknown one (theirs reads it too, except
    beside another one: then both are unknown).
    """
    scores = {piece.piece: piece.score for piece in model.pieces if piece.type not in (_UNKNOWN, _CONTROL, _UNUSED)}
    special = [name for name in ("</s>", "<unk>", "<pad>", "<s>") if name in numbers]
    languages = [name for name in numbers if name.startswith(">>") and name.endswith("<<")]
    shown = {*scores, *special, *languages}
    foreign = min(scores.values()) - 10
    ordered = sorted(numbers, key=lambda piece: numbers[piece])
    if [numbers[piece] for piece in ordered] != list(range(len(ordered))):
        raise UserError("vocab.json: its numbers must be 0, 1, 2, ... without a gap")
    pieces = [
        (piece if piece in shown or len(piece) == 1 else _HIDDEN + piece, scores.get(piece, foreign))
        for piece in ordered
    ]
    inner = _unigram(model, pieces, numbers.get("<unk>"))
    inner.add_special_tokens(special)
    inner.add_tokens([AddedToken(name, normalized=False) for name in languages])
    return inner


def _unigram(model: Proto, pieces: list[tuple[str, float]], unknown: int | None = None) -> tokenizers.Tokenizer:
    if model.trainer_spec.model_type != _UNIGRAM:
        raise UserError("a SentencePiece model of another kind than Unigram: write a tokenizer.json with transformers")
    found = next((n for n, piece in enumerate(model.pieces) if piece.type == _UNKNOWN), 0)
    fallback = any(piece.type == _BYTE for piece in model.pieces)
    inner = tokenizers.Tokenizer(models.Unigram(pieces, found if unknown is None else unknown, fallback))
    table = model.normalizer_spec.precompiled_charsmap
    steps = [normalizers.Precompiled(table)] if table else []
    inner.normalizer = normalizers.Sequence(
        [*steps, normalizers.Strip(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]
    )
    scheme = "always" if model.normalizer_spec.add_dummy_prefix else "never"
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    inner.decoder = decoders.Metaspace(prepend_scheme=scheme)
    return inner
