"""The page in a real browser, with a trained model: what is on the screen is what Python computes.

Every test also fails on a console error, on an uncaught one, and on any request that leaves this machine.
"""

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from regard.errors import UserError
from regard.explorer.document import document, save
from regard.explorer.notebook import show
from regard.explorer.opening import open_run
from regard.explorer.scene import Wish
from regard.explorer.seen import Seen
from regard.nn.record import AttentionRecord, Axis, Heads
from regard.run import Run

TEXT = "red cat sees dog"
Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, page_address: str) -> Iterator[Visit]:
    """Open the page at a selection; it must stay quiet and at home."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    page, wrong = context.new_page(), []
    page.set_default_timeout(15_000)
    page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: wrong.append(request.url) if _leaves(request.url) else None)

    def open_page(_address: str = page_address, **selection: Any) -> Page:
        page.goto(f"{_address}#{urlencode({'text': TEXT, **selection}, quote_via=quote)}")
        page.wait_for_selector("#regard[data-ready]")
        return page

    yield open_page
    expected = [line for line in wrong if "status of 4" in line]  # an answer of ours that the page shows in its words
    assert [line for line in wrong if line not in expected] == []
    context.close()


def _leaves(url: str) -> bool:
    return urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).hostname != "127.0.0.1"


def settled(page: Page, act: Callable[[], Any]) -> None:
    """Do something, and wait until the page shows all that was asked for, drawn anew."""
    before = page.get_attribute("#regard", "data-ready")
    act()
    page.wait_for_function(
        "before => ![undefined, before].includes(document.querySelector('#regard').dataset.ready)", arg=before
    )


def state(page: Page) -> dict[str, str]:
    return dict(part.split("=", 1) for part in urlsplit(page.url).fragment.split("&") if "=" in part)


def test_a_first_visit_shows_a_sentence_and_says_what_to_do(visit: Visit, page_address: str) -> None:
    page = visit(text="")
    page.evaluate("location.hash = ''")
    page.reload()
    page.wait_for_selector("#lines .word")
    assert page.input_value("textarea")
    assert "Hover a word" in page.inner_text("#pair")


def test_weights_on_screen_are_those_of_the_record(visit: Visit, transformer_run: Path) -> None:
    page = visit(site="decoder.1.cross", head="1", unit="tokens")
    held = Run.load(transformer_run).translate(TEXT)[0].attention["decoder.1.cross"]
    assert page.eval_on_selector_all('#lines .word[data-side="key"] text', "n => n.map(e => e.textContent)") == (
        held.keys.tokens
    )
    box = page.locator("#matrix .cells").bounding_box()
    assert box
    rows, columns = held.weights.shape[1:]
    for query in range(rows):
        for key in range(columns):
            page.mouse.move(
                box["x"] + (key + 0.5) * box["width"] / columns, box["y"] + (query + 0.5) * box["height"] / rows
            )
            shown = page.inner_text("#weight").replace("−", "-")
            assert float(shown) == pytest.approx(held.weights[1, query, key], abs=6e-5)
            assert held.queries.tokens[query] in page.inner_text("#pair .pairing")


@pytest.mark.parametrize("run", [0, 1])
def test_words_light_up_both_ways(visit: Visit, run: int) -> None:
    page = visit(run=run)
    for side, other in (("query", "key"), ("key", "query")):
        words = page.locator(f'#lines .word[data-side="{side}"]')
        words.nth(1).hover()
        assert words.nth(1).locator("text").get_attribute("fill") == "#b8400e"
        shown = page.eval_on_selector_all("#lines .figure", "nodes => nodes.map(node => Number(node.textContent))")
        assert shown
        if side == "query":
            assert sum(shown) <= 1.03
        assert page.locator(f'#lines .word[data-side="{other}"]').count() > 1


def test_a_link_restores_the_view(visit: Visit, page_address: str) -> None:
    page = visit(view="alignment")
    settled(page, lambda: page.click("#picker .siterow:nth-child(4) .thumb:nth-child(2)"))
    settled(page, lambda: page.click("text=subwords"))
    page.click('#lines .word[data-side="query"] >> nth=1')
    chosen = state(page)
    assert (chosen["head"], chosen["unit"], chosen["query"]) == ("1", "tokens", "1")
    before = page.inner_text("#pair"), page.inner_text(".toolbar")
    page.reload()
    page.wait_for_selector("#regard[data-ready]")
    assert (page.inner_text("#pair"), page.inner_text(".toolbar")) == before


def test_heads_are_labelled_sorted_and_enlarged(visit: Visit, transformer_run: Path) -> None:
    page = visit(view="heads")
    told = Seen(open_run(transformer_run).look(Wish(TEXT))).summary()
    labels = page.eval_on_selector_all(".head", "nodes => nodes.map(node => node.dataset.label)")
    assert labels == [head["label"] for site in told["sites"] for head in site["heads"]]
    settled(page, lambda: page.select_option(".toolbar select", "sharp"))
    order = page.eval_on_selector_all(".head", "nodes => nodes.map(node => node.dataset.name)")
    sharp = {
        f"{site['site']}.{head['number']}": head["measures"]["sharp"]
        for site in told["sites"]
        for head in site["heads"]
    }
    assert [sharp[name] for name in order] == sorted(sharp.values(), reverse=True)
    settled(page, lambda: page.click(".head >> nth=3 >> .thumb"))
    assert page.locator("#large .matrix canvas").count() == 1


def test_switching_off_shows_before_and_after(visit: Visit, transformer_run: Path) -> None:
    page = visit(view="heads")
    off = [f"decoder.{layer}.cross.{head}" for layer in (0, 1) for head in (0, 1)]
    for name in off:
        settled(page, lambda name=name: page.click(f'.head[data-name="{name}"] .switch'))
    page.wait_for_selector(".changes .now")
    subject = open_run(transformer_run)
    before, now = subject.look(Wish(TEXT)), subject.look(Wish(TEXT, off=tuple(off)))
    assert before.output != now.output
    assert page.inner_text(".changes .before .output") == before.output
    assert page.inner_text(".changes .now .output").strip() == now.output
    assert page.inner_text(".changes .now .score").replace("−", "-").startswith(f"{now.score:.3f}")
    settled(page, lambda: page.click("text=switch all on"))
    assert page.locator(".changes").count() == 0
    settled(page, lambda: page.click("text=layer off >> nth=0"))
    assert state(page)["off"] == "encoder.0"


def test_a_head_of_a_layer_that_is_off_can_be_switched_on(visit: Visit) -> None:
    page = visit(view="heads", off="encoder.0")
    settled(page, lambda: page.click("[data-name='encoder.0.self.1'] .switch"))
    assert "off" not in state(page)


def test_a_click_inside_takes_that_very_token(visit: Visit) -> None:
    """Words are the unit until a token is clicked: its number is not taken for a word's."""
    page = visit(view="inside", text="cats see elephants")
    tokens = page.locator(".chips >> nth=1 >> .token")
    last = tokens.count() - 1
    settled(page, lambda: tokens.nth(last).click())
    assert (state(page)["key"], state(page)["unit"]) == (str(last), "tokens")
    assert page.locator(".chips >> nth=1 >> .token[aria-pressed=true]").inner_text() == tokens.nth(last).inner_text()


