"""A figure shows exactly what the record holds, names every token in any script, and is written whole or not at all."""

import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from regard.errors import UserError
from regard.explorer import figures, fonts
from regard.nn.record import AttentionRecord, Axis, Heads

ENGLISH = ["The", "white", "cat", "is", "not", "sleeping", "."]
FRENCH = ["Le", "chat", "blanc", "ne", "dort", "pas", "."]
SCRIPTS = {
    "Chinese": ["白", "猫", "没有", "睡觉", "。"],
    "Japanese": ["白い", "猫", "は", "眠って", "いない"],
    "Korean": ["하얀", "고양이", "는"],
    "Arabic": ["القطة", "البيضاء", "لا", "تنام"],
    "Hindi": ["सफ़ेद", "बिल्ली", "नहीं", "विश्वविद्यालय"],
    "Thai": ["แมว", "ไม่", "หลับ"],
    "emoji": ["❤️", "🐱", "👩‍👩‍👧", "🇫🇷"],
    "markup": ["<s>", "a&b", '"', "'", "]]>", "<!--"],
    "math": ["$x$", "$", "x_1", "a^2", "\\frac{", "$$", "{", "%", "\\"],
}


def softmax(*shape: int) -> np.ndarray:
    weights = np.exp(3 * np.random.default_rng(0).normal(size=shape))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def looked(queries: list[str], keys: list[str], heads: int) -> Heads:
    weights = softmax(heads, len(queries), len(keys))
    return Heads(weights, Axis.plain(queries), Axis.plain(keys), list(range(heads)))


def record(queries: list[str], keys: list[str], heads: int = 4, site: str = "decoder.2.cross") -> AttentionRecord:
    return AttentionRecord({site: looked(queries, keys, heads)})


def model(layers: int, heads: int) -> AttentionRecord:
    sites = [(f"encoder.{i}.self", ENGLISH, ENGLISH) for i in range(layers)]
    sites += [(f"decoder.{i}.cross", FRENCH[:4], ENGLISH) for i in range(layers)]
    return AttentionRecord({site: looked(queries, keys, heads) for site, queries, keys in sites})


def images(figure: Figure) -> list[np.ndarray]:
    """What was drawn, without the colour bar, which is one column of 256."""
    arrays = [np.asarray(image.get_array()) for image in figure.axes[0].images]
    return [array for array in arrays if array.shape != (256, 1)]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def svg_texts(path: Path) -> list[str]:
    return [element.text or "" for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]


