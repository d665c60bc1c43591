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
from regard.data.files import lines, text_files
from regard.data.store import Store, StoreWriter
from regard.data.tokenizers import Tokenizer

Layout = Literal["auto", "lines", "prose"]
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9\u00C0-\u00DE\u0400-\u042F])|(?<=[。！？])")
_BATCH = 10_000


def sentences(files: Sequence[str], layout: Layout, bad: BadLines) -> Iterator[str]:
    """Every sentence; an empty one ends a document, as does the end of a file."""
    for path in text_files(files):
        prose = layout == "prose" or (layout == "auto" and _is_prose(path))
        for number, raw in enumerate(lines(path), 1):
            try:
                text = raw.decode().strip()
            except UnicodeDecodeError:
                bad.read += 1
                bad.add("encoding", Location(str(path), number), raw[:200].decode(errors="backslashreplace"))
                continue
            if not text:
                yield ""
                continue
            bad.read += 1
            yield from (part.strip() for part in _END.split(text) if part.strip()) if prose else [text]
        yield ""


def _is_prose(path: Path) -> bool:
    """A line of prose has several sentences, or only part of one."""
    seen = [text for _, text in zip(range(1000), lines(path), strict=False) if text.strip()]
    parts = sum(len(_END.split(text.decode(errors="replace").strip())) for text in seen)
    return parts > 1.3 * max(1, len(seen))


def store_sentences(texts: Iterator[str], tokenizer: Tokenizer, folder: Path, longest: int) -> None:
    """Token ids of sentences; what is longer than `longest` tokens is parted there."""
    with StoreWriter(folder, ("tokens",), vocabulary=len(tokenizer)) as writer:
        batch: list[str] = []
        for text in texts:
            batch.append(text)
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
