"""From text files to one long stream of tokens, on disk, made once.

    files → documents → tokenizer → stream → cache/<fingerprint>/

A text file is one document; a line of a .jsonl file, its field `text`, is one too. In the stream every document but a
lone one begins with the tokenizer's end mark, as in GPT-2: the mark says where a document ends and the next begins.

A document is divided by position: its last part is for validation. Of many, some are held out whole, chosen by a hash
of their text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from regard.config import DataConfig, TokenizerConfig
from regard.data.files import format_of, lines, text_files
from regard.data.folders import building
from regard.data.holdout import key_of
from regard.data.prepare import Progress
from regard.data.store import Ids, Store, StoreWriter
from regard.data.subwords import Papers, Subwords
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError

PIECE = 1_000_000
"""Characters of a document that are encoded at once."""
_FORMAT = 2
_BORDER = re.compile(r"(?<=\S) (?=\S)")


@dataclass(frozen=True)
class Texts:
    """Documents of files, each as pieces whose concatenation is its text; read anew whenever they are asked for."""

    files: Sequence[str]

    def __iter__(self) -> Iterator[Iterator[str]]:
        for path in self.paths:
            if format_of(path) == "text":
                yield pieces(line + "\n" for line in _decoded(path))
            else:
                for text in records(path):
                    yield pieces([text])

    @cached_property
    def paths(self) -> list[Path]:
        return text_files(self.files)

    @property
    def stamps(self) -> list[tuple[str, int, int]]:
        stats = [(path.resolve(), os.stat(path)) for path in self.paths]
        return [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats]

    @property
    def lone(self) -> bool:
        """There is one document, and so no border."""
        return len(self.paths) == 1 and format_of(self.paths[0]) == "text"


def pieces(parts: Iterable[str], size: int = PIECE) -> Iterator[str]:
    """Text cut before single spaces, where no tokenizer has a token across: encoded piece by piece, nothing changes.

    Where a text has no such place (Chinese, say) it is cut after a line, or anywhere.
    """
    held = ""
    for part in parts:
        held += part
        while len(held) > 2 * size:
            found = _BORDER.search(held, size, 2 * size)
            cut = found.start() if found else held.rfind("\n", size, 2 * size) + 1 or 2 * size
            yield held[:cut]
            held = held[cut:]
    if held:
        yield held


def _decoded(path: Path) -> Iterator[str]:
    for number, line in enumerate(lines(path), 1):
        try:
            yield line.decode()
        except UnicodeDecodeError as problem:
            wrong = f"{path}: line {number} is not UTF-8 text ({problem.reason})"
            raise UserError(f"{wrong}; another encoding? iconv -f LATIN1 -t UTF-8") from None


def records(path: Path) -> Iterator[str]:
    """The texts of a .jsonl."""
    for number, line in enumerate(_decoded(path), 1):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        if not isinstance(text, str):
            raise UserError(f"{path}: line {number} must be a JSON object with a field 'text'")
        if text:
            yield text


@dataclass(frozen=True)
class Stream:
    """The tokens of all documents, one after the other, and how many bytes of text they are."""

    ids: Ids
    bytes: int

    def blocks(self, begins: Sequence[int] | NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """(blocks, length): the tokens from each beginning on."""
        return np.stack([self.ids[begin : begin + length] for begin in begins]).astype(np.int64)


@dataclass(frozen=True)
class Language:
    """A prepared folder, open."""

    folder: Path
    tokenizer: Tokenizer
    train: Stream
    valid: Stream
    tests: dict[str, Stream]
    lone: bool
    summary: str

    @classmethod
    def open(cls, folder: Path) -> Language:
        try:
            report = json.loads((folder / "report.json").read_text(encoding="utf8"))
        except (OSError, ValueError):
            raise UserError(f"{folder}: no folder of prepared text, or damaged; prepare it again") from None
        streams = {name: Stream(Store.open(folder / name).flat("text"), size) for name, size in report["bytes"].items()}
        train, valid = streams.pop("train"), streams.pop("valid")
        tokenizer = open_tokenizer(folder / "tokenizer.json")
        return cls(folder, tokenizer, train, valid, streams, report["lone"], report["summary"])


def prepare_text(
    data: DataConfig, tokenizer: TokenizerConfig, share: float, cache: Path, progress: Progress
) -> Language:
    """Reads, divides, tokenizes and stores texts, or opens the folder where that was done before.

    Without `data.valid`, `share` of the text is held out.
    """
    if data.columns:
        raise UserError(
            f"data.columns = {','.join(data.columns)}: a text has none (of .jsonl the field 'text' is read)"
        )
    texts = {"train": Texts(data.train)} | ({"valid": Texts(data.valid)} if data.valid else {})
    for name in data.test:
        texts[_unlike(Path(name), texts)] = Texts([name])
    given = open_tokenizer(tokenizer.file) if tokenizer.file else None
    options = {
        "format": _FORMAT,
        "texts": {name: one.stamps for name, one in texts.items()},
        "tokenizer": tokenizer.model_dump() if given is None else given.fingerprint,
        "split": [share, data.seed],
    }
    place = cache / hashlib.blake2b(json.dumps(options).encode(), digest_size=12).hexdigest()
    if not place.is_dir():
        with building(place) as folder:
            _build(folder, texts, tokenizer, given, share, data.seed, progress)
    return Language.open(place)


def _unlike(path: Path, taken: Container[str]) -> str:
    """A name for a test set that no other has."""
    names = [path.name, f"{path.parent.name}-{path.name}"]
    for name in names:
        if name not in taken and name not in ("train", "valid"):
            return name
    raise UserError(f"data.test = {path}: another set has this name already; rename the file")


def _build(
    folder: Path,
    texts: dict[str, Texts],
    config: TokenizerConfig,
    tokenizer: Tokenizer | None,
    share: float,
    seed: int,
    progress: Progress,
) -> None:
    source = texts["train"]
    parts: dict[str, Iterable[Iterator[str]]] = dict(texts)
    if "valid" not in texts:
        parts |= {name: _Part(source, name == "valid", share, seed) for name in ("train", "valid")}
    if tokenizer is None:
        progress.start("learning the vocabulary", None)
        tokenizer = learn(parts["train"], config)
        progress.finish()
    tokenizer.save(folder / "tokenizer.json")
    progress.start("encoding", None)
    sizes, counts = {}, {}
    for name, documents in parts.items():
        counts[name], sizes[name] = _store(folder / name, documents, tokenizer, source.lone)
        if not counts[name]:
            raise UserError(f"data.{name}: no text in it" + ("" if name in texts else " (give more text, or --valid)"))
    progress.finish()
    numbers = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    summary = f"{numbers} tokens; {len(tokenizer):,} in the vocabulary"
    report = {"bytes": sizes, "lone": source.lone, "summary": summary}
    (folder / "report.json").write_text(json.dumps(report, indent=1), encoding="utf8")


def learn(documents: Iterable[Iterator[str]], config: TokenizerConfig) -> Tokenizer:
    """A tokenizer of the kind that the config names, from the training text alone."""
    texts = chain.from_iterable(documents)
    if config.kind in get_args(Papers):
        kind: Any = config.kind
        return Subwords.learn(texts, kind=kind, vocabulary=config.vocabulary, lowercase=config.lowercase)
    own: Any = config.kind
    return Tokenizer.train(texts, kind=own, vocabulary=config.vocabulary, lowercase=config.lowercase)


@dataclass(frozen=True)
class _Part:
    """What is held out of texts, or all else."""

    texts: Texts
    held_out: bool
    share: float
    seed: int

    def __iter__(self) -> Iterator[Iterator[str]]:
        if len(self._documents) * self.share < 1:
            for document, (length, _) in zip(self.texts, self._documents, strict=True):
                border = int((1 - self.share) * length)
                yield _after(document, border) if self.held_out else _before(document, border)
            return
        least = min((key for length, key in self._documents if length), default=0)  # one at least is held out
        for document, (length, key) in zip(self.texts, self._documents, strict=True):
            if length and (key == least or key < self.share * 2**64) == self.held_out:
                yield document

    @cached_property
    def _documents(self) -> list[tuple[int, int]]:
        """The length of each, and the number that chance gave it."""
        return [_measured(document, self.seed) for document in self.texts]


def _measured(parts: Iterator[str], seed: int) -> tuple[int, int]:
    length, key = 0, 0
    for part in parts:
        length, key = length + len(part), key_of(f"{key} {part}", seed)
    return length, key


def _before(parts: Iterator[str], border: int) -> Iterator[str]:
    for part in parts:
        if part[:border]:
            yield part[:border]
        border = max(0, border - len(part))


def _after(parts: Iterator[str], border: int) -> Iterator[str]:
    for part in parts:
        if part[border:]:
            yield part[border:]
        border = max(0, border - len(part))


def _store(folder: Path, documents: Iterable[Iterator[str]], tokenizer: Tokenizer, lone: bool) -> tuple[int, int]:
    """Encodes documents into a store; how many tokens, and how many bytes of text."""
    mark, count, size = tokenizer.special.end, 0, 0
    with StoreWriter(folder, ("text",), vocabulary=len(tokenizer)) as writer:
        for document in documents:
            begun = lone
            while texts := list(islice(document, 8)):
                size += sum(len(text.encode(errors="replace")) for text in texts)
                rows = tokenizer.encode_batch(texts)
                if not begun and mark is not None:
                    rows[0] = [mark, *rows[0]]
                begun = True
                writer.add(rows)
                count += sum(map(len, rows))
    return count, size
