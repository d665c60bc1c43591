"""`regard explore`: the page where attention can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from regard.errors import UserError

DEMO = Path("runs/demo-transformer-micro")
SMALL = 2**26
"""Bytes of weights up to which one thread answers sooner than several."""


def explore(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Trained runs; two or more can be compared.", show_default=False)
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help=f"Open {DEMO}; train it first if it is not there.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 7080,
    token: Annotated[str | None, typer.Option(help="Ask for this token; other addresses make one up.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Look inside trained runs, in the browser: what each word looked at, every head, and how each number came about.

    The page is served by this machine, to this machine; it needs no network.
    """
    import torch

    from regard.explorer.server import app
    from regard.serving.guard import address_of, listen, serve_on, token_for

    paths = list(runs or [])
    if demo:
        paths.append(_demo())
    if not paths:
        raise UserError("no run given (try: regard explore --demo, or: regard explore runs/mine)")
    token = token_for(host, token)
    served = app(paths, token)
    weights = [file for path in paths for file in path.glob("*.safetensors")]
    if sum(file.stat().st_size for file in weights) < SMALL:
        torch.set_num_threads(1)  # more would wait for each other, in the browser's way: 145 ms for a key, not 190
    with listen(host, port) as listening:
        address = address_of(listening, host) + (f"?token={quote(token, safe='')}" if token else "")
        typer.echo(f"Look: {address}\nCtrl-C ends.")
        if browser:
            import webbrowser

            webbrowser.open(address)
        serve_on(listening, served)


def _demo() -> Path:
    """The demo's run, trained now if it is not there."""
    if not (DEMO / "model.safetensors").is_file():
        from regard.cli.demo import demo

        demo(DEMO.name.removeprefix("demo-"), None)
    return DEMO
