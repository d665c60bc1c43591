"""What a training reports: `metrics.jsonl`, the learning curve, and TensorBoard when it is installed."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from typing import Any

from regard.data.folders import atomic
from regard.training.folder import Progress, RunFolder


class Metrics:
    """Appends rows. On resume the file is cut back to where the checkpoint stood, so that no step is told twice.

    `progress` is where the training stands, None for a rank that does not write.
    """

    def __init__(self, folder: RunFolder, progress: Progress | None) -> None:
        self.folder, self.size, self._file, self._board = folder, 0, None, None
        if progress is None:
            return
        self._file = folder.metrics.open("ab")
        self.size = min(progress.metrics_bytes, folder.metrics.stat().st_size)
        self._file.truncate(self.size)
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder.path / "tensorboard"), purge_step=progress.step + 1)

    def write(self, row: Mapping[str, float]) -> None:
        if self._file is None:
            return
        short = {key: value if isinstance(value, int) else float(f"{value:.6g}") for key, value in row.items()}
        line = json.dumps(short) + "\n"
        self._file.write(line.encode())
        self._file.flush()
        self.size += len(line)
        if self._board:
            for key, value in row.items():
                if key != "step":
                    self._board.add_scalar(key, value, int(row["step"]))

    def draw(self) -> None:
        """The learning curve, drawn anew."""
        if self._file is not None:
            draw_curve(self.folder)

    def sync(self) -> None:
        """To disk, before the checkpoint that counts on it."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._board:
            self._board.close()


def read_metrics(folder: RunFolder) -> list[dict[str, float]]:
    return [json.loads(line) for line in folder.metrics.read_text(encoding="utf8").splitlines()]


def draw_curve(folder: RunFolder) -> None:
    """Loss over steps, of training and validation, and the validation score beside it."""
    from matplotlib.figure import Figure

    rows = read_metrics(folder)
    trained = [(row["step"], row["loss"]) for row in rows if "loss" in row]
    checked = [(row["step"], row["valid_loss"], row["valid_score"]) for row in rows if "valid_loss" in row]
    if not trained or not checked:
        return
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    _line(losses, *zip(*trained, strict=True), colour="#b8c4d9", label="training")
    _line(losses, *zip(*((step, loss) for step, loss, _ in checked), strict=True), colour="#1f3a6d", label="validation")
    losses.set(title="loss per token", xlabel="step")
    losses.legend(frameon=False)
    _line(scores, *zip(*((step, score) for step, _, score in checked), strict=True), colour="#1f3a6d", label="")
    scores.set(title="validation score", xlabel="step")
    with atomic(folder.curve) as temporary:
        figure.savefig(temporary, format="svg")


def _line(axes: Any, steps: tuple[float, ...], values: tuple[float, ...], *, colour: str, label: str) -> None:
    axes.plot(steps, values, color=colour, label=label, marker="o" if len(steps) < 3 else "", linewidth=1.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eeeeee")
