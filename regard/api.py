"""The verbs of the package for Python, as the command line has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.explorer.figures import draw
from regard.explorer.notebook import register, show
from regard.hub import published
from regard.inference import Weights
from regard.run import Run
from regard.training import start
from regard.training.display import display_for
from regard.training.saved import open_saved

__all__ = ["draw", "export", "load", "resume", "show", "train"]

register()


def train(
    task: str,
    files: str | Path | Sequence[str | Path] = (),
    *,
    out: str | Path,
    model: str | None = None,
    start_from: str | Path | None = None,
    recipe: str | Path | None = None,
    settings: Mapping[str, object] | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> Run:
    """Train a model on files, or on a built-in corpus, and open it.

    `start_from` is a run or a published folder to begin with. `settings` are dotted keys of the config:
    `{"train.steps": 2000, "model.dropout": 0.3}`.
    """
    several = [files] if isinstance(files, str | Path) else files
    start.train(
        task,
        [str(file) for file in several],
        out=Path(out),
        model=model,
        recipe=None if recipe is None else Path(recipe),
        settings={**({} if start_from is None else {"start": str(start_from)}), **(settings or {})},
        overwrite=overwrite,
        display=None if quiet else display_for(),
    )
    return Run.load(out)


def resume(path: str | Path, *, settings: Mapping[str, object] | None = None, quiet: bool = False) -> Run:
    """Go on with a run that stopped, or with a finished one that is given more steps."""
    start.resume(Path(path), settings=settings, display=None if quiet else display_for())
    return Run.load(path)


def load(path: str | Path, device: str = "auto", weights: Weights = "float32") -> Run:
    """Open a trained run. With `weights="int8"` it runs faster on a CPU and hardly worse."""
    return Run.load(path, device, weights)


def export(path: str | Path, out: str | Path) -> None:
    """Write a run as a folder that Hugging Face's `transformers` opens."""
    published.export(open_saved(Path(path)), Path(out))
