"""`regard models`: what can be trained."""

from __future__ import annotations

from typing import Annotated

import typer


def models(
    vocabulary: Annotated[int, typer.Option(help="Entries of the vocabulary to count with.", min=1)] = 8000,
) -> None:
    """List the models, their sizes, and the tasks they can be trained for."""
    import torch

    from regard.models import MODELS, build, named, parse_model
    from regard.tasks import TASKS

    for kind, family in MODELS.items():
        able = [name for name, task in TASKS.items() if issubclass(family.model, task.promise)]
        typer.echo(f"{kind} ({family.papers}): {', '.join(able)}")
        for size in family.sizes:
            with torch.device("meta"):
                model = build(parse_model(named(f"{kind}-{size}")), vocabulary)
            count = sum(weight.numel() for weight in model.parameters())
            typer.echo(f"  {f'{kind}-{size}':26} {count / 1e6:8.1f} M parameters")
