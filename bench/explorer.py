"""How fast the explorer answers, measured in the browser: python -m bench.explorer [RUN]

Typing: from a key to the attention drawn anew, on a translation run (the demo's by default). Long inputs: 512 and 2,000
tokens through a small language model (untrained: the time is the same), from the request to the picture, and how long a
hover takes to light up.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from regard.training.start import train

SENTENCE = "My old friend will never buy a red car in the village."
PAUSE = 0.1
"""Seconds between the picture and the next key: somebody types and looks."""
TYPE = """async text => {
  const page = document.querySelector('#regard'), area = document.querySelector('textarea');
  const drawn = new Promise(done => new MutationObserver(
    () => page.dataset.ready && done()).observe(page, {attributeFilter: ['data-ready']}));
  const began = performance.now();
  area.value = text;
  area.dispatchEvent(new Event('input', {bubbles: true}));
  await drawn;
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));  // the frame is on the screen
  return performance.now() - began;
}"""
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
def serving(*runs: Path) -> Iterator[str]:
    """The page of some runs, served by a process of its own, as a reader has it."""
    command = [sys.executable, "-m", "regard", "explore", *map(str, runs), "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}) as server:
        assert server.stdout is not None, "piped"
        try:
            yield next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
        finally:
            server.terminate()


def told(name: str, times: list[float]) -> None:
    print(f"{name:44} median {statistics.median(times):7.1f} ms   worst {max(times):7.1f} ms   of {len(times)}")


def settle(page: Page, text: str) -> float:
    """Milliseconds from setting the text to the picture on the screen."""
    return float(page.evaluate(TYPE, text))


def typing(page: Page, address: str) -> None:
    page.goto(f"{address}#text=My")
    page.wait_for_selector("#lines .word")
    settle(page, SENTENCE[:3])
    times = []
    for end in range(4, len(SENTENCE) + 1):
        time.sleep(PAUSE)
        times.append(settle(page, SENTENCE[:end]))
    told("a key until its attention is drawn", times)


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
