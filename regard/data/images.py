"""Images from the layouts people have, found but not yet decoded: a folder per class, a table of paths, IDX, Parquet.

    photos/cat/1.jpg  photos/dog/2.png            a folder per class; photos/train/cat/..., photos/test/cat/... too
    labels.csv: path,label                        a table (CSV, TSV, JSON lines); paths are relative to it
    train-images-idx3-ubyte.gz + ...labels...     MNIST's layout; idx4 holds colours
    train-0.parquet: image{bytes, path}, label    as the `datasets` library writes them

A source may hold several splits, told by the names of its folders and files: train, valid (val, validation), test
(t10k); what says nothing is for training.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from regard.data.badlines import BadLines, Location
from regard.data.files import at_home, in_letters, matches
from regard.data.tables import csv_cells, no_text
from regard.errors import UserError

Split = Literal["train", "valid", "test"]
Content = Path | bytes | NDArray[np.uint8] | Image.Image
"""A file, its bytes, pixels (height, width) or (height, width, channels), or an image that Pillow has open."""

ALLOWED = (
    "a folder with a folder per class, a table of paths and labels (.csv, .tsv, .jsonl), IDX files (MNIST's layout), "
    "or Parquet files"
)
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")
_SPLITS: dict[str, Split] = {
    "train": "train", "training": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test",
    "testing": "test", "t10k": "test",
}  # fmt: skip
_IDX = re.compile(r"(?P<split>.*?)[-_.]?images[-.]idx[34][-.]ubyte(\.gz)?")


@dataclass(frozen=True)
class Picture:
    """One image that has not been decoded: where it is, and what it shows."""

    where: Location
    label: str
    content: Content


@dataclass
class Album:
    """What a source holds: how to read each split, the files that it depends on, and what a person should know."""

    splits: dict[Split, list[Callable[[BadLines], Iterator[Picture]]]] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, split: Split, files: Sequence[Path], read: Callable[[BadLines], Iterator[Picture]]) -> None:
        self.splits.setdefault(split, []).append(read)
        self.files += files

    def read(self, split: Split, bad: BadLines) -> Iterator[Picture]:
        bad.unit = "image"
        for reader in self.splits.get(split, []):
            for picture in reader(bad):
                bad.read += 1
                yield picture


def open_album(sources: Sequence[str | Path], columns: Sequence[str] | None = None) -> Album:
    """The pictures behind files and folders. `columns` names a table's column of paths and its column of labels."""
    album = Album()
    if not sources:
        raise UserError(f"no images given; give {ALLOWED}")
    for source in sources:
        path = at_home(source)
        if path.is_dir():
            _folder(album, path, columns)
        elif path.is_file():
            _file(album, path, columns)
        elif behind := matches(source):
            for path in behind:
                _file(album, path, columns)
        else:
            raise UserError(f"{source}: there is no such file or folder; give {ALLOWED}")
    if not album.splits:
        raise UserError("\n".join([f"{', '.join(map(str, sources))}: no images found; give {ALLOWED}", *album.notes]))
    return album


def _file(album: Album, path: Path, columns: Sequence[str] | None) -> None:
    if path.suffix.lower() == ".parquet":
        album.add(_split_of(path.name), [path], lambda bad: _parquet(path, columns, bad))
    elif path.suffix.lower() in TABLES:
        listed = [one.content for one in _table(path, columns, BadLines()) if isinstance(one.content, Path)]
        files = [path, *(file for file in listed if file.is_file())]
        album.add(_split_of(path.name), files, lambda bad: _table(path, columns, bad))
    elif match := _IDX.fullmatch(path.name):
        labels = _labels_beside(path)
        album.add(_split_of(match["split"]), [path, labels], lambda bad: _idx(path, labels))
    else:
        raise UserError(f"{path}: not a source of images; give {ALLOWED}")


def _folder(album: Album, folder: Path, columns: Sequence[str] | None) -> None:
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    folders = [path for path in inside if path.is_dir()]
    files = [path for path in inside if path.is_file()]
    known = [path for path in files if _IDX.fullmatch(path.name) or path.suffix.lower() == ".parquet"]
    tables = [path for path in files if path.suffix.lower() in TABLES]
    splits = [path for path in folders if path.name.lower() in _SPLITS and any(map(Path.is_dir, path.iterdir()))]
    if len(splits) == len(folders) > 0 or "train" in (_SPLITS[path.name.lower()] for path in splits):
        for path in splits:
            _classes(album, _SPLITS[path.name.lower()], path)
        if others := [path.name for path in folders if path not in splits]:
            album.notes.append(f"beside the folders of splits in {folder}: {', '.join(others)}: not read")
    elif known or (tables and not folders):
        for path in known or tables:
            _file(album, path, columns)
    elif tables and len(tables) < 4 and all(_is_table_of_images(path) for path in tables):
        for path in tables:
            _file(album, path, columns)
    elif any(path.name.lower() not in _SPLITS for path in folders):
        _classes(album, "train", folder)
    else:
        names = ", ".join(path.name for path in [*folders, *files][:5])
        raise UserError(
            f"{folder}: no folder per class in it ({f'found {names}' if names else 'empty'}); give {ALLOWED}"
        )


def _is_table_of_images(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(re.search(rb"path|file|image", file.readline().lower()))


def _split_of(name: str) -> Split:
    """`test-0.parquet`, `cifar10-test.parquet`: the last part of a name that names a split."""
    said = [_SPLITS[part] for part in re.split(r"[-_.]", name.lower()) if part in _SPLITS]
    return said[-1] if said else "train"


def _classes(album: Album, split: Split, folder: Path) -> None:
    """Each folder inside is a class; a file in a folder inside that belongs to the class as well."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    loose = sum(path.is_file() and not path.name.startswith(".") for path in folder.iterdir())
    if loose:
        album.notes.append(f"{loose:,} {'files' if loose > 1 else 'file'} of {folder} in no class folder: not read")
    for one in classes:
        inside = (path for path in sorted(one.rglob("*")) if path.is_file())
        files = [path for path in inside if not any(part.startswith(".") for part in path.relative_to(one).parts)]
        if not files:
            album.notes.append(f"the class folder {one} holds no image: {one.name!r} is not among the classes")
            continue

        def read(
            bad: BadLines, files: list[Path] = files, label: str = in_letters(Path(one.name))
        ) -> Iterator[Picture]:
            return (Picture(Location(in_letters(path), 0), label, path) for path in files)

        album.add(split, files, read)


def _table(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[Picture]:
    """Rows with a path, relative to the table, and a label."""
    rows = _json_rows(path, bad) if path.suffix.lower() in (".jsonl", ".ndjson") else _csv_rows(path, columns, bad)
    names: tuple[str, str] | None = None
    for line, row in rows:
        names = names or _columns(path, list(row), columns)
        image, label = row.get(names[0]), row.get(names[1])
        if image in (None, "") or label in (None, ""):
            bad.read += 1
            bad.add("columns", Location(str(path), line), str(row))
            continue
        yield Picture(Location(str(path), line), str(label), path.parent / str(image))


def _csv_rows(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[tuple[int, dict[str, Any]]]:
    """A first line that names a file, or lacks the columns 0, 1, ... that are asked for, is a row; else it is the
    header."""
    header: list[str] | None = None
    for found, where in csv_cells(path, bad, tabs=path.suffix.lower() == ".tsv"):
        if found is None:
            continue
        cells = [cell.strip() for cell in found]
        if header is None:
            numbered = columns is not None and not set(columns) <= set(cells) and all(map(str.isdecimal, columns))
            if not numbered and not any((path.parent / cell).is_file() for cell in cells):
                header = cells
                continue
            header = [str(number) for number in range(len(cells))]
        if no_text(" ".join(cells)):
            bad.read += 1
            bad.add("encoding", where, " | ".join(cells))
        else:
            yield where.line, dict(zip(header, cells, strict=False))


def _json_rows(path: Path, bad: BadLines) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for line, text in enumerate(file, 1):
            try:
                row = json.loads(text)
                if not isinstance(row, dict):
                    raise ValueError("not an object")
            except ValueError:
                bad.read += 1
                bad.add("json", Location(str(path), line), text)
                continue
            yield line, row


def _columns(path: Path, names: list[str], columns: Sequence[str] | None) -> tuple[str, str]:
    """The column of images and that of labels: as given, by their usual names, or the first two."""
    if columns is not None:
        if len(columns) != 2 or not set(columns) <= set(names):
            raise UserError(f"columns = {','.join(columns)}: {path} has {', '.join(map(str, names))}; name two of them")
        return columns[0], columns[1]
    images = [name for name in names if name and re.fullmatch(r"(?i)(image|img|file|pixels?)?[-_]?(path|name)?", name)]
    labels = [name for name in names if name and re.fullmatch(r"(?i)(fine_)?(label|class|target|category)s?", name)]
    if images and labels:
        return images[0], labels[0]
    if len(names) < 2:
        raise UserError(
            f"{path}: needs a column of images and one of labels, and has only {', '.join(map(str, names))}"
        )
    return names[0], names[1]


def _parquet(path: Path, columns: Sequence[str] | None, bad: BadLines) -> Iterator[Picture]:
    import pyarrow
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        image, label = _columns(path, file.schema_arrow.names, columns)
        named = _class_names(file.schema_arrow.metadata, label)
        line = 0
        for batch in file.iter_batches(batch_size=256, columns=[image, label]):
            for content, value in zip(batch.column(image).to_pylist(), batch.column(label).to_pylist(), strict=True):
                line += 1
                where = Location(str(path), line)
                found = content.get("bytes") or content.get("path") if isinstance(content, dict) else content
                if isinstance(found, str):
                    found = path.parent / found
                known = not named or not isinstance(value, int) or 0 <= value < len(named)  # -1: not to be known
                if value is None or not known or not isinstance(found, bytes | Path):
                    bad.read += 1
                    bad.add("columns" if known else "unlabelled", where, f"{value} {type(content).__name__}")
                    continue
                yield Picture(where, named[value] if named and isinstance(value, int) else str(value), found)
    except (pyarrow.ArrowInvalid, OSError) as problem:
        raise UserError(f"{path}: cannot be read as Parquet ({problem})") from None


def _class_names(metadata: dict[bytes, bytes] | None, label: str) -> list[str]:
    """The names that the `datasets` library keeps beside a column of class numbers."""
    try:
        features = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
        return [str(name) for name in features[label].get("names", [])]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _labels_beside(path: Path) -> Path:
    name = re.sub(r"idx[34]", "idx1", path.name.replace("images", "labels"))
    for other in (name, f"{name}.gz", name.removesuffix(".gz")):
        if (path.parent / other).is_file():
            return path.parent / other
    raise UserError(f"{path}: there are no labels beside it ({name} is missing)")


def _idx(path: Path, labels: Path) -> Iterator[Picture]:
    pixels, numbers = read_idx(path), read_idx(labels)
    if pixels.ndim not in (3, 4) or numbers.ndim != 1 or len(pixels) != len(numbers):
        raise UserError(f"{path}: holds {pixels.shape}, and {labels.name} {numbers.shape}: not images and their labels")
    for index, (one, number) in enumerate(zip(pixels, numbers, strict=True)):
        yield Picture(Location(str(path), index + 1), str(int(number)), one)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """A file of bytes with its shape before them (yann.lecun.com/exdb/mnist), plain or gzip."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read()
    except (OSError, EOFError, zlib.error) as problem:
        raise UserError(f"{path}: damaged or cut short ({problem}); copy it again") from None
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise UserError(f"{path}: not an IDX file of bytes (it begins with {data[:4].hex()}, not 000008..)")
    dimensions = data[3]
    shape = (
        tuple(int(size) for size in np.frombuffer(data, ">u4", dimensions, 4))
        if len(data) >= 4 + 4 * dimensions
        else ()
    )
    expected = 4 + 4 * dimensions + int(np.prod(shape, dtype=np.int64))
    if len(data) != expected:
        raise UserError(f"{path}: has {len(data):,} bytes, {expected:,} expected for {shape}: cut short; copy it again")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def write_idx(path: Path, values: NDArray[np.uint8]) -> None:
    """The inverse of `read_idx`."""
    head = b"\0\0\x08" + bytes([values.ndim]) + np.array(values.shape, ">u4").tobytes()
    with gzip.open(path, "wb", compresslevel=6) if path.suffix == ".gz" else path.open("wb") as file:
        file.write(head + values.tobytes())
