"""The page over HTTP: what it asks for, and who may ask.

Every request says what it wants in full (run, text, what is off), so that any of them can be repeated in any order;
scenes that were looked at last are kept, which makes the second question about a sentence cheap. Matrices travel as
bytes (little-endian Float32, their shape in a header), everything else as JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from regard.errors import UserError
from regard.explorer.document import PAGE
from regard.explorer.inside import inside
from regard.explorer.opening import checkpoints, open_run, training
from regard.explorer.positions import positions
from regard.explorer.scene import Subject, Wish
from regard.explorer.seen import Seen, Shelf
from regard.serving.guard import BODY, LOOPBACK, guarded
from regard.training.folder import RunFolder

LETTERS = 20_000
"""Letters of a text, at most."""
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Look(BaseModel):
    """What to look at."""

    model_config = ConfigDict(extra="forbid")

    run: int = Field(default=0, ge=0)
    text: str = Field(max_length=BODY)
    off: list[Annotated[str, Field(max_length=80)]] = Field(default=[], max_length=512)
    forced: list[Annotated[int, Field(ge=0)]] = Field(default=[], max_length=2048)
    checkpoint: str = Field(default="", max_length=12)

    def wish(self) -> Wish:
        return Wish(self.text, tuple(sorted(set(self.off))), tuple(self.forced), self.checkpoint)


class OneSite(Look):
    site: str = Field(max_length=80)


class OneMatrix(OneSite):
    head: str = Field(default="mean", max_length=8)
    unit: Literal["words", "tokens"] = "words"


class OnePair(OneSite):
    head: int = Field(ge=0)
    query: int = Field(ge=0)
    key: int = Field(ge=0)


class Explorer:
    """The runs that are open, and the scenes that were looked at last. One question at a time is computed."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.folders = [RunFolder(path) for path in paths]
        self.subjects: list[Subject] = [open_run(path) for path in paths]
        self._dates = [self._date(number) for number in range(len(paths))]
        self._replays: dict[tuple[int, str], Subject] = {}
        self._shelf, self._lock = Shelf(), threading.Lock()

    def _date(self, number: int) -> float:
        file = self.folders[number].model
        return file.stat().st_mtime if file.is_file() else 0.0  # published weights can be in several files

    def about(self) -> list[dict[str, Any]]:
        """Each run as the page introduces it; one that has better weights since is opened anew."""
        with self._lock:
            for number, folder in enumerate(self.folders):
                if (date := self._date(number)) != self._dates[number]:
                    self.subjects[number], self._dates[number] = open_run(folder.path), date
                    self._shelf = Shelf()
        return [
            {
                "name": subject.name, "path": str(folder.path), "model": subject.model, "task": subject.task,
                "examples": subject.examples, "verbs": sorted(subject.verbs), "about": subject.about,
                "checkpoints": checkpoints(folder), "positions": positions(subject.network, "table") is not None,
            }
            for subject, folder in zip(self.subjects, self.folders, strict=True)
        ]  # fmt: skip

    def seen(self, look: Look) -> Seen:
        subject, wish = self.subject(look.run, look.checkpoint), look.wish()
        if len(wish.text) > LETTERS and not wish.text.startswith("data:image/"):
            raise UserError(f"The text is too long: at most {LETTERS:,} letters. Shorten it and try again.")
        subject.check(wish)
        return self._shelf.get((look.run, wish), lambda: subject.look(wish))

    def subject(self, run: int, checkpoint: str = "") -> Subject:
        if run >= len(self.subjects):
            raise UserError(f"run = {run}: {len(self.subjects)} opened, counted from 0")
        if not checkpoint:
            return self.subjects[run]
        if (run, checkpoint) not in self._replays:
            self._replays = {(run, checkpoint): open_run(self.folders[run].path, checkpoint)}  # the last one is kept
        return self._replays[run, checkpoint]

    def ask(self, look: Look, question: Callable[[Seen], Any]) -> Any:
        with self._lock:
            return question(self.seen(look))


def app(paths: Sequence[Path], token: str | None = None, hosts: Sequence[str] = LOOPBACK) -> FastAPI:
    """The server for these runs. With a `token`, only who knows it is answered."""
    explorer = Explorer(paths)
    api = guarded(FastAPI(openapi_url=None, docs_url=None, redoc_url=None), token, hosts, HEADERS)

    @api.get("/")
    def index() -> Response:
        return _file("index.html")

    @api.get("/page/{name}")
    def file(name: str) -> Response:
        return _file(name)

    @api.get("/api/about")
    def about() -> Any:
        return {"runs": explorer.about()}

    @api.post("/api/look")
    def look(wish: Look) -> Any:
        return explorer.ask(wish, lambda seen: seen.summary())

    @api.post("/api/matrix")
    def matrix(wish: OneMatrix) -> Response:
        return _bytes(explorer.ask(wish, lambda seen: seen.matrix(wish.site, wish.head, wish.unit)))

    @api.post("/api/thumbnails")
    def thumbnails(wish: Look) -> Response:
        return _bytes(*explorer.ask(wish, lambda seen: [seen.thumbnails(site) for site in seen.heads]))

    @api.post("/api/inside")
    def one_pair(wish: OnePair) -> Any:
        return explorer.ask(wish, lambda seen: inside(seen, wish.site, wish.head, wish.query, wish.key))

    @api.post("/api/decoding")
    def decoding(wish: Look) -> Any:
        return explorer.ask(wish, lambda seen: seen.scene.decoding())

    @api.get("/api/positions")
    def one_encoding(run: Annotated[int, Field(ge=0)] = 0, part: Literal["table", "similarity"] = "table") -> Response:
        table = positions(explorer.subject(run).network, part)
        if table is None:
            raise UserError("this model adds no positions to its tokens")
        return _bytes(table)

    @api.get("/api/training")
    def curves(run: Annotated[int, Field(ge=0)] = 0) -> Any:
        explorer.subject(run)
        return training(explorer.folders[run])

    return api


def _file(name: str) -> Response:
    path = PAGE / name
    if path.suffix not in KINDS or path.parent != PAGE or not path.is_file():
        return JSONResponse({"error": f"{name}: no such file"}, status_code=404)
    return Response(path.read_bytes(), media_type=KINDS[path.suffix])


def _bytes(*matrices: np.ndarray[Any, Any]) -> Response:
    """One matrix, or several one after the other."""
    shapes = ";".join(",".join(map(str, matrix.shape)) for matrix in matrices)
    body = b"".join(np.ascontiguousarray(matrix, dtype="<f4").tobytes() for matrix in matrices)
    return Response(body, media_type="application/octet-stream", headers={"X-Shape": shapes})
