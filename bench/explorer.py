"""How fast the explorer answers, measured in the browser: python -m bench.explorer [RUN]

Typing: from a key to the attention drawn anew, on a translation run (the demo's by default). Long inputs: 512 and 2,000
tokens through a small language model (untrained: the time is the same), from the request to the picture, and how long a
hover takes to light up.
"""

import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from regard.explorer.server import app
from regard.training.start import train

SENTENCE = "My old friend will never buy a red car in the village."
FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
HOVER = """() => {
  const words = [...document.querySelectorAll('#lines .word')].slice(0, 40), times = [];
  for (const word of words) {
    const began = performance.now();
    word.dispatchEvent(new PointerEvent('pointerenter'));
    document.body.getBoundingClientRect();
    times.push(performance.now() - began);
  }
  return times;
}"""


@contextmanager
def serving(path: Path) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app([path]), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


def burnt() -> tuple[float, float]:
    """Milliseconds of processor time so far: of this process (the server, and Playwright's client), of the browser.

    On a machine that is busy with other work the clock on the wall says little; this says what the work itself takes.
    """
    ticks, children = os.sysconf("SC_CLK_TCK"), 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().rsplit(")", 1)
        except OSError:
            continue  # it has ended meanwhile
        if "chromium" in name or "chrome" in name:
            children += sum(int(part) for part in rest.split()[11:13])
    return 1000 * time.process_time(), 1000 * children / ticks


def told(name: str, times: list[float]) -> None:
    print(f"{name:44} median {statistics.median(times):7.1f} ms   worst {max(times):7.1f} ms   of {len(times)}")


def settle(page: Page, text: str) -> float:
    """Milliseconds from setting the text to the picture on the screen."""
    before = page.get_attribute("#regard", "data-ready")
    began = time.perf_counter()
    page.fill("textarea", text)
    page.wait_for_function(
        "before => document.querySelector('#regard').dataset.ready !== before", arg=before, timeout=120_000
    )
    page.evaluate(FRAME)
    return 1000 * (time.perf_counter() - began)


def typing(page: Page, address: str) -> None:
    page.goto(f"{address}#text=My")
    page.wait_for_selector("#lines .word")
    settle(page, SENTENCE[:3])
    before = burnt()
    times = [settle(page, SENTENCE[:end]) for end in range(4, len(SENTENCE) + 1)]
    server, browser = ((now - then) / len(times) for now, then in zip(burnt(), before, strict=True))
    told("a key until its attention is drawn", times)
    print(f"{'of which processor time':44} Python {server:.0f} ms, browser {browser:.0f} ms for each key")


def long(page: Page, address: str) -> None:
    page.goto(f"{address}#text=a&unit=tokens")
    page.wait_for_selector("#lines .word")
    for tokens in (500, 2000):
        settle(page, f"the {tokens}")
        shown = settle(page, "the cat sees a dog " * (tokens // 5))
        words = page.locator("#lines .word").count() // 2
        told(f"{words} tokens: request until picture", [shown])
        told(f"{words} tokens: a hover lights up", page.evaluate(HOVER))
        held = page.evaluate("performance.memory?.usedJSHeapSize ?? 0") / 2**20
        print(f"{words} tokens: the page holds {held:.0f} MB")


def main() -> None:
    run = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo-transformer-micro")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        text = Path(folder) / "text.txt"
        text.write_text("the cat sees a dog and a dog sees the cat\n" * 1500, encoding="utf8")
        shape = {"model.layers": 2, "model.width": 64, "model.heads": 4, "model.max_length": 2112}
        settings = {**shape, "train.steps": 1, "options.block": 2112, "tokenizer.kind": "word", "train.device": "cpu"}
        train("language", [str(text)], out=Path(folder) / "gpt", model="gpt-nano", settings=settings)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        with serving(run) as address:
            typing(page, address)
        with serving(Path(folder) / "gpt") as address:
            long(page, address)
        browser.close()


if __name__ == "__main__":
    main()
