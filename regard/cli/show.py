"""Tables that several verbs print."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from regard.training.folder import RunFolder

_COLUMNS = {
    "bleu": ("BLEU", "{:.1f}"),
    "chrf": ("chrF", "{:.1f}"),
    "ter": ("TER", "{:.1f}"),
    "exact": ("exact", "{:.1f}%"),
    "perplexity": ("perpl.", "{:.2f}"),
    "token_accuracy": ("tokens", "{:.1f}%"),
}


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> Table:
    """One row per test set. AER, the alignment error rate, is that of the cross-attention that aligns best."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("test set")
    table.add_column("pairs", justify="right")
    for title, _ in _COLUMNS.values():
        table.add_column(title, justify="right")
    aligned = any(row["aer"] for row in scores.values())
    if aligned:
        table.add_column("AER", justify="right")
    for name, row in scores.items():
        cells = [style.format(row[key]) for key, (_, style) in _COLUMNS.items()]
        if aligned:
            cells.append(f"{100 * min(row['aer'].values()):.0f}%" if row["aer"] else "")
        table.add_row(name, f"{row['sentences']:,}", *cells)
    return table


def show_scores(folder: RunFolder) -> None:
    """The final scores of a run, and what can be done with it now."""
    scores = json.loads(folder.scores.read_text(encoding="utf8"))
    if scores:
        print_scores(scores)
    Console().print(
        f'The run is in {folder.path}. Next:\n  regard translate {folder.path} "..." --attention attention.svg\n',
        highlight=False,
        soft_wrap=True,
    )


def print_scores(scores: Mapping[str, Mapping[str, Any]]) -> None:
    console = Console()
    console.print(score_table(scores))
    for name, signature in next(iter(scores.values()))["signatures"].items():
        console.print(f"{name}: {signature}", style="dim", highlight=False, soft_wrap=True)


def print_lengths(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """BLEU by the number of words in the source."""
    table = Table("test set", box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("words", "pairs", "BLEU"):
        table.add_column(title, justify="right")
    for name, row in scores.items():
        for words, part in row["by_length"].items():
            table.add_row(name, words, f"{part['pairs']:,}", f"{part['bleu']:.1f}")
    Console().print(table)
