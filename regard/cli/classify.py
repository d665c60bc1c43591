"""`regard classify`: the class of a text or of an image, or a text's number, with probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inputs import are_tables, files_of, say_bad, windows, windows_of


def classify(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts; or text files, or tables as in training; without either, standard input. Of a model of "
            "images: image files.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[str | None, typer.Option(help="The second text, for pairs; the same for all.")] = None,
    columns: Annotated[str | None, typer.Option(help="Of tables: the text, perhaps a second one.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    site: Annotated[str | None, typer.Option(help="Which attention to draw: encoder.0.self, ...")] = None,
    head: Annotated[int | None, typer.Option(help="Which head to draw; by default their mean.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with all probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Classify texts, a file or standard input, line by line; or images.

    Of a table (.tsv, .csv, .jsonl, .parquet) the column of texts is read, and of pairs the second one.
    Of an image, --attention draws what the model looked at over it: the rollout over all layers, or a --site.
    """
    from regard.cli.images import classify_images
    from regard.cli.output import output
    from regard.cli.pictures import Picture
    from regard.data.asked import read_texts
    from regard.data.badlines import BadLines
    from regard.run import Run
    from regard.tasks.image_classifier import ImageClassifier

    opened = Run.load(run, device)
    given = text or []
    if isinstance(opened.predictor, ImageClassifier):
        classify_images(
            opened.predictor, given, out=out, attention=attention, site=site, head=head, grid=grid, as_json=as_json
        )
        return
    files = files_of(given)
    picture = Picture(attention, site, head, grid, single=not files and len(given) == 1)
    number, bad = 0, BadLines()
    asked: Iterator[list[tuple[str, str | None]]]
    if are_tables(files):
        learned = (opened.config.data.columns or [])[:-1]  # without the labels
        asked = windows(read_texts(list(map(str, files)), columns.split(",") if columns else [], learned, bad))
    else:
        asked = ([(one, None) for one in window] for window in windows_of(files, given))
    with output(out, files) as file:
        for pairs in asked:
            seconds = [other for _, beside in pairs if (other := second or beside) is not None]
            for one in opened.classify([one for one, _ in pairs], seconds or None):
                number += 1
                answer = one.probabilities.get(one.label)
                shown = {"text": one.text, **({} if one.second is None else {"second": one.second})}
                row = {**shown, "label": one.label, "probabilities": one.probabilities, "number": one.number}
                plain = [one.label, *([] if answer is None else [f"{answer:.3f}"]), *shown.values()]
                print(json.dumps(row, ensure_ascii=False) if as_json else "\t".join(plain), file=file, flush=True)
                if picture.wanted(number):
                    picture.draw(one.attention, number)
    say_bad(bad)
