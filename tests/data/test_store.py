"""The token store gives back what was written, and says so when it cannot."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.store import Store, StoreWriter
from regard.errors import UserError

Rows = list[tuple[list[int], list[int]]]
ids = st.lists(st.integers(0, 70_000), max_size=6)


def write(folder: Path, rows: Rows, vocabulary: int = 70_001, batch: int = 2) -> Store:
    with StoreWriter(folder, ("source", "target"), vocabulary=vocabulary) as writer:
        for n in range(0, len(rows), batch):
            writer.add([row[0] for row in rows[n : n + batch]], [row[1] for row in rows[n : n + batch]])
    return Store.open(folder)


@given(rows=st.lists(st.tuples(ids, ids), max_size=8), batch=st.integers(1, 4))
@settings(deadline=None, max_examples=50)
def test_rows_come_back_as_they_went_in(tmp_path_factory: pytest.TempPathFactory, rows: Rows, batch: int) -> None:
    store = write(tmp_path_factory.mktemp("store"), rows, batch=batch)
    assert len(store) == len(rows)
    assert store.lengths.dtype == np.int32
    assert store.lengths.tolist() == [[len(source), len(target)] for source, target in rows]
    backwards = store.rows(np.arange(len(rows))[::-1])
    assert [row.tolist() for row in backwards["source"]] == [row[0] for row in rows[::-1]]
    assert [row.tolist() for row in backwards["target"]] == [row[1] for row in rows[::-1]]
    for n, (source, target) in enumerate(rows):
        assert {field: row.tolist() for field, row in store.row(n).items()} == {"source": source, "target": target}


@pytest.mark.parametrize(("vocabulary", "width"), [(65_536, 2), (65_537, 4)])
def test_ids_are_as_narrow_as_the_vocabulary_allows(tmp_path: Path, vocabulary: int, width: int) -> None:
    store = write(tmp_path, [([0, vocabulary - 1], [1])], vocabulary)
    assert (tmp_path / "source.tokens").stat().st_size == 2 * width
    assert store.row(0)["source"].tolist() == [0, vocabulary - 1]
    assert store.vocabulary == vocabulary


def test_any_number_of_fields(tmp_path: Path) -> None:
    with StoreWriter(tmp_path, ["text"], vocabulary=10) as writer:
        writer.add([[1, 2], []])
    store = Store.open(tmp_path)
    assert store.fields == ("text",)
    assert store.lengths.tolist() == [[2], [0]]


def test_ids_outside_the_vocabulary_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="not in the vocabulary"):
        write(tmp_path, [([10], [1])], vocabulary=10)
    assert not (tmp_path / "store.json").exists()


def test_rows_that_are_not_there(tmp_path: Path) -> None:
    store = write(tmp_path, [([1], [2])])
    for index in (-1, 1):
        with pytest.raises(IndexError, match="a store with 1 rows"):
            store.row(index)


@pytest.mark.parametrize("name", ["source.tokens", "target.offsets"])
def test_a_truncated_file_is_found_when_opening(tmp_path: Path, name: str) -> None:
    write(tmp_path, [([1, 2], [3]), ([4], [5])])
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        UserError, match=rf"{name}: has [\d,]+ bytes, [\d,]+ expected; delete .* prepare the data again"
    ):
        Store.open(tmp_path)
    path.unlink()
    with pytest.raises(UserError, match=f"{name}: is missing"):
        Store.open(tmp_path)


def test_damaged_offsets_are_found_when_opening(tmp_path: Path) -> None:
    write(tmp_path, [([1, 2], [3]), ([4], [5])])
    np.array([0, 9, 3], "<i8").tofile(tmp_path / "source.offsets")
    with pytest.raises(UserError, match=r"source\.offsets: damaged"):
        Store.open(tmp_path)


def test_a_damaged_or_missing_index(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no token store here \(no store.json\)"):
        Store.open(tmp_path)
    write(tmp_path, [([1], [2])])
    index = tmp_path / "store.json"
    text = index.read_text()
    for broken in (text[:-5], "[]", "{}", json.dumps(json.loads(text) | {"fields": 3})):
        index.write_text(broken)
        with pytest.raises(UserError, match=r"store\.json: damaged"):
            Store.open(tmp_path)
    index.write_text(json.dumps(json.loads(text) | {"version": 2}))
    with pytest.raises(UserError, match="version 2, this Regard reads 1"):
        Store.open(tmp_path)


def test_an_interrupted_writer_leaves_no_store(tmp_path: Path) -> None:
    write(tmp_path, [([1], [2])])
    with suppress(KeyboardInterrupt), StoreWriter(tmp_path, vocabulary=10) as writer:
        writer.add([[1]], [[1]])
        raise KeyboardInterrupt
    with pytest.raises(UserError, match="there is no token store here"):
        Store.open(tmp_path)
