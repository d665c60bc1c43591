"""Where sentence pairs come from: the user's files, or a built-in corpus. `prepare` sees no difference."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from regard import __version__
from regard.data.badlines import BadLines, Location
from regard.data.files import expand
from regard.data.pairs import Pair
from regard.data.readers import read_located

Located = Iterator[tuple[Pair, Location]]


class PairSource(Protocol):
    """Named splits of pairs: `train`, and where the source has its own, `valid`, `test` and further test sets."""

    def splits(self, bad: BadLines) -> Mapping[str, Callable[[], Located]]:
        """How to read each split; nothing is read before the call."""

    def fingerprint(self) -> Any:
        """A value for JSON that changes when the pairs may have changed, found without reading them all."""


@dataclass(frozen=True)
class Files:
    """Files of pairs; see `regard.data.readers` for what they may be."""

    train: Sequence[str | Path]
    valid: Sequence[str | Path] = ()
    test: Sequence[str | Path] = ()
    columns: Sequence[str] | None = None

    def splits(self, bad: BadLines) -> Mapping[str, Callable[[], Located]]:
        def reader(files: Sequence[str | Path]) -> Callable[[], Located]:
            return lambda: read_located(files, columns=self.columns, bad=bad)

        given = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: reader(files) for name, files in given.items() if files or name == "train"}

    def fingerprint(self) -> Any:
        def stamps(files: Sequence[str | Path]) -> list[tuple[str, int, int]]:
            paths = expand(files) if files else []
            stats = [(path.resolve(), os.stat(path)) for path in paths]
            return [(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in stats]

        columns = None if self.columns is None else list(self.columns)
        return ["files", stamps(self.train), stamps(self.valid), stamps(self.test), columns]


@dataclass(frozen=True)
class BuiltIn:
    """A corpus that code writes: one of the package by its name, or any other with `made`, a maker for each split."""

    name: str
    made: Mapping[str, Callable[[], Iterator[Pair]]] | None = None

    def _made(self) -> Mapping[str, Callable[[], Iterator[Pair]]]:
        if self.made is not None:
            return self.made
        from regard.data.corpora import corpus

        splits: Mapping[str, Callable[[], Iterator[Pair]]] = corpus(self.name).splits
        return splits

    def splits(self, bad: BadLines) -> Mapping[str, Callable[[], Located]]:
        def reader(split: str, make: Callable[[], Iterator[Pair]]) -> Callable[[], Located]:
            def read() -> Located:
                for number, pair in enumerate(make(), 1):
                    bad.read += 1
                    yield pair, Location(f"{self.name}.{split}", number)

            return read

        return {split: reader(split, make) for split, make in self._made().items()}

    def fingerprint(self) -> Any:
        """Of the package's corpora, the code that writes them; of another, its first pairs."""
        digest = hashlib.blake2b(digest_size=16)
        if self.made is None:
            for path in sorted((Path(__file__).parent / "corpora").glob("*.py")):
                digest.update(path.read_bytes())
        for split, make in sorted((self.made or {}).items()):
            digest.update(f"\n{split}:".encode())
            for pair in islice(make(), 100):
                digest.update(repr(pair).encode())
        return ["corpus", self.name, __version__, digest.hexdigest()]
