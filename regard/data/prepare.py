"""From sentence pairs to what training reads: split, tokenizer and token stores in one folder, made once.

    source → read and hold out → tokenizer → encode → cache/<fingerprint>/

The folder's name is a fingerprint of the source and of every option: the same question finds its answer without
reading the source again, and a changed file or option never finds a stale one.
"""

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from regard.data.badlines import BadLines, Location
from regard.data.folders import building
from regard.data.holdout import Holdout, key_of
from regard.data.pair_files import load_located, load_pairs, save_pairs
from regard.data.pairs import Pair
from regard.data.sources import BuiltIn, Files, Located, PairSource
from regard.data.store import Store, StoreWriter
from regard.data.tokenizer_files import open_tokenizer
from regard.data.tokenizers import Kind, Tokenizer
from regard.errors import UserError

__all__ = ["BuiltIn", "Files", "PairSource", "Prepared", "Progress", "prepare"]

_FORMAT = 4
_BATCH = 10_000
T = TypeVar("T")


class Progress(Protocol):
    """What a caller shows while it waits; `total` is None where nobody can know."""

    def start(self, description: str, total: int | None) -> None: ...
    def advance(self, count: int) -> None: ...
    def finish(self) -> None: ...


class Silent:
    def start(self, description: str, total: int | None) -> None: ...
    def advance(self, count: int) -> None: ...
    def finish(self) -> None: ...


@dataclass(frozen=True)
class Prepared:
    """A prepared folder, open. Row n of `valid` is `valid_pairs[n]`."""

    folder: Path
    tokenizer: Tokenizer
    train: Store
    valid: Store
    valid_pairs: list[Pair]
    tests: dict[str, list[Pair]]
    counts: dict[str, int]
    """Pairs in each split, and `read` and `bad` lines."""
    notes: list[str]
    summary: str

    @classmethod
    def open(cls, folder: str | Path) -> "Prepared":
        folder = Path(folder)
        path = folder / "report.json"
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            found = [report[name] for name in ("counts", "notes", "summary")]
            valid_pairs = load_pairs(folder / "valid.jsonl")
            tests = {name: load_pairs(folder / f"{name}.jsonl") for name in report["tests"]}
        except FileNotFoundError as problem:
            raise UserError(
                f"{problem.filename}: missing; this is no folder of prepared data, prepare it again"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}: damaged; delete {folder} and prepare the data again") from None
        tokenizer = open_tokenizer(folder / "tokenizer.json")
        train, valid = Store.open(folder / "train"), Store.open(folder / "valid")
        return cls(folder, tokenizer, train, valid, valid_pairs, tests, *found)


def prepare(
    source: PairSource,
    *,
    cache: str | Path,
    tokenizer: Tokenizer | None = None,
    kind: Kind = "bpe",
    vocabulary: int = 8000,
    lowercase: bool = False,
    valid_count: int = 1000,
    test_count: int = 1000,
    share: float = 0.05,
    max_length: int = 256,
    max_bad_share: float = 0.1,
    seed: int = 0,
    progress: Progress | None = None,
) -> Prepared:
    """Reads, splits, tokenizes and stores the pairs of `source`, or opens the folder where that was done before.

    `valid_count` and `test_count` are upper bounds, as is `share` of the pairs for each; they concern only what the
    source does not bring itself. `max_length` counts tokens without BOS and EOS; longer training and validation
    pairs are left out. A `tokenizer` that is given is used as it is; `kind`, `vocabulary` and `lowercase` then say
    nothing.
    """
    if max_length < 1:
        raise UserError(f"max_length = {max_length}: must be at least 1 (try 256)")
    if not 0 <= max_bad_share <= 1:
        raise UserError(f"data.max_bad_share = {max_bad_share:g}: must be from 0 to 1 (try 0.1)")
    text = {"kind": kind, "vocabulary": vocabulary, "lowercase": lowercase}
    options = {
        "format": _FORMAT,
        "source": source.fingerprint(),
        "tokenizer": text if tokenizer is None else _digest(tokenizer.fingerprint),
        "splits": [valid_count, test_count, share, seed],
        "limits": [max_length, max_bad_share],
    }
    place = Path(cache) / _digest(json.dumps(options))
    if not place.is_dir():
        listed = place.with_suffix(".bad_lines.tsv")  # outside, so that it outlives a build that fails because of it
        listed.unlink(missing_ok=True)
        with building(place) as folder, BadLines(listed) as bad:
            job = _Job(folder, bad, progress or Silent(), seed, lowercase and tokenizer is None)
            job.read(source, valid_count, test_count, share)
            bad.check(max_bad_share)
            if tokenizer is None:
                tokenizer = job.learn(kind, vocabulary, lowercase)
            tokenizer.save(folder / "tokenizer.json")
            job.encode(tokenizer, max_length)
            bad.check(max_bad_share)
            job.report(options)
            bad.close()
            if listed.exists():
                listed.rename(folder / "bad_lines.tsv")
    return Prepared.open(place)


