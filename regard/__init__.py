"""Regard: train, run and look inside attention models.

    run = regard.train("translate", "pairs.tsv", out="runs/mine")
    best = regard.load("runs/mine").translate("The white cat is sleeping.")[0]
    best.text, best.score, best.attention

Importing this package is cheap: torch is imported when something needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.api import draw, export, load, resume, show, train
    from regard.config import SearchConfig
    from regard.data.pairs import Pair
    from regard.errors import UserError
    from regard.nn.record import AttentionRecord, Recording
    from regard.run import Run
    from regard.tasks.translation_scores import Variant

__version__ = "0.1.0"
__all__ = [
    "AttentionRecord",
    "Pair",
    "Recording",
    "Run",
    "SearchConfig",
    "UserError",
    "Variant",
    "draw",
    "export",
    "load",
    "resume",
    "show",
    "train",
]

_HOMES = {
    "draw": "regard.api",
    "export": "regard.api",
    "load": "regard.api",
    "resume": "regard.api",
    "show": "regard.api",
    "train": "regard.api",
    "SearchConfig": "regard.config",
    "Pair": "regard.data.pairs",
    "UserError": "regard.errors",
    "AttentionRecord": "regard.nn.record",
    "Recording": "regard.nn.record",
    "Run": "regard.run",
    "Variant": "regard.tasks.translation_scores",
}


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
