"""What `regard classify` and `regard evaluate` do with a model of images: files in, classes out, pictures of both."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.output import output
from regard.cli.pictures import Picture
from regard.data.files import at_home
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.tasks.image_classifier import Classification, Example, ImageClassifier

WORST = 40
"""Errors on a contact sheet."""


def classify_images(
    classifier: ImageClassifier, files: Sequence[str], picture: Picture, out: Path | None, as_json: bool
) -> None:
    """One line for each file; a file that holds no image is named, and the others go on."""
    if not files:
        raise UserError("which image? Try: regard classify RUN picture.jpg --attention picture-attention.png")
    if picture.path is not None and picture.path.suffix.lower() == ".html":
        raise UserError(
            f"{picture.path}: a page shows texts; of images, use .svg, .png, .pdf, .json, or regard explore"
        )
    unreadable, images = 0, _images(files)
    if not images:
        raise UserError(f"{files[0]}: there is no file in it")
    with output(out, images) as file:
        for number, found in enumerate(classifier.classify(images), start=1):
            if isinstance(found, UserError):
                unreadable += 1
                print(f"warning: {found}", file=sys.stderr)
                continue
            plain = f"{found.label}\t{found.probability:.3f}\t{found.source}"
            print(json.dumps(found.row, ensure_ascii=False) if as_json else plain, file=file, flush=True)
            if picture.wanted(number):
                _draw(found, picture.place(number), picture)
    if unreadable == len(images):
        raise UserError(f"{files[0]}: no image could be read")


def draw_worst(examples: Sequence[Example], rows: Sequence[dict[str, Any]], path: Path) -> None:
    """The images that were given a wrong class with the least probability for the right one, on one sheet."""
    from regard.explorer.pictures import contact_sheet

    wrong = [place for place, row in enumerate(rows) if row["label"] != row["predicted"]]
    if not wrong:
        print(f"{path}: not drawn, there is no error to show", file=sys.stderr)
        return
    wrong.sort(key=lambda place: rows[place]["probability_of_label"])
    worst = wrong[:WORST]
    captions = [f"{rows[place]['label']}\nas {rows[place]['predicted']}" for place in worst]
    errors = "The only error" if len(wrong) == 1 else f"The worst of {len(wrong):,} errors"
    title = f"{errors} in {len(rows):,} images"
    contact_sheet([examples[place].pixels for place in worst], captions, path, title)
    print(f"worst errors: {path}", file=sys.stderr)


def _images(files: Sequence[str]) -> list[Path]:
    """The files, and all files of folders."""
    found: list[Path] = []
    for name in files:
        path = at_home(name)
        if not path.exists():
            raise UserError(f"{name}: there is no such file")
        inside = sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith("."))
        found += inside if path.is_dir() else [path]
    return found


def _draw(found: Classification, path: Path, wish: Picture) -> None:
    from regard.explorer.pictures import draw_gaze

    if path.suffix.lower() == ".json":
        chosen = found.attention.select(wish.site or "*", None if wish.head is None else [wish.head])
        path.write_text(chosen.to_json(), encoding="utf8")
    else:
        title = f"{found.label} ({found.probability:.0%}): {Path(found.source).name}"
        draw_gaze(found.pixels, found.attention, path, title=title, site=wish.site, head=wish.head, every=wish.grid)
    print(f"attention: {path}", file=sys.stderr)
