"""`regard serve`: trained runs for other programs, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Trained runs, or Hugging Face folders.")],
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 8080,
    token: Annotated[str | None, typer.Option(help="Ask for this token; other addresses make one up.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: faster, hardly worse (CPU).")] = False,
) -> None:
    """Serve trained runs as JSON over HTTP: translate, classify, generate, ..., with attention if asked for.

    curl -X POST localhost:8080/translate -H 'Content-Type: application/json' -d '{"texts": "The white cat sleeps."}'
    """
    from regard.serving.guard import address_of, listen, serve_on, token_for
    from regard.serving.service import Service, app

    token = token_for(host, token)
    with listen(host, port) as listening:
        served = app(Service(runs, device, "int8" if int8 else "float32"), token)
        address = address_of(listening, host)
        typer.echo(f"Serving at {address} (what each verb takes: {address}openapi.json)\nCtrl-C ends.")
        if token:
            typer.echo(f"Send the header  Authorization: Bearer {token}")
        serve_on(listening, served)
