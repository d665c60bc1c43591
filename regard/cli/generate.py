"""`regard generate`: continue a prompt, and show the text while it is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.inputs import files_of, lines_of
from regard.errors import UserError

if TYPE_CHECKING:
    from regard.config import SearchConfig
    from regard.tasks.generator import Generator


def generate(
    run: Annotated[Path, typer.Argument(help="The folder of a trained run, or of a Hugging Face model.")],
    prompt: Annotated[
        str | None,
        typer.Argument(
            help="How the text begins, or a file that has it; without it, a prompt to go on with, again and again."
        ),
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Most new tokens (200).", min=1, show_default=False)] = None,
    method: Annotated[str | None, typer.Option(help="sample, greedy or beam.")] = None,
    temperature: Annotated[float | None, typer.Option(help="For sampling: over 1 is bolder.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Sample among the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample within this share of probability.")] = None,
    min_p: Annotated[float | None, typer.Option(help="Sample what has this share of the likeliest's chance.")] = None,
    typical_p: Annotated[float | None, typer.Option(help="Sample the most typical of this share.")] = None,
    repetition_penalty: Annotated[float | None, typer.Option(help="Over 1: what was said is less likely.")] = None,
    no_repeat_ngram: Annotated[int | None, typer.Option(help="No n-gram of this size twice.")] = None,
    beam: Annotated[int | None, typer.Option(help="Width of the beam.")] = None,
    samples: Annotated[int, typer.Option(help="So many continuations.", min=1)] = 1,
    stop: Annotated[list[str] | None, typer.Option(help="End before this string (repeatable).")] = None,
    choice: Annotated[list[str] | None, typer.Option(help="Answer with one of these strings (repeatable).")] = None,
    special: Annotated[
        bool, typer.Option("--special", help="Marks in the prompt, as <|im_start|>, are what they say.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="For sampling.")] = None,
    attention: Annotated[Path | None, typer.Option(help="Draw attention: .svg, .png, .pdf; or .json.")] = None,
    site: Annotated[str | None, typer.Option(help="Which attention to draw: decoder.3.self, ...")] = None,
    head: Annotated[int | None, typer.Option(help="Which head to draw; by default their mean.")] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Draw all layers and heads.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per continuation, with scores.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    int8: Annotated[bool, typer.Option("--int8", help="Weights in 8 bits: faster, hardly worse (CPU).")] = False,
) -> None:
    """Continue a text, piece by piece as the model writes it.

    A prompt longer than the model's context is read from its last tokens on, and a text that outgrows it goes on from
    its last half.
    """
    wishes = {
        "max_length": tokens, "method": method, "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "min_p": min_p, "typical_p": typical_p, "repetition_penalty": repetition_penalty,
        "no_repeat_ngram": no_repeat_ngram, "beam": beam, "seed": seed,
        "n_best": samples if samples != 1 else None,
    }  # fmt: skip
    from regard.cli.pictures import Picture
    from regard.run import Run

    picture = Picture(attention, site, head, grid)
    opened = Run.load(run, device, "int8" if int8 else "float32")
    generator = opened.generator
    search = opened.config.decode.wishing(wishes)
    plain = samples == 1 and not (choice or as_json or attention)
    if prompt is None and plain and sys.stdin.isatty():
        _converse(generator, search, stop or [], special)
        return
    files = [] if prompt in (None, "-") else files_of([prompt])
    if prompt in (None, "-") or files:
        prompt = "\n".join(lines_of(files, []))
    ids = generator.encode(prompt, special)
    if len(ids) >= generator.context:
        print(f"warning: the prompt is longer than the context of {generator.context} tokens; "
              "only its end is read", file=sys.stderr)  # fmt: skip
    if unknown := ids.count(-1 if generator.tokenizer.special.unknown is None else generator.tokenizer.special.unknown):
        print(f"warning: {unknown} of the prompt's {len(ids)} tokens are unknown to this model", file=sys.stderr)
    if plain:
        _write(generator, prompt, search, stop or [], special)
        return
    (first,) = generator.generate([prompt], search, stop or [], choice or [], special)
    for number, one in enumerate([first, *first.others]):
        if as_json:
            typer.echo(json.dumps(one.row, ensure_ascii=False))
        else:
            typer.echo(("---\n" if number else "") + (one.text if choice else one.prompt + one.text))
    if picture.wanted(1):
        picture.draw(first.attention, 1)


def _write(generator: Generator, prompt: str, search: SearchConfig, stop: list[str], special: bool) -> None:
    """The prompt and its continuation, as it is written."""
    pieces = generator.stream(prompt, search, stop, special)
    print(prompt, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


def _converse(generator: Generator, search: SearchConfig, stop: list[str], special: bool) -> None:
    """Prompts from the terminal, each read after all that was said before."""
    print("Type, press Enter, and the model goes on (an empty line begins anew, Ctrl-D ends):", file=sys.stderr)
    said = ""
    for number, line in enumerate(sys.stdin):
        text = line.rstrip("\n")
        if not text:
            said = ""
            continue
        asked = said + ("\n" if said else "") + text
        options = search.model_copy(update={"seed": (search.seed + number) % 2**32})
        try:
            pieces = generator.stream(asked, options, stop, special)
        except UserError as problem:  # what was said before is not lost for it
            print(f"error: {problem}", file=sys.stderr)
            continue
        said = asked
        for piece in pieces:
            print(piece, end="", flush=True)
            said += piece
        print()
