"""`--attention picture.svg`: what a model looked at, drawn, as a page of its own, or as numbers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import UserError

if TYPE_CHECKING:
    from regard.nn.record import AttentionRecord

PICTURES = 20
"""Inputs whose attention is drawn, at most: a picture each."""


@dataclass(frozen=True)
class Picture:
    """What to draw of each input, and where. `single`: there is one input, so its picture needs no number."""

    path: Path | None
    site: str | None = None
    head: int | None = None
    grid: bool = False
    subwords: bool = False
    single: bool = True

    def __post_init__(self) -> None:
        """What cannot be drawn is said before the work."""
        if self.path is not None:
            from regard.explorer.figures import writable

            writable(self.path, (".html", ".json"))
            return
        wished = {"--site": self.site is not None, "--head": self.head is not None, "--grid": self.grid}
        for option, given in {**wished, "--subwords": self.subwords}.items():
            if given:
                raise UserError(f"{option}: says what to draw; say where to, too: --attention picture.svg")

    def wanted(self, number: int) -> bool:
        """Whether to draw the input of this number, from 1 on."""
        if self.path is not None and number == PICTURES + 1:
            print(f"attention: drawn for the first {PICTURES} inputs only", file=sys.stderr)
        return self.path is not None and number <= PICTURES

    def place(self, number: int) -> Path:
        """The file for the input of this number."""
        assert self.path is not None, "only what is wanted is drawn"
        return self.path if self.single else self.path.with_name(f"{self.path.stem}-{number}{self.path.suffix}")

    def draw(self, record: AttentionRecord, number: int, **about: Any) -> None:
        """`about` is what else a page says: text, output, score."""
        path = self.place(number)
        if not record.sites:
            raise UserError("--attention: this model has no attention to draw (try --model rnn-attention in training)")
        heads = None if self.head is None else [self.head]
        if path.suffix.lower() == ".html":
            from regard.explorer.document import save

            save(record.select(self.site or "*", heads), path, whole=heads is None, **about)
            print(f"attention: {path}", file=sys.stderr)
            return
        record = record if self.subwords else record.words()
        if path.suffix.lower() == ".json":
            path.write_text(record.select(self.site or "*", heads).to_json(), encoding="utf8")
        else:
            from regard.explorer.figures import draw

            draw(record, path, site=self.site, head=self.head, grid=self.grid)
        print(f"attention: {path}", file=sys.stderr)
