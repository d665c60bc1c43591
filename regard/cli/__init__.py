"""The command line: one file per verb, each thin: parse, call, print. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import errno
import sys

import typer

from regard.cli import (
    answer,
    choose,
    classify,
    corpus,
    demo,
    embed,
    evaluate,
    explore,
    export,
    fill,
    generate,
    models,
    serve,
    settings,
    summarize,
    tag,
    train,
    translate,
)  # fmt: skip
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
app.command("summarize")(summarize.summarize)
app.command("classify")(classify.classify)
app.command("tag")(tag.tag)
app.command("answer")(answer.answer)
app.command("choose")(choose.choose)
app.command("fill")(fill.fill)
app.command("embed")(embed.embed)
app.command("export")(export.export)
app.command("generate")(generate.generate)
app.command("evaluate")(evaluate.evaluate)
app.command("explore")(explore.explore)
app.command("serve")(serve.serve)
app.command("corpus")(corpus.corpus)
app.command("models")(models.models)
app.command("settings")(settings.settings)


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
    except KeyboardInterrupt:
        sys.exit(130)