def test_the_focus_stays_where_it_was(visit: Visit) -> None:
    page = visit()
    page.focus("nav >> text=Heads")
    settled(page, lambda: page.keyboard.press("Enter"))
    assert page.evaluate("document.activeElement.textContent") == "Heads"


@pytest.mark.parametrize(("run", "site", "formula"), [(0, "decoder.1.cross", "√D"), (1, "decoder.cross", "tanh")])
def test_the_inside_ends_in_the_weight(
    visit: Visit, transformer_run: Path, rnn_run: Path, run: int, site: str, formula: str
) -> None:
    page = visit(view="inside", run=run, site=site, head=0, unit="tokens", query=1, key=0)
    weights = Run.load((transformer_run, rnn_run)[run]).translate(TEXT)[0].attention[site].weights
    assert formula in page.inner_text(".formula")
    numbers = [float(text.replace("−", "-")) for text in page.locator(".result").all_inner_texts() if text]
    assert numbers[-1] == pytest.approx(weights[0, 1, 0], abs=6e-5)
    assert page.locator(".strip").count() >= 5
    settled(page, lambda: page.click(".chips >> nth=1 >> .token >> nth=1"))
    assert state(page)["key"] == "1"
    numbers = [float(text.replace("−", "-")) for text in page.locator(".result").all_inner_texts() if text]
    assert numbers[-1] == pytest.approx(weights[0, 1, 1], abs=6e-5)


