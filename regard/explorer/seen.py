"""One scene with its numbers: a summary of every head first (tiny), then one matrix at a time.

Short inputs are recorded once, in whole. Where all weights together would be large, every site is recorded when it is
asked for and let go again: memory stays bounded, and the page never receives more than it shows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import asdict
from typing import Any

import numpy as np

from regard.errors import UserError, nearest
from regard.explorer.patterns import Pattern, patterns
from regard.explorer.rollout import rolled
from regard.explorer.scene import Scene
from regard.nn.record import Heads, Recording, Weights

HOLD = 96 * 2**20
"""Bytes of weights that are kept of one scene."""
SHORT = 128
"""Tokens up to which nobody needs to ask how large a record will be."""
SCENES = 6
"""Scenes that are kept, the latest."""
THUMBNAIL = 48
"""Cells of a thumbnail's side, at most."""


class Seen:
    """A scene and what has been computed of it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._whole = scene.record(Recording()) if scene.longest <= SHORT else None
        first = self._whole or scene.record(Recording(rows=[0]))
        self.heads = {site: held.numbers for site, held in first.sites.items()}
        count = sum(map(len, self.heads.values()))
        if self._whole is None and count * scene.longest**2 * 4 <= HOLD:
            self._whole = scene.record(Recording())
        self._one: tuple[str, Heads] | None = None
        self._patterns: dict[str, list[Pattern]] = {}
        self._thumbnails: dict[str, Weights] = {}

    def site(self, site: str) -> Heads:
        """All heads of a site, as Python's own record has them."""
        if site not in self.heads:
            raise UserError(f"site = {site!r}: this model has no such attention{nearest(site, self.heads)}")
        if self._whole is not None:
            return self._whole[site]
        if self._one is None or self._one[0] != site:
            self._one = site, self.scene.record(Recording(sites=site))[site]
        return self._one[1]

    def let_go(self) -> None:
        """Of a site that may be large: it can be recorded again."""
        self._one = None

    def matrix(self, site: str, head: str, unit: str) -> Weights:
        """(queries, keys) of one head, or of the heads' "mean", "max" or "rollout"; over "words" or "tokens"."""
        held = self.site(site)
        if head == "mean":
            matrix = held.mean()
        elif head == "max":
            matrix = held.weights.max(axis=0)
        elif head == "rollout":
            matrix = self._rollout(site)
        elif head.isdecimal():
            matrix = held.head(int(head))
        else:
            raise UserError(f"head = {head!r}: must be a number, 'mean', 'max' or 'rollout'")
        if unit == "tokens":
            return matrix
        joined: Weights = Heads(matrix[None], held.queries, held.keys, [0]).words().weights[0]
        return joined

    def patterns(self, site: str) -> list[Pattern]:
        if site not in self._patterns:
            held = self.site(site)
            self._patterns[site] = patterns(held, self.scene.specials)
            self._thumbnails[site] = pooled(held.weights, THUMBNAIL)
        return self._patterns[site]

    def thumbnails(self, site: str) -> Weights:
        """(heads, rows, columns), small: where there are more cells than that, the largest weight of each patch."""
        self.patterns(site)
        return self._thumbnails[site]

    def summary(self) -> dict[str, Any]:
        """All that the page needs to know before it asks for a matrix."""
        scene, axes = self.scene, []
        sites = []
        for site, numbers in self.heads.items():
            places = []
            for axis in scene.axes(site) if self._whole is None else self._whole[site].axes:
                if axis not in axes:
                    axes.append(axis)
                places.append(axes.index(axis))
            told = self.patterns(site)
            heads = [{"number": n, **asdict(pattern)} for n, pattern in zip(numbers, told, strict=True)]
            sites.append({"site": site, "queries": places[0], "keys": places[1], "heads": heads})
        answer: dict[str, Any] = {
            "output": scene.output,
            "score": scene.score,
            "note": scene.note,
            "answers": scene.answers,
        }
        if scene.image is not None:
            answer["image"] = scene.image
        return {
            **answer,
            "rollout": self.rolls,
            "axes": [asdict(axis) for axis in axes],
            "sites": sites,
            "alignment": self._alignment(),
        }

    @property
    def rolls(self) -> bool:
        """Whether attention can be rolled out: every row, head and layer must be there, from the first on. (An RNN has
        no layers to go through, and of a record a part may have been kept.)"""
        layers: dict[str, list[str]] = {}
        for site, numbers in self.heads.items():
            if site.endswith(".self"):
                queries, keys = self.scene.axes(site)
                if numbers != list(range(len(numbers))) or len(queries.tokens) != len(keys.tokens):
                    return False
                stack, layer, _ = site.split(".")
                layers.setdefault(stack, []).append(layer)
        begun = all(found == [str(number) for number in range(len(found))] for found in layers.values())
        crossed = any(site.endswith("cross") for site in self.heads)
        return bool(layers) and begun and (not crossed or "encoder" in layers)

    def _alignment(self) -> str | None:
        cross = [site for site in self.heads if site.endswith("cross")]
        return (cross or list(self.heads))[-1] if self.heads else None

    def _rollout(self, site: str) -> Weights:
        """What reaches a token through all layers up to `site`.

        Cross-attention looks at the encoder's output: its mean, then the rollout of the encoder.
        """
        stack, _, kind = site.rpartition(".")
        stack = stack.partition(".")[0]
        if kind == "cross":
            mixed = [one for one in self.heads if one.startswith("encoder.") and one.endswith(".self")]
            last: Weights = self.site(site).mean()
        else:
            same = [one for one in self.heads if one.startswith(f"{stack}.") and one.endswith(".self")]
            mixed = same[: same.index(site) + 1]
            last = np.eye(self.site(site).weights.shape[2], dtype=np.float32)
        through = rolled((self.site(one).mean() for one in mixed), last.shape[1])
        return (last @ through).astype(np.float32)


def pooled(weights: Weights, side: int) -> Weights:
    """(heads, queries, keys) with at most `side` rows and columns, each the largest weight of its patch."""
    for axis in (1, 2):
        length = weights.shape[axis]
        if length > side:
            edges = (np.arange(side) * length) // side
            weights = np.maximum.reduceat(weights, edges, axis=axis)
    return np.ascontiguousarray(weights, dtype=np.float32)


class Shelf:
    """The scenes that were looked at last."""

    def __init__(self, size: int = SCENES) -> None:
        self.size, self._scenes = size, OrderedDict[Hashable, Seen]()

    def get(self, key: Hashable, make: Callable[[], Scene]) -> Seen:
        if key not in self._scenes:
            self._scenes[key] = Seen(make())
        self._scenes.move_to_end(key)
        for other, scene in self._scenes.items():
            if other != key:
                scene.let_go()
        while len(self._scenes) > self.size:
            self._scenes.popitem(last=False)
        return self._scenes[key]
