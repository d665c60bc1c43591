"""Attention as a picture for a paper or a slide: one head large (`heatmap`), or every layer and head small (`grid`).

Query tokens are the rows, read downwards; key tokens are the columns; ink is weight. Every figure is laid out on one
sheet measured in inches, so that a cell has the same size in every figure and the figure grows with its sentence.
The weights are drawn as images, never as one object per cell: 512 x 512 takes no longer than 8 x 8.

matplotlib is imported when something is drawn; its global settings are left as they were found.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from regard.data.folders import atomic
from regard.errors import UserError, nearest
from regard.explorer.fonts import GAP, LEADING, TINY, Labels, advice, covering, house, is_truetype, width, wrapped

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    from regard.nn.record import AttentionRecord, Weights

# From paper to ink in one hue: CIE lightness falls by the same step from each stop to the next, so equal differences
# in weight look equal, also in grey and to colour-blind readers.
INK = (
    *("#fffdf8", "#e4e9f1", "#c9d5ea", "#afc1e1", "#97aed7", "#809acb", "#6b87bc"),
    *("#5874aa", "#476297", "#385182", "#2b406c", "#1e3056", "#112042"),
)
PAPER, TEXT, SOFT, RULE = INK[0], "#0d1426", "#5b6275", "#d9d5cb"
FORMATS = (".svg", ".png", ".pdf")

# Lengths are in inches, type sizes in points.
_MARGIN, _CELL, _SIDE, _BETWEEN, _TITLE, _SMALL = 0.3, 0.42, 12.0, 0.16, 13.0, 9.0


def heatmap(
    record: AttentionRecord, *, site: str | None = None, head: int | None = None, title: str | None = None
) -> Figure:
    """One head's weights, or the mean over the heads, with the tokens on both sides; without a site, the alignment."""
    matrix = record.matrix(site, head)
    site = site or record.alignment_site
    if not matrix.size:
        raise UserError(f"site = {site!r}: has nothing to draw, its weights are {matrix.shape[0]} x {matrix.shape[1]}")
    rows, columns = matrix.shape
    cell = min(_CELL, _SIDE / max(rows, columns))
    wide, high = (max(cell, min(_CELL, 3 / count)) for count in (columns, rows))  # a thin strip stays visible
    held = record[site]
    caption = _caption(site, head, len(held.numbers))
    with house():
        sheet = _Sheet()
        queries = Labels.fit(held.queries.tokens, high)
        keys = Labels.fit(held.keys.tokens, wide, top=True)
        if (every := max(queries.every, keys.every)) > 1:
            caption += f" · one token in {every} is named"
        left = _MARGIN + queries.depth
        top = sheet.header(title, caption, left + columns * wide) + keys.depth
        scale = _scale(matrix)
        sheet.panel(left, top, wide, high, matrix, scale, rules=max(rows, columns) <= 60)
        if max(rows, columns) <= 12:
            sheet.numbers(left, top, wide, high, matrix, scale)
        sheet.labels(left, top, high, queries)
        sheet.labels(left, top, wide, keys)
        sheet.bar(left + columns * wide + 0.25, top, min(max(rows * high, 1.2), 4.0), scale)
        return sheet.finish()


def grid(record: AttentionRecord, *, sites: str = "*", title: str | None = None) -> Figure:
    """Small multiples on one scale: a row for each site that matches the pattern `sites`, a column for each head."""
    kept = {site: held for site, held in record.sites.items() if fnmatchcase(site, sites) and held.weights.size}
    if not kept:
        raise UserError(f"sites = {sites!r}: matches nothing{nearest(sites, record.sites)}")
    numbers = max((held.numbers for held in kept.values()), key=len)
    longest = {site: max(held.weights.shape[1:]) for site, held in kept.items()}
    side = max(0.4, min(1.6, 20 / len(numbers), 30 / len(kept)))  # of a panel
    common = min(0.17, side / max(longest.values()))
    cells = {site: max(common, min(0.17, side / 2 / longest[site])) for site in kept}  # a short site stays visible
    named = {site for site in kept if cells[site] * 72 >= TINY * LEADING}  # the others are too small for words
    slot = max(0.45, *(len(held.keys.tokens) * cells[site] for site, held in kept.items())) + _BETWEEN

    def fit(site: str, tokens: list[str], top: bool = False) -> Labels:
        return Labels.fit(tokens if site in named else [], cells[site], top=top, largest=7.5)

    with house():
        sheet = _Sheet()
        queries = {site: fit(site, held.queries.tokens) for site, held in kept.items()}
        left = _MARGIN + max(width(site, _SMALL, covering(site).families) for site in kept) + _BETWEEN
        left += max(labels.depth for labels in queries.values())
        y = sheet.header(title, "", left + len(numbers) * slot)
        for column, number in enumerate(numbers):
            sheet.text(left + column * slot, y, f"head {number}", _SMALL, SOFT, vertical="top")
        y += _SMALL / 72 * LEADING + GAP
        scale = _scale(*(held.weights for held in kept.values()))
        before: list[str] | None = None
        for site, held in kept.items():
            cell, tokens = cells[site], held.keys.tokens
            keys = fit(site, tokens if tokens != before else [], top=True)  # the columns are named where they change
            y += keys.depth
            if before is None:
                sheet.bar(left + len(numbers) * slot, y, 1.6, scale)
            for column, matrix in enumerate(held.weights):
                sheet.panel(left + column * slot, y, cell, cell, matrix, scale)
                sheet.labels(left + column * slot, y, cell, keys)
            high = len(held.queries.tokens) * cell
            sheet.labels(left, y, cell, queries[site])
            sheet.text(_MARGIN, y + high / 2, site, _SMALL)
            before, y = tokens, y + max(high, _SMALL / 72) + _BETWEEN
        return sheet.finish()


