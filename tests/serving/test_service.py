"""What is asked over HTTP is answered as in Python, with attention; what cannot be answered is said clearly."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import torch
from explored_runs import running
from PIL import Image

from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.hub.published import export
from regard.models import build, parse_model
from regard.nn.record import AttentionRecord
from regard.nn.weights import weights_of
from regard.run import Run
from regard.serving.guard import token_for
from regard.serving.service import Service, app
from regard.tasks import settings_of
from regard.tasks.saved import Saved

TEXT = "red cat sees dog"


@pytest.fixture(scope="module")
def writer_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random GPT with its tokenizer, as a published folder."""
    folder = tmp_path_factory.mktemp("runs") / "writer"
    folder.mkdir()
    torch.manual_seed(0)
    tokenizer = Subwords.learn(["the red cat sees the dog"] * 4, kind="byte-bpe", vocabulary=300)
    shape = {"kind": "gpt", "layers": 1, "width": 16, "heads": 2, "max_length": 64}
    config, _ = settings_of([("", {"task": "language", "model": shape})])
    weights = weights_of(build(parse_model(shape), len(tokenizer)))
    export(Saved(folder, config, weights, tokenizer, {"context": 64, "before": [], "blank": []}), folder)
    return folder


@pytest.fixture(scope="module")
def address(transformer_run: Path, classifier_run: Path, writer_run: Path) -> Iterator[str]:
    with running(app(Service([transformer_run, classifier_run, writer_run], "cpu"))) as found:
        yield found


def ask(address: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    given = {"Content-Type": "application/json", **headers}
    connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), given)
    answer = connection.getresponse()
    text = answer.read().decode()
    return answer.status, json.loads(text) if "json" in (answer.getheader("content-type") or "") else text


def test_it_says_what_it_serves(address: str) -> None:
    status, about = ask(address, "/")
    assert status == 200
    assert {run["name"]: run["verbs"] for run in about["runs"]} == {
        "transformer": ["translate"],
        "bert": ["classify", "embed"],
        "writer": ["generate"],
    }
    assert "/translate" in ask(address, "/openapi.json")[1]["paths"]


