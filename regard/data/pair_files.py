"""Pairs as JSON lines, with their alignment and where they came from: what a prepared folder holds out."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from regard.data.badlines import Location
from regard.data.pairs import Pair


def save_pairs(path: Path, pairs: Iterable[tuple[Pair, Location | None]]) -> int:
    """Writes the pairs as they come and says how many there were; `regard.data.readers` reads the file as well."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for pair, where in pairs:
            record: dict[str, Any] = {"source": pair.source, "target": pair.target}
            if pair.alignment is not None:
                record["alignment"] = pair.alignment
            if where is not None:
                record |= {"file": where.path, "line": where.line}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
            count += 1
    return count


def load_located(path: Path) -> Iterator[tuple[Pair, Location]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            record = json.loads(line)
            links = record.get("alignment")
            alignment = None if links is None else tuple((one, other) for one, other in links)
            where = Location(record.get("file", str(path)), record.get("line", number))
            yield Pair(record["source"], record["target"], alignment), where


def load_pairs(path: str | Path) -> list[Pair]:
    """The pairs of a `valid.jsonl` or `test.jsonl` of a prepared folder."""
    return [pair for pair, _ in load_located(Path(path))]
