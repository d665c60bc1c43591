"""Where a verb writes: a file, or standard output."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from regard.errors import UserError


@contextlib.contextmanager
def output(path: Path | None, sources: Sequence[Path] = ()) -> Iterator[TextIO]:
    """Opened for writing, unless it is one of the files that are being read."""
    if path is None:
        yield sys.stdout
        return
    if any(path.exists() and path.samefile(source) for source in sources):
        raise UserError(f"{path}: is read and cannot be written at the same time; choose another --out")
    try:
        file = path.open("w", encoding="utf8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None
    with file:
        yield _Counted(file) if sys.stderr.isatty() else file  # type: ignore[misc]


class _Counted:
    """A file that shows a person who waits how many lines it has."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.lines, self._shown = file, 0, 0.0

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        if time.monotonic() - self._shown > 0.5:
            self._shown = time.monotonic()
            print(f"\r{self.lines:,} lines", end="", file=sys.stderr, flush=True)
        return self.file.write(text)

    def flush(self) -> None:
        self.file.flush()
