"""The pictures of docs/explorer.md, every view by day and by night: python -m bench.screenshots TRANSFORMER RNN VIT

The first two runs are the demo's (`make demo`, `make demo MODEL=rnn-attention`), the third classifies images.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from bench.explorer import serving

FOLDER = Path(__file__).parent.parent / "docs" / "images"
SENTENCE = "text=The+white+cat+is+not+sleeping.&"
VIEWS = {
    "alignment": (f"{SENTENCE}site=decoder.1.cross&head=2&query=2", 1280, 860),
    "heads": (f"{SENTENCE}view=heads&site=decoder.1.cross&off=decoder.1.cross.0,decoder.1.cross.2", 1280, 900),
    "inside": (f"{SENTENCE}view=inside&site=decoder.1.cross&head=2&unit=tokens&query=4&key=5", 1280, 1080),
    "inside-rnn": (f"{SENTENCE}view=inside&run=1&unit=tokens&query=3&key=1", 1280, 1080),
    "decoding": (f"{SENTENCE}view=decoding&step=2", 1280, 720),
    "compare": (f"{SENTENCE}view=compare", 1280, 940),
    "positions": (f"{SENTENCE}view=positions", 1280, 900),
    "training": (f"{SENTENCE}view=training", 1280, 1100),
    "picture": ("run=2&head=rollout", 1280, 760),
    "narrow": (f"{SENTENCE}head=2&query=2", 420, 860),
}
"""Where each view is, and the width and height of its window."""


def main() -> None:
    runs = [Path(run) for run in sys.argv[1:4]]
    if len(runs) != 3:
        sys.exit(__doc__)
    with serving(*runs) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (place, width, height) in VIEWS.items():
            for mode in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=mode)
                page.goto(f"{address}#{place}")
                page.wait_for_selector("#regard[data-ready]")
                page.wait_for_load_state("networkidle")
                picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
                file = FOLDER / f"explorer-{name}{'-dark' if mode == 'dark' else ''}.png"
                picture.quantize(200, dither=Image.Dither.NONE).save(file, optimize=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
