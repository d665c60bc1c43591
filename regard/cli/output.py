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
    if path.exists() and any(source.exists() and _in(path, source) for source in sources):
        raise UserError(f"{path}: is read and cannot be written at the same time; choose another --out")
    try:
        path.open("a").close()
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None
    with _Later(path) as file:
        yield _Counted(file) if sys.stderr.isatty() else file  # type: ignore[arg-type, misc]


def _in(path: Path, source: Path) -> bool:
    """Whether a file is the source, or in the folder that it is."""
    return path.samefile(source) or (source.is_dir() and source.resolve() in path.resolve().parents)


class _Later:
    """A file whose text is replaced at the first write: a command that cannot begin leaves it as it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO | None = None

    def write(self, text: str) -> int:
        if self._file is None:
            self._file = self.path.open("w", encoding="utf8")
        return self._file.write(text)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def __enter__(self) -> _Later:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.write("")  # nothing to say is an empty file
        if self._file is not None:
            self._file.close()


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
