"""Trained runs and a server for the page: a Transformer and an RNN with attention, small and trained for seconds."""

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from small_runs import SMALL

LAYERED = {**SMALL, "model.encoder_layers": 2, "model.decoder_layers": 2, "tokenizer.kind": "bpe"}
LAYERED |= {
    "tokenizer.vocabulary": 320,
    "train.checkpoint_every": 150,
    "train.steps": 300,
    "train.validate_every": 300,
    "train.learning_rate": 0.01,
}


@pytest.fixture(scope="session")
def transformer_run(pairs_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from regard.training.start import train

    out = tmp_path_factory.mktemp("runs") / "transformer"
    train("translate", [str(pairs_file)], out=out, model="transformer", settings=LAYERED)
    return out


@pytest.fixture(scope="session")
def rnn_run(pairs_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from regard.training.start import train

    out = tmp_path_factory.mktemp("runs") / "rnn"
    own = {key: value for key, value in SMALL.items() if not key.startswith("model.")}
    own |= {
        "model.width": 16,
        "model.embedding": 12,
        "train.steps": 150,
        "train.learning_rate": 0.01,
        "train.validate_every": 150,
    }
    train("translate", [str(pairs_file)], out=out, model="rnn-attention", settings=own)
    return out


@pytest.fixture(scope="session")
def classifier_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT that tells good from bad."""
    from regard.training.start import train

    folder = tmp_path_factory.mktemp("classify")
    words = ("good", "great", "bad", "dull")
    rows = [f"the {('cat', 'dog', 'song')[i % 3]} is {words[i % 4]}\t{words[i % 4 // 2 * 2]}" for i in range(120)]
    (folder / "texts.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf8")
    shape = {"model.layers": 2, "model.width": 16, "model.inner": 16, "model.heads": 2, "tokenizer.vocabulary": 120}
    settings = {**shape, "train.epochs": 1.0, "train.validate_every": 100, "train.device": "cpu"}
    train("classify", [str(folder / "texts.tsv")], out=folder / "bert", settings=settings)
    return folder / "bert"


@pytest.fixture(scope="session")
def image_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ViT that tells light pictures from dark ones."""
    import numpy as np
    from PIL import Image

    from regard.training.start import train

    folder = tmp_path_factory.mktemp("images")
    numbers = np.random.default_rng(0)
    for kind, base in (("dark", 20), ("light", 200)):
        (folder / "pictures" / kind).mkdir(parents=True)
        for i in range(24):
            pixels = (numbers.random((16, 16, 3)) * 40 + base).astype("uint8")
            Image.fromarray(pixels).save(folder / "pictures" / kind / f"{i}.png")
    shape = {"model.image": 16, "model.patch": 4, "model.layers": 2, "model.width": 16, "model.inner": 16}
    settings = {**shape, "model.heads": 2, "train.steps": 4, "train.validate_every": 4, "train.device": "cpu"}
    train("image", [str(folder / "pictures")], out=folder / "vit", model="vit-micro", settings=settings)
    return folder / "vit"


@pytest.fixture
def copied(transformer_run: Path, tmp_path: Path) -> Path:
    """A run that a test may change."""
    shutil.copytree(transformer_run, tmp_path / "copied")
    return tmp_path / "copied"


@contextmanager
def serving(paths: Sequence[Path], token: str | None = None) -> Iterator[str]:
    """The address of a server for these runs."""
    from regard.explorer.server import app

    with running(app(paths, token)) as address:
        yield address


@contextmanager
def running(api: FastAPI) -> Iterator[str]:
    """A server in a thread; its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(api, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
        assert thread.is_alive(), "the server did not start"
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def page_address(transformer_run: Path, rnn_run: Path) -> Iterator[str]:
    with serving([transformer_run, rnn_run]) as address:
        yield address


@pytest.fixture(scope="session")
def other_address(classifier_run: Path, image_run: Path) -> Iterator[str]:
    """A page of models that do not translate."""
    with serving([classifier_run, image_run]) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """Debian's Chromium; `make test` installs it."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed and could not be: apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