def test_decoding_shows_the_search_and_goes_on_from_a_forced_token(visit: Visit, transformer_run: Path) -> None:
    page = visit(view="decoding")
    scene = open_run(transformer_run).look(Wish(TEXT))
    told = scene.decoding()
    shares = page.eval_on_selector_all(".candidate .figure", "nodes => nodes.map(node => Number(node.textContent))")
    assert shares == pytest.approx([one["probability"] for one in told["steps"][0]["candidates"]], abs=6e-5)
    assert page.locator(".branch").count() == sum(map(len, told["tree"]))
    settled(page, lambda: page.click(".candidate:not([data-lit=yes]) >> nth=0"))
    page.wait_for_selector(".changes .now")
    other = next(one["id"] for one in told["steps"][0]["candidates"] if one["id"] != scene.target[0])
    assert state(page)["forced"] == str(other)
    forced = open_run(transformer_run).look(Wish(TEXT, forced=(other,)))
    assert page.inner_text(".changes .now .output").strip() == forced.output
    settled(page, lambda: page.click(".branch >> nth=-1"))
    settled(page, lambda: page.click("text=let go"))
    assert page.locator(".changes").count() == 0


def test_positions_training_and_compare(visit: Visit) -> None:
    page = visit(view="positions")
    assert page.locator(".matrix canvas").count() == 2
    settled(page, lambda: page.click("text=Training"))
    assert page.locator(".charts svg").count() >= 3
    assert "Trained for 300 steps" in page.inner_text("#view")
    settled(page, lambda: page.click("text=step 150"))
    assert state(page)["checkpoint"] == "150"
    settled(page, lambda: page.click("text=best weights"))
    settled(page, lambda: page.click("nav >> text=Compare"))
    assert page.locator(".compare canvas").count() == 2
    page.hover('.compare section >> nth=0 >> .word[data-side="key"] >> nth=1')
    lit = page.eval_on_selector_all(
        '.compare .word[data-side="key"] text[fill="#b8400e"]', "n => n.map(e => e.textContent)"
    )
    assert lit == ["cat", "cat"], "the same word in both"


VIEWS = ("alignment", "heads", "inside", "decoding", "compare", "positions", "training")


def test_every_view_can_be_taken_away(visit: Visit, tmp_path: Path) -> None:
    page = visit()
    for view in VIEWS:
        if view != "alignment":
            settled(page, lambda view=view: page.click(f"nav >> text={view.title()}"))
        files = {}
        for kind in ("svg", "png", "json", "csv"):
            page.click("summary")
            with page.expect_download() as download:
                page.click(f".menu >> text={kind.upper()}")
            files[kind] = tmp_path / download.value.suggested_filename
            download.value.save_as(files[kind])
            assert files[kind].name == f"regard-{view}.{kind}"
        root = ET.parse(files["svg"]).getroot()
        assert float(root.get("width", 0)) > 100
        with Image.open(files["png"]) as picture:
            assert picture.width == 2 * int(float(root.get("width", 0)))
            assert len(picture.convert("L").resize((64, 64)).getcolors() or []) > 3, "something is drawn"
        assert json.loads(files["json"].read_text(encoding="utf8"))
        assert len(list(csv.reader(io.StringIO(files["csv"].read_text(encoding="utf-8-sig"))))) > 2


