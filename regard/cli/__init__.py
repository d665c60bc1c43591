"""The command line: one file per verb, each thin: parse, call, print. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import errno
import sys

import typer

from regard.cli import corpus, demo, evaluate, models, train, translate
from regard.errors import UserError

app = typer.Typer(
    help="Train, run and look inside attention models, from a plain file, on a laptop.",
    epilog="Begin with: regard demo, or: regard train translate pairs.tsv --out runs/mine",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: it starts in half the time
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("corpus")(corpus.corpus)
app.command("models")(models.models)


def main() -> None:
    """What a user caused is one message and exit code 2; a stop on request is 130; all else is our defect."""
    try:
        app()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a full disk, a folder that may not be written, ...
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        print(f"error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