def save(figure: Figure, path: Path | str) -> None:
    """Write the figure as SVG (text stays text), PNG (200 dpi) or PDF, by the extension; whole or not at all."""
    path = writable(path)
    kind, page = path.suffix.lower(), io.BytesIO()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind)  # same record, same bytes
    with house():
        import matplotlib
        from matplotlib.text import Text

        texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
        missing = covering(text.get_text() for text in texts).missing
        # matplotlib would declare PostScript outlines, such as Noto CJK's, as TrueType: those it draws as shapes (3).
        if kind == ".pdf" and not is_truetype({family for text in texts for family in text.get_fontfamily()}):
            matplotlib.rcParams["pdf.fonttype"] = 3
        figure.savefig(page, format=kind[1:], dpi=200, metadata=undated)
    if missing and kind != ".svg":
        warnings.warn(f"{path}: {advice(missing)}", UserWarning, stacklevel=2)
    try:
        with atomic(path) as temporary:
            temporary.write_bytes(page.getvalue())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); try another folder or name") from error


def draw(
    record: AttentionRecord,
    path: Path | str,
    *,
    site: str | None = None,
    head: int | None = None,
    grid: bool = False,
    title: str | None = None,
) -> None:
    """Draw and save: a heatmap of one site, or with `grid` every site that matches the pattern `site`."""
    writable(path)  # say so before the work, not after it
    if grid and head is not None:
        raise UserError(f"head = {head}: a grid shows every head; leave out either the head or the grid")
    if grid:
        save(_grid(record, sites=site or "*", title=title), path)
    else:
        save(heatmap(record, site=site, head=head, title=title), path)


_grid = grid  # `draw` has an option of that name


