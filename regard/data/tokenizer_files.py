"""Opening a tokenizer, whoever made it: ours, or one of a published folder in any of the forms that these have.

tokenizer.json                      the `tokenizers` library's own; all that is newer has it
vocab.txt                           BERT's WordPiece
vocab.json, merges.txt              byte-level BPE of GPT-2, RoBERTa and BART
spiece.model                        T5's SentencePiece
source.spm, target.spm, vocab.json  OPUS-MT's, one for each language
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, models

from regard.data.sentencepieces import TARGET, TwoSided, open_t5, open_two_sided
from regard.data.special import THEIR_ROLES
from regard.data.subwords import ROLES, Subwords, byte_level, wordpiece
from regard.data.tokenizers import SPECIALS, Tokenizer
from regard.errors import UserError

FILES = ("tokenizer.json", ROLES, TARGET)
"""What `Tokenizer.save` may write."""
_WORDPIECE = ("Bert", "DistilBert", "Electra", "PreTrained")
_BYTE_LEVEL = ("GPT2", "Roberta", "Bart", "PreTrained")


def open_tokenizer(path: str | Path) -> Tokenizer:
    """From a tokenizer.json, or from a folder that has one, or an older form of it."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    file = path / "tokenizer.json" if path.is_dir() else path
    settings = _settings(folder) if file.name == "tokenizer.json" else {}
    names = _names(settings)
    if not file.is_file():
        if (folder / "source.spm").is_file() and (folder / "target.spm").is_file():
            return open_two_sided(folder, names)
        inner = _older(folder, settings, path)
        _add(inner, folder, settings)
        return Subwords(inner, names)
    inner = _read(file)
    if (folder / TARGET).is_file():
        return TwoSided(inner, _read(folder / TARGET), names)
    begins = tuple(inner.id_to_token(index) for index in range(4))
    if begins == SPECIALS and inner.post_processor is None and not settings:
        return Tokenizer(inner)
    return Subwords(inner, names)


def _older(folder: Path, settings: dict[str, Any], path: Path) -> tokenizers.Tokenizer:
    """From the files of a vocabulary, as they were before tokenizer.json; `path` is what was asked for."""
    kind = str(settings.get("tokenizer_class") or "")
    if (folder / "vocab.txt").is_file():
        _check_kind(folder, kind, _WORDPIECE, "vocab.txt")
        model = models.WordPiece.from_file(str(folder / "vocab.txt"), unk_token="[UNK]")
        lowercase, strip = bool(settings.get("do_lower_case", True)), settings.get("strip_accents")
        chinese = bool(settings.get("tokenize_chinese_chars", True))
        return wordpiece(model, lowercase, None if strip is None else not strip, chinese)
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        _check_kind(folder, kind, _BYTE_LEVEL, "merges.txt")
        pairs = models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
        inner = byte_level(pairs, first_space=bool(settings.get("add_prefix_space", False)))
        if any(piece.endswith("</w>") for piece in inner.get_vocab()):
            raise _other(folder, "the vocabulary marks the ends of words, </w>")
        return inner
    if (folder / "spiece.model").is_file():
        _check_kind(folder, kind, ("T5", "MT5", "PreTrained"), "spiece.model")
        return open_t5(folder / "spiece.model", _extra(settings))
    if not path.exists():
        raise UserError(f"{path}: there is no such file or folder")
    raise UserError(
        f"{path}: no tokenizer there (tokenizer.json; vocab.txt; vocab.json with merges.txt; spiece.model; or "
        "source.spm, target.spm and vocab.json)"
    )


def _add(inner: tokenizers.Tokenizer, folder: Path, settings: dict[str, Any]) -> None:
    """The tokens that were added to a vocabulary after it was made, each with the number it has there."""
    added = {int(index): one for index, one in (settings.get("added_tokens_decoder") or {}).items()}
    if (file := folder / "added_tokens.json").is_file():
        added = {index: {"content": name} for name, index in _json(file).items()} | added
    for index, one in sorted(added.items()):
        name = str(one["content"])
        if inner.token_to_id(name) is not None:
            continue
        flags = {flag: bool(one.get(flag, False)) for flag in ("lstrip", "rstrip", "single_word", "special")}
        inner.add_tokens([AddedToken(name, normalized=bool(one.get("normalized", not flags["special"])), **flags)])
        if inner.token_to_id(name) != index:
            raise _other(folder, f"the added token {name!r} with the number {index}")


def _read(file: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(file.read_text(encoding="utf8"))
    except Exception as problem:  # the library raises bare Exception for what it cannot parse
        raise UserError(f"{file}: not a readable {file.name} ({problem})") from None


def _check_kind(folder: Path, kind: str, known: tuple[str, ...], file: str) -> None:
    if kind and not kind.startswith(known):
        raise _other(folder, f"{file} of a {kind}")


def _other(folder: Path, what: str) -> UserError:
    return UserError(
        f"{folder}: {what} cannot be read here. Write a tokenizer.json first, where transformers is installed: "
        f"transformers.AutoTokenizer.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
    )


def _settings(folder: Path) -> dict[str, Any]:
    """What a folder says about its tokenizer beside the tokenizer itself."""
    found: dict[str, Any] = {}
    for name in (ROLES, "tokenizer_config.json"):
        if (folder / name).is_file():
            found |= _json(folder / name)
    return found


def _json(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf8")))
    except (ValueError, TypeError) as problem:
        raise UserError(f"{file}: not a JSON object ({problem}); copy it again") from None


def _names(settings: dict[str, Any]) -> dict[str, str]:
    names = {}
    for role, theirs in THEIR_ROLES.items():
        value = settings.get(theirs)
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            names[role] = value
    return names


def _extra(settings: dict[str, Any]) -> int:
    """T5's sentinels, which its SentencePiece does not know."""
    listed = [one for one in settings.get("additional_special_tokens") or () if "<extra_id_" in str(one)]
    return int(settings.get("extra_ids", len(listed)))
