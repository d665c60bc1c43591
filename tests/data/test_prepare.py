"""Preparation: splits that do not leak, nothing lost, made once, never half made."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import folders
from regard.data.badlines import BadLines
from regard.data.folders import link_or_copy
from regard.data.holdout import Holdout, key_of
from regard.data.pairs import Pair
from regard.data.prepare import BuiltIn, Files, Prepared, prepare
from regard.data.readers import read_pairs
from regard.data.sources import Located
from regard.data.tokenizers import Tokenizer
from regard.errors import UserError

SMALL = {"vocabulary": 400}


def corpus(path: Path, lines: int, *, repeat: int = 1) -> Path:
    text = "".join(f"sentence {n // repeat} of all\tphrase {n} de toutes\n" for n in range(lines))
    path.write_text(text, encoding="utf-8")
    return path


def texts(made: Prepared, name: str) -> list[tuple[str, str]]:
    store = made.train if name == "train" else made.valid
    rows = (store.row(n) for n in range(len(store)))
    return [(made.tokenizer.decode(row["source"]), made.tokenizer.decode(row["target"])) for row in rows]


def sides(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in pairs]


def test_every_pair_is_in_exactly_one_split(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 2000)
    made = prepare(Files([path]), cache=tmp_path / "cache", valid_count=60, test_count=40, **SMALL)
    assert [made.counts[name] for name in ("train", "valid", "test")] == [1900, 60, 40]
    everything = texts(made, "train") + texts(made, "valid") + sides(made.tests["test"])
    assert Counter(everything) == Counter(sides(list(read_pairs([path]))))
    assert texts(made, "valid") == sides(made.valid_pairs)  # row n is pair n
    assert made.summary.startswith("1,900 train, 60 valid, 40 test pairs\nall 2,000 lines were usable")


def test_copies_of_a_sentence_never_straddle_the_splits(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 1200, repeat=3)
    made = prepare(Files([path]), cache=tmp_path / "cache", **SMALL)
    splits = [{source for source, _ in texts(made, "train")}, {p.source for p in made.valid_pairs}]
    splits.append({pair.source for pair in made.tests["test"]})
    assert sum(map(len, splits)) == len(set.union(*splits)) == 400
    assert all(0 < made.counts[name] <= 60 for name in ("valid", "test"))  # 5% of 1200


@pytest.mark.parametrize(("lines", "expected"), [(1, (1, 1, 0)), (2, (1, 1, 0)), (3, (1, 1, 1)), (20, (18, 1, 1))])
def test_small_files_still_train(tmp_path: Path, lines: int, expected: tuple[int, int, int]) -> None:
    path = corpus(tmp_path / "a.tsv", lines)
    made = prepare(Files([path]), cache=tmp_path / "cache", **SMALL)
    assert (made.counts["train"], made.counts["valid"], made.counts["test"]) == expected
    assert (len(made.train), len(made.valid), len(made.valid_pairs)) == (expected[0], expected[1], expected[1])
    assert ("validation is on training pairs" in made.summary) == (lines == 1)
    assert ("too few different sentences to hold out a test set" in made.summary) == (lines < 3)
    assert list(made.tests) == (["test"] if lines > 2 else [])


@given(
    sources=st.lists(st.integers(0, 12), min_size=1, max_size=40),
    counts=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_holdout_sizes(sources: list[int], counts: tuple[int, int]) -> None:
    """Bounds hold whatever the repetition; a set is only empty when nothing fits or training would be left without."""
    occurrences = Counter(key_of(str(n), 0) for n in sources)
    holdout = Holdout(keep=100)
    for n in sources:
        holdout.see(key_of(str(n), 0))
    one, other = holdout.choose(counts, share=0.2)
    assert not one & other
    assert len(occurrences) > len(one | other)
    for keys, count in ((one, counts[0]), (other, counts[1])):
        room = min(count, max(1, int(0.2 * len(sources))))
        assert sum(occurrences[key] for key in keys) <= room or len(keys) == 1
        assert keys or len(set(occurrences) - one - other) == 1 or not room


@given(st.lists(st.integers(0, 50)), st.integers(0, 9))
def test_holdout_keeps_complete_counts_in_bounded_memory(keys: list[int], keep: int) -> None:
    holdout = Holdout(keep)
    for key in keys:
        holdout.see(key)
    smallest = sorted(set(keys))[: keep + 1]
    assert holdout._counts == {key: keys.count(key) for key in smallest}


def test_the_split_depends_on_the_seed_and_not_on_the_order(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 400)
    shuffled = tmp_path / "b.tsv"
    shuffled.write_text("\n".join(sorted(path.read_text().splitlines(), reverse=True)))
    first, same, other = (
        {pair.source for pair in prepare(Files([file]), cache=tmp_path, seed=seed, **SMALL).valid_pairs}
        for file, seed in ((path, 1), (shuffled, 1), (path, 2))
    )
    assert first == same
    assert first != other


def test_files_of_their_own_for_validation_and_test(tmp_path: Path) -> None:
    train = corpus(tmp_path / "a.tsv", 100)
    valid, test = tmp_path / "v.tsv", tmp_path / "t.tsv"
    valid.write_text("v\tw\n")
    test.write_text("t\tu\t0-0\n")
    made = prepare(Files([train], [valid], [test]), cache=tmp_path / "cache", **SMALL)
    assert made.counts["train"] == 100
    assert made.valid_pairs == [Pair("v", "w")]
    assert made.tests == {"test": [Pair("t", "u", ((0, 0),))]}
    only = prepare(Files([train], [valid]), cache=tmp_path / "cache", **SMALL)
    assert (only.counts["train"], only.counts["test"]) == (95, 5)
    assert not {pair.source for pair in only.tests["test"]} & {source for source, _ in texts(only, "train")}


def made_up(count: int, word: str = "a") -> dict[str, object]:
    def split(name: str, size: int) -> object:
        return lambda: (Pair(f"{word} {name} {n}", f"b {name} {n}", ((0, 0),)) for n in range(size))

    return {name: split(name, size) for name, size in [("train", count), ("valid", 3), ("test", 2), ("unseen", 4)]}


def test_a_built_in_corpus_brings_its_own_splits(tmp_path: Path) -> None:
    made = prepare(BuiltIn("toy", made_up(50)), cache=tmp_path, **SMALL)  # type: ignore[arg-type]
    assert [made.counts[name] for name in ("train", "valid", "test", "unseen")] == [50, 3, 2, 4]
    assert {name: len(pairs) for name, pairs in made.tests.items()} == {"test": 2, "unseen": 4}
    assert made.tests["unseen"][0] == Pair("a unseen 0", "b unseen 0", ((0, 0),))
    assert BuiltIn("toy", made_up(50, "c")).fingerprint() != BuiltIn("toy", made_up(50)).fingerprint()  # type: ignore[arg-type]


def test_the_tokenizer_sees_training_text_only(tmp_path: Path) -> None:
    train, test = corpus(tmp_path / "a.tsv", 50), tmp_path / "t.tsv"
    test.write_text("ж\tж\n", encoding="utf-8")
    made = prepare(Files([train], [test], [test]), cache=tmp_path / "cache", kind="char", **SMALL)
    assert made.tokenizer.inner.token_to_id("ж") is None
    assert made.tokenizer.inner.token_to_id("p") is not None  # from the target side: one vocabulary for both


def test_a_tokenizer_can_be_given(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["sentence phrase of de all toutes 0123456789"], kind="char", vocabulary=300)
    made = prepare(Files([corpus(tmp_path / "a.tsv", 50)]), cache=tmp_path / "cache", tokenizer=tokenizer)
    assert made.tokenizer.inner.to_str() == tokenizer.inner.to_str()
    assert texts(made, "train")[0][0].startswith("sentence ")


def test_long_pairs_are_bad_lines_with_their_place(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 40)
    with path.open("a") as file:
        file.write("x\t" + "y" * 50 + "\n" + "only one column\n")
    made = prepare(Files([path]), cache=tmp_path / "cache", kind="char", max_length=30, test_count=0, **SMALL)
    assert "1 too long (line 41 of a.tsv)" in made.summary
    assert "1 wrong columns (line 42 of a.tsv)" in made.summary
    assert made.train.lengths.max() <= 30
    assert made.counts["bad"] == 2
    assert "\t41\ttoo long\tx | yyyy" in (made.folder / "bad_lines.tsv").read_text()
    with pytest.raises(UserError, match=r"max_length = 3: all \d+ training pairs are longer; raise data\.max_length"):
        prepare(Files([path]), cache=tmp_path / "cache", max_length=3, max_bad_share=1, **SMALL)
    with pytest.raises(UserError, match=r"raise data\.max_bad_share, data\.max_length"):
        prepare(Files([path]), cache=tmp_path / "cache", kind="char", max_length=19, **SMALL)


def test_too_many_bad_lines_stop_the_run_and_the_list_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n" * 3 + "c\n")
    with pytest.raises(
        UserError, match=r"25\.0% of the lines .* data\.max_bad_share = 0\.1 .*listed in (\S+);?"
    ) as caught:
        prepare(Files([path]), cache=tmp_path / "cache", **SMALL)
    (listed,) = (tmp_path / "cache").iterdir()  # no half-made folder beside it
    assert str(listed) in str(caught.value)
    assert "\t4\twrong columns\tc" in listed.read_text()


class Counting:
    """A source that counts how often it is read."""

    def __init__(self, path: Path) -> None:
        self.files, self.reads = Files([path]), 0

    def fingerprint(self) -> object:
        return self.files.fingerprint()

    def splits(self, bad: BadLines) -> dict[str, object]:
        def read() -> Located:
            self.reads += 1
            yield from self.files.splits(bad)["train"]()

        return {"train": read}


def test_prepared_once_and_again_only_when_something_changed(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 100)
    source = Counting(path)
    first = prepare(source, cache=tmp_path / "cache", **SMALL)  # type: ignore[arg-type]
    assert source.reads == 1  # even the first time, one reading is enough
    again = prepare(source, cache=tmp_path / "cache", **SMALL)  # type: ignore[arg-type]
    assert source.reads == 1
    assert (again.folder, again.summary) == (first.folder, first.summary)
    assert texts(again, "train") == texts(first, "train")
    for change in ({"seed": 9}, {"max_length": 99}, {"kind": "char"}, {"lowercase": True}, {"vocabulary": 401}):
        other = prepare(source, cache=tmp_path / "cache", **(SMALL | change))  # type: ignore[arg-type]
        assert other.folder != first.folder
    reads = source.reads
    os.utime(path, (1, 1))
    assert prepare(source, cache=tmp_path / "cache", **SMALL).folder != first.folder  # type: ignore[arg-type]
    assert source.reads == reads + 1


def test_the_same_source_gives_the_same_files(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 300)
    one, other = (prepare(Files([path]), cache=tmp_path / name, **SMALL).folder for name in ("x", "y"))
    names = sorted(str(file.relative_to(one)) for file in one.rglob("*") if file.is_file())
    assert names == sorted(str(file.relative_to(other)) for file in other.rglob("*") if file.is_file())
    assert "scratch.jsonl" not in names
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_killed_in_the_middle_leaves_nothing_that_counts(tmp_path: Path) -> None:
    path = corpus(tmp_path / "a.tsv", 100)
    cache = tmp_path / "cache"
    code = (
        "import os, sys\nfrom regard.data import prepare as p\n"
        "p._Job.report = lambda *_: os.kill(os.getpid(), 9)\n"
        f"p.prepare(p.Files([{str(path)!r}]), cache={str(cache)!r}, vocabulary=400)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (left,) = cache.iterdir()
    assert left.name.endswith(".tmp")
    made = prepare(Files([path]), cache=cache, **SMALL)
    assert list(cache.iterdir()) == [made.folder]


def test_only_stale_temporary_folders_are_swept(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = socket.gethostname()
    names = {f".a~{here}~{gone.pid}.tmp": False, f".b~{here}~{os.getppid()}.tmp": True, ".c~elsewhere~1.tmp": True}
    for name in [*names, ".d~elsewhere~1.tmp"]:
        (tmp_path / name).mkdir()
    old = time.time() - 2 * 24 * 3600
    os.utime(tmp_path / ".d~elsewhere~1.tmp", (old, old))
    folders.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {name for name, stays in names.items() if stays}


def test_two_builders_at_once_agree(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with folders.building(place) as mine:
        (mine / "who").write_text("second")
        place.mkdir()
        (place / "who").write_text("first")
    assert (place / "who").read_text() == "first"
    assert list(tmp_path.iterdir()) == [place]


@pytest.fixture
def made(tmp_path: Path) -> Prepared:
    return prepare(Files([corpus(tmp_path / "a.tsv", 60)]), cache=tmp_path / "cache", **SMALL)


@pytest.mark.parametrize("links", [True, False])
def test_into_a_run_folder(tmp_path: Path, made: Prepared, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("another disk")))
    run = tmp_path / "run" / "data"
    link_or_copy(made.folder, run)
    assert os.path.samefile(made.folder / "tokenizer.json", run / "tokenizer.json") == links
    opened = Prepared.open(run)
    assert texts(opened, "train") == texts(made, "train")
    assert (opened.valid_pairs, opened.tests, opened.counts) == (made.valid_pairs, made.tests, made.counts)
    assert list(run.parent.iterdir()) == [run]


def test_folders_that_are_not_prepared_data(tmp_path: Path, made: Prepared) -> None:
    with pytest.raises(UserError, match=r"report\.json: missing; this is no folder of prepared data, prepare it again"):
        Prepared.open(tmp_path)
    report = made.folder / "report.json"
    whole = report.read_text()
    report.write_text(whole[:40])
    with pytest.raises(UserError, match=r"report\.json: damaged; delete .* and prepare the data again"):
        Prepared.open(made.folder)
    report.write_text(json.dumps({"counts": {}}))
    with pytest.raises(UserError, match=r"report\.json: damaged"):
        Prepared.open(made.folder)
    report.write_text(whole)
    (made.folder / "valid.jsonl").unlink()
    with pytest.raises(UserError, match=r"valid\.jsonl: missing"):
        Prepared.open(made.folder)


def test_progress_is_told(tmp_path: Path) -> None:
    calls: list[tuple[object, ...]] = []

    class Told:
        def start(self, description: str, total: int | None) -> None:
            calls.append((description, total))

        def advance(self, count: int) -> None:
            calls.append(("advance", count))

        def finish(self) -> None:
            calls.append(("finish",))

    prepare(Files([corpus(tmp_path / "a.tsv", 2500)]), cache=tmp_path / "cache", progress=Told(), test_count=0, **SMALL)
    starts = [call for call in calls if call[0] not in ("advance", "finish")]
    assert starts == [("reading", None), ("learning the vocabulary", 4750), ("encoding", 2500)]
    assert calls.count(("finish",)) == 3
    assert ("advance", 1000) in calls


def test_held_out_sources_that_are_trained_on_are_counted(tmp_path: Path) -> None:
    path, test = corpus(tmp_path / "a.tsv", 200), tmp_path / "test.tsv"
    test.write_text("sentence 7 of all\tx\nsentence 7 of all\ty\nanother\tz\n", encoding="utf8")
    made = prepare(Files([path], test=[test]), cache=tmp_path / "cache", valid_count=20, **SMALL)
    if any(pair.source == "sentence 7 of all" for pair in made.valid_pairs):
        pytest.skip("held out by chance")
    assert "warning: 2 of the 3 test sources are trained on too" in made.summary


def test_sources_that_are_one_to_the_tokenizer_stay_together(tmp_path: Path) -> None:
    """Composed and decomposed letters, and with `lowercase` capitals too."""
    rows = [f"caf\u00e9  {n}\tx\ncafe\u0301 {n}\ty\nCAF\u00c9 {n}\tz\n" for n in range(300)]
    (tmp_path / "a.tsv").write_text("".join(rows), encoding="utf8")
    made = prepare(Files([tmp_path / "a.tsv"]), cache=tmp_path / "cache", lowercase=True, **SMALL)
    held = {pair.source.split()[-1] for pair in made.valid_pairs}
    assert held
    assert not held & {source.split()[-1] for source, _ in texts(made, "train")}


def test_no_held_out_set_is_mostly_one_sentence() -> None:
    holdout = Holdout(keep=800)
    common, rare = [key_of(f"yes {n}", 1) for n in range(20)], [key_of(f"sentence {n}", 1) for n in range(1000)]
    for key in [*common * 300, *rare]:
        holdout.see(key)
    for chosen in holdout.choose([350, 350], 0.05):
        assert len(chosen) == 350
        assert not chosen & set(common)
