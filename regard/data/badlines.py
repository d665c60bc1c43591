"""Lines of a data file that cannot be used: counted, listed and summed up, while the reading goes on.

One broken line in a million must not stop a run, and a thousand must not pass unnoticed.
"""

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, TextIO

from regard.errors import UserError

Reason = Literal[
    "columns", "quotes", "encoding", "empty", "long", "json", "image", "pixels", "missing", "unlabelled", "label",
    "option", "unanswered", "answer",
]  # fmt: skip
_TITLES: dict[Reason, str] = {
    "columns": "wrong columns",
    "quotes": "with a quotation mark out of place (quote the whole cell, and double those in it)",
    "encoding": "invalid UTF-8",
    "empty": "empty side",
    "long": "too long",
    "json": "invalid JSON",
    "image": "no readable image",
    "pixels": "too many pixels",
    "missing": "no such file",
    "unlabelled": "without a label",
    "label": "of a class that is not trained on",
    "option": "whose label is not the number of an option (from 0)",
    "unanswered": "with no answers that can be read (where there is none: answers = [], or is_impossible)",
    "answer": "with an answer that does not stand in the context where it should",
}


class Location(NamedTuple):
    """Where a pair came from; lines (or the rows of a Parquet file) count from 1. 0 stands for a whole file."""

    path: str
    line: int


class BadLines:
    """Collects what was left out; memory stays constant, the full list streams to `path` if one is given."""

    def __init__(self, path: Path | None = None, *, keep: int = 20) -> None:
        self.path = path
        self.read = 0
        """Lines read so far, good and bad: readers count here."""
        self.unit = "line"
        """What is counted, in words: readers of images say so here."""
        self.counts: Counter[Reason] = Counter()
        self.examples: dict[Reason, list[Location]] = {}
        self.hints: dict[Reason, str] = {}
        """What a reader has to say of a reason: which labels are known, say."""
        self._keep = keep
        self._file: TextIO | None = None

    def add(self, reason: Reason, where: Location, excerpt: str) -> None:
        self.counts[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < self._keep:
            examples.append(where)
        if self.path is not None:
            if self._file is None:
                self._file = self.path.open("w", encoding="utf-8", errors="backslashreplace")
                self._file.write("file\tline\treason\texcerpt\n")
            plain = " ".join(excerpt[:200].split())
            self._file.write(f"{where.path}\t{where.line}\t{_TITLES[reason]}\t{plain}\n")

    @property
    def total(self) -> int:
        return self.counts.total()

    def summary(self) -> str:
        """`3 of 1,002 lines were left out:`, then a line per reason with the first line numbers."""
        if not self.total:
            return f"all {self.read:,} {self.unit}s were usable"
        were = f"{self.unit} was" if self.read == 1 else f"{self.unit}s were"
        reasons = [f"\n  {count:,} {self._title(reason)} ({self._where(reason)})" for reason, count in self._sorted()]
        return f"{self.total:,} of {self.read:,} {were} left out:" + "".join(reasons)

    def check(self, max_share: float, setting: str = "data.max_bad_share") -> None:
        """Stops a run that would silently train on a fraction of its data; `setting` is what allows it more."""
        share = self.total / max(self.read, 1)
        if share <= max_share:
            return
        reasons = "; ".join(
            f"{count:,} {self._title(reason)}: {self._where(reason)}" for reason, count in self._sorted()
        )
        listed = f"; every {self.unit} is listed in {self.path}" if self.path is not None else ""
        length = ", data.max_length" if self.counts["long"] else ""
        other = "; another encoding? iconv -f LATIN1 -t UTF-8" if self.counts["encoding"] else ""
        raise UserError(
            f"{share:.1%} of the {self.unit}s ({self.total:,} of {self.read:,}) cannot be used, "
            f"{setting} = {max_share:g} allows {max_share:.1%} ({reasons}{listed}{other}). "
            f"Mend the {self.unit}s, or raise {setting}{length}"
        )

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "BadLines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sorted(self) -> list[tuple[Reason, int]]:
        return sorted(self.counts.items(), key=lambda entry: (-entry[1], entry[0]))

    def _title(self, reason: Reason) -> str:
        return _TITLES[reason] + (f", {self.hints[reason]}" if reason in self.hints else "")

    def _where(self, reason: Reason, most: int = 5) -> str:
        """`lines 17, 90 of pairs.tsv; line 3 of more.tsv; …`, and a file as a whole with its folder: `cat/1.jpg; …`."""
        by_file: dict[str, list[str]] = {}
        for path, line in self.examples[reason][:most]:
            name = Path(path).name if line else "/".join(Path(path).parts[-2:])
            by_file.setdefault(name, []).extend([str(line)] if line else [])
        parts = [
            f"{self.unit}{'s' * (len(lines) > 1)} {', '.join(lines)} of {name}" if lines else name
            for name, lines in by_file.items()
        ]
        return "; ".join(parts) + (", …" if self.counts[reason] > most else "")
