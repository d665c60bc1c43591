"""The verbs of trained runs as JSON over HTTP: what the command line prints with --json, and attention if asked for.

    POST /translate   {"texts": ["The white cat is sleeping."], "attention": true}
                  ->  {"results": [{"source": ..., "text": ..., "score": ..., "attention": {"sites": ...}}]}

Of several runs a request names one: {"run": "mine"}. One request at a time is computed, its texts together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from regard.config import SearchConfig
from regard.data.images_decode import from_data_uri
from regard.errors import UserError
from regard.inference import Weights
from regard.models.heads import Headed
from regard.nn.record import AttentionRecord, Recording
from regard.run import Run
from regard.serving.guard import LOOPBACK, guarded
from regard.tasks.image_classifier import ImageClassifier
from regard.tasks.translator import Translator

HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
MOST = 256
"""Texts of one request, at most."""
LONGEST = 2**14
"""Characters of a text, at most, for models that would read any number: what they need grows with its square."""
LARGEST = {"beam": 64, "n_best": 64, "min_length": 4096, "max_length": 4096, "batch_tokens": 4096}
"""What a search may be asked for: others wait for it."""
WEIGHTS = 2**22
"""Weights of attention in one answer, at most: some 80 MB as JSON."""
BODY = 8 * 2**20
"""Bytes of a request, at most: an image may be one."""
VERBS = {
    "translate": ["translate"], "summarize": ["summarize"], "classify": ["classify"], "tag": ["tag"],
    "answer": ["answer"], "choose": ["choose"], "masked": ["fill"], "language": ["generate"], "image": ["classify"],
}  # fmt: skip
Texts = list[str] | str


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Part(Strict):
    """A part of an attention record: sites by pattern, heads and rows by number."""

    sites: str = "*"
    heads: list[int] | None = None
    rows: list[int] | None = None


class AskRun(Strict):
    """What all requests have."""

    run: str = Field(default="", description="its name, where several are served")


class Ask(AskRun):
    attention: bool | Part = Field(
        default=False,
        description='what every head looked at, with each result; or a part: {"sites": "decoder.*.cross"}',
    )


class AskTexts(Ask):
    texts: Texts


class AskClasses(AskTexts):
    seconds: Texts | None = None


class AskOutputs(AskTexts):
    search: dict[str, Any] = Field(default={}, description="settings of the search: beam, temperature, max_length, ...")
    ask: str | None = None


class AskTranslations(AskOutputs):
    prefixes: Texts | None = Field(default=None, description="how each output must begin, or all of them")


class AskContinuations(Ask):
    prompts: Texts
    search: dict[str, Any] = {}
    stop: Texts = []
    stream: bool = Field(default=False, description="the text of one prompt, piece by piece as it is written")


class AskAnswers(Ask):
    questions: Texts
    contexts: Texts


class AskChoices(Ask):
    contexts: Texts
    choices: list[list[str]] | list[str]


class AskWords(AskTexts):
    top: int = Field(default=5, ge=1)


class AskVectors(AskRun):
    texts: Texts
    pooling: str = "mean"
    layers: str = "last"


class Service:
    """The runs that are open, by the names of their folders."""

    def __init__(self, paths: Sequence[Path], device: str = "auto", weights: Weights = "float32") -> None:
        self.runs: dict[str, Run] = {}
        self.lock = threading.Lock()
        for path in paths:
            name = path.resolve().name
            if name in self.runs:
                raise UserError(f"{path}: another run is called {name!r} too; rename one of the folders")
            self.runs[name] = Run.load(path, device, weights)

    def about(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "task": run.config.task, "model": run.config.model.kind, "verbs": self.verbs(run)}
            for name, run in self.runs.items()
        ]

    def verbs(self, run: Run) -> list[str]:
        vectors = ["embed"] if isinstance(run.model, Headed) else []
        summaries = ["summarize"] if run.saved.facts.get("any_text") else []  # a published model of many tasks
        return VERBS.get(run.config.task, []) + summaries + vectors

    def run(self, name: str) -> Run:
        if not name and len(self.runs) == 1:
            return next(iter(self.runs.values()))
        if name not in self.runs:
            raise UserError(f"run = {name!r}: must be one of {', '.join(self.runs)}")
        return self.runs[name]

    def results(self, ask: Ask, verb: Callable[[Run], Iterable[Any]]) -> dict[str, Any]:
        with self.lock:
            found = list(verb(self.run(ask.run)))
            rows, left = [], WEIGHTS
            for one in found:
                row, weights = _row(one, ask.attention, left)
                left -= weights
                rows.append(row)
            return {"results": rows}


def app(service: Service, token: str | None = None, hosts: Sequence[str] = LOOPBACK) -> FastAPI:
    """The server. /openapi.json says what every verb takes."""
    api = guarded(FastAPI(title="Regard", docs_url=None, redoc_url=None), token, hosts, HEADERS, BODY)

    @api.get("/")
    async def about() -> Any:  # not one of the threads in which requests wait for each other
        return {"runs": service.about()}

    @api.post("/translate")
    def translate(ask: AskTranslations) -> Any:
        return service.results(
            ask,
            lambda run: run.translate(
                _short(run.translator, _few(ask.texts)), _search(run, ask), ask.prefixes, ask=ask.ask
            ),
        )

    @api.post("/summarize")
    def summarize(ask: AskOutputs) -> Any:
        return service.results(
            ask,
            lambda run: run.summarize(
                _short(run.summarizer.translator, _few(ask.texts)), _search(run, ask), ask=ask.ask
            ),
        )

    @api.post("/classify")
    def classify(ask: AskClasses) -> Any:
        return service.results(ask, lambda run: run.classify(_inputs(run, _few(ask.texts)), ask.seconds))

    @api.post("/tag")
    def tag(ask: AskTexts) -> Any:
        return service.results(ask, lambda run: run.tag(_few(ask.texts)))

    @api.post("/answer")
    def answer(ask: AskAnswers) -> Any:
        return service.results(ask, lambda run: run.answer(_few(ask.questions), ask.contexts))

    @api.post("/choose")
    def choose(ask: AskChoices) -> Any:
        return service.results(ask, lambda run: run.choose(_given(ask.contexts), ask.choices))

    @api.post("/fill")
    def fill(ask: AskWords) -> Any:
        return service.results(ask, lambda run: run.fill(_few(ask.texts), ask.top))

    @api.post("/generate")
    def generate(ask: AskContinuations) -> Any:
        if ask.stream:
            return StreamingResponse(_streamed(service, ask), media_type="text/plain; charset=utf-8")
        return service.results(ask, lambda run: run.generate(_few(ask.prompts), _search(run, ask), ask.stop))

    @api.post("/embed")
    def embed(ask: AskVectors) -> Any:
        with service.lock:
            return {"vectors": service.run(ask.run).embed(_few(ask.texts), ask.pooling, ask.layers).tolist()}

    return api


def _inputs(run: Run, texts: list[str]) -> list[Any]:
    """Texts; or images in the request itself, since a file's name would be that of a file of this machine."""
    return list(map(from_data_uri, texts)) if isinstance(run.predictor, ImageClassifier) else texts


