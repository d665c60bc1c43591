"""`regard fill`: the words that a pre-trained model would put in place of a mask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inputs import files_of, given, say_bad, windows_of


def fill(
    run: Annotated[Path, typer.Argument(help="The folder of a pre-trained run, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Texts with [MASK] (or <mask>), or one text file, or standard input.", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(help="Words to show for each mask.", min=1)] = 5,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    site: Annotated[str | None, typer.Option(help="Which attention to draw: encoder.0.self, ...")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Fill the masks of texts."""
    from regard.cli.pictures import Picture
    from regard.data.badlines import BadLines
    from regard.run import Run
    from regard.tasks.filler import Filler

    opened = Run.load(run, device)
    said = given(text)
    files = files_of(said)
    typed = bool(said) and not files
    picture = Picture(attention, site, grid=grid, single=not files and len(said) == 1)
    filler, number, unmarked, bad = opened.asked(Filler, "fill masks"), 0, 0, BadLines()
    for window in windows_of(files, said, bad):
        bare = [not typed and not filler.has_mask(line) for line in window]
        answers = iter(filler.fill([line for line, without in zip(window, bare, strict=True) if not without], top))
        for line, without in zip(window, bare, strict=True):
            if without:  # its row stays, so that row n is line n
                unmarked += bool(line)
                row = {"source": line, "text": line, "masks": []}
                typer.echo(json.dumps(row, ensure_ascii=False) if as_json else line)
                continue
            found, number = next(answers), number + 1
            typer.echo(json.dumps(found.row, ensure_ascii=False) if as_json else found.text)
            for guesses in () if as_json else found.masks:
                typer.echo("  " + "   ".join(f"{guess.word} {guess.probability:.3f}" for guess in guesses))
            if picture.wanted(number):
                picture.draw(found.attention, number)
    if unmarked:
        typer.echo(f"warning: {unmarked:,} lines have no mask and stand as they were", err=True)
    say_bad(bad)
