"""How good a classifier of images is: top-1, top-5, loss, a report by class and the confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.tasks.class_scores import class_scores


def scores(probabilities: NDArray[np.floating], labels: NDArray[np.integer], classes: list[str]) -> dict[str, Any]:
    """Of probabilities (N, classes) and the right classes (N,). Shares are in percent."""
    predicted = probabilities.argmax(axis=1)
    report = class_scores([classes[number] for number in labels], [classes[number] for number in predicted], classes)
    return {
        "images": len(labels),
        "top1": 100 * top(probabilities, labels, 1),
        "top5": 100 * top(probabilities, labels, 5),
        "loss": mean_loss(probabilities, labels),
        "macro_f1": report["macro_f1"],
        "by_class": report["by_class"],
        "confusion": report["confusion"],
    }


def top(probabilities: NDArray[np.floating], labels: NDArray[np.integer], count: int) -> float:
    """The share of images whose class is among the `count` likeliest."""
    likeliest = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
    return float((likeliest == labels[:, None]).any(axis=1).mean())


def mean_loss(probabilities: NDArray[np.floating], labels: NDArray[np.integer]) -> float:
    """The cross-entropy, in nats for each image."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(labels)), labels], 1e-12)).mean())