def _streamed(service: Service, ask: AskContinuations) -> Iterator[str]:
    """The pieces of a text; what is wrong with the request is said before the first."""
    if not isinstance(ask.prompts, str):
        raise UserError("stream: is for one prompt, given as a text")
    if ask.attention:
        raise UserError("attention: is not for a stream; leave one of them out")
    run = service.run(ask.run)
    with service.lock:  # a beam search is done before its first piece
        pieces = run.generator.stream(ask.prompts, _search(run, ask), ask.stop)
    piece = _next(service, pieces)

    def rest() -> Iterator[str]:
        nonlocal piece
        while piece is not None:
            yield piece  # while somebody reads it, others may ask
            piece = _next(service, pieces)

    return rest()


def _next(service: Service, pieces: Iterator[str]) -> str | None:
    with service.lock:
        return next(pieces, None)


def _few(texts: Texts) -> list[str]:
    several = _given(texts)
    return [several] if isinstance(several, str) else several


def _given(texts: Texts) -> Texts:
    """As they are, if they are not too many."""
    if not isinstance(texts, str) and len(texts) > MOST:
        raise UserError(f"{len(texts)} texts: at most {MOST} in one request")
    return texts


def _short(translator: Translator, texts: list[str]) -> list[str]:
    """As they are, if the model cuts them or none is too long."""
    longest = max(map(len, texts), default=0)
    if longest > LONGEST and translator.reads > LONGEST:
        raise UserError(f"a text of {longest:,} characters: at most {LONGEST:,} here; send its sentences one by one")
    return texts


def _search(run: Run, ask: AskOutputs | AskContinuations) -> SearchConfig:
    found = run.config.decode.wishing(ask.search, "search.")
    for name, most in LARGEST.items():
        if name in ask.search and (getattr(found, name) or 0) > most:
            raise UserError(f"search.{name} = {getattr(found, name)}: at most {most} here")
    return found


def _row(one: Any, attention: bool | Part, most: int) -> tuple[dict[str, Any], int]:
    """A result as JSON, and how many weights are in it."""
    row: dict[str, Any] = dict(one.row)
    others = [other.row for other in getattr(one, "others", [])]
    row |= {"others": others} if others else {}
    if not attention:
        return row, 0
    part = attention if isinstance(attention, Part) else None
    # Where sites can be asked for, no others are recorded.
    record: AttentionRecord = one.look(Recording(part.sites)) if part and hasattr(one, "look") else one.attention
    if part:
        record = record.select(part.sites, part.heads, part.rows)
    if record.size > most:
        raise UserError(
            f"attention: more than {WEIGHTS:,} weights; ask about fewer texts, or for a part of it: "
            f'{{"attention": {{"sites": "{record.alignment_site}"}}}}'
        )
    return {**row, "attention": record.plain()}, record.size
