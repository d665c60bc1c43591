"""`python -m bench.curves RUN...`: the validation scores of runs as they were trained, in docs/images/curves.svg.

The name of a run's folder is its label; the hollow point is where its best weights were kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from regard.training.folder import RunFolder
from regard.training.metrics import read_metrics

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "curves.svg"


def draw(runs: list[Path], picture: Path) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for place, run in enumerate(runs):
        rows = [row for row in read_metrics(RunFolder(run)) if "valid_score" in row]
        points = [(row["step"], row["valid_score"]) for row in rows]
        best = max(points, key=lambda point: point[1])
        axes.plot(*zip(*points, strict=True), color=f"C{place}", linewidth=1.6, label=f"{run.name}: {best[1]:.1f}")
        axes.plot(*best, "o", color=f"C{place}", markerfacecolor="white", markersize=7)
    axes.set(xlabel="step", ylabel="validation BLEU, greedy")
    axes.set_xlim(left=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.curves", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    draw(options.runs, options.picture)
    print(f"drawn in {options.picture}")


if __name__ == "__main__":
    main()
