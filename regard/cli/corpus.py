"""`regard corpus`: the built-in corpora, listed or written to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def corpus(
    name: Annotated[
        str | None, typer.Argument(help="Which one; without it, all are listed.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write train.tsv, test.tsv, ... to.", show_default=False)
    ] = None,
    lines: Annotated[int, typer.Option(help="Pairs to show when not writing.", min=0)] = 10,
) -> None:
    """List the built-in corpora, show one, or write it.

    Files are TSV: source, target, and the gold alignment of their words.
    """
    from itertools import islice

    from regard.data.corpora import CORPORA
    from regard.data.corpora import corpus as find
    from regard.errors import UserError

    if name is None:
        for each in CORPORA.values():
            typer.echo(f"{each.name:16} {each.description}")
        return
    found = find(name)
    if out is None:
        for pair in islice(found.splits["train"](), lines):
            typer.echo(f"{pair.source}\t{pair.target}")
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for split in found.splits:
            if (out / f"{split}.tsv").exists():
                raise UserError(f"{out / split}.tsv: is there already; choose another --out")
        for split, pairs in found.splits.items():
            with (out / f"{split}.tsv").open("w", encoding="utf8") as file:
                count = 0
                for pair in pairs():
                    count += 1
                    links = " ".join(f"{source}-{target}" for source, target in pair.alignment or ())
                    file.write(f"{pair.source}\t{pair.target}\t{links}\n")
            typer.echo(f"{out / split}.tsv: {count:,} pairs")
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror})") from None
