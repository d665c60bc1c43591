"""Validation that is divided over two processes gives what one alone finds, for every task."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regard.data.prepare import Silent
from regard.tasks import task_named
from regard.tasks.base import Validation
from regard.training.distributed import join
from regard.training.start import settle

WORDS = ("cat", "dog", "owl", "sun", "moon", "sea", "hill")
LINES = [f"The {WORDS[n % 7]} number {n} sees the {WORDS[n * 3 % 7]}." for n in range(90)]
SHAPE: dict[str, object] = {"model.width": 16, "model.heads": 2, "model.inner": 16, "train.device": "cpu"}
ENCODER = {**SHAPE, "model.layers": 1, "tokenizer.vocabulary": 90}
BOTH = {**SHAPE, "model.encoder_layers": 1, "model.decoder_layers": 1, "decode.max_length": 5}
QUESTIONS = [
    {"context": line, "qas": [{"id": line, "question": "Who?", "answers": [{"text": "The", "answer_start": 0}]}]}
    for line in LINES
]
TASKS: dict[str, tuple[str, dict[str, object], list[str]]] = {
    "classify": ("bert-tiny", ENCODER, ["text\tlabel", *(f"{line}\t{n % 3}" for n, line in enumerate(LINES))]),
    "tag": ("bert-tiny", ENCODER, [part for line in LINES for part in (*(f"{word}\tX" for word in line.split()), "")]),
    "answer": ("bert-tiny", ENCODER, [json.dumps({"data": [{"paragraphs": QUESTIONS}]})]),
    "choose": (
        "bert-tiny",
        ENCODER,
        [json.dumps({"context": line, "options": ["Yes.", "No."], "label": n % 2}) for n, line in enumerate(LINES)],
    ),
    "masked": ("bert-tiny", ENCODER, LINES),
    "language": ("gpt-nano", {**SHAPE, "model.layers": 1, "tokenizer.kind": "char", "options.block": 16}, LINES),
    "denoise": ("bart-tiny", {**BOTH, "tokenizer.vocabulary": 300, "options.block": 16}, LINES),
    "summarize": (
        "transformer-micro",
        {**BOTH, "tokenizer.kind": "word"},
        [json.dumps({"source": f"{line} {line}", "target": line}) for line in LINES],
    ),
    "translate": ("transformer-micro", {**BOTH, "tokenizer.kind": "word"}, [f"{line}\t{line}" for line in LINES]),
}
ENDINGS = {
    "classify": "tsv", "tag": "conll", "answer": "json", "choose": "jsonl", "summarize": "jsonl", "translate": "tsv",
}  # fmt: skip


class Half:
    """One of two processes, as a thread."""

    size = 2

    def __init__(self, rank: int, table: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self._table, self._barrier = rank, table, barrier

    def gather(self, mine: Any) -> list[Any]:
        self._barrier.wait(60)
        self._table[self.rank] = mine
        self._barrier.wait(60)
        return list(self._table)


@pytest.mark.parametrize("name", TASKS)
def test_two_halves_find_what_one_finds(name: str, tmp_path: Path) -> None:
    model_name, settings, rows = TASKS[name]
    file = tmp_path / f"data.{ENDINGS.get(name, 'txt')}"
    file.write_text("\n".join(rows) + "\n", encoding="utf8")
    held_out = {"data.valid_count": 9, "data.test_count": 5}
    config, _ = settle(name, [str(file)], model_name, None, {**settings, **held_out})
    task_named(name).prepare(config, tmp_path / "cache", Silent()).keep(tmp_path / "kept")
    task = task_named(name).open(config, tmp_path / "kept")
    model = task.build(config, task.vocabulary, task.facts).eval()
    alone = task.validate(model, join("cpu"))
    table, barrier = [None, None], threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        halves: list[Validation] = list(
            pool.map(lambda rank: task.validate(model, Half(rank, table, barrier)), range(2))
        )
    for half in halves:
        assert half.metrics == pytest.approx(alone.metrics, rel=1e-4)
        assert (half.score, half.loss) == pytest.approx((alone.score, alone.loss), rel=1e-4)
