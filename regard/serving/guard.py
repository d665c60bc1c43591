"""Who may ask over HTTP, and how a mistake is answered.

By default a server listens to this machine alone and answers to its own name only, so that a web page elsewhere can not
ask through the reader's browser. On other addresses a token is needed.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException

from regard.errors import UserError

BODY = 512 * 1024
"""Bytes of a request, at most."""
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


def guarded(
    api: FastAPI, token: str | None, hosts: Sequence[str], headers: Mapping[str, str], body: int = BODY
) -> FastAPI:
    """The same, with guards: `headers` go with every answer. With a `token`, only who knows it is answered. A request
    has so many bytes at most."""

    @api.middleware("http")
    async def guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        response = _refused(request, token, hosts, body) or await call(request)
        response.headers.update(headers)
        return response

    @api.exception_handler(UserError)
    async def told(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=400)

    @api.exception_handler(HTTPException)
    async def missing(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException), "registered for this kind alone"
        asked = f"{request.method} {request.url.path}: {error.detail.lower()} (try GET /openapi.json)"
        return JSONResponse({"error": asked}, status_code=error.status_code, headers=error.headers)

    @api.exception_handler(RequestValidationError)
    async def unclear(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError), "registered for this kind alone"
        return JSONResponse({"error": _explained(error)}, status_code=422)

    return api


def token_for(host: str, given: str | None) -> str | None:
    """The token to ask for: the one that was given, or a new one where others than this machine can ask."""
    if given is not None and not given.strip():
        raise UserError("--token '': is empty; leave it out, or give one")
    return given or (None if host in LOOPBACK else secrets.token_urlsafe(16))


def listen(host: str, port: int) -> socket.socket:
    """Bound before anything is said, so that the address printed is the one that answers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"--host {host} --port {port}: cannot be used ({reason}); try --port 0") from None
    return listening


def serve_on(listening: socket.socket, api: FastAPI) -> None:
    """Until Ctrl-C; who is being answered then is waited for, but not for long."""
    uvicorn.Server(uvicorn.Config(api, log_level="warning", timeout_graceful_shutdown=3)).run(sockets=[listening])


def address_of(listening: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}/"


def _refused(request: Request, token: str | None, hosts: Sequence[str], body: int) -> Response | None:
    """The answer to whom this server does not serve, or None."""
    host = (request.headers.get("host") or "").rsplit(":", 1)[0]
    origin = request.headers.get("origin")
    if token is None:
        if host not in hosts:
            return JSONResponse({"error": f"host = {host!r}: this page answers on this machine only"}, status_code=403)
    else:
        given = request.query_params.get("token")
        if given and _same(given, token) and request.url.path == "/":
            answer = RedirectResponse("/")
            answer.set_cookie("regard", token, httponly=True, samesite="strict")
            return answer
        known = [request.cookies.get("regard", ""), request.headers.get("authorization", "").removeprefix("Bearer ")]
        if not any(_same(one, token) for one in known):
            message = (
                "a token is needed: open the whole address that was printed, with ?token=..., or send it in the header "
                "Authorization: Bearer ..."
            )
            return JSONResponse({"error": message}, status_code=401)
    if origin and origin.split("://")[-1] != request.headers.get("host"):
        return JSONResponse({"error": f"origin = {origin!r}: only this page itself may ask"}, status_code=403)
    return _too_large(request, body)


def _too_large(request: Request, body: int) -> Response | None:
    length = request.headers.get("content-length")
    if "transfer-encoding" in request.headers or (length is None and request.method == "POST"):
        return JSONResponse(
            {"error": "The request must say its length: send the header Content-Length."}, status_code=411
        )
    if int(length or 0) > body:
        return JSONResponse({"error": f"The request is too large: at most {body // 1024:,} KB."}, status_code=413)
    return None


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _explained(error: RequestValidationError) -> str:
    """The first thing that is wrong, for a person."""
    item = error.errors()[0]
    parts = [str(part) for part in item["loc"] if part != "body"]
    field = ".".join(part for part in parts if part.replace("_", "").isalnum())  # not the kinds that it may be of
    if item["type"] == "json_invalid":
        return "The request is not valid JSON."
    if not field:
        return "The request must be a JSON object, sent with the header Content-Type: application/json."
    given = "" if item["type"] in ("missing", "extra_forbidden") else f" = {repr(item['input'])[:60]}"
    return f"{field}{given}: {item['msg'][0].lower()}{item['msg'][1:]}"
