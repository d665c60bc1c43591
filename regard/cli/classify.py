"""`regard classify`: the class of a text or of an image, or a text's number, with probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inputs import files_of, windows_of


def classify(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts, or one text file; without either, standard input. Of a model of images: image files.",
            show_default=False,
        ),
    ] = None,
    second: Annotated[str | None, typer.Option(help="The second text, for pairs; the same for all.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file instead.", show_default=False)] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    site: Annotated[str | None, typer.Option(help="Which attention to draw: encoder.0.self, ...")] = None,
    head: Annotated[int | None, typer.Option(help="Which head to draw; by default their mean.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with all probabilities.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
) -> None:
    """Classify texts, a file or standard input, line by line; or images.

    Of an image, --attention draws what the model looked at over it: the rollout over all layers, or a --site.
    """
    from regard.cli.images import classify_images
    from regard.cli.output import output
    from regard.cli.pictures import Picture
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
    number = 0
    with output(out, files) as file:
        for window in windows_of(files, given):
            for one in opened.classify(window, None if second is None else [second] * len(window)):
                number += 1
                answer = one.probabilities.get(one.label)
                row = {"text": one.text, "label": one.label, "probabilities": one.probabilities, "number": one.number}
                plain = one.label if answer is None else f"{one.label}\t{answer:.3f}"
                print(json.dumps(row, ensure_ascii=False) if as_json else f"{plain}\t{one.text}", file=file, flush=True)
                if picture.wanted(number):
                    picture.draw(one.attention, number)