def test_exported_numbers_are_those_of_the_record(visit: Visit, transformer_run: Path, tmp_path: Path) -> None:
    page = visit(site="encoder.1.self", head="0")
    page.click("summary")
    with page.expect_download() as download:
        page.click(".menu >> text=JSON")
    download.value.save_as(tmp_path / "numbers.json")
    told = json.loads((tmp_path / "numbers.json").read_text(encoding="utf8"))
    record = Run.load(transformer_run).translate(TEXT)[0].attention.words()
    assert told["keys"] == record["encoder.1.self"].keys.tokens
    np.testing.assert_allclose(told["weights"], record.matrix("encoder.1.self", 0), atol=1e-5)


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=alert(1)>", '"><script>alert(1)</script>', "&lt;b&gt; ${1} </svg>"]
)
def test_markup_is_text(visit: Visit, text: str) -> None:
    page = visit(text=text)
    assert page.input_value("textarea") == text
    assert page.locator("img:not([src^='data:image/png']), script:not([src])").count() == 0
    for view in ("heads", "inside", "decoding"):
        settled(page, lambda view=view: page.click(f"nav >> text={view.title()}"))
        assert page.locator("img:not([src^='data:image/png']), script:not([src])").count() == 0


def test_typing_updates_the_attention(visit: Visit) -> None:
    page = visit()
    words = page.locator('#lines .word[data-side="key"]').count()
    settled(page, lambda: page.fill("textarea", "red cat"))
    assert page.locator('#lines .word[data-side="key"]').count() < words
    assert state(page)["text"] in ("red+cat", "red%20cat")


def test_empty_too_long_and_broken_are_answered(visit: Visit) -> None:
    page = visit()
    settled(page, lambda: page.fill("textarea", ""))
    assert "Nothing to look at yet" in page.inner_text("#view")
    settled(page, lambda: page.select_option(".run select", "1"))
    settled(page, lambda: page.fill("textarea", "cat " * 3000))
    assert "The text has 3,00" in page.inner_text(".failure")
    settled(page, lambda: page.fill("textarea", TEXT))
    assert page.locator(".failure").is_hidden()
    page.goto(page.url.split("#")[0] + "#text=one&off=vision.0")
    page.reload()
    page.wait_for_selector(".failure:not([hidden])")
    assert "this model has no such layers" in page.inner_text(".failure")


def test_keys_alone_are_enough(visit: Visit) -> None:
    page = visit()
    page.focus('#lines .word[data-side="query"]')
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert state(page)["query"] == "1"
    page.keyboard.press("Escape")
    assert "query" not in state(page)
    page.focus("#matrix .cells")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert (state(page)["query"], state(page)["key"]) == ("1", "1")
    outline = page.evaluate("getComputedStyle(document.querySelector('#matrix .cells')).outlineStyle")
    assert outline == "solid", "the focus is visible"


TEXTS = ("cat " * 12, "حمراء قطة ترى كلبا", "红猫看见狗", "supercalifragilistic" * 8)


@pytest.mark.parametrize("width", [420, 800])
def test_nothing_sticks_out(visit: Visit, width: int) -> None:
    page = visit()
    page.set_viewport_size({"width": width, "height": 800})
    for view in VIEWS:
        page.click(f"nav >> text={view.title()}")
        for text in TEXTS[: 1 if view in ("compare", "positions", "training") else None]:
            page.fill("textarea", text)
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (view, text)
        tab = page.evaluate("document.querySelector('nav [aria-current]').getBoundingClientRect().toJSON()")
        assert 0 <= tab["left"] < tab["right"] <= width, f"the tab of {view} can be seen"


def test_a_link_to_the_last_view_shows_its_tab(visit: Visit) -> None:
    page = visit()
    page.set_viewport_size({"width": 420, "height": 800})
    page.goto(page.url.split("#")[0] + "#view=training")
    page.reload()
    page.wait_for_selector("nav [aria-current]")
    page.wait_for_timeout(300)
    tab = page.evaluate("document.querySelector('nav [aria-current]').getBoundingClientRect().toJSON()")
    assert 0 <= tab["left"] < tab["right"] <= 420