class _Job:
    """The steps of one preparation. What is read is kept in a scratch file, so that a source is read only once."""

    def __init__(self, folder: Path, bad: BadLines, progress: Progress, seed: int, lowercase: bool) -> None:
        self.folder, self.bad, self.progress, self.seed, self.lowercase = folder, bad, progress, seed, lowercase
        self.scratch = folder / "scratch.jsonl"
        self.held: dict[str, set[int]] = {}
        self.counts: dict[str, int] = {}
        self.tests: list[str] = []
        self.notes: list[str] = []

    def read(self, source: PairSource, valid_count: int, test_count: int, share: float) -> None:
        """Copies the training split to the scratch file and each held-out set to its own."""
        splits = source.splits(self.bad)
        wanted = {"valid": max(valid_count, 1), "test": test_count}
        wanted = {name: count for name, count in wanted.items() if name not in splits}
        holdout = Holdout(2 * sum(wanted.values()) + 100)
        self.progress.start("reading", None)
        given: dict[str, Counter[int]] = {}  # the keys of the sets that the source brings
        for name, read in splits.items():
            if name != "train":
                given[name] = Counter()
                self._keep(name, self._counted(read(), given[name]))
        trained: dict[str, set[int]] = {name: set() for name in given}
        save_pairs(self.scratch, self._seen(splits["train"](), holdout, given, trained))
        for name, keys in trained.items():
            if count := sum(given[name][key] for key in keys):
                total = given[name].total()
                self.notes.append(f"warning: {count:,} of the {total:,} {name} sources are trained on too")
        self.held = dict(zip(wanted, holdout.choose(list(wanted.values()), share), strict=True))
        kept: dict[str, list[tuple[Pair, Location]]] = {name: [] for name in wanted}
        for pair, where in load_located(self.scratch):
            key = self._key(pair)
            for name, keys in self.held.items():
                if key in keys:
                    kept[name].append((pair, where))
        for name, pairs in kept.items():
            self._keep(name, pairs)
        self.counts["train"] = holdout.total - sum(self.counts[name] for name in self.held)
        self.tests = [name for name in self.counts if name not in ("train", "valid") and self.counts[name]]
        if "test" not in self.tests and test_count:
            self.notes.append("too few different sentences to hold out a test set")
        self.progress.finish()

    def learn(self, kind: Kind, vocabulary: int, lowercase: bool) -> Tokenizer:
        """The tokenizer sees training text only: what is held out must be new to it too."""
        self.progress.start("learning the vocabulary", 2 * self.counts["train"])
        learned = Tokenizer.train(
            _Texts(self.train, self.progress), kind=kind, vocabulary=vocabulary, lowercase=lowercase
        )
        self.progress.finish()
        return learned

    def encode(self, tokenizer: Tokenizer, max_length: int) -> None:
        self.progress.start("encoding", self.counts["train"] + self.counts["valid"])
        read = self.counts["train"]
        self.counts["train"] = self._store("train", self.train(), tokenizer, max_length)
        if not self.counts["train"]:
            raise UserError(
                f"max_length = {max_length}: all {read:,} training pairs are longer; raise data.max_length (try 256)"
            )
        kept: list[Pair] = []
        valid = load_located(self.folder / "valid.jsonl")
        self.counts["valid"] = self._store("valid", valid, tokenizer, max_length, kept)
        if not kept and "valid" not in self.held:
            raise UserError(f"max_length = {max_length}: all pairs of data.valid are longer; raise data.max_length")
        if not kept:
            self.notes.append("too few different sentences to hold any out: validation is on training pairs")
            some = islice(self.train(), 1000)
            self.counts["valid"] = self._store("valid", some, tokenizer, max_length, kept, again=True)
        save_pairs(self.folder / "valid.jsonl", ((pair, None) for pair in kept))
        self.progress.finish()
        self.scratch.unlink()

    def report(self, options: dict[str, Any]) -> None:
        self.counts |= {"read": self.bad.read, "bad": self.bad.total}
        sizes = ", ".join(f"{self.counts[name]:,} {name}" for name in ("train", "valid", *self.tests))
        summary = "\n".join([f"{sizes} pairs", self.bad.summary(), *self.notes])
        report = {
            "counts": self.counts,
            "bad": dict(self.bad.counts),
            "tests": self.tests,
            "notes": self.notes,
            "summary": summary,
            "options": options,
        }
        text = json.dumps(report, indent=1, ensure_ascii=False)
        (self.folder / "report.json").write_text(text, encoding="utf-8")

    def train(self) -> Located:
        """What was read for training and not held out."""
        held: set[int] = set().union(*self.held.values())
        return (entry for entry in load_located(self.scratch) if self._key(entry[0]) not in held)

    def _key(self, pair: Pair) -> int:
        """The same for sources that are the same to the tokenizer."""
        plain = " ".join(unicodedata.normalize("NFC", pair.source).split())
        return key_of(plain.lower() if self.lowercase else plain, self.seed)

    def _counted(self, pairs: Located, keys: Counter[int]) -> Located:
        for entry in pairs:
            keys[self._key(entry[0])] += 1
            yield entry

    def _seen(
        self, pairs: Located, holdout: Holdout, given: dict[str, Counter[int]], trained: dict[str, set[int]]
    ) -> Located:
        for number, entry in enumerate(pairs, 1):
            key = self._key(entry[0])
            holdout.see(key)
            for name, keys in given.items():
                if key in keys:
                    trained[name].add(key)
            if number % 1000 == 0:
                self.progress.advance(1000)
            yield entry

    def _keep(self, name: str, pairs: Iterable[tuple[Pair, Location]]) -> None:
        self.counts[name] = save_pairs(self.folder / f"{name}.jsonl", pairs)

    def _store(
        self,
        name: str,
        pairs: Located,
        tokenizer: Tokenizer,
        max_length: int,
        kept: list[Pair] | None = None,
        again: bool = False,
    ) -> int:
        """Encodes pairs into the store `name`; what is too long is reported (but not `again`) and left out."""
        with StoreWriter(self.folder / name, ("source", "target"), vocabulary=len(tokenizer)) as writer:
            while batch := list(islice(pairs, _BATCH)):
                sources = tokenizer.encode_batch([pair.source for pair, _ in batch])
                targets = tokenizer.encode_targets([pair.target for pair, _ in batch])
                fits = [max(len(s), len(t)) <= max_length for s, t in zip(sources, targets, strict=True)]
                writer.add(_where(sources, fits), _where(targets, fits))
                if kept is not None:
                    kept += _where([pair for pair, _ in batch], fits)
                if not again:
                    for pair, where in _where(batch, [not fit for fit in fits]):
                        self.bad.add("long", where, f"{pair.source} | {pair.target}")
                self.progress.advance(len(batch))
        return writer.rows


class _Texts:
    """Both sides of the training pairs, as often as they are asked for."""

    def __init__(self, pairs: Callable[[], Located], progress: Progress) -> None:
        self.pairs, self.progress = pairs, progress

    def __iter__(self) -> Iterator[str]:
        for number, (pair, _) in enumerate(self.pairs(), 1):
            yield pair.source
            yield pair.target
            if number % 1000 == 0:
                self.progress.advance(2000)


def _where(items: Sequence[T], mask: Sequence[bool]) -> list[T]:
    return [item for item, keep in zip(items, mask, strict=True) if keep]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
