"""What a model looked at in a picture: one layer, one head, or the rollout over all layers, drawn over the image.

Of the rollout (`explorer/rollout.py`) the row of the class token, or the mean over the patches where there is no class
token, says how much of every patch has reached the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import UserError
from regard.explorer.figures import PAPER, SOFT, TEXT, save, writable
from regard.explorer.fonts import LEADING, covering, house, wrapped
from regard.explorer.rollout import rolled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.nn.record import AttentionRecord, Weights

Pixels = NDArray[np.uint8]
_PANEL, _SMALL = 2.2, 1.05  # inches
_TITLE = 10.0  # points


def rollout(record: AttentionRecord) -> Weights:
    """(tokens, tokens): how much of each token of the first layer is in each of the last."""
    sites = [site for site in record.sites if site.endswith(".self")]
    if not sites:
        raise UserError("the record holds no self-attention: record all layers for a rollout")
    tokens = len(record[sites[0]].keys.tokens)
    for site in sites:
        if record[site].mean().shape != (tokens, tokens):
            raise UserError(f"{site}: holds only some rows; record all of them for a rollout")
    return rolled((record[site].mean() for site in sites), tokens)


def gaze(record: AttentionRecord, site: str | None = None, head: int | None = None) -> Weights:
    """How much was looked at each patch: (rows, columns), which sum to 1.

    By one head of a site, by the mean over its heads, or without a site by the rollout.
    """
    if site is None and head is not None:
        raise UserError(f"head = {head}: of which layer? Name a site too (try --site encoder.0.self)")
    matrix = rollout(record) if site is None else record.matrix(site, head)
    tokens = next(iter(record.sites.values())).keys.tokens
    extra = sum(token.startswith("[") for token in tokens)
    row = matrix[0] if tokens[0] == "[class]" else matrix[extra:].mean(axis=0)
    rows, columns = (int(number) + 1 for number in tokens[-1].split(","))
    patches = row[extra:].reshape(rows, columns)
    shares: Weights = patches / max(float(patches.sum()), 1e-12)
    return shares


def overlay(picture: Pixels, looked: Weights) -> NDArray[np.float32]:
    """The picture in grey, glowing where it was looked at: (height, width, 3), from 0 to 1. The most is full light."""
    import matplotlib
    from PIL import Image

    height, width = picture.shape[:2]
    grey = picture.mean(axis=2) / 255
    low, high = float(looked.min()), float(looked.max())
    level = (looked - low) / max(high - low, 1e-12)
    smooth = Image.fromarray(level.astype(np.float32)).resize((width, height), Image.Resampling.BICUBIC)
    light = np.clip(np.asarray(smooth), 0, 1)
    share = 0.75 * light[..., None]
    colours = matplotlib.colormaps["inferno"](0.25 + 0.75 * light)[..., :3]
    mixed: NDArray[np.float32] = ((1 - share) * (0.6 * grey[..., None]) + share * colours).astype(np.float32)
    return mixed


def figure(
    picture: Pixels, record: AttentionRecord, title: str, *, site: str | None = None, head: int | None = None
) -> Figure:
    """The picture, and beside it where it was looked at."""
    sheet = _Sheet([[_PANEL, _PANEL]], title)
    sheet.panel(0, 0, _plain(picture))
    sheet.panel(0, 1, overlay(picture, gaze(record, site, head)), caption(site, head))
    return sheet.figure


def grid(picture: Pixels, record: AttentionRecord, title: str) -> Figure:
    """Every layer and head in small, and above them the picture and the rollout."""
    sites = [site for site in record.sites if site.endswith(".self")]
    heads = max(len(record[site].numbers) for site in sites)
    sheet = _Sheet([[_PANEL, _PANEL], *([_SMALL] * (heads + 1) for _ in sites)], title)
    sheet.panel(0, 0, _plain(picture))
    sheet.panel(0, 1, overlay(picture, gaze(record)), "rollout over all layers")
    for row, site in enumerate(sites, 1):
        sheet.panel(row, 0, overlay(picture, gaze(record, site)), f"{site}, mean")
        for column, number in enumerate(record[site].numbers, 1):
            sheet.panel(row, column, overlay(picture, gaze(record, site, number)), f"head {number}")
    return sheet.figure


def draw_gaze(
    picture: Pixels,
    record: AttentionRecord,
    path: Path | str,
    *,
    title: str = "",
    site: str | None = None,
    head: int | None = None,
    every: bool = False,
) -> None:
    """Draw and save as .png, .svg or .pdf; with `every`, all layers and heads."""
    writable(path)
    if every and (site is not None or head is not None):
        raise UserError("a grid shows every layer and head; leave out either the grid or the site and head")
    save(grid(picture, record, title) if every else figure(picture, record, title, site=site, head=head), path)


def contact_sheet(pictures: Sequence[Pixels], captions: Sequence[str], path: Path | str, title: str = "") -> None:
    """Many small pictures with a line under each, such as the worst errors of a classifier."""
    writable(path)
    columns = max(1, math.ceil(math.sqrt(len(pictures) * 1.4)))
    rows = [list(range(start, min(start + columns, len(pictures)))) for start in range(0, len(pictures), columns)]
    sheet = _Sheet([[_SMALL] * len(row) for row in rows], title)
    for number, row in enumerate(rows):
        for column, place in enumerate(row):
            sheet.panel(number, column, _plain(pictures[place]), captions[place])
    save(sheet.figure, path)


def caption(site: str | None, head: int | None) -> str:
    if site is None:
        return "rollout over all layers"
    return f"{site}, {'mean over heads' if head is None else f'head {head}'}"


class _Sheet:
    """Rows of square panels, each row with sides of its own, and a caption of two lines under each panel."""

    def __init__(self, rows: Sequence[Sequence[float]], title: str) -> None:
        from matplotlib.figure import Figure

        margin, self.gap, self.below = 0.15, 0.12, 0.3
        self.sides = rows
        wide = max(2.2, 2 * margin + max(sum(row) + self.gap * (len(row) - 1) for row in rows))
        lines = wrapped(title, _TITLE, wide - 2 * margin)
        top = margin + (0.12 + len(lines) * _TITLE / 72 * LEADING if lines else 0)
        high = top + sum(row[0] + self.below for row in rows) + margin / 2
        with house():
            self.figure = Figure(figsize=(wide, high), facecolor=PAPER)
            for number, line in enumerate(lines):
                y = margin + number * _TITLE / 72 * LEADING
                self.figure.text(margin / wide, 1 - y / high, line, **_style(line, _TITLE, TEXT))
        self.wide, self.high, self.left, self.top = wide, high, margin, top

    def panel(self, row: int, column: int, image: NDArray[Any], text: str = "") -> None:
        side = self.sides[row][column]
        x = self.left + column * (side + self.gap)
        y = self.top + sum(above[0] + self.below for above in self.sides[:row])
        place = (x / self.wide, 1 - (y + side) / self.high, side / self.wide, side / self.high)
        with house():
            axes = self.figure.add_axes(place)
            axes.imshow(image, interpolation="nearest", cmap="gray", vmin=0, vmax=255 if image.dtype == np.uint8 else 1)
            axes.axis("off")
            at = x / self.wide, 1 - (y + side + 0.04) / self.high
            self.figure.text(*at, text, **_style(text, 8 if side > 1.5 else 5.5, SOFT))


def _style(text: str, size: float, color: str) -> dict[str, Any]:
    """In fonts that have its letters; a dollar is one."""
    family = [*covering(text).families, "sans-serif"]
    return {"family": family, "size": size, "color": color, "va": "top", "parse_math": False}


def _plain(picture: Pixels) -> Pixels:
    return picture[..., 0] if picture.shape[2] == 1 else picture
