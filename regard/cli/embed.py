"""`regard embed`: a vector for every text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inputs import files_of, given, say_bad, sources_of, windows
from regard.errors import UserError

SHOWN = 20
"""Texts that are compared with each other, at most."""


def embed(
    run: Annotated[Path, typer.Argument(help="The folder of a run with an encoder, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Texts; or text files, or tables; without either, standard input.", show_default=False),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Of tables: the column of the texts.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the vectors here (.npy); row n is line n.")] = None,
    pooling: Annotated[str, typer.Option(help="mean of the tokens, first token, or the model's summary.")] = "mean",
    layers: Annotated[str, typer.Option(help="last, sum-last-four or concat-last-four.")] = "last",
    normalise: Annotated[bool, typer.Option("--normalise", help="Scale every vector to length 1.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Turn texts into vectors; without --out, show how alike the texts are (cosine)."""
    import numpy as np

    from regard.data.badlines import BadLines
    from regard.run import Run

    if out is not None and out.suffix != ".npy":
        raise UserError(f"--out {out}: vectors are written as NumPy's .npy (try {out.with_suffix('.npy')})")
    if out is not None and not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}")
    opened = Run.load(run, device)
    said, bad = given(text), BadLines()
    texts: list[str] = []
    parts, cut = [], 0
    for window in windows(sources_of(files_of(said), said, columns, opened.config.data.columns, bad), 4096):
        several = [line.strip() for line in window]
        parts.append(opened.embed(several, pooling, layers))
        cut += opened.reader.cut(several)
        texts += several[: SHOWN - len(texts)]
    say_bad(bad)
    vectors = np.concatenate(parts) if parts else opened.embed([], pooling, layers)
    if cut:
        most = opened.reader.most
        typer.echo(f"warning: {cut:,} texts are longer than {most} tokens; only their beginning was read", err=True)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, 1e-12)
    if out is not None:
        with out.open("wb") as file:
            np.save(file, unit if normalise else vectors)
        typer.echo(f"{out}: {vectors.shape[0]:,} vectors of {vectors.shape[1]}")
        return
    for number, (one, row) in enumerate(zip(texts, unit[:SHOWN] @ unit[:SHOWN].T, strict=True)):
        typer.echo(f"{number:3} " + " ".join(f"{value:6.3f}" for value in row) + f"  {one[:60]}")
