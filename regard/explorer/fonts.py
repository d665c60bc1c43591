"""Tokens that can be read, in any script: what to write for a token, which installed fonts draw it, and how large.

An SVG keeps its text, so the viewer's fonts draw it. A PNG or a PDF needs fonts on this machine: `covering` finds a
chain of families among the installed ones, which matplotlib then walks glyph by glyph; what no font covers comes back
as `missing`, and `advice` says what to install. Shaping (Arabic joins, Hindi conjuncts, right to left) is matplotlib's,
through libraqm, from 3.11 on.
"""

from __future__ import annotations

import math
import textwrap
import threading
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.font_manager import FontEntry

# Inches between a matrix and its labels; type sizes in points; lines apart, in type sizes.
GAP, TINY, LEADING = 0.08, 6.0, 1.3

# Plain text faces, best first. DejaVu Sans comes with matplotlib, so that one is always there.
PREFERRED = ("Noto Sans", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")

_JOINERS = "\u200c\u200d"  # these shape what they stand between; other format characters are dropped
_CONTROLS = {"\n": "↵", "\r": "↵", "\u2028": "↵", "\u2029": "↵", "\t": "⇥"}
_PACKAGES = {"Han": "fonts-noto-cjk", "Kana": "fonts-noto-cjk", "Hangul": "fonts-noto-cjk", "symbols": "fonts-symbola"}
_SCRIPTS = {"CJK": "Han", "KANGXI": "Han", "IDEOGRAPHIC": "Han", "HIRAGANA": "Kana", "KATAKANA": "Kana"}
_LOCK = threading.RLock()  # matplotlib's settings belong to the process: one figure at a time


def readable(token: str, longest: int = 32) -> str:
    """The token as it is written in a figure: never empty, never invisible, one line, not too long."""
    shown = "".join(map(_visible, token))
    if not shown.strip():
        return "␣"
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip(_JOINERS) + "…"


def wrapped(title: str, size: float, room: float) -> list[str]:
    """A title as lines that are at most `room` inches wide."""
    title = " ".join(readable(word, len(word)) for word in title.split())
    per_line = int(len(title) * room / width(title, size, covering(title).families)) if title else 8
    return textwrap.wrap(title, max(per_line, 8))


def _visible(character: str) -> str:
    if character in _CONTROLS:
        return _CONTROLS[character]
    category, code = unicodedata.category(character), ord(character)
    if category in ("Cc", "Cs") or code & 0xFFFE == 0xFFFE:  # controls, lone surrogates and non-characters
        return "�"
    if category == "Cf" and character not in _JOINERS and not 0xE0020 <= code <= 0xE007F:
        return ""
    return character


@dataclass(frozen=True)
class Fonts:
    """A chain of installed families, and the characters none of them has."""

    families: tuple[str, ...]
    missing: frozenset[str] = frozenset()


def covering(text: Iterable[str]) -> Fonts:
    """The installed fonts that together draw `text`: the plain face first, then as few others as cover the rest."""
    return _search(frozenset("".join(text)))


@lru_cache(maxsize=256)
def _search(characters: frozenset[str]) -> Fonts:
    needed = {character for character in characters if _draws_something(character)}
    chosen, missing = _choose(needed, _faces())
    return Fonts(tuple(dict.fromkeys([*chosen, "DejaVu Sans"])), frozenset(missing))


def _choose(needed: set[str], faces: dict[str, FontEntry]) -> tuple[list[str], set[str]]:
    """A greedy cover: the better kind of face first and, within a kind, the one that has most of what is missing."""
    plain = next((name for name in PREFERRED if name in faces), "DejaVu Sans")
    missing = needed - _covered(faces[plain], needed) if plain in faces else set(needed)
    chosen, region = [plain], _region(needed)
    covered = {name: _covered(entry, missing) for name, entry in faces.items()} if missing else {}
    while missing:
        useful = [name for name, has in covered.items() if has & missing]
        if not useful:
            break
        best = min(useful, key=lambda name: (_kind(name, region), -len(covered[name] & missing), len(name), name))
        chosen.append(best)
        missing = missing - covered[best]
    return chosen, missing


def _kind(name: str, region: str) -> int:
    """How well a family suits a label: plain sans-serif text before serif, typewriter and display faces."""
    if any(word in name for word in ("Mono", "Serif", "Display", "Condensed", "Unjoined", "STIX")):
        return 4
    if name.endswith((" SC", " TC", " HK", " JP", " KR")) and not name.endswith(region):
        return 3  # Han characters have regional shapes
    return 1 if name.startswith("Noto Sans") else 2


def _region(characters: Iterable[str]) -> str:
    """Japanese shapes for a text with kana, Korean with hangul, simplified Chinese otherwise."""
    scripts = {_script(character) for character in characters}
    return " JP" if "Kana" in scripts else " KR" if "Hangul" in scripts else " SC"


@cache
def _faces() -> dict[str, FontEntry]:
    """The upright regular face of every installed family.

    matplotlib keeps its list of fonts in a file; what has been installed since is looked up on the disk, or our advice
    to install a font would seem to have no effect.
    """
    from matplotlib import font_manager

    manager = font_manager.fontManager
    known = {entry.fname for entry in manager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            with suppress(OSError, RuntimeError):  # not one that can be drawn, such as a bitmap emoji font
                manager.addfont(path)
    faces: dict[str, FontEntry] = {}
    for entry in manager.ttflist:
        if entry.style == "normal" and entry.name != "Last Resort High-Efficiency":
            weight = font_manager.weight_dict.get(str(entry.weight), entry.weight)
            if 300 <= int(weight) <= 500 and (entry.name not in faces or int(weight) == 400):
                faces[entry.name] = entry
    return faces


def _covered(entry: FontEntry, characters: set[str]) -> set[str]:
    from matplotlib.ft2font import FT2Font

    try:
        font = FT2Font(entry.fname, face_index=entry.index)
    except (OSError, RuntimeError):  # removed since, or not scalable
        return set()
    return {character for character in characters if font.get_char_index(ord(character))}


def is_truetype(families: Iterable[str]) -> bool:
    """Whether all these families have TrueType outlines, rather than PostScript ones (OpenType CFF)."""
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    faces = [_faces()[family] for family in families if family in _faces()]
    for face in faces:
        with TTFont(face.fname, fontNumber=face.index, lazy=True) as font:
            if font.sfntVersion == "OTTO":
                return False
    return True


def _draws_something(character: str) -> bool:
    selector = 0xFE00 <= ord(character) <= 0xFE0F or 0xE0100 <= ord(character) <= 0xE01EF
    return not selector and not character.isspace() and unicodedata.category(character) not in ("Cf", "Cc")


def _script(character: str) -> str:
    """The script's name, near enough for a message: the first word of the character's Unicode name."""
    if unicodedata.category(character) in ("So", "Sk", "Cn", "Co"):
        return "symbols"
    word = unicodedata.name(character, "unnamed").split()[0].removesuffix("-FULLWIDTH").removeprefix("HALFWIDTH-")
    return _SCRIPTS.get(word, word.capitalize())


def advice(missing: Iterable[str]) -> str:
    """What a person is told when some characters have no font: which, of what script, and what helps."""
    characters = sorted(missing)
    scripts = sorted({_script(character) for character in characters})
    packages = sorted({_PACKAGES.get(script, "fonts-noto-core") for script in scripts})
    some = " ".join(characters[:8]) + (" …" if len(characters) > 8 else "")
    return (
        f"no installed font has {some} ({', '.join(scripts)}): drawn as boxes. "
        f"Save as .svg, which keeps the text, or install a font (Debian, Ubuntu: apt-get install {' '.join(packages)}; "
        "elsewhere: fonts.google.com/noto)"
    )


def width(text: str, size: float, families: Sequence[str]) -> float:
    """How wide `text` is, in inches, at a type size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(family=list(families), size=size), ismath=False
    )
    return float(points) / 72


@dataclass(frozen=True)
class Labels:
    """The tokens along one side of a matrix, set so that no two touch: smaller, turned, or fewer as they grow many."""

    texts: list[str]
    families: tuple[str, ...]
    size: float
    every: int  # one token in so many is named
    angle: int  # 0, or for the columns 45 or 90 degrees
    top: bool
    widths: list[float]

    @classmethod
    def fit(cls, tokens: Sequence[str], cell: float, top: bool = False, largest: float = 10.0) -> Labels:
        every = max(1, math.ceil(TINY * LEADING / (cell * 72)))
        size = min(largest, max(TINY, cell * every * 72 / LEADING))
        texts = [readable(token) for token in tokens[::every]]
        families = covering(texts).families
        widths = [width(text, size, families) for text in texts]
        flat = not top or max(widths, default=0.0) <= cell * every - 0.06
        angle = 0 if flat else 45 if cell * every * 72 * math.sin(math.pi / 4) >= size * LEADING else 90
        return cls(texts, families, size, every, angle, top, widths)

    @property
    def depth(self) -> float:
        """How far the labels stand out from the matrix, with the gap between."""
        if not self.texts:
            return 0.0
        high, turn = self.size / 72, math.radians(self.angle)
        if not self.top:
            return max(self.widths) + GAP
        return max(self.widths) * math.sin(turn) + high * math.cos(turn) + GAP


@contextmanager
def house() -> Iterator[None]:
    """matplotlib's defaults and ours, whatever the caller has set, and the caller's again afterwards."""
    import matplotlib

    with _LOCK, matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams["font.sans-serif"] = list(PREFERRED)  # where an SVG viewer goes on looking
        matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
        matplotlib.rcParams["pdf.fonttype"] = 42  # TrueType, as journals ask
        matplotlib.rcParams["svg.hashsalt"] = "regard"  # same record, same bytes
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # `save` says it once, and what to do
        yield
