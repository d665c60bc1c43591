"""Which files the user means, and their lines: plain or gzip, with every way a file can fail said in words."""

import glob
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, cast

from regard.errors import UserError

Format = Literal["tsv", "csv", "jsonl", "parquet", "text"]
_FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
_HELD_OUT = re.compile(r"(?i)(^|[-_.])(valid(ation)?|val|dev|test)([-_.\d]|$)")
"""Names of files that nobody means to train on."""
ALLOWED = (
    "a table (.tsv, .csv, .jsonl, .ndjson, .parquet), a folder of tables, "
    "or two parallel text files (train.en train.de)"
)


def format_of(path: Path) -> Format:
    """By the extension, `.gz` aside; what is no table is text."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return _FORMATS.get(plain.suffix.lower(), "text")


def at_home(name: str | Path) -> Path:
    """`~/pairs.tsv` as the file at home; a name that only begins like that is a name."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def in_letters(path: Path) -> str:
    """A name that can be written anywhere: names of files may have bytes that are no letters."""
    return os.fsencode(path).decode("utf8", "replace")


def matches(pattern: str | Path) -> list[Path]:
    """The files behind a pattern such as `shards/*.tsv.gz`, sorted."""
    found = sorted(Path(match) for match in glob.glob(str(at_home(pattern)), recursive=True))
    return [path for path in found if path.is_file()]


def expand(files: Sequence[str | Path]) -> list[Path]:
    """The files behind names, folders and patterns such as `shards/*.tsv.gz`, each group sorted."""
    if not files:
        raise UserError(f"no data file given; give {ALLOWED}")
    found: list[Path] = []
    for name in files:
        path = at_home(name)
        if path.is_dir():
            found += _in_folder(path)
        elif path.exists():
            found.append(path)
        elif glob.has_magic(str(name)):
            if not (behind := matches(name)):
                raise UserError(f"{name}: no file matches this pattern; give {ALLOWED}")
            found += behind
        else:
            raise UserError(f"{name}: there is no such file; give {ALLOWED}")
    return found


def text_files(names: Sequence[str]) -> list[Path]:
    """The text files behind names and patterns, no tables; of a folder, all that are in it, however deep."""
    found: list[Path] = []
    for name in names:
        path = at_home(name)
        inside = sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith("."))
        if path.is_dir() and not inside:
            raise UserError(f"{path}: this folder is empty; give text files")
        found += inside if path.is_dir() else expand([name])
    for path in found:
        if format_of(path) not in ("text", "jsonl"):
            raise UserError(f"{path}: give plain text (.txt, or .gz of it) or .jsonl with a field 'text'")
    return found


def _in_folder(folder: Path) -> list[Path]:
    """The tables of a folder; where there is none, its other files, which may be two parallel texts."""
    inside = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    tables = [path for path in inside if format_of(path) != "text"]
    if not tables and len(inside) != 2:
        names = ", ".join(path.name for path in inside[:5]) + (", …" if len(inside) > 5 else "")
        raise UserError(
            f"{folder}: no table in this folder ({f'found {names}' if names else 'it is empty'}); give {ALLOWED}"
        )
    held = [path for path in tables if _HELD_OUT.search(path.name)]
    if held and len(held) < len(tables):
        others = next(path for path in tables if path not in held)
        raise UserError(
            f"{folder}: has {held[0].name} beside {others.name}, and one may be there to test what the other taught; "
            f"name them: {others} --test {held[0]}, or a pattern such as '{folder}/train*'"
        )
    return tables or inside


def lines(path: Path) -> Iterator[bytes]:
    """The lines without their ends (LF or CRLF) and without a byte order mark, in constant memory."""
    try:
        with _open(path) as stream:
            _check_text(path, stream.read(8192))
            stream.seek(0)
            yield from lines_in(stream)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise UserError(
            f"{path}: the gzip file is damaged or cut short ({problem}); copy or download it again"
        ) from None
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; give {ALLOWED}") from None
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror or problem})") from None


def lines_in(stream: BinaryIO) -> Iterator[bytes]:
    """As `lines`, of what is open already."""
    for number, line in enumerate(stream):
        yield (line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line).rstrip(b"\r\n")


def has_tabs(path: Path) -> bool:
    """Whether a text has columns with tabs between them, as its first line tells."""
    return b"\t" in next(filter(None, lines(path)), b"")


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix.lower() == ".gz" else path.open("rb")


def _check_text(path: Path, head: bytes) -> None:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{path}: this text is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8")
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:
        raise UserError(f"{path}: its lines end in CR alone (old Mac); convert it first: tr '\\r' '\\n' < {path.name}")
    if b"\0" in head:
        raise UserError(f"{path}: is not a text file (it holds NUL bytes; unpack an archive first); give {ALLOWED}")
