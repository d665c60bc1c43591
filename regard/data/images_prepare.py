"""From images to what training reads: decoded once, in square frames, in one file that is mapped into memory.

    album → decode (Pillow, in threads: it leaves Python's lock while it works) → hold out → cache/<fingerprint>/

Training then reads pixels as fast as memory, and the epochs decode nothing. The folder holds

    pixels.bytes   (images, stored, stored, channels)       labels.npy    the class of each
    names.json     where each came from                     train.npy     which images belong to a split, and so on
    about.json     classes, framing, counts and the summary for a person
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from regard.data.badlines import BadLines, Location
from regard.data.files import in_letters
from regard.data.folders import building
from regard.data.holdout import Holdout, key_of
from regard.data.images import Album, Picture, Split, open_album
from regard.data.images_decode import Framing, Unreadable, quiet
from regard.data.prepare import Progress
from regard.errors import UserError

_FORMAT = 2
_TOGETHER = 256
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Images:
    """A prepared folder, open."""

    folder: Path
    pixels: Pixels  # (images, stored, stored, channels), mapped from the disk
    labels: NDArray[np.int64]
    names: list[str]
    rows: dict[str, NDArray[np.int64]]
    classes: list[str]
    called: list[str]  # what the classes are called in the sources
    framing: Framing
    summary: str

    @classmethod
    def open(cls, folder: Path) -> Images:
        try:
            about = json.loads((folder / "about.json").read_text(encoding="utf8"))
            framing = Framing.of(about["framing"])
            labels = np.load(folder / "labels.npy")
            rows = {name: np.load(folder / f"{name}.npy") for name in about["splits"]}
            names = json.loads((folder / "names.json").read_text(encoding="utf8"))
            shape = (len(labels), framing.stored, framing.stored, framing.channels)
            if (folder / "pixels.bytes").stat().st_size != int(np.prod(shape)):
                raise UserError(f"{folder / 'pixels.bytes'}: cut short; delete {folder} and prepare the images again")
            pixels = np.asarray(np.memmap(folder / "pixels.bytes", np.uint8, "r", shape=shape))
        except FileNotFoundError as problem:
            raise UserError(f"{problem.filename}: missing; this is no folder of prepared images") from None
        except UserError:
            raise
        except (KeyError, TypeError, ValueError, EOFError, OSError) as problem:
            raise UserError(f"{folder}: damaged ({problem}); delete it and prepare the images again") from None
        return cls(folder, pixels, labels, names, rows, about["classes"], about["called"], framing, about["summary"])


@dataclass(frozen=True)
class Wishes:
    """Where images come from, how they are divided, and what is known of them before they are read."""

    train: Sequence[str]
    valid: Sequence[str] = ()
    test: Sequence[str] = ()
    columns: Sequence[str] | None = None
    valid_count: int = 1000
    test_count: int = 1000
    share: float = 0.05
    max_bad_share: float = 0.1
    seed: int = 0
    class_names: Sequence[str] | None = None


def prepare_images(wishes: Wishes, framing: Framing, cache: Path, progress: Progress) -> Images:
    """Decodes, divides and stores the images, or opens the folder where that was done before."""
    albums = {"train": open_album(wishes.train, wishes.columns)}
    albums |= {
        name: open_album(sources, wishes.columns)
        for name, sources in (("valid", wishes.valid), ("test", wishes.test))
        if sources
    }
    stamps = [[str(file.resolve()), *_stamp(file)] for album in albums.values() for file in album.files]
    options = [_FORMAT, repr(wishes), framing.facts(), stamps]
    place = cache / hashlib.blake2b(json.dumps(options).encode(), digest_size=12).hexdigest()
    if not place.is_dir():
        listed = place.with_suffix(".bad_images.tsv")  # outside, so that it outlives a build that fails because of it
        listed.unlink(missing_ok=True)
        with building(place) as folder, BadLines(listed) as bad:
            _Job(folder, bad, progress, framing, wishes).run(albums)
            bad.close()
            if listed.exists():
                listed.rename(folder / "bad_images.tsv")
    return Images.open(place)


class _Job:
    """The steps of one preparation."""

    def __init__(self, folder: Path, bad: BadLines, progress: Progress, framing: Framing, wishes: Wishes) -> None:
        self.folder, self.bad, self.progress, self.framing, self.wishes = folder, bad, progress, framing, wishes
        self.labels: list[str] = []
        self.places: list[Location] = []
        self.keys: list[int] = []
        self.rows: dict[str, list[int]] = {}
        self.notes: list[str] = []

    def run(self, albums: dict[str, Album]) -> None:
        self.progress.start("decoding images", None)
        with (self.folder / "pixels.bytes").open("wb") as file:
            beside = "train" in albums["train"].splits  # else a file such as test.csv was given to train on
            for split in albums["train"].splits:
                if split == "train" or split not in albums:  # what was given by name comes before what lies beside
                    self._decode(albums["train"], split, split if beside else "train", file)
            for name, album in albums.items():
                if name != "train":
                    split = min(album.splits, key=[name, "test", "train", "valid"].index)
                    self._decode(album, split, name, file)
                    if not self.rows[name]:
                        raise UserError(f"data.{name}: no image can be read ({self.bad.summary()})")
        self.progress.finish()
        self.bad.check(self.wishes.max_bad_share)
        self._hold_out()
        classes = self._classes()
        known = {name: number for number, name in enumerate(classes)}
        np.save(self.folder / "labels.npy", np.array([known.get(label, -1) for label in self.labels], np.int64))
        for name, rows in self.rows.items():
            np.save(self.folder / f"{name}.npy", np.array(rows, np.int64))
        names = [f"{path}:{line}" if line else path for path, line in self.places]
        (self.folder / "names.json").write_text(json.dumps(names, ensure_ascii=False), encoding="utf8")
        notes = [*self.notes, *(note for album in albums.values() for note in album.notes)]
        about = {
            "classes": self._named(classes),
            "called": classes,
            "splits": sorted(self.rows, key=["train", "valid", "test"].index),
            "framing": self._measured().facts(),
            "summary": "\n".join([self._sizes(classes), self.bad.summary(), *notes]),
        }
        (self.folder / "about.json").write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf8")

    def _decode(self, album: Album, split: Split, to: str, file: BinaryIO) -> None:
        rows = self.rows.setdefault(to, [])
        for picture, pixels in decoded(album.read(split, self.bad), self.framing, self.bad):
            rows.append(len(self.labels))
            self.labels.append(picture.label)
            self.places.append(place_of(picture))
            digest = hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()
            self.keys.append(key_of(digest, self.wishes.seed))
            file.write(pixels.tobytes())
            if len(rows) % _TOGETHER == 0:
                self.progress.advance(_TOGETHER)
        if not rows and to == "train":
            raise UserError(f"{', '.join(self.wishes.train)}: no image can be read ({self.bad.summary()})")

    def _hold_out(self) -> None:
        """Equal pictures stay together: one in training and its copy in the test would make it a memory exercise. Of
        every class at least one stays to be trained on."""
        wanted = {"valid": self.wishes.valid_count, "test": self.wishes.test_count}
        wanted = {name: count for name, count in wanted.items() if name not in self.rows and count}
        classes: dict[str, int] = {}
        for row in self.rows["train"]:
            classes[self.labels[row]] = max(self.keys[row], classes.get(self.labels[row], 0))
        stay = set(classes.values())
        holdout = Holdout(2 * sum(wanted.values()) + 100)
        for row in self.rows["train"]:
            holdout.see(self.keys[row])
        chosen = holdout.choose(list(wanted.values()), self.wishes.share, stay)
        for name, keys in zip(wanted, chosen, strict=True):
            self.rows[name] = [row for row in self.rows["train"] if self.keys[row] in keys]
        taken = set().union(*chosen)
        self.rows["train"] = [row for row in self.rows["train"] if self.keys[row] not in taken]
        if not self.rows.get("valid"):
            self.rows["valid"] = self.rows["train"][:1000]
            self.notes.append("too few images to hold some out: validated on those that are trained on")

    def _classes(self) -> list[str]:
        """Those of the training images; what is of another class is left out of the other splits and counted."""
        found = Counter(self.labels[row] for row in self.rows["train"])
        numbers = all(label.lstrip("-").isdecimal() for label in found)
        classes = sorted(found, key=lambda label: (int(label) if numbers else 0, label))
        if len(classes) < 2:
            raise UserError(
                f"only one class, {classes[0]!r}: there is nothing to tell apart; give images of two or more"
            )
        for name, rows in self.rows.items():
            strange = [row for row in rows if self.labels[row] not in classes]
            for row in strange:
                self.bad.add("label", self.places[row], self.labels[row])
            self.rows[name] = [row for row in rows if self.labels[row] in classes]
            if rows and not self.rows[name]:
                others = ", ".join(sorted({self.labels[row] for row in rows})[:5])
                raise UserError(
                    f"data.{name}: its classes ({others}) are not those of training ({', '.join(classes[:5])})"
                )
        self.bad.check(self.wishes.max_bad_share)
        return classes

    def _named(self, classes: list[str]) -> list[str]:
        names = self.wishes.class_names
        if names is None:
            return classes
        if len(names) != len(classes):
            raise UserError(
                f"options.class_names: {len(names)} names for {len(classes)} classes ({', '.join(classes)})"
            )
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise UserError(f"options.class_names: {twice[0]!r} is there twice; every class needs a name of its own")
        return list(names)

    def _measured(self) -> Framing:
        """With the mean and the deviation of the training pixels, unless they are known."""
        if self.framing.mean:
            return self.framing
        side, channels = self.framing.stored, self.framing.channels
        pixels = np.memmap(self.folder / "pixels.bytes", np.uint8, "r", shape=(len(self.labels), side, side, channels))
        sums = np.zeros((2, channels))
        rows = self.rows["train"]
        together = max(1, 2**22 // (side * side * channels))
        for start in range(0, len(rows), together):
            values = pixels[rows[start : start + together]].reshape(-1, channels).astype(np.float64) / 255
            sums += np.stack([values.sum(0), (values**2).sum(0)])
        mean, square = sums / (len(rows) * side * side)
        deviation = np.sqrt(np.maximum(square - mean**2, 1e-6))
        return replace(self.framing, mean=tuple(mean.round(6)), deviation=tuple(deviation.round(6)))

    def _sizes(self, classes: list[str]) -> str:
        sizes = ", ".join(
            f"{len(self.rows[name]):,} {name}" for name in ("train", "valid", "test") if name in self.rows
        )
        few = Counter(self.labels[row] for row in self.rows["train"])
        least = min(classes, key=lambda name: few[name])
        return f"{sizes} images of {len(classes)} classes (fewest: {few[least]:,} of {least!r} in training)"


def decoded(pictures: Iterator[Picture], framing: Framing, bad: BadLines) -> Iterator[tuple[Picture, Pixels]]:
    """The pictures that can be read, in their order, with their pixels; what cannot is counted in `bad`."""

    def one(picture: Picture) -> Pixels | Unreadable:
        try:
            return framing.pixels(picture.content)
        except Unreadable as problem:
            return problem

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while together := list(islice(pictures, _TOGETHER)):
            with quiet():
                pixels = list(pool.map(one, together))
            for picture, found in zip(together, pixels, strict=True):
                if isinstance(found, Unreadable):
                    bad.add(found.reason, picture.where, str(found))
                else:
                    yield picture, found


def place_of(picture: Picture) -> Location:
    """The image's own file, or the place in a file that holds many."""
    return Location(in_letters(picture.content), 0) if isinstance(picture.content, Path) else picture.where


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns
