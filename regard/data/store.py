"""Token ids on disk, mapped into memory: a corpus larger than RAM trains like a small one.

One flat file of ids and one of offsets per field, and `store.json`, written last, that says how large they must be:
what was cut short is found when the store is opened, not in the middle of an epoch.
"""

import json
import os
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UserError

Ids = NDArray[np.unsignedinteger]


class StoreWriter:
    """Writes a store batch by batch in constant memory; it exists once `close` has returned.

    with StoreWriter(folder, ("source", "target"), vocabulary=len(tokenizer)) as writer:
        writer.add(tokenizer.encode_batch(sources), tokenizer.encode_batch(targets))
    """

    def __init__(self, folder: str | Path, fields: Sequence[str] = ("source", "target"), *, vocabulary: int) -> None:
        assert fields, "a store needs at least one field"
        self.folder = Path(folder)
        self.fields = tuple(fields)
        self.dtype = np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")
        self.rows = 0
        self._vocabulary = vocabulary
        self._ends = [0] * len(self.fields)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "store.json").unlink(
            missing_ok=True
        )  # until closed, the old store is gone and no new one is there
        self._tokens = [(self.folder / f"{field}.tokens").open("wb") for field in self.fields]
        self._offsets = [(self.folder / f"{field}.offsets").open("wb") for field in self.fields]
        for file in self._offsets:
            file.write(np.zeros(1, "<i8").tobytes())

    def add(self, *columns: Sequence[Sequence[int]]) -> None:
        """Appends rows, given as one sequence of id lists per field, in the order of `fields`."""
        assert len(columns) == len(self.fields), f"{len(columns)} columns for the fields {self.fields}"
        assert len({len(column) for column in columns}) == 1, "every field needs the same number of rows"
        for n, column in enumerate(columns):
            flat = np.fromiter(chain.from_iterable(column), np.int64)
            assert not flat.size or (flat.min() >= 0 and flat.max() < self._vocabulary), (
                "an id is not in the vocabulary"
            )
            self._tokens[n].write(flat.astype(self.dtype).tobytes())
            ends = self._ends[n] + np.cumsum([len(row) for row in column], dtype="<i8")
            self._offsets[n].write(ends.tobytes())
            self._ends[n] += flat.size
        self.rows += len(columns[0])

    def close(self) -> None:
        for file in (*self._tokens, *self._offsets):
            file.flush()
            os.fsync(file.fileno())
            file.close()
        about = {
            "version": 1,
            "rows": self.rows,
            "dtype": self.dtype.str,
            "vocabulary": self._vocabulary,
            "fields": dict(zip(self.fields, self._ends, strict=True)),
        }
        with (self.folder / "store.json").open("w", encoding="utf-8") as index:
            json.dump(about, index, indent=1)
            index.flush()
            os.fsync(index.fileno())

    def __enter__(self) -> "StoreWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            for file in (*self._tokens, *self._offsets):
                file.close()


class Store:
    """Rows of token ids, one array per field; a row costs no more than the pages it lies on."""

    def __init__(
        self,
        folder: Path,
        vocabulary: int,
        tokens: dict[str, Ids],
        ends: dict[str, NDArray[np.int64]],
    ) -> None:
        self.folder = folder
        self.vocabulary = vocabulary
        self.fields = tuple(tokens)
        self._tokens = tokens
        self._offsets = ends

    @classmethod
    def open(cls, folder: str | Path) -> "Store":
        folder = Path(folder)
        try:
            about = json.loads((folder / "store.json").read_text(encoding="utf-8"))
            version, rows, dtype = about["version"], int(about["rows"]), np.dtype(about["dtype"])
            sizes = {str(field): int(size) for field, size in about["fields"].items()}
            vocabulary = int(about["vocabulary"])
        except FileNotFoundError:
            raise UserError(f"{folder}: there is no token store here (no store.json); prepare the data again") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{folder / 'store.json'}: damaged; delete {folder} and prepare the data again") from None
        if version != 1:
            raise UserError(f"{folder}: token store of version {version}, this Regard reads 1; prepare the data again")
        tokens = {field: _map(folder / f"{field}.tokens", dtype, size) for field, size in sizes.items()}
        offsets = {field: _map(folder / f"{field}.offsets", np.dtype("<i8"), rows + 1) for field in sizes}
        for field, size in sizes.items():
            if offsets[field][0] != 0 or offsets[field][-1] != size or (np.diff(offsets[field]) < 0).any():
                path = folder / f"{field}.offsets"
                raise UserError(
                    f"{path}: damaged (the offsets do not fit the ids); delete {folder} and prepare the data again"
                )
        return cls(folder, vocabulary, tokens, offsets)

    def __len__(self) -> int:
        return len(self._offsets[self.fields[0]]) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """(rows, fields): how many tokens each row has, for `batching.plan`."""
        columns = [np.diff(self._offsets[field]) for field in self.fields]
        return np.stack(columns, axis=1).astype(np.int32)

    def flat(self, field: str) -> Ids:
        """All rows of a field, one after the other."""
        return self._tokens[field]

    def row(self, index: int) -> dict[str, Ids]:
        return {field: column[0] for field, column in self.rows([index]).items()}

    def rows(self, indices: Sequence[int] | NDArray[np.integer]) -> dict[str, list[Ids]]:
        """The rows at `indices`, field by field, as views of the file: `pad` copies them into a batch."""
        index = np.asarray(indices, np.int64)
        if index.size and not (index.min() >= 0 and index.max() < len(self)):
            raise IndexError(f"rows {index.min()} to {index.max()} asked of a store with {len(self)} rows")
        found = {}
        for field in self.fields:
            tokens, offsets = self._tokens[field], self._offsets[field]
            begins, ends = offsets[index].tolist(), offsets[index + 1].tolist()
            found[field] = [tokens[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return found


def _map(path: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Maps `count` numbers; a plain array on the mapping, since slicing `np.memmap` itself is several times slower."""
    expected = count * dtype.itemsize
    size = path.stat().st_size if path.exists() else None
    if size != expected:
        found = "is missing" if size is None else f"has {size:,} bytes"
        raise UserError(f"{path}: {found}, {expected:,} expected; delete {path.parent} and prepare the data again")
    if not count:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r", shape=(count,)))
