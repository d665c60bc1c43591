"""Trained runs and a server for the page: a Transformer and an RNN with attention, small and trained for seconds."""

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_runs import SMALL

LAYERED = {**SMALL, "model.encoder_layers": 2, "model.decoder_layers": 2, "tokenizer.kind": "bpe"}
LAYERED |= {
    "tokenizer.vocabulary": 320,
    "train.checkpoint_every": 75,
    "train.steps": 150,
    "train.validate_every": 150,
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


@pytest.fixture
def copied(transformer_run: Path, tmp_path: Path) -> Path:
    """A run that a test may change."""
    shutil.copytree(transformer_run, tmp_path / "copied")
    return tmp_path / "copied"


@contextmanager
def serving(paths: Sequence[Path], token: str | None = None) -> Iterator[str]:
    """The address of a server for these runs."""
    import uvicorn

    from regard.explorer.server import app

    server = uvicorn.Server(uvicorn.Config(app(paths, token), port=0, log_level="warning"))
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
