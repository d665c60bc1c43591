"""Tables that several verbs print."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from regard.training.folder import RunFolder, read_run_config

_COLUMNS = {
    "bleu": ("BLEU", "{:.1f}"),
    "chrf": ("chrF", "{:.1f}"),
    "ter": ("TER", "{:.1f}"),
    "exact": ("exact", "{:.1f}%"),
    "perplexity": ("perpl.", "{:.2f}"),
    "token_accuracy": ("tokens", "{:.1f}%"),
}


MATRIX, CONFUSIONS = 8, 20
"""Classes whose confusions are shown as a matrix, at most; and else so many of the confusions."""


def show_table(table: Table) -> None:
    """Never cut: what is too wide for a terminal is turned on its side; a file has no width."""
    console = Console(markup=False)
    needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    if console.is_terminal and needed > console.width:
        console.print(_turned(table))
    else:
        Console(width=max(needed, console.width), markup=False).print(table)


def _turned(table: Table) -> Table:
    turned = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[column.header, *column.cells] for column in table.columns]
    for title in cells[0]:
        turned.add_column(str(title), justify="left" if title == cells[0][0] else "right", overflow="fold")
    for name, *values in cells[1:]:
        turned.add_row(str(name), *map(str, values))
    return turned


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


NEXT = {
    "language": 'regard generate {run} "..." --temperature 0.8',
    "denoise": "regard train summarize articles.jsonl --from {run} --out runs/fine",
    "summarize": "regard summarize {run} article.txt --attention attention.svg",
    "translate": 'regard translate {run} "..." --attention attention.svg',
    "classify": 'regard classify {run} "..."',
    "tag": 'regard tag {run} "..."',
    "answer": 'regard answer {run} "question" --context text.txt',
    "choose": 'regard choose {run} "situation" "one way" "another way"',
    "masked": 'regard fill {run} "The animal did not cross the [MASK]."',
    "image": "regard classify {run} picture.jpg --attention attention.png",
}
"""What to do with a run of each task."""


def show_scores(folder: RunFolder) -> None:
    """The final scores of a run, and what can be done with it now."""
    scores = json.loads(folder.scores.read_text(encoding="utf8"))
    config = read_run_config(folder)
    task = config["task"]
    if scores:
        print_scores(scores) if task == "translate" else print_task_scores(scores)
    following = NEXT[task].format(run=folder.path)
    if config["model"]["kind"] == "rnn":  # which has none
        following = following.removesuffix(" --attention attention.svg")
    Console(markup=False).print(f"The run is in {folder.path}. Next:\n  {following}\n", highlight=False, soft_wrap=True)


def print_task_scores(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """One row per test set, one column for each score that is a number; then tables such as a confusion matrix."""
    numbers = list(dict.fromkeys(key for row in scores.values() for key, value in row.items() if _is_number(value)))
    table = Table("test set", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in numbers:
        table.add_column(name.replace("_", " "), justify="right")
    for name, row in scores.items():
        table.add_row(name, *(_number(row[key]) if key in row else "" for key in numbers))
    show_table(table)
    for name, row in scores.items():
        for title, inner in row.items():
            if isinstance(inner, dict) and inner and all(isinstance(line, dict) for line in inner.values()):
                about = f"{name}: {title.replace('_', ' ')}"
                wide = title == "confusion" and len(inner) > MATRIX
                show_table(_confusions(about, inner) if wide else _inner_table(about, inner))


def _inner_table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Scores by class, or a confusion matrix: a dict of dicts."""
    names = list(next(iter(rows.values())))
    table = Table(title, *names, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in rows.items():
        table.add_row(name, *(_number(row.get(key, "")) for key in names))
    return table


def _confusions(title: str, rows: Mapping[str, Mapping[str, int]]) -> Table:
    """What was most often taken for what: of many classes a matrix cannot be read."""
    counts = {
        (truth, said.removeprefix("as ")): count
        for truth, row in rows.items()
        for said, count in row.items()
        if count and said != f"as {truth}"
    }
    shown = sorted(counts, key=lambda both: -counts[both])[:CONFUSIONS]
    rest = len(counts) - len(shown)
    table = Table(title, "taken for", "times", box=box.SIMPLE_HEAD, pad_edge=False)
    table.columns[2].justify = "right"
    for truth, said in shown:
        table.add_row(truth, said, f"{counts[truth, said]:,}")
    if rest or not shown:
        table.add_row(f"and {rest:,} other errors (all: --json)" if rest else "no errors", "", "")
    return table


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if isinstance(value, float) else str(value)


def print_scores(scores: Mapping[str, Mapping[str, Any]]) -> None:
    show_table(score_table(scores))
    said = {f"{name}: {signature}" for row in scores.values() for name, signature in row["signatures"].items()}
    for line in sorted(said):
        Console(markup=False).print(line, style="dim", highlight=False, soft_wrap=True)


def print_lengths(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """BLEU by the number of words in the source."""
    table = Table("test set", box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("words", "pairs", "BLEU"):
        table.add_column(title, justify="right")
    for name, row in scores.items():
        for words, part in row["by_length"].items():
            table.add_row(name, words, f"{part['pairs']:,}", f"{part['bleu']:.1f}")
    show_table(table)
