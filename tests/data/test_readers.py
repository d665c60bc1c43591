"""Readers take what people have, leave out what is broken and say so, and refuse in words what is no corpus."""

import csv
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.badlines import BadLines, Location
from regard.data.pairs import Pair
from regard.data.readers import read_located, read_pairs
from regard.errors import UserError

PAIRS = [
    ("Go.", "Va !"),
    ("I see the cat, you see it.", "Je vois le chat, tu le vois."),
    ('He said "no".', "Il a dit « non »."),
]
EXPECTED = [Pair(*pair) for pair in PAIRS]


def tsv(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def csv_with(*header: str) -> Callable[[Path, list[tuple[str, str]]], None]:
    def write(path: Path, pairs: list[tuple[str, str]]) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([header] if header else [])
            writer.writerows(pairs if len(header) < 3 else [("7", *pair) for pair in pairs])

    return write


def jsonl(record: Callable[[str, str], object]) -> Callable[[Path, list[tuple[str, str]]], None]:
    def write(path: Path, pairs: list[tuple[str, str]]) -> None:
        path.write_text("".join(json.dumps(record(*pair)) + "\n" for pair in pairs), encoding="utf-8")

    return write


def parquet(record: Callable[[str, str], dict[str, object]]) -> Callable[[Path, list[tuple[str, str]]], None]:
    def write(path: Path, pairs: list[tuple[str, str]]) -> None:
        pq.write_table(pa.Table.from_pylist([record(*pair) for pair in pairs]), path, row_group_size=2)

    return write


LAYOUTS = {
    "plain.tsv": tsv,
    "tatoeba.txt": tsv,
    "plain.csv": csv_with(),
    "named.csv": csv_with("source", "target"),
    "codes.csv": csv_with("id", "en", "fr"),
    "short.csv": csv_with("SRC", "TGT"),
    "source.jsonl": jsonl(lambda s, t: {"id": 1, "source": s, "target": t}),
    "src.ndjson": jsonl(lambda s, t: {"src": s, "tgt": t, "note": "x"}),
    "hugging.jsonl": jsonl(lambda s, t: {"id": "3", "translation": {"en": s, "fr": t}}),
    "two.jsonl": jsonl(lambda s, t: {"question": s, "answer": t, "score": 3}),
    "source.parquet": parquet(lambda s, t: {"id": 1, "source": s, "target": t}),
    "hugging.parquet": parquet(lambda s, t: {"translation": {"en": s, "fr": t}}),
    "two.parquet": parquet(lambda s, t: {"one": s, "other": t}),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_layout_gives_the_same_pairs(tmp_path: Path, name: str, packed: bool) -> None:
    path = tmp_path / name
    LAYOUTS[name](path, PAIRS)
    if packed:
        if path.suffix == ".parquet":
            pytest.skip("Parquet compresses itself")
        path = path.with_name(name + ".gz")
        path.write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    bad = BadLines()
    assert list(read_pairs([path], bad=bad)) == EXPECTED
    assert (bad.read, bad.total) == (3, 0)
    assert bad.summary() == "all 3 lines were usable"


clean = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\t"), min_size=1)
sides = clean.map(str.strip).filter(bool)


@pytest.mark.parametrize("name", ["a.tsv", "named.csv", "source.jsonl", "two.parquet"])
@given(pairs=st.lists(st.tuples(sides, sides), min_size=1, max_size=5))
@settings(deadline=None, max_examples=40)
def test_any_text_survives(tmp_path_factory: pytest.TempPathFactory, name: str, pairs: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("any") / name
    LAYOUTS.get(name, tsv)(path, pairs)
    # A byte order mark at the very start of a file is no part of its first sentence, in any format that may have one.
    expected = [Pair(" ".join(normalize("NFC", source).split()), normalize("NFC", target)) for source, target in pairs]
    assert list(read_pairs([path])) == expected or pairs[0][0].startswith("\ufeff")


def test_white_space_in_a_source_says_nothing_and_in_a_target_is_to_be_written(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Tu  viens\u00a0?\tYes\u202f!\n", encoding="utf8")
    assert list(read_pairs([tmp_path / "pairs.tsv"])) == [Pair("Tu viens ?", "Yes\u202f!")]


def test_parallel_files(tmp_path: Path) -> None:
    one, other = tmp_path / "train.en", tmp_path / "train.fr.gz"
    one.write_text("".join(f"{source}\n" for source, _ in PAIRS), encoding="utf-8")
    other.write_bytes(gzip.compress("".join(f"{target}\r\n" for _, target in PAIRS).encode()))
    located = list(read_located([one, other]))
    assert [pair for pair, _ in located] == EXPECTED
    assert [where.line for _, where in located] == [1, 2, 3]
    assert list(read_pairs([tmp_path])) == EXPECTED  # a folder that holds just the two


@pytest.mark.parametrize("shorter", [0, 1])
def test_parallel_files_of_different_lengths(tmp_path: Path, shorter: int) -> None:
    names = [tmp_path / "a.en", tmp_path / "a.fr"]
    for n, path in enumerate(names):
        path.write_text("x\n" * (1200 if n == shorter else 1234))
    counts = ("1,200", "1,234") if shorter == 0 else ("1,234", "1,200")
    with pytest.raises(
        UserError, match=rf"a\.en has {counts[0]} lines and .*a\.fr has {counts[1]}: parallel files need"
    ):
        list(read_pairs(names))


def test_marks_and_line_ends_of_windows(tmp_path: Path) -> None:
    for name, text in [("a.tsv", "Go.\tVa !\r\nNo.\tNon.\r\n"), ("a.csv", "source,target\r\nGo.,Va !\r\nNo.,Non.\r\n")]:
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        assert list(read_pairs([tmp_path / name])) == [Pair("Go.", "Va !"), Pair("No.", "Non.")]


def test_quoted_line_breaks_count_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('en,fr\n"one\ntwo",deux\n,x\nthree,trois\n')
    bad = BadLines()
    located = list(read_located([path], bad=bad))
    assert located == [(Pair("one two", "deux"), (str(path), 2)), (Pair("three", "trois"), (str(path), 5))]
    assert bad.examples == {"empty": [Location(str(path), 4)]}


def test_semicolons_and_very_long_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("source;target\n" + "x" * 300_000 + ";y, z\n")
    assert list(read_pairs([path])) == [Pair("x" * 300_000, "y, z")]


def test_columns_by_name_and_by_number(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("id\tfr\ten\n1\tVa !\tGo.\n")
    assert list(read_pairs([path], columns=["en", "fr"])) == [Pair("Go.", "Va !")]
    assert list(read_pairs([path], columns=["2", "1"])) == [Pair("Go.", "Va !")]  # a header is one all the same
    path = tmp_path / "a.jsonl"
    path.write_text('{"translation": {"de": "Geh", "en": "Go", "fr": "Va"}}\n')
    assert list(read_pairs([path], columns=["fr", "de"])) == [Pair("Va", "Geh")]
    path = tmp_path / "a.parquet"
    parquet(lambda s, t: {"x": 1, "a": s, "b": t})(path, PAIRS)
    assert list(read_pairs([path], columns=["b", "a"])) == [Pair(target, source) for source, target in PAIRS]
    with pytest.raises(
        UserError, match=r"a\.parquet: there is no column 'en'; found x, a, b; pass two of them as --columns"
    ):
        list(read_pairs([path], columns=["en", "b"]))
    with pytest.raises(UserError, match=r"columns = en: give two"):
        list(read_pairs([path], columns=["en"]))


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_columns_that_cannot_be_told(tmp_path: Path, name: str) -> None:
    write = jsonl if name == "a.jsonl" else parquet
    write(lambda s, t: {"one": s, "two": t, "three": s})(tmp_path / name, PAIRS)
    with pytest.raises(UserError, match=r"cannot tell which .* found one, two, three; pass two .* --columns one,two"):
        list(read_pairs([tmp_path / name]))


def test_alignments(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a b\tc d\t0-0 1-1\na\tb\tCC-BY 2.0 (France)\na\tb\t\n")
    assert [pair.alignment for pair in read_pairs([path])] == [((0, 0), (1, 1)), None, None]
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"source": "a", "target": "b", "alignment": [[0, 0]]}\n{"source": "a", "target": "b", "alignment": 3}\n'
    )
    assert [pair.alignment for pair in read_pairs([path])] == [((0, 0),), None]


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("a.tsv", "la maison\tthe house now\t0-0 1-2\n", ["1", "0"]),
        ("a.csv", "fr,en,alignment\nla maison,the house now,0-0 1-2\n", ["en", "fr"]),
        ("a.jsonl", '{"fr": "la maison", "en": "the house now", "alignment": "0-0 1-2"}\n', ["en", "fr"]),
    ],
)
def test_links_turn_round_with_the_columns(tmp_path: Path, name: str, text: str, columns: list[str]) -> None:
    (tmp_path / name).write_text(text)
    assert list(read_pairs([tmp_path / name], columns=columns)) == [
        Pair("the house now", "la maison", ((0, 0), (2, 1)))
    ]
    assert next(read_pairs([tmp_path / name], columns=columns[::-1])).alignment == ((0, 0), (1, 2))


def test_folders_and_patterns_in_order(tmp_path: Path) -> None:
    for name in ("2.tsv", "1.tsv", ".hidden.tsv", "README.md"):
        (tmp_path / name).write_text(f"{name}\tx\n")
    (tmp_path / "3.jsonl").write_text('{"src": "3.jsonl", "tgt": "x"}\n')
    assert [pair.source for pair in read_pairs([tmp_path])] == ["1.tsv", "2.tsv", "3.jsonl"]
    assert [pair.source for pair in read_pairs([str(tmp_path / "*.tsv")])] == ["1.tsv", "2.tsv"]
    assert [pair.source for pair in read_pairs([tmp_path / "2.tsv", tmp_path / "1.tsv"])] == ["2.tsv", "1.tsv"]


def test_bad_lines_are_left_out_counted_and_listed(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"a\tb\n\nonly one\nc\t \n\xff\xfe\td\n" + b"e\tf\n" * 5)
    with BadLines(tmp_path / "bad_lines.tsv") as bad:
        assert len(list(read_pairs([path], bad=bad))) == 6
    assert (bad.read, bad.total) == (10, 4)
    assert bad.counts == {"empty": 2, "columns": 1, "encoding": 1}
    assert bad.summary() == (
        "4 of 10 lines were left out:\n"
        "  2 empty side (lines 2, 4 of pairs.tsv)\n"
        "  1 wrong columns (line 3 of pairs.tsv)\n"
        "  1 invalid UTF-8 (line 5 of pairs.tsv)"
    )
    rows = [line.split("\t") for line in (tmp_path / "bad_lines.tsv").read_text().splitlines()]
    assert rows[0] == ["file", "line", "reason", "excerpt"]
    assert [row[1:3] for row in rows[1:]] == [
        ["2", "empty side"],
        ["3", "wrong columns"],
        ["4", "empty side"],
        ["5", "invalid UTF-8"],
    ]
    assert rows[4][3] == r"\xff\xfe d"
    bad.check(0.4)
    with pytest.raises(
        UserError, match=r"40\.0% of the lines \(4 of 10\).* data\.max_bad_share = 0\.1 allows 10\.0%"
    ) as caught:
        bad.check(0.1)
    assert "2 empty side: lines 2, 4 of pairs.tsv" in str(caught.value)
    assert "raise data.max_bad_share" in str(caught.value)


def test_bad_records_of_the_other_formats(tmp_path: Path) -> None:
    records = [b'{"src": "a", "tgt": "b"}', b'{"src": ', b"[1]", b'{"src": "a"}', b'{"src": "a", "tgt": 5}', b"\xff"]
    half = b'{"src": "\\ud83d", "tgt": "b"}'
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([*records, half]))
    (tmp_path / "a.csv").write_bytes(b"src,tgt\na,b\nc\n\xff,d\n,\n")
    pq.write_table(pa.table({"src": ["a", None, " "], "tgt": ["b", "c", "d"]}), tmp_path / "a.parquet")
    for name, counts in {
        "a.jsonl": {"json": 2, "columns": 2, "encoding": 2},
        "a.csv": {"columns": 1, "encoding": 1, "empty": 1},
        "a.parquet": {"empty": 2},
    }.items():
        bad = BadLines()
        assert list(read_pairs([tmp_path / name], bad=bad)) == [Pair("a", "b")]
        assert bad.counts == counts


def test_memory_stays_constant_however_many_lines_are_bad(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    with gzip.open(path, "wt") as file:
        for _ in range(200):
            file.write("a sentence of the corpus\tune phrase du corpus\n" * 100 + "no tab\n" * 100)
    tracemalloc.start()
    with BadLines(tmp_path / "bad_lines.tsv") as bad:
        assert sum(1 for _ in read_pairs([path], bad=bad)) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert "20,000 wrong columns (lines 101, 102, 103, 104, 105 of a.tsv.gz, …)" in bad.summary()


def test_reading_is_lazy(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n" * 1000)
    bad = BadLines()
    pairs = read_pairs([path], bad=bad)
    assert bad.read == 0
    next(pairs)
    assert bad.read == 1


PACKED = gzip.compress(b"a\tb\n" * 50_000)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"", "a.tsv: empty, there is no sentence pair to read"),
        ("a.csv", b"", "a.csv: empty, there is no sentence pair to read"),
        (
            "a.tsv",
            b"one\ntwo\n",
            r"no usable sentence pair: 2 of 2 lines were left out:\n  2 wrong columns \(lines 1, 2",
        ),
        ("a.txt", b"one\ntwo\n", "a.txt: 1 plain text without tabs cannot be paired; give a table"),
        ("a.tsv", b"PK\x03\x04\0\0\t\n", r"a\.tsv: is not a text file \(it holds NUL bytes; unpack an archive first\)"),
        ("a.tsv", "a\tb\n".encode("utf-16"), "this text is UTF-16; convert it first: iconv"),
        ("a.tsv.gz", b"a\tb\n", r"a\.tsv\.gz: the gzip file is damaged or cut short"),
        ("a.tsv.gz", PACKED[:-20], r"a\.tsv\.gz: the gzip file is damaged or cut short"),
        ("a.parquet", b"PAR1 nothing", r"a\.parquet: not a readable Parquet file"),
        ("a.parquet", b"", r"a\.parquet: not a readable Parquet file"),
    ],
)
def test_files_that_are_no_corpus(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        list(read_pairs([tmp_path / name]))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.tsv: there is no such file; give a table \(\.tsv, \.csv"):
        list(read_pairs([tmp_path / "gone.tsv"]))
    with pytest.raises(UserError, match=r"\*\.tsv: no file matches this pattern"):
        list(read_pairs([str(tmp_path / "*.tsv")]))
    with pytest.raises(UserError, match=r"no table in this folder \(it is empty\); give a table"):
        list(read_pairs([tmp_path]))
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text("text")
    with pytest.raises(UserError, match=r"no table in this folder \(found a\.md, b\.md, c\.md\)"):
        list(read_pairs([tmp_path]))
    with pytest.raises(UserError, match="no data file given"):
        list(read_pairs([]))
    (tmp_path / "a.tsv").write_text("a\tb\n")
    with pytest.raises(UserError, match=r"a\.md: a plain text among tables"):
        list(read_pairs([tmp_path / "a.md", tmp_path / "a.tsv"]))


@pytest.mark.parametrize(
    "header", ["id\ten\tfr", "id\tEnglish\tFrench", "source\ttarget", "en\tfr", "English\tFrench", "src\ttrg"]
)
def test_names_of_a_tsv_are_no_pair(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}\n" + ("7\t" if "id" in header else "") + "the cat\tle chat\n", encoding="utf8")
    assert list(read_pairs([path])) == [Pair("the cat", "le chat")]


def test_numbered_lines_are_not_taken_for_sources(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("1\tthe cat\tle chat\n2\tthe dog\tle chien\n", encoding="utf8")
    with pytest.raises(UserError, match=r"3 columns without known names.*--columns 1,2"):
        list(read_pairs([path]))
    assert list(read_pairs([path], columns=["1", "2"]))[1] == Pair("the dog", "le chien")


def test_a_csv_row_with_too_many_cells_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('en,fr\nHello, world,Bonjour, le monde\n"Hello, you","Bonjour, toi"\n', encoding="utf8")
    bad = BadLines()
    assert list(read_pairs([path], bad=bad)) == [Pair("Hello, you", "Bonjour, toi")]
    assert bad.total == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", ",one,other\n0,Hello.,Bonjour.\n1,Bye.,Salut.\n"),  # as pandas writes it
        ("a.tsv", "\tone\tother\n0\tHello.\tBonjour.\n"),
        ("a.tsv", "nr\tone\tother\n17\tHello.\tBonjour.\n"),
        ("a.csv", "17,Hello.,Bonjour.\n18,Bye.,Salut.\n"),
    ],
)
def test_the_number_of_a_row_is_no_source(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf8")
    with pytest.raises(UserError, match="choose the source and the target, for example --columns 1,2"):
        list(read_pairs([tmp_path / name]))
    assert list(read_pairs([tmp_path / name], columns=["1", "2"]))[-1].source in ("Hello.", "Bye.")


def test_a_semicolon_may_divide_what_has_commas_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Hello, you;Bonjour, toi\nBye;Salut\nSo, so, so;La la\n", encoding="utf8")
    assert next(read_pairs([tmp_path / "a.csv"])) == Pair("Hello, you", "Bonjour, toi")
    (tmp_path / "a.csv").write_text("He; she,Lui; elle\nBye,Salut\n", encoding="utf8")
    assert next(read_pairs([tmp_path / "a.csv"])) == Pair("He; she", "Lui; elle")


def test_a_pair_is_a_line_on_either_side(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"en": "one\\n two\\u2028x", "fr": "un\\r\\ndeux"}\n', encoding="utf8")
    assert list(read_pairs([tmp_path / "a.jsonl"])) == [Pair("one two x", "un deux")]


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("a.csv", "source,target,alignment\na b,c d,0-0 1-1\n", None),
        ("a.tsv", "source\ttarget\talignment\na b\tc d\t0-0 1-1\n", ["source", "target"]),
        ("a.tsv", "a b\tc d\t0-0 1-1\n", ["0", "1"]),
        ("a.csv", "a b,c d,0-0 1-1\n", None),
    ],
)
def test_alignments_stand_in_the_third_column(tmp_path: Path, name: str, text: str, columns: list[str] | None) -> None:
    (tmp_path / name).write_text(text, encoding="utf8")
    assert list(read_pairs([tmp_path / name], columns=columns)) == [Pair("a b", "c d", ((0, 0), (1, 1)))]


