"""`regard translate`: sentences, a file or standard input; with a picture of what each word looked at."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.inputs import files_of, given, say_bad, sources_of
from regard.data.readers import one_line

if TYPE_CHECKING:
    from regard.tasks.translator import Translation


def translate(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences; or text files, or tables; without either, standard input.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    columns: Annotated[str | None, typer.Option(help="Of tables: the column of the sources.")] = None,
    attention: Annotated[
        Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; a page: .html; its numbers: .json.")
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(help="Write the source word that each output word looked at most: 0-0 1-2, a line each."),
    ] = None,
    site: Annotated[str | None, typer.Option(help="Which attention to draw: decoder.3.cross, ...")] = None,
    head: Annotated[int | None, typer.Option(help="Which head to draw; by default their mean.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    subwords: Annotated[bool, typer.Option("--subwords", help="Draw subwords instead of words.")] = False,
    method: Annotated[str | None, typer.Option(help="greedy, beam or sample.")] = None,
    beam: Annotated[int | None, typer.Option(help="Width of the beam.")] = None,
    n_best: Annotated[int | None, typer.Option(help="Outputs per sentence.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Score / length ** penalty.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n-gram of this size twice.")] = None,
    prefix: Annotated[str | None, typer.Option(help="How every output must begin.")] = None,
    ask: Annotated[str | None, typer.Option(help="Said before every source: 'translate English to German:'.")] = None,
    min_length: Annotated[int | None, typer.Option(help="Fewest tokens.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Most tokens.")] = None,
    temperature: Annotated[float | None, typer.Option(help="For sampling: over 1 is bolder.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample among the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample within this share of probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="For sampling.")] = None,
    window: Annotated[
        int | None,
        typer.Option(
            help="Sentences read before they are translated (256, growing to 4096; 1 for a pipe that waits).", min=1
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with scores.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    int8: Annotated[
        bool,
        typer.Option(
            "--int8", help="Weights in 8 bits: faster, hardly worse; a word may differ with the other lines (CPU)."
        ),
    ] = False,
) -> None:
    """Translate sentences, a file or standard input.

    Line by line and in order; files may be of any length.
    """
    wishes = {
        "method": method, "beam": beam, "n_best": n_best, "length_penalty": length_penalty,
        "no_repeat_ngram": no_repeat_ngram, "min_length": min_length, "max_length": max_length,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    from regard.cli.output import output
    from regard.cli.pictures import Picture
    from regard.data.badlines import BadLines
    from regard.errors import UserError
    from regard.run import Run

    opened = Run.load(run, device, "int8" if int8 else "float32")
    search = opened.config.decode.wishing(wishes)
    texts = given(text)
    files = files_of(texts)
    bad = BadLines()
    lines = sources_of(files, texts, columns, opened.config.data.columns, bad)
    prefixes = None if prefix is None else iter(lambda: prefix, None)
    waiting = not texts and sys.stdin.isatty()
    if alignment is not None and alignment == out:
        raise UserError(f"--alignment {alignment}: is where --out writes too; name another file")
    which = (None, None) if alignment and not attention else (site, head)
    picture = Picture(attention, *which, grid, subwords, single=not files and len(texts) == 1)
    endless = 0
    with output(out, files) as file, output(alignment, files) as linked:
        results = opened.stream(lines, search, prefixes, window=1 if waiting else window, ask=ask)
        for number, result in enumerate(results, start=1):
            if result.truncated:
                print(f"warning: line {number}: too long for the model, only its beginning was read", file=sys.stderr)
            endless += not result.ended
            for line in _shown(result, number, search.n_best, as_json):
                print(line, file=file, flush=True)
            for one in _outputs(result, search.n_best) if alignment else ():
                if one is None and as_json:
                    continue
                links = one.links(site, head) if one else ()
                print(*(f"{source}-{target}" for source, target in links), file=linked, flush=True)
            if result.target_ids and picture.wanted(number):
                picture.draw(result.attention, number, text=result.source, output=result.text, score=result.score)
    if endless and max_length is None:
        print(
            f"warning: {endless:,} of {number:,} outputs reached their greatest length (try --max-length)",
            file=sys.stderr,
        )
    say_bad(bad)


def _outputs(result: Translation, wanted: int) -> list[Translation | None]:
    """As many as are wanted of an input, the best first; None where no more were found."""
    several = [result, *result.others]
    missing = wanted - len(several)
    return [*several, *([None] if result.source else [result]) * missing]  # of an empty line: as many as of the others


def _shown(result: Translation, number: int, wanted: int, as_json: bool) -> Iterator[str]:
    """A line for each of the outputs that are wanted of an input; as JSON, of those that were found."""
    for rank, one in enumerate(_outputs(result, wanted), start=1):
        place = {"line": number, "rank": rank} if wanted > 1 else {}
        if not as_json:
            yield one_line(one.text) if one else ""
        elif one:
            yield json.dumps({**one.row, **place}, ensure_ascii=False)
