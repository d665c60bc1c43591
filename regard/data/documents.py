"""Plain text as documents of sentences: one sentence a line with a blank line between documents, or ordinary prose.

text -> documents -> sentences -> token ids on disk (a store; a row without tokens ends a document) -> blocks
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.data.badlines import BadLines, Location
from regard.data.files import format_of, lines, text_files
from regard.data.language import records
from regard.data.store import Store, StoreWriter
from regard.data.subwords import tells_spaces
from regard.data.tokenizers import Tokenizer

Layout = Literal["auto", "lines", "prose"]
_END = re.compile(  # group 1: what lies between two sentences
    r"[.!?…][\"'”’)\]]*(\s+)(?=[\"'“‘(\[]*[A-Z0-9\u00C0-\u00DE\u0400-\u042F])|[。！？][”’」』）]*(?=[^”’」』）])"
)
_BATCH = 10_000


def sentences(files: Sequence[str], layout: Layout, bad: BadLines) -> Iterator[str]:
    """Every sentence; an empty one ends a document, as does the end of a file."""
    for path in text_files(files):
        prose = layout == "prose" or (layout == "auto" and _is_prose(path))
        for text in _lines(path, bad):
            if not text:
                yield ""
                continue
            yield from split_sentences(text) if prose else [text]
        yield ""


def split_sentences(text: str) -> list[str]:
    """Each with its full stop, and the quotation mark or bracket that closes it."""
    ends = [match.span(1) if match[1] else (match.end(),) * 2 for match in _END.finditer(text)]
    borders = [0, *(place for end in ends for place in end), len(text)]
    parts = [text[begin:end].strip() for begin, end in zip(borders[::2], borders[1::2], strict=True)]
    return [part for part in parts if part]


def _lines(path: Path, bad: BadLines) -> Iterator[str]:
    """The lines of a text, or of the texts of a .jsonl, each of which is a document."""
    if format_of(path) == "jsonl":
        for text in records(path):
            yield from (line.strip() for line in text.splitlines())
            yield ""
            bad.read += 1
        return
    for number, raw in enumerate(lines(path), 1):
        bad.read += bool(raw.strip())
        try:
            yield raw.decode().strip()
        except UnicodeDecodeError:
            bad.add("encoding", Location(str(path), number), raw[:200].decode(errors="backslashreplace"))


def _is_prose(path: Path) -> bool:
    """A line of prose has several sentences, or only part of one."""
    seen = [text for _, text in zip(range(1000), _lines(path, BadLines()), strict=False) if text]
    return sum(len(split_sentences(text)) for text in seen) > 1.3 * max(1, len(seen))


def store_sentences(texts: Iterator[str], tokenizer: Tokenizer, folder: Path, longest: int) -> None:
    """Token ids of sentences; what is longer than `longest` tokens is parted there.

    Sentences will stand one after the other: where a tokenizer tells whether a space is before a word, all but the
    first of a document have one.
    """
    with StoreWriter(folder, ("tokens",), vocabulary=len(tokenizer)) as writer:
        batch: list[str] = []
        before, apart = "", " " if tells_spaces(tokenizer) else ""
        for text in texts:
            batch.append(apart + text if before and text else text)
            before = text
            if len(batch) == _BATCH:
                _write(writer, tokenizer, batch, longest)
                batch = []
        _write(writer, tokenizer, batch, longest)


def _write(writer: StoreWriter, tokenizer: Tokenizer, batch: list[str], longest: int) -> None:
    rows: list[list[int]] = []
    for text, ids in zip(batch, tokenizer.encode_batch(batch), strict=True):
        if not text:
            rows.append([])
        rows += [ids[begin : begin + longest] for begin in range(0, len(ids), longest)]
    writer.add(rows)


@dataclass(frozen=True)
class Blocks:
    """Neighbouring sentences of one document, as many as fit: row n is the sentences `begins[n]` up to `ends[n]`."""

    store: Store
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def cut(cls, store: Store, room: int) -> Blocks:
        """Greedily, up to `room` tokens; never over the end of a document."""
        lengths = store.lengths[:, 0]
        begins, ends, sizes = [], [], []
        begin, size = 0, 0
        for row, length in enumerate([*lengths.tolist(), 0]):
            if (length == 0 or size + length > room) and size:
                begins.append(begin)
                ends.append(row)
                sizes.append(size)
                size = 0
            if size == 0:
                begin = row + (length == 0)
            size += length
        return cls(store, np.array(begins, np.int64), np.array(ends, np.int64), np.array(sizes, np.int64))

    def __len__(self) -> int:
        return len(self.begins)

    def sentences(self, number: int) -> list[NDArray[np.int64]]:
        """The sentences of a block, as token ids."""
        rows = self.store.rows(range(int(self.begins[number]), int(self.ends[number])))["tokens"]
        return [np.asarray(row, np.int64) for row in rows]