class _Sheet:
    """A page measured in inches from its top left corner, which grows around what is put on it."""

    def __init__(self) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(1, 1), facecolor=PAPER)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.axis("off")
        self.right = self.bottom = 0.0

    def grow(self, right: float, bottom: float) -> None:
        self.right, self.bottom = max(self.right, right), max(self.bottom, bottom)

    def finish(self) -> Figure:
        wide, high = round(self.right + _MARGIN, 2), round(self.bottom + _MARGIN, 2)
        self.figure.set_size_inches(wide, high)
        self.axes.set(xlim=(0, wide), ylim=(high, 0))
        return self.figure

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        color: str = TEXT,
        horizontal: str = "left",
        vertical: str = "center",
        angle: int = 0,
        families: Sequence[str] = (),
    ) -> None:
        """Text as it is: a token such as `$x_1$` is no formula."""
        families = families or covering(text).families
        style = {"family": [*families, "sans-serif"], "size": size, "color": color, "parse_math": False}
        place = {"ha": horizontal, "va": vertical, "rotation": angle, "rotation_mode": "anchor"}
        self.axes.text(x, y, text, **style, **place)  # type: ignore[arg-type]

    def header(self, title: str | None, caption: str, room: float) -> float:
        """The title and the caption below it; returns where the figure goes on."""
        y = _MARGIN
        lines = wrapped(title or "", _TITLE, max(room, 4.5) - _MARGIN)
        families = covering(lines).families
        for line in lines:
            self.text(_MARGIN, y, line, _TITLE, vertical="top", families=families)
            self.grow(_MARGIN + width(line, _TITLE, families), y)
            y += _TITLE / 72 * LEADING
        y += 0.04 if lines else 0
        if caption:
            self.text(_MARGIN, y, caption, _SMALL, SOFT, vertical="top")
            self.grow(_MARGIN + width(caption, _SMALL, covering(caption).families), y)
            y += _SMALL / 72 * LEADING
        return y + 0.16 if y > _MARGIN else y

    def panel(
        self, x: float, y: float, wide: float, high: float, matrix: Weights, scale: float, rules: bool = False
    ) -> None:
        """The weights as ink, in a thin frame; with `rules`, light lines between the cells."""
        (rows, columns), x, y = matrix.shape, round(x, 2), round(y, 2)  # whole pixels, so that the edges are sharp
        right, bottom = x + columns * wide, y + rows * high
        self.axes.imshow(matrix, cmap=ink(), vmin=0, vmax=scale, extent=(x, right, bottom, y), aspect="auto", zorder=1)
        if rules:
            across, down = y + high * np.arange(1, rows), x + wide * np.arange(1, columns)
            self.axes.hlines(across, x, right, colors=RULE, linewidths=0.5, zorder=2)
            self.axes.vlines(down, y, bottom, colors=RULE, linewidths=0.5, zorder=2)
        self.axes.plot([x, right, right, x, x], [y, y, bottom, bottom, y], color=SOFT, linewidth=0.5, zorder=3)
        self.grow(right, bottom)

    def numbers(self, x: float, y: float, wide: float, high: float, matrix: Weights, scale: float) -> None:
        for row, column in np.argwhere(matrix >= 0.05):
            weight = float(matrix[row, column])
            color = PAPER if weight > scale / 2 else TEXT  # whichever stands out
            at = x + (column + 0.5) * wide, y + (row + 0.5) * high
            self.text(*at, f"{weight:.2f}", 7.5, color, horizontal="center")

    def labels(self, x: float, y: float, cell: float, labels: Labels) -> None:
        """The tokens on the left of the matrix whose corner is (x, y), or above it."""
        for index, (text, wide) in enumerate(zip(labels.texts, labels.widths, strict=True)):
            along = (index * labels.every + 0.5) * cell
            if not labels.top:
                at, place = (x - GAP, y + along), ("right", "center")
            elif not labels.angle:
                at, place = (x + along, y - GAP), ("center", "baseline")
            else:
                lean = math.cos(math.radians(labels.angle))
                at, place = (x + along - 0.06 * lean, y - GAP), ("left", "center")
                self.grow(x + along + (wide + 0.06) * lean, y)
            self.text(*at, text, labels.size, TEXT, *place, labels.angle, labels.families)

    def bar(self, x: float, y: float, high: float, scale: float) -> None:
        """The scale: what ink means."""
        x, y, high = round(x, 2), round(y, 2), round(high, 2)
        ramp = np.linspace(scale, 0, 256)[:, None]
        self.axes.imshow(ramp, cmap=ink(), vmin=0, vmax=scale, extent=(x, x + 0.1, y + high, y), aspect="auto")
        for part in (0.0, 0.5, 1.0):
            self.text(x + 0.17, y + high * (1 - part), f"{scale * part:.3g}", 8, SOFT)
        self.text(x + 0.62, y + high / 2, "attention weight", 8, SOFT, horizontal="center", angle=90)
        self.grow(x + 0.66, y + high)


@cache
def ink() -> LinearSegmentedColormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", list(INK), N=512)


def _scale(*weights: Weights) -> float:
    """Where full ink stands: at 1, or where no weight reaches 0.5, at the next round number above the largest."""
    top = max(float(np.max(matrix, initial=0.0, where=np.isfinite(matrix))) for matrix in weights)
    if top <= 0 or top >= 0.5:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(top))
    return next(step * unit for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * unit >= top * (1 - 1e-6))


def _caption(site: str, head: int | None, heads: int) -> str:
    """`decoder.2.cross` -> `decoder · layer 2 · cross-attention · mean of 4 heads`."""
    kinds = {"self": "self-attention", "cross": "cross-attention"}
    parts = [f"layer {part}" if part.isdigit() else kinds.get(part, part) for part in site.split(".")]
    if head is not None or heads > 1:
        parts.append(f"mean of {heads} heads" if head is None else f"head {head}")
    return " · ".join(parts)


def writable(path: Path | str, also: Sequence[str] = ()) -> Path:
    """The path, if a picture can be written there, or something that has one of the endings `also`."""
    path, able = Path(path), [*FORMATS, *also]
    if path.suffix.lower() not in able:
        raise UserError(f"{path}: cannot draw {path.suffix or 'a file without extension'!r}; use {', '.join(able)}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {str(path.parent)!r}; make it first, or choose another")
    return path
