"""How good classes, numbers and tags are: scikit-learn's, SciPy's and seqeval's measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_scores(truth: Sequence[str], found: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Accuracy, F1 (the mean over classes), Matthews' correlation, all in percent; a report by class, and which class
    was taken for which."""
    from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, matthews_corrcoef
    from sklearn.metrics import precision_recall_fscore_support as by_class

    known = list(dict.fromkeys([*labels, *truth]))
    parts = by_class(truth, found, labels=known, zero_division=0.0)
    names = ("precision", "recall", "f1", "examples")
    report = {
        label: {
            name: int(part[number]) if name == "examples" else 100 * float(part[number])
            for name, part in zip(names, parts, strict=True)
        }
        for number, label in enumerate(known)
    }
    matrix = confusion_matrix(truth, found, labels=known)
    confusion = {
        label: {f"as {other}": int(count) for other, count in zip(known, row, strict=True)}
        for label, row in zip(known, matrix, strict=True)
    }
    return {
        "accuracy": 100 * float(accuracy_score(truth, found)),
        "macro_f1": 100 * float(f1_score(truth, found, labels=known, average="macro", zero_division=0.0)),
        "matthews": 100 * float(matthews_corrcoef(truth, found)),
        "by_class": report,
        "confusion": confusion,
    }


def best_threshold(truth: NDArray[np.bool_], probabilities: NDArray[np.float64], metric: str) -> float:
    """Over which probability to say true, for the best `metric`; of equals the nearest to a half.

    Tried are even steps of the log-odds: a model that is sure of most has its doubts close to zero and to one.
    """
    odds = sorted(np.arange(-60, 61) / 10, key=abs)

    def quality(threshold: float) -> float:
        said = probabilities > threshold
        return float(class_scores(list(map(str, truth)), list(map(str, said)), ["False", "True"])[metric])

    return float(max((1 / (1 + np.exp(-one)) for one in odds), key=quality))


def number_scores(truth: Sequence[float], found: Sequence[float]) -> dict[str, Any]:
    """Pearson's and Spearman's correlation, in percent, and the mean squared error."""
    from scipy.stats import pearsonr, spearmanr

    if len(set(found)) < 2 or len(set(truth)) < 2:
        pearson = spearman = 0.0  # a constant correlates with nothing
    else:
        pearson, spearman = float(pearsonr(truth, found).statistic), float(spearmanr(truth, found).statistic)
    error = float(np.mean((np.array(truth) - np.array(found)) ** 2))
    return {"pearson": 100 * pearson, "spearman": 100 * spearman, "squared_error": error}


def tag_scores(truth: Sequence[list[str]], found: Sequence[list[str]], entities: bool) -> dict[str, Any]:
    """Accuracy of the tags; where they mark entities, precision, recall and F1 of whole entities first."""
    pairs = [(one, other) for row, mine in zip(truth, found, strict=True) for one, other in zip(row, mine, strict=True)]
    accuracy = 100 * sum(one == other for one, other in pairs) / max(1, len(pairs))
    if not entities:
        labels = sorted({one for one, _ in pairs})
        scores = class_scores([one for one, _ in pairs], [other for _, other in pairs], labels)
        return {"accuracy": accuracy, "macro_f1": scores["macro_f1"], "by_tag": scores["by_class"]}
    from seqeval.metrics import classification_report, f1_score, precision_score, recall_score

    rows = [list(row) for row in truth], [list(row) for row in found]
    report = classification_report(*rows, output_dict=True, zero_division=0)
    by_entity = {
        name: {
            "precision": 100 * float(part["precision"]),
            "recall": 100 * float(part["recall"]),
            "f1": 100 * float(part["f1-score"]),
            "entities": int(part["support"]),
        }
        for name, part in report.items()
        if not name.endswith(" avg")
    }
    return {
        "f1": 100 * float(f1_score(*rows, zero_division=0)),
        "precision": 100 * float(precision_score(*rows, zero_division=0)),
        "recall": 100 * float(recall_score(*rows, zero_division=0)),
        "accuracy": accuracy,
        "by_entity": by_entity,
    }
