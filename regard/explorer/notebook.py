"""Translations and records, shown as the page in a notebook: evaluate one in a cell, or call `regard.show`."""

from __future__ import annotations

import sys
from typing import Any

from regard.errors import UserError
from regard.explorer.document import document, frame
from regard.nn.record import AttentionRecord
from regard.tasks.translator import Translation


class Shown:
    """What a notebook displays as the page."""

    def __init__(self, page: str) -> None:
        self.page = page

    def _repr_html_(self) -> str:
        return frame(self.page)


def show(seen: Any) -> Shown:
    """The page for a record, or for a result that has one: a translation, a continuation, a class."""
    if isinstance(seen, Translation):
        return Shown(document(seen.attention, text=seen.source, output=seen.text, score=seen.score))
    record = getattr(seen, "attention", seen)
    if not isinstance(record, AttentionRecord):
        raise UserError(f"{type(seen).__name__}: has no attention to show; give a result of a run, or a record")
    return Shown(document(record))


def register() -> None:
    """In a running notebook, let translations and records display themselves so."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython and ipython.get_ipython()
    if shell:
        formatter = shell.display_formatter.formatters["text/html"]
        for kind in (Translation, AttentionRecord):
            formatter.for_type(kind, _shown)


def _shown(seen: Translation | AttentionRecord) -> str | None:
    """None where there is nothing to look at, or too much for a page: then it is shown as text."""
    try:
        return show(seen)._repr_html_()
    except UserError:
        return None
