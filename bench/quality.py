"""`python -m bench.quality RUN...`: BLEU against speed on each run's own test set, greedy and beam, float32 and int8.

Prints a table and draws docs/images/quality.svg.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import torch
from rich.console import Console
from rich.table import Table

from regard.config import SearchConfig
from regard.inference import Weights
from regard.run import Run
from regard.tasks.translation_scores import Variant, text_metrics

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "quality.svg"
WEIGHTS: tuple[Weights, ...] = ("float32", "int8")
SHAPES = {"float32": "o", "int8": "s"}


@dataclass(frozen=True)
class Point:
    model: str
    weights: Weights
    search: str
    bleu: float
    speed: float  # sentences a second
    signature: str


def measure(path: Path, weights: Weights, search: SearchConfig, rounds: int, tokenize: str | None) -> Point:
    run = Run.load(path, weights=weights)
    pairs = next(iter(run.held_out().values()))
    sources, seconds, outputs = [pair.source for pair in pairs], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        outputs = [result.text for result in run.translate(sources, search)]
        seconds.append(time.perf_counter() - began)
    references = [pair.target for pair in pairs]
    metric = text_metrics(Variant(tokenize) if tokenize else run.variant, references)["bleu"]
    bleu = float(metric.corpus_score(outputs, [references]).score)
    name = "greedy" if search.method == "greedy" else f"beam {search.beam}"
    model = f"{run.config.model.kind}-{run.config.model.size}".removesuffix("-")
    return Point(model, weights, name, bleu, len(sources) / statistics.median(seconds), str(metric.get_signature()))


def draw(points: list[Point], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    models = list(dict.fromkeys(point.model for point in points))
    for point in points:
        colour = f"C{models.index(point.model)}"
        filled = colour if point.search == "greedy" else "white"
        axes.plot(point.speed, point.bleu, SHAPES[point.weights], color=colour, markerfacecolor=filled, markersize=8)
    for place, model in enumerate(models):
        axes.plot([], [], "o", color=f"C{place}", label=model)
    axes.plot([], [], "o", color="0.4", label="float32 (round), greedy (filled)")
    axes.plot([], [], "s", color="0.4", markerfacecolor="white", label="int8 (square), beam (hollow)")
    axes.set(xlabel=f"sentences a second, {torch.get_num_threads()} threads", ylabel="BLEU")
    axes.set_xlim(left=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenize", help="sacreBLEU's tokenizer; by default the run's own")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    table = Table("model", "weights", "search", "BLEU", "sentences/s", box=None, pad_edge=False)
    points = []
    for path in options.runs:
        beam = Run.load(path).config.decode
        for search in (beam.model_copy(update={"method": "greedy"}), beam):
            for weights in WEIGHTS:
                point = measure(path, weights, search, options.rounds, options.tokenize)
                points.append(point)
                table.add_row(point.model, weights, point.search, f"{point.bleu:.2f}", f"{point.speed:.0f}")
    draw(points, options.picture)
    Console().print(table)
    Console().print(f"BLEU: {points[0].signature}")
    Console().print(f"drawn in {options.picture}")


if __name__ == "__main__":
    main()
