"""`regard demo`: the main job on a built-in corpus, from nothing to a picture of attention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SENTENCES = ("The white cat is sleeping.", "The white cat is not sleeping.", "My old friend will never buy a red car.")


def demo(
    model: Annotated[str, typer.Option(help="Such as transformer-micro or rnn-attention.")] = "transformer-micro",
    out: Annotated[Path | None, typer.Option(help="Folder for the run; by default runs/demo-MODEL.")] = None,
) -> None:
    """Train an English-French translator and look at its attention.

    One to four minutes on two cores: training on a built-in corpus, scores, translations and a picture.
    """
    from rich.console import Console

    from regard.cli.train import trained
    from regard.explorer.figures import draw
    from regard.run import Run
    from regard.training import start
    from regard.training.display import display_for

    own = out is None  # made here, and so made anew; any other folder is somebody's
    out = out or Path("runs") / f"demo-{model}"
    console = Console()
    console.print(f"Training {model} on the built-in corpus english-french, in {out}\n", highlight=False)
    display = display_for(console)
    trained(lambda: start.train("translate", ["english-french"], out=out, model=model, overwrite=own, display=display))
    run = Run.load(out)
    results = run.translate(SENTENCES)
    for result in results:
        console.print(f"  {result.source}\n    {result.text}", highlight=False)
    record = results[1].attention
    if record.sites:
        picture = out / "attention.svg"
        draw(record.words(), picture)
        draw(record.words(), picture.with_suffix(".png"))
        console.print(f"\nWhat each French word looked at: {picture} (and .png)", highlight=False, soft_wrap=True)