def test_a_published_model_of_many_tasks_says_so(transformer_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service([transformer_run], "cpu")
    (run,) = service.runs.values()
    monkeypatch.setattr(run, "saved", replace(run.saved, facts={"any_text": True}))
    assert service.verbs(run) == ["translate", "summarize"]


def test_a_translation_comes_with_its_attention(address: str, transformer_run: Path) -> None:
    (expected,) = Run.load(transformer_run, "cpu").translate(TEXT)
    wish = {"run": "transformer", "texts": [TEXT, TEXT], "attention": True}
    status, answer = ask(address, "/translate", wish)
    assert (status, len(answer["results"])) == (200, 2)
    found = answer["results"][0]
    assert (found["text"], found["score"]) == (expected.text, pytest.approx(expected.score, abs=1e-4))
    record = AttentionRecord.from_json(json.dumps(found["attention"]))
    assert list(record.sites) == list(expected.attention.sites)
    several = ask(address, "/translate", {"run": "transformer", "texts": TEXT, "search": {"beam": 3, "n_best": 3}})[1]
    assert len(several["results"][0]["others"]) == 2


def test_translations_can_be_begun(address: str, transformer_run: Path) -> None:
    (expected,) = Run.load(transformer_run, "cpu").translate(TEXT, prefixes="chat")
    wish = {"run": "transformer", "texts": [TEXT, TEXT], "prefixes": "chat"}
    assert [one["text"] for one in ask(address, "/translate", wish)[1]["results"]] == [expected.text] * 2
    status, answer = ask(address, "/translate", {**wish, "prefixes": ["chat"]})
    assert (status, "prefixes: 1 beside 2 texts" in answer["error"]) == (400, True)


def test_a_part_of_the_attention_can_be_asked_for(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wish = {"run": "transformer", "texts": TEXT, "attention": {"sites": "decoder.*.cross", "heads": [1]}}
    found = ask(address, "/translate", wish)[1]["results"][0]["attention"]["sites"]
    assert all(site.endswith("cross") and heads["numbers"] == [1] for site, heads in found.items())
    monkeypatch.setattr("regard.serving.service.WEIGHTS", 100)
    status, answer = ask(address, "/translate", {**wish, "attention": True})
    assert (status, "more than 100 weights" in answer["error"]) == (400, True)


def test_a_text_without_end_is_refused_where_the_model_would_read_it_all(transformer_run: Path, rnn_run: Path) -> None:
    text = "cat " * 5000
    with running(app(Service([transformer_run, rnn_run], "cpu"))) as address:
        status, answer = ask(address, "/translate", {"run": "rnn", "texts": ["cat", text]})
        assert (status, "a text of 20,000 characters: at most 16,384" in answer["error"]) == (400, True)
        search = {"max_length": 3}
        assert ask(address, "/translate", {"run": "transformer", "texts": text, "search": search})[0] == 200  # is cut


def test_encoders_answer_as_in_python(address: str, classifier_run: Path) -> None:
    run = Run.load(classifier_run, "cpu")
    (expected,) = run.classify("the cat is dull")
    _, answer = ask(address, "/classify", {"run": "bert", "texts": "the cat is dull"})
    assert answer["results"][0]["label"] == expected.label
    assert answer["results"][0]["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
    _, vectors = ask(address, "/embed", {"run": "bert", "texts": ["the cat"]})
    assert vectors["vectors"][0] == pytest.approx(run.embed("the cat")[0].tolist(), abs=1e-5)


def test_a_text_is_streamed_as_it_is_written(address: str) -> None:
    search = {"method": "greedy", "max_length": 12}
    wish = {"run": "writer", "prompts": "the cat", "search": search}
    status, answer = ask(address, "/generate", wish)
    assert status == 200
    assert ask(address, "/generate", {**wish, "stream": True}) == (200, answer["results"][0]["text"])


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/translate", {"texts": "a"}, 400, "run = '': must be one of transformer, bert, writer"),
        ("/translate", {"run": "bert", "texts": "a"}, 400, "task 'classify', it cannot translate"),
        ("/translate", {"run": "transformer", "texts": "a", "search": {"beam": 0}}, 400, "search.beam = 0"),
        ("/translate", {"run": "transformer", "texts": ["a"] * 257}, 400, "257 texts: at most 256"),
        ("/classify", {"run": "bert", "text": "a"}, 422, "texts: field required"),
        ("/classify", {"run": "bert", "texts": 3}, 422, "texts = 3: input should be"),
        ("/classify", {"run": "bert", "texts": ["a", "b"], "seconds": ["c"]}, 400, "1 beside 2 texts"),
        ("/generate", {"run": "writer", "prompts": ["a"], "stream": True}, 400, "stream: is for one prompt"),
        ("/generate", {"run": "writer", "prompts": "a", "stop": [""]}, 400, "stop = ''"),
        ("/generate", {"run": "writer", "prompts": "a", "stream": True, "attention": True}, 400, "not for a stream"),
        (
            "/translate",
            {"run": "transformer", "texts": "a", "search": {"beam": 65}},
            400,
            "search.beam = 65: at most 64",
        ),
        ("/translate", {"run": "transformer", "texts": "a", "search": {"top_p": "0.5"}}, 400, "is for sampling"),
        ("/embed", {"run": "bert", "texts": "a", "attention": True}, 422, "attention: extra inputs are not permitted"),
        ("/classify", ["a"], 422, "must be a JSON object, sent with the header Content-Type: application/json"),
        ("/nothing", {}, 404, "POST /nothing: not found (try GET /openapi.json)"),
    ],
)
def test_bad_questions_are_answered(address: str, path: str, body: Any, status: int, message: str) -> None:
    found, answer = ask(address, path, body)
    assert found == status, answer
    assert message in answer["error"]


def test_an_image_is_sent_and_never_a_file_of_the_server(image_run: Path, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "red.png")
    expected = Run.load(image_run, "cpu").classify(tmp_path / "red.png")[0]
    sent = "data:image/png;base64," + base64.b64encode((tmp_path / "red.png").read_bytes()).decode()
    with running(app(Service([image_run], "cpu"))) as address:
        status, answer = ask(address, "/classify", {"texts": sent})
        assert status == 200
        assert answer["results"][0]["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)
        for wrong in (str(tmp_path / "red.png"), "data:image/png;base64,?", "data:image/png;base64,AAAA"):
            assert ask(address, "/classify", {"texts": wrong})[0] == 400


def test_a_token_is_asked_for(classifier_run: Path) -> None:
    with running(app(Service([classifier_run], "cpu"), token="secret")) as address:
        assert ask(address, "/classify", {"texts": "a"})[0] == 401
        assert ask(address, "/classify", {"texts": "a"}, Authorization="Bearer secret")[0] == 200


def test_an_empty_token_is_none() -> None:
    with pytest.raises(UserError, match="--token '': is empty"):
        token_for("127.0.0.1", "")
    assert token_for("127.0.0.1", None) is None
    assert token_for("0.0.0.0", None)


def test_a_request_says_its_length(address: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    connection.request("POST", "/translate", iter([b"{}"]), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert connection.getresponse().status == 411
