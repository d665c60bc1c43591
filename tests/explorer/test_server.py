"""The page's server answers the page, exactly, and nobody else; what cannot be answered is said clearly."""

import http.client
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from explored_runs import serving

from regard.cli.explore import explore
from regard.errors import UserError
from regard.explorer import figures
from regard.explorer.opening import open_run
from regard.explorer.server import PAGE, Explorer
from regard.run import Run

TEXT = "red cat sees dog"


def ask(address: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("GET" if body is None else "POST", path, data, given)
    answer = connection.getresponse()
    return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}


def error(answer: tuple[int, bytes, dict[str, str]]) -> str:
    return str(json.loads(answer[1])["error"])


def test_a_matrix_comes_as_its_bytes(page_address: str, transformer_run: Path) -> None:
    record = Run.load(transformer_run).translate(TEXT)[0].attention.words()
    for site in record.sites:
        wish = {"text": TEXT, "site": site, "head": "1", "unit": "words"}
        status, body, headers = ask(page_address, "/api/matrix", wish)
        assert status == 200
        shape = tuple(map(int, headers["x-shape"].split(",")))
        np.testing.assert_allclose(np.frombuffer(body, "<f4").reshape(shape), record.matrix(site, 1), atol=1e-5)


def test_every_answer_forbids_other_sources(page_address: str) -> None:
    for path in ("/", "/page/app.js", "/api/about"):
        status, _, headers = ask(page_address, path)
        assert status == 200
        assert headers["content-security-policy"].startswith("default-src 'self'")


def test_files_of_the_page_only(page_address: str) -> None:
    for path in ("/page/../server.py", "/page/%2e%2e%2fserver.py", "/page/none.js", "/page/..%5cserver.py"):
        assert ask(page_address, path)[0] == 404


def test_only_this_machine_and_this_page_may_ask(page_address: str) -> None:
    assert ask(page_address, "/api/about", Host="evil.example")[0] == 403, "another name for this machine"
    answer = ask(page_address, "/api/look", {"text": "one"}, Origin="http://evil.example")
    assert answer[0] == 403
    assert "only this page itself may ask" in error(answer)


def test_a_token_opens_the_page(transformer_run: Path) -> None:
    with serving([transformer_run], token="secret") as address:
        refused = ask(address, "/api/about")
        assert refused[0] == 401
        assert "open the whole address" in error(refused)
        assert ask(address, "/?token=wrong")[0] == 401
        assert ask(address, "/?token=%C3%A9")[0] == 401
        status, _, headers = ask(address, "/?token=secret")
        assert status == 307
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert ask(address, "/api/about", Cookie=cookie.partition(";")[0])[0] == 200
        assert ask(address, "/api/about", Authorization="Bearer secret")[0] == 200


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/api/look", {"text": "x" * 20_001}, 400, "The text is too long: at most 20,000 letters"),
        ("/api/look", b"{" + b" " * 600_000 + b"}", 413, "The request is too large: at most 512 KB"),
        ("/api/look", {"text": "one", "run": 7}, 400, "run = 7: 2 opened, counted from 0"),
        ("/api/look", {"text": "one", "colour": 1}, 422, "colour: extra inputs are not permitted"),
        ("/api/look", {"text": "one", "off": ["vision.0"]}, 400, "this model has no such layers"),
        ("/api/look", {"text": "one", "run": 1, "off": ["decoder.0"]}, 400, "no heads that could be switched off"),
        ("/api/look", {"text": "one", "checkpoint": "3"}, 400, r"is not kept any more (kept: 150, 300)"),
        ("/api/matrix", {"text": "one", "site": "decoder.9.cross"}, 400, "this model has no such attention"),
        ("/api/matrix", {"text": "one", "site": "decoder.0.cross", "head": "x"}, 400, "must be a number, 'mean'"),
        ("/api/look", {"text": "one", "forced": [99999]}, 400, "forced = 99999: no such token"),
        ("/api/look", b"not json", 422, "The request is not valid JSON"),
    ],
)
def test_bad_questions_are_answered(page_address: str, path: str, body: Any, status: int, message: str) -> None:
    answer = ask(page_address, path, body)
    assert answer[0] == status
    assert message in error(answer)


def test_positions_are_those_of_runs_that_have_them(page_address: str) -> None:
    status, body, headers = ask(page_address, "/api/positions?run=0&part=similarity")
    assert status == 200
    places = int(headers["x-shape"].split(",")[0])
    assert np.frombuffer(body, "<f4").reshape(places, places).diagonal() == pytest.approx(np.ones(places), abs=1e-5)
    answer = ask(page_address, "/api/positions?run=1")
    assert answer[0] == 400
    assert "adds no positions" in error(answer)


def test_a_run_without_weights_says_when_they_come(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    with pytest.raises(UserError, match="has no trained weights yet"):
        open_run(copied)
    with pytest.raises(UserError, match="no such folder"):
        open_run(copied / "nothing")


def test_a_run_that_is_still_training_is_shown_as_far_as_it_is(copied: Path) -> None:
    (copied / "scores.json").unlink()
    explorer = Explorer([copied])
    before = explorer.subjects[0]
    with serving([copied]) as address:
        told = json.loads(ask(address, "/api/training")[1])
        assert (told["done"], told["step"]) == (False, 300)
        assert told["checkpoints"] == ["150", "300"]
    newer = (copied / "model.safetensors").read_bytes()
    shutil.move(copied / "model.safetensors", copied / "older")
    (copied / "model.safetensors").write_bytes(newer)
    explorer.about()
    assert explorer.subjects[0] is not before, "newer weights are opened with the next visit"


def test_checkpoints_are_other_weights(page_address: str) -> None:
    scores = [
        json.loads(ask(page_address, "/api/look", {"text": TEXT, "checkpoint": step})[1])["score"]
        for step in ("", "150", "300")
    ]
    assert len(set(scores)) >= 2


def test_the_page_has_the_ink_of_the_figures() -> None:
    text = (PAGE / "theme.js").read_text(encoding="utf8")
    assert all(f'"{colour}"' in text for colour in figures.INK)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf8")
        assert "innerHTML" not in text, path.name
        places = [word for word in text.replace('"', " ").split() if "://" in word and "www.w3.org" not in word]
        assert not places, f"{path.name} names {places}"


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run given"):
        explore([])
    with pytest.raises(UserError, match="no such folder"):
        explore([tmp_path / "none"], browser=False)


def test_the_command_serves_and_a_taken_port_is_said(transformer_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # the other tests keep theirs
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match=r"cannot be used .* try --port 0"):
            explore([transformer_run], port=taken.getsockname()[1], browser=False)
    command = [sys.executable, "-m", "regard", "explore", str(transformer_run), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            assert address.startswith("http://127.0.0.1:")
            assert ask(address, "/api/about")[0] == 200
        finally:
            process.terminate()
