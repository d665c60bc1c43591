"""Where a verb writes: a file, or standard output."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from regard.errors import UserError


@contextlib.contextmanager
def output(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("w", encoding="utf8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None
    with file:
        yield file
