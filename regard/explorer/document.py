"""The page as one file: the same drawing code with one finished answer in it, to be kept, sent or shown in a notebook.

It needs no server and no network. Python computes every matrix beforehand, so that the file shows exactly what the
record holds; the page's modules go in as they are, each under its name in an import map.
"""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.folders import atomic
from regard.errors import UserError
from regard.explorer.scene import Scene
from regard.explorer.seen import Seen
from regard.nn.record import AttentionRecord, Axis, Recording, Weights

PAGE = Path(__file__).parent / "page"
LARGEST = 32 * 2**20
"""Bytes of weights in one file."""
MARKS = frozenset({"<pad>", "<s>", "</s>", "[CLS]", "[SEP]", "[PAD]", "<cls>", "<sep>"})


class Kept(Scene):
    """A finished record, as the page looks at it."""

    specials = MARKS

    def __init__(self, record: AttentionRecord, output: str = "", score: float | None = None) -> None:
        self.held, self.output, self.score = record, output, score

    def record(self, recording: Recording) -> AttentionRecord:
        return self.held.select(recording.sites, recording.heads, recording.rows)

    def replay(self, recording: Recording) -> None:
        raise UserError("a finished record cannot be run again")

    def axes(self, site: str) -> tuple[Axis, Axis]:
        return self.held[site].queries, self.held[site].keys

    @property
    def longest(self) -> int:
        return max(int(max(heads.weights.shape[1:])) for heads in self.held.sites.values())


def document(
    record: AttentionRecord, *, text: str = "", output: str = "", score: float | None = None, whole: bool = True
) -> str:
    """A whole HTML page that shows `record`. The input is read from the record's own words unless it is given. A record
    that is not `whole`, without some of its heads, says nothing of what goes through the layers."""
    if not record.sites:
        raise UserError("the record is empty: this model has no attention to show")
    size = sum(2 * heads.weights[0].nbytes * (len(heads.numbers) + 3) for heads in record.sites.values())
    if size > LARGEST:
        raise UserError(
            f"a page of {size / 2**20:,.0f} MB of weights: too large for one file (at most {LARGEST // 2**20} MB); "
            "choose one --site, or look at it with: regard explore"
        )
    text = text or " ".join(record[record.alignment_site].keys.joined().tokens)
    seen = Seen(Kept(record, output, score))
    about = {"name": "Attention", "model": "", "examples": [text], "verbs": [], "positions": False, "checkpoints": []}
    rolls = whole and seen.rolls
    looks = [{**seen.summary(), "rollout": rolls}]
    held = {"runs": [about], "looks": looks, "matrices": _matrices(seen, record, rolls)}
    return _html(held, output or text)


def save(record: AttentionRecord, path: Path, **about: Any) -> None:
    """`document` as a file."""
    page = document(record, **about)
    try:
        with atomic(path) as temporary:
            temporary.write_text(page, encoding="utf8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); try another folder or name") from None


def frame(page: str, height: int = 760) -> str:
    """The page inside another: for a notebook."""
    style = f"width:100%;height:{height}px;border:0"
    return f'<iframe srcdoc="{html.escape(page, quote=True)}" style="{style}" title="Attention"></iframe>'


def _matrices(seen: Seen, record: AttentionRecord, rolls: bool) -> dict[str, Any]:
    """Everything that the page may ask for, under the names by which it asks."""
    ways = ["mean", "max", *(["rollout"] if rolls else [])]
    found: dict[str, Any] = {}
    for site, heads in record.sites.items():
        found[f"0/{site}/thumbnails"] = _packed(seen.thumbnails(site))
        for head in [*map(str, heads.numbers), *ways]:
            for unit in ("words", "tokens"):
                found[f"0/{site}/{head}/{unit}"] = _packed(seen.matrix(site, head, unit))
    return found


def _packed(matrix: Weights) -> dict[str, Any]:
    raw = np.ascontiguousarray(matrix, dtype="<f4").tobytes()
    return {"shape": list(matrix.shape), "bytes": base64.b64encode(raw).decode()}


def _html(held: dict[str, Any], title: str) -> str:
    modules = {}
    for path in sorted(PAGE.glob("*.js")):
        if path.name not in ("start.js", "live.js"):
            code = re.sub(r'from "\./', 'from "regard/', path.read_text(encoding="utf8"))
            modules[f"regard/{path.name}"] = f"data:text/javascript;base64,{base64.b64encode(code.encode()).decode()}"
    style = (PAGE / "style.css").read_text(encoding="utf8")
    data = json.dumps(held, ensure_ascii=False).replace("<", "\\u003c")  # text can not end the element it is in
    return f"""<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>{html.escape(title)}</title>
  <link rel="icon" href="data:,">
  <style>{style}</style>
  <script type="importmap">{json.dumps({"imports": modules})}</script>
</head>
<body>
  <div id="regard"></div>
  <script type="application/json" id="held">{data}</script>
  <script type="module">
    import {{ open }} from "regard/app.js";
    import {{ embedded }} from "regard/embedded.js";
    const held = JSON.parse(document.getElementById("held").textContent);
    open(document.getElementById("regard"), embedded(held), {{ inAddress: location.protocol !== "about:" }});
  </script>
</body>
</html>
"""