def test_night_is_the_same_page(visit: Visit) -> None:
    page = visit()
    day = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("[aria-label='Switch between day and night']")
    page.wait_for_timeout(200)
    night = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (day, night) == ("rgb(255, 253, 248)", "rgb(18, 22, 29)")
    fill = page.locator("#lines .word text").first.get_attribute("fill")
    assert fill == "#e9edf6"


def test_right_to_left_is_laid_out_so(visit: Visit) -> None:
    page = visit(text="حمراء قطة ترى كلبا", unit="words")
    places = page.eval_on_selector_all(
        '#lines .word[data-side="key"] text', "n => n.map(e => Number(e.getAttribute('x')))"
    )
    assert places[0] > places[1], "the first word stands on the right"
    assert page.get_attribute("textarea", "dir") == "auto"


def test_an_encoder_and_a_picture_on_the_page(visit: Visit, other_address: str, classifier_run: Path) -> None:
    page = visit(other_address, text="the cat is dull", head="1", unit="tokens", query="0", key="4")
    (found,) = Run.load(classifier_run).predictor.classify(["the cat is dull"])
    shown = float(page.inner_text("#weight").replace("−", "-"))
    assert shown == pytest.approx(found.attention.matrix("encoder.1.self", 1)[0, 4], abs=6e-5)
    assert found.label in page.inner_text(".classes")
    settled(page, lambda: page.select_option(".run select", "1"))
    page.wait_for_selector(".photoview")
    assert page.locator(".overlays .thumb").count() == 2
    page.hover(".photoview", position={"x": 10, "y": 10})
    assert page.inner_text("#reading").startswith("0,0 looks most at")
    settled(page, lambda: page.click("text=rollout >> nth=0"))
    assert state(page)["head"] == "rollout"


# The same drawing code in one file, and in a notebook


def test_a_file_shows_the_record_without_a_server(browser: Browser, transformer_run: Path, tmp_path: Path) -> None:
    best = Run.load(transformer_run).translate(TEXT)[0]
    save(best.attention, tmp_path / "page.html", text=TEXT, output=best.text, score=best.score)
    page, wrong = browser.new_page(), []
    page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
    page.goto(f"file://{tmp_path / 'page.html'}#head=0&unit=tokens&query=1&key=1")
    page.wait_for_selector("#regard[data-ready]")
    shown = float(page.inner_text("#weight").replace("−", "-"))
    assert shown == pytest.approx(best.attention.matrix(head=0)[1, 1], abs=6e-5)
    settled(page, lambda: page.click("nav >> text=Heads"))
    assert page.locator(".head").count() == sum(len(heads.numbers) for heads in best.attention.sites.values())
    assert page.locator("nav button").all_inner_texts() == ["Alignment", "Heads"]
    assert wrong == []
    page.close()


def test_a_notebook_shows_the_record(browser: Browser) -> None:
    """As the cell of a notebook holds it: a frame inside a page, here with words from right to left and markup."""
    weights = np.eye(3, dtype=np.float32)[None]
    heads = Heads(weights, Axis.plain(["<b>x</b>", "</script>", "&amp;"]), Axis.plain(["القطة", "لا", "تنام"]), [0])
    page, wrong = browser.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
    page.set_content(f"<body>{show(AttentionRecord({'decoder.cross': heads}))._repr_html_()}</body>")
    frame = page.frame_locator("iframe")
    frame.locator("#regard[data-ready]").wait_for()
    assert frame.locator('.word[data-side="query"] text').all_text_contents() == ["<b>x</b>", "</script>", "&amp;"]
    assert frame.locator("b").count() == 0
    assert wrong == []
    page.close()


def test_what_is_too_large_for_a_file_is_said() -> None:
    weights, axis = np.zeros((4, 1500, 1500), np.float32), Axis.plain(["x"] * 1500)
    with pytest.raises(UserError, match=r"too large for one file .* choose one --site"):
        document(AttentionRecord({"encoder.0.self": Heads(weights, axis, axis, [0, 1, 2, 3])}))
    with pytest.raises(UserError, match="the record is empty"):
        document(AttentionRecord({}))
