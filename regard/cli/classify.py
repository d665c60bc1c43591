"""`regard classify`: the class of a text or of an image, or a text's number, with probabilities."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.inputs import are_tables, files_of, given, names_in, say_bad, windows, windows_of
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.classify import Classified


def classify(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or a Hugging Face folder.")],
    texts: Annotated[
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
    from regard.tasks.classify import Classifier
    from regard.tasks.image_classifier import ImageClassifier

    opened = Run.load(run, device)
    said = given(texts)
    if isinstance(opened.predictor, ImageClassifier):
        if columns or second:
            raise UserError("--columns, --second: are for texts; this is a model of images")
        single = len(said) == 1 and not Path(said[0]).is_dir()
        classify_images(opened.predictor, said, Picture(attention, site, head, grid, single=single), out, as_json)
        return
    classifier = opened.asked(Classifier, "classify")
    files = files_of(said)
    picture = Picture(attention, site, head, grid, single=not files and len(said) == 1)
    number, bad = 0, BadLines()
    asked: Iterator[list[tuple[str, str | None]]]
    if are_tables(files, columns):
        learned = (opened.config.data.columns or [])[:-1]  # without the labels
        asked = windows(read_texts(list(map(str, files)), names_in(columns) or [], learned, bad))
    else:
        asked = ([(one, None) for one in window] for window in windows_of(files, said, bad))
    with output(out, files) as file:
        for pairs in asked:
            full = [(one, second or beside) for one, beside in pairs if one]
            seconds = [other for _, other in full if other is not None]
            if len(seconds) not in (0, len(full)):
                raise UserError(f"{len(seconds)} of {len(full)} texts have a second one: classify them in two goes")
            found = iter(classifier.classify([one for one, _ in full], seconds or None) if full else [])
            for text, _ in pairs:
                number += 1
                one = next(found) if text else None
                print(_row(one) if as_json else _line(one), file=file, flush=True)
                if one is not None and one.truncated:
                    print(f"warning: text {number}: too long, only its beginning was read", file=sys.stderr)
                if one is not None and picture.wanted(number):
                    picture.draw(one.attention, number)
    say_bad(bad)


def _row(one: Classified | None) -> str:
    """As JSON. An empty text has no class: a line without an answer stands for a line without a text."""
    if one is None:
        return json.dumps({"text": "", "label": None, "probabilities": {}, "number": None})
    return json.dumps(one.row, ensure_ascii=False)


def _line(one: Classified | None) -> str:
    if one is None:
        return ""
    chance = one.probabilities.get(one.label)
    cells = [one.label, None if chance is None else f"{chance:.3f}", one.text, one.second]
    return "\t".join(" ".join(cell.split()) for cell in cells if cell is not None)