@pytest.mark.parametrize(
    ("name", "text", "expected", "counts"),
    [
        ("a.csv", "\nsource,target\nGo.,Va.\n", [("Go.", "Va.")], {"empty": 1}),
        ("a.csv", "Go.,Va.\n\nNo.,Non.\n", [("Go.", "Va."), ("No.", "Non.")], {"empty": 1}),
        ("a.tsv", "\nsource\ttarget\nGo.\tVa.\n", [("Go.", "Va.")], {"empty": 1}),
        ("a.csv", "Hello, you.\tBonjour, toi.\n", [("Hello, you.", "Bonjour, toi.")], {}),
        ("a.csv", 'Go.,Va.\n"Stop!" he said.,x\nNo.,Non.\n', [("Go.", "Va."), ("No.", "Non.")], {"quotes": 1}),
        ("a.csv", 'Go.,Va.\n"So,la\nA,B\nA "dog",C\nNo.,Non.\n', [("Go.", "Va."), ("No.", "Non.")], {"quotes": 3}),
        ("a.jsonl", '{"source": null, "target": "x"}\n{"source": "a", "target": "b"}\n', [("a", "b")], {"empty": 1}),
    ],
)
def test_no_line_is_lost_unseen(
    tmp_path: Path, name: str, text: str, expected: list[tuple[str, str]], counts: dict[str, int]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf8")
    bad = BadLines()
    assert list(read_pairs([tmp_path / name], bad=bad)) == [Pair(*pair) for pair in expected]
    assert dict(bad.counts) == counts
    assert bad.read == len(expected) + bad.total


def test_a_folder_with_held_out_files_is_not_trained_on_as_a_whole(tmp_path: Path) -> None:
    for name in ("train-00.tsv", "test-00.tsv"):
        tsv(tmp_path / name, PAIRS)
    with pytest.raises(UserError, match=r"has test-00\.tsv beside train-00\.tsv.*--test"):
        list(read_pairs([tmp_path]))
    (tmp_path / "test-00.tsv").rename(tmp_path / "contest.tsv")  # any other name is a shard
    assert len(list(read_pairs([tmp_path]))) == 2 * len(PAIRS)


def test_what_would_be_read_wrongly_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mac.tsv").write_bytes(b"A\tB\rC\tD\r")
    with pytest.raises(UserError, match=r"mac\.tsv: its lines end in CR alone"):
        list(read_pairs([tmp_path / "mac.tsv"]))
    tsv(tmp_path / "a.tsv", PAIRS)
    with pytest.raises(UserError, match="columns = 0,0: the source and the target are one column"):
        list(read_pairs([tmp_path / "a.tsv"], columns=["0", "0"]))


def test_accents_are_read_as_tokenizers_write_them(tmp_path: Path) -> None:
    tsv(tmp_path / "a.tsv", [("cafe\u0301", "e\u0301te\u0301")])
    assert list(read_pairs([tmp_path / "a.tsv"])) == [Pair("caf\u00e9", "\u00e9t\u00e9")]
