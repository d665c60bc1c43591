"""`regard models`: what can be trained."""

from __future__ import annotations

from typing import Annotated

import typer


def models(
    vocabulary: Annotated[int, typer.Option(help="Entries of the vocabulary to count with.")] = 8000,
) -> None:
    """List the models, their sizes and how many parameters each has."""
    import torch

    from regard.models import MODELS, build, named, parse_model

    for kind, family in MODELS.items():
        paper = ((family.model.__module__ and __import__(family.model.__module__, fromlist=["x"]).__doc__) or "").split(
            "\n"
        )[0]
        typer.echo(f"{kind}: {paper}")
        for size in family.sizes:
            with torch.device("meta"):
                model = build(parse_model(named(f"{kind}-{size}")), vocabulary)
            count = sum(weight.numel() for weight in model.parameters())
            typer.echo(f"  {f'{kind}-{size}':26} {count / 1e6:8.1f} M parameters")
