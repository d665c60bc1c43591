"""Examples divided into those to train on, to validate on and to test on, and kept in a folder as JSON lines.

For tasks whose examples fit into memory; sentence pairs and plain text, which may not, have stores of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from regard.config import DataConfig
from regard.data.badlines import BadLines, Location
from regard.data.holdout import Holdout, key_of
from regard.errors import UserError


class Keyed(Protocol):
    @property
    def key(self) -> str:
        """Examples with one key are never divided between training and test."""


Example = TypeVar("Example", bound=Keyed)
Read = Callable[[Sequence[str], BadLines], Iterator[tuple[Example, Location]]]
SHARE = 0.1
"""The most of all examples to hold out for each set."""


@dataclass(frozen=True)
class Examples(Generic[Example]):
    train: list[Example]
    valid: list[Example]
    tests: dict[str, list[Example]]
    summary: str

    @classmethod
    def read(cls, data: DataConfig, read: Read[Example]) -> Examples[Example]:
        """The files of `data`; what it does not name for validation and test is held out from training."""
        bad = BadLines()
        train = [example for example, _ in read(data.train, bad)]
        wanted = {} if data.valid else {"valid": data.valid_count}
        wanted |= {} if data.test else {"test": data.test_count}
        keys = [key_of(example.key, data.seed) for example in train]
        if len(set(keys)) <= len(wanted):  # all questions of one article: then paragraphs stay together
            keys = [key_of(getattr(example, "finer", example.key), data.seed) for example in train]
        holdout = Holdout(len(set(keys)))
        for key in keys:
            holdout.see(key)
        chosen = dict(zip(wanted, holdout.choose(list(wanted.values()), SHARE), strict=True))
        held = {
            name: [one for one, key in zip(train, keys, strict=True) if key in taken] for name, taken in chosen.items()
        }
        gone = set().union(*chosen.values())
        train = [one for one, key in zip(train, keys, strict=True) if key not in gone]
        for name, files in (("valid", data.valid), ("test", data.test)):
            if files:
                held[name] = [example for example, _ in read(files, bad)]
        bad.check(data.max_bad_share)
        if not train or not held["valid"]:
            raise UserError(
                f"{', '.join(data.train)}: too few different examples to train on some and to validate on others "
                f"({len(set(keys)):,} of {bad.read:,}; {bad.summary()})"
            )
        tests = {"test": held["test"]} if held["test"] else {}
        sizes = ", ".join(f"{len(part):,} {name}" for name, part in {"train": train, **held}.items() if part)
        return cls(train, held["valid"], tests, f"{sizes} examples\n{bad.summary()}")

    @classmethod
    def open(cls, folder: Path, parse: Callable[[Mapping[str, Any]], Example]) -> Examples[Example]:
        """From a folder that `save` filled."""
        try:
            report = json.loads((folder / "report.json").read_text(encoding="utf8"))
            parts = {name: _load(folder / f"{name}.jsonl", parse) for name in ("train", "valid", *report["tests"])}
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise UserError(f"{folder}: damaged ({problem}); train again") from None
        train, valid = parts.pop("train"), parts.pop("valid")
        return cls(train, valid, parts, report["summary"])

    @property
    def held_out(self) -> list[Example]:
        return [*self.valid, *(example for part in self.tests.values() for example in part)]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in {"train": self.train, "valid": self.valid, **self.tests}.items():
            with (folder / f"{name}.jsonl").open("w", encoding="utf8") as file:
                for example in part:
                    file.write(json.dumps(asdict(example), ensure_ascii=False) + "\n")  # type: ignore[call-overload]
        report = {"summary": self.summary, "tests": list(self.tests)}
        (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf8")


def _load(path: Path, parse: Callable[[Mapping[str, Any]], Example]) -> list[Example]:
    with path.open(encoding="utf8") as file:
        return [parse(json.loads(line)) for line in file]