@pytest.fixture
def only_dejavu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any font but the one that comes with matplotlib."""
    faces = {name: face for name, face in fonts._faces().items() if name == "DejaVu Sans"}
    monkeypatch.setattr(fonts, "_faces", lambda: faces)
    fonts._search.cache_clear()
    yield
    fonts._search.cache_clear()


# What is drawn


@pytest.mark.parametrize("head", [None, 0, 3])
def test_heatmap_draws_the_record(head: int | None) -> None:
    one = record(FRENCH, ENGLISH)
    np.testing.assert_array_equal(images(figures.heatmap(one, head=head))[0], one.matrix(head=head))


def test_grid_draws_every_head_of_every_site_on_one_scale() -> None:
    one = model(2, 3)
    figure = figures.grid(one)
    expected = [matrix for site in one.sites for matrix in one[site].weights]
    for drawn, matrix in zip(images(figure), expected, strict=True):
        np.testing.assert_array_equal(drawn, matrix)
    assert len({image.get_clim() for image in figure.axes[0].images}) == 1
    assert {*one.sites, "head 0", "head 1", "head 2"} <= set(texts(figure))


def test_grid_takes_a_pattern_and_names_the_heads_held() -> None:
    one = model(2, 4).select(heads=[1, 3])
    figure = figures.grid(one, sites="decoder.*.cross", title="Two heads")
    assert len(images(figure)) == 4
    assert {"head 1", "head 3", "decoder.1.cross", "Two heads"} <= set(texts(figure))
    assert "head 0" not in texts(figure)


def test_grid_of_one_head_and_of_sites_that_differ_in_every_dimension() -> None:
    assert len(images(figures.grid(record(FRENCH, ENGLISH, heads=1, site="decoder.cross")))) == 1
    long = [f"w{i}" for i in range(90)]
    mixed = AttentionRecord(
        {"decoder.cross": looked(FRENCH[:3], ENGLISH[:5], 1), "encoder.0.self": looked(long, long[:80], 4)}
    )
    figure = figures.grid(mixed)
    assert len(images(figure)) == 5
    assert "blanc" in texts(figure)
    assert "w0" not in texts(figure), "ninety words do not fit beside a small panel"


@pytest.mark.parametrize(
    ("site", "heads", "head", "caption"),
    [
        ("decoder.2.cross", 4, None, "decoder · layer 2 · cross-attention · mean of 4 heads"),
        ("encoder.0.self", 4, 3, "encoder · layer 0 · self-attention · head 3"),
        ("decoder.cross", 1, None, "decoder · cross-attention"),
    ],
)
def test_caption_says_where(site: str, heads: int, head: int | None, caption: str) -> None:
    assert caption in texts(figures.heatmap(record(FRENCH, ENGLISH, heads, site), head=head))


def test_numbers_are_printed_in_small_matrices_only() -> None:
    small = record(FRENCH, ENGLISH)
    expected = sorted(f"{weight:.2f}" for weight in small.matrix().flat if weight >= 0.05)
    printed = [text for text in texts(figures.heatmap(small)) if text[:2] in ("0.", "1.") and len(text) == 4]
    assert sorted(printed) == expected
    assert not [
        text for text in texts(figures.heatmap(record(ENGLISH * 2, ENGLISH * 2))) if len(text) == 4 and "." in text
    ]


@pytest.mark.parametrize(("top", "scale"), [(0.7, 1), (0.5, 1), (0.43, 0.5), (0.012, 0.015), (0.2, 0.2), (0.0, 1)])
def test_scale_is_shown_and_covers_every_weight(top: float, scale: float) -> None:
    axis = Axis.plain(["x", "y"])
    one = AttentionRecord({"a": Heads(np.full((1, 2, 2), top, np.float32), axis, axis, [0])})
    figure = figures.heatmap(one)
    assert figure.axes[0].images[0].get_clim() == pytest.approx((0, scale))
    assert {"0", f"{scale:g}", "attention weight"} <= set(texts(figure))


def test_lightness_falls_evenly_from_paper_to_ink() -> None:
    def lightness(color: tuple[float, ...]) -> float:
        red, green, blue = (((part + 0.055) / 1.055) ** 2.4 if part > 0.04045 else part / 12.92 for part in color)
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        return 116 * luminance ** (1 / 3) - 16

    ramp = np.array([lightness(figures.ink()(step)[:3]) for step in np.linspace(0, 1, 101)])
    np.testing.assert_allclose(ramp, np.linspace(ramp[0], ramp[-1], 101), atol=0.8)
    assert ramp[0] > 98
    assert ramp[-1] < 15
    middle = lightness(figures.ink()(0.5)[:3])
    assert abs(middle - lightness(to_rgb(figures.PAPER))) > 40, "a number must be legible on the worst cell"
    assert abs(middle - lightness(to_rgb(figures.TEXT))) > 40


def test_cells_keep_their_size_and_figures_stay_bounded() -> None:
    def size(tokens: int) -> tuple[float, float]:
        words = ["w"] * tokens
        return tuple(figures.heatmap(record(words, words, heads=1)).get_size_inches())

    assert size(20)[1] - size(10)[1] == pytest.approx(4.2, abs=0.02)
    assert max(size(512)) < 16
    strip = figures.heatmap(record(["[CLS]"], ["w"] * 300, heads=1)).get_size_inches()
    assert strip[1] > 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (60, 58), (130, 130)])
def test_no_label_overlaps_another_or_leaves_the_page(shape: tuple[int, int]) -> None:
    words = [(ENGLISH * 40)[i] + "x" * (i % 7) for i in range(200)]
    figure = figures.heatmap(record(words[: shape[0]], words[: shape[1]]), title="A title " * 12)
    figure.draw_without_rendering()
    page, boxes = figure.bbox, [text.get_window_extent() for text in figure.axes[0].texts]
    for box in boxes:
        assert page.x0 <= box.x0
        assert page.y0 <= box.y0
        assert box.x1 <= page.x1
        assert box.y1 <= page.y1
    upright = [box for box, text in zip(boxes, figure.axes[0].texts, strict=True) if text.get_rotation() != 45]
    for index, box in enumerate(upright):
        assert not any(box.padded(-1.5).overlaps(other.padded(-1.5)) for other in upright[:index])


# What is read


@pytest.mark.parametrize("script", SCRIPTS)
def test_svg_holds_every_token_as_text(script: str, tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    figures.draw(record(SCRIPTS[script], ENGLISH), path, title="<b> & $t$")
    written = svg_texts(path)
    for token in [*SCRIPTS[script], *ENGLISH, "<b> & $t$"]:
        assert token in written
    assert "sans-serif;" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("extension", ["png", "pdf"])
@pytest.mark.usefixtures("only_dejavu")
def test_without_fonts_one_warning_says_what_to_do(script: str, extension: str, tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figures.draw(record(SCRIPTS[script], ENGLISH), tmp_path / f"figure.{extension}")
    messages = [str(warning.message) for warning in caught]
    assert (tmp_path / f"figure.{extension}").stat().st_size > 3000
    package = {"Chinese": "fonts-noto-cjk", "Japanese": "fonts-noto-cjk", "Hindi": "fonts-noto-core"}.get(script)
    if script in ("markup", "math", "Arabic"):
        assert messages == [], "DejaVu Sans covers these"
    elif package:
        assert len(messages) == 1
        assert f"apt-get install {package};" in messages[0]
        assert "Save as .svg" in messages[0]
        assert str(tmp_path) in messages[0]


@pytest.mark.usefixtures("only_dejavu")
def test_svg_needs_no_fonts_and_does_not_warn(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.draw(record(SCRIPTS["Chinese"], SCRIPTS["Hindi"]), tmp_path / "figure.svg")


@pytest.mark.parametrize("script", SCRIPTS)
def test_with_the_fonts_of_this_machine_nothing_is_missed_unsaid(script: str, tmp_path: Path) -> None:
    missing = fonts.covering(SCRIPTS[script]).missing
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figures.draw(record(SCRIPTS[script], ENGLISH), tmp_path / "figure.png")
    assert len(caught) == bool(missing)


def test_advice_names_scripts_and_packages() -> None:
    assert fonts.advice({"猫"}).startswith("no installed font has 猫 (Han): drawn as boxes.")
    both = fonts.advice({"猫", "ह", "🐱"})
    assert "(Devanagari, Han, symbols)" in both
    assert "apt-get install fonts-noto-cjk fonts-noto-core fonts-symbola;" in both


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        *((token, "␣") for token in ("", " ", "\u3000", "\u200b", "\ufeff", "\u202e")),
        *(("\n", "↵"), ("a\tb", "a⇥b"), ("\x00", "�"), ("\x7f", "�"), ("\ud800", "�"), ("\uffff", "�")),
        *(("क्\u200dष", "क्\u200dष"), ("x" * 32, "x" * 32), ("x" * 140, "x" * 31 + "…"), ("New York", "New York")),
    ],
)
def test_readable_tokens(token: str, shown: str) -> None:
    assert fonts.readable(token) == shown


@pytest.mark.usefixtures("only_dejavu")
def test_our_own_signs_need_no_other_font() -> None:
    assert fonts.covering("␣↵⇥�…·").missing == frozenset()


def test_hostile_tokens_can_be_saved(tmp_path: Path) -> None:
    hostile = [chr(code) for code in (*range(32), 0x7F, 0x85, 0xD800, 0xFFFE, 0x2028)] + ["", "y" * 5000]
    for extension in figures.FORMATS:
        figures.draw(record(hostile, ["a"]), tmp_path / f"figure{extension}", title="\x00 \ud800 t")
    assert "� � t" in svg_texts(tmp_path / "figure.svg")


# What is written


@pytest.mark.parametrize(
    ("extension", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")]
)
@pytest.mark.parametrize("grid", [False, True])
def test_files_are_what_they_say_and_nothing_else_is_left(
    extension: str, magic: bytes, grid: bool, tmp_path: Path
) -> None:
    path = tmp_path / f"figure.{extension}"
    figures.draw(model(1, 2), path, grid=grid)
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 3000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("extension", ["png", "pdf", "svg"])
def test_same_record_same_bytes(extension: str, tmp_path: Path) -> None:
    for name in "ab":
        figures.draw(record(FRENCH, ENGLISH), tmp_path / f"{name}.{extension}")
    assert (tmp_path / f"a.{extension}").read_bytes() == (tmp_path / f"b.{extension}").read_bytes()


def test_png_has_200_dots_per_inch(tmp_path: Path) -> None:
    figure = figures.heatmap(record(FRENCH, ENGLISH))
    figures.save(figure, tmp_path / "figure.png")
    width = int.from_bytes((tmp_path / "figure.png").read_bytes()[16:20], "big")
    assert width == pytest.approx(figure.get_size_inches()[0] * 200, abs=1)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figure.svg"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match=r"figure\.svg: cannot be written \(No space left on device\); try another"):
        figures.draw(record(FRENCH, ENGLISH), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_say_what_is_allowed(tmp_path: Path) -> None:
    one = record(FRENCH, ENGLISH)
    with pytest.raises(UserError, match=r"figure\.jpg: cannot draw '\.jpg'; use \.svg, \.png, \.pdf"):
        figures.draw(one, tmp_path / "figure.jpg")
    with pytest.raises(UserError, match=r"'a file without extension'; use \.svg"):
        figures.save(figures.heatmap(one), tmp_path / "figure")
    with pytest.raises(UserError, match=r"there is no folder '.*none'; make it first"):
        figures.draw(one, tmp_path / "none" / "figure.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UserError, match=r"folder\.svg: cannot be written \(Is a directory\)"):
        figures.draw(one, tmp_path / "folder.svg")
    with pytest.raises(UserError, match="head = 1: a grid shows every head; leave out either"):
        figures.draw(one, tmp_path / "figure.svg", grid=True, head=1)
    with pytest.raises(UserError, match=r"head = 9: the record holds heads \[0, 1, 2, 3\]"):
        figures.draw(one, tmp_path / "figure.svg", head=9)
    with pytest.raises(UserError, match=r"did you mean 'decoder\.2\.cross'\?"):
        figures.heatmap(one, site="decoder.1.cross")
    with pytest.raises(UserError, match=r"sites = 'encoder\.\*': matches nothing"):
        figures.grid(one, sites="encoder.*")
    with pytest.raises(UserError, match="has nothing to draw, its weights are 0 x 7"):
        figures.heatmap(record([], ENGLISH))


def test_the_callers_settings_are_neither_used_nor_changed(tmp_path: Path) -> None:
    figures.draw(record(FRENCH, ENGLISH), tmp_path / "plain.svg")
    with matplotlib.rc_context({"font.size": 40, "text.usetex": True, "svg.fonttype": "path", "image.origin": "lower"}):
        before = dict(matplotlib.rcParams)
        figures.draw(record(FRENCH, ENGLISH), tmp_path / "other.svg")
        assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_importing_is_cheap() -> None:
    code = "import sys, regard.explorer.figures; print(*{'matplotlib', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
