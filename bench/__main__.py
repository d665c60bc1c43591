"""`make bench`: training and decoding beside the engines people would use instead, on the same shapes and weights.

Every side runs in a process of its own (see `bench.sides`), one at a time, in turns; the table shows the median of the
rounds, and the median over the rounds of Regard's ratio to it. What is missing is left out and named. Results are
written to bench/results.json; `--quick` measures less, in under three minutes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from bench.decoder_sides import DECODERS
from bench.encoder_sides import ENCODERS
from bench.peers import ctranslate2_folder, marian, of_marian
from bench.shapes import DECODE, DECODE_VOCABULARY, LENGTH, PAIRS, STEPS, TOKENS, TRAIN, TRAIN_VOCABULARY, transformer
from bench.sides import KEPT, SIDES
from regard.nn.weights import weights_of
from regard.training.folder import save_tensors

PACKAGES = ("transformers", "ctranslate2", "joeynmt", "onnxruntime")
STARTS = {
    "regard --help": ["-m", "regard", "--help"],
    "regard, its Run imported": ["-c", "from regard.run import Run"],
    "import torch": ["-c", "import torch"],
    "transformers, its Marian imported": ["-c", "from transformers import MarianMTModel"],
}
LEFT_OUT = (f"transformers{KEPT}", "nn.Transformer", "joeynmt")
"""What a quick bench does not train."""
RATIO_TO = {
    "regard": ["transformers", f"transformers{KEPT}", "ctranslate2", "nn.Transformer", "joeynmt", "onnxruntime"],
    "regard int8": ["ctranslate2 int8"],
}


@dataclass
class Side:
    """A process that does one side's work when told to."""

    process: subprocess.Popen[str]
    errors: Path
    peak: float = 0.0
    shown: Any = None

    def do(self, case: dict[str, int]) -> float:
        assert self.process.stdin is not None, "both ends are pipes"
        assert self.process.stdout is not None, "both ends are pipes"
        print(json.dumps(case), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            said = self.errors.read_text(encoding="utf8", errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(map(str, self.process.args))} stopped\n{said}")  # type: ignore[arg-type]
        answer = json.loads(line)
        self.peak, self.shown = answer["peak"], answer["shown"]
        return float(answer["seconds"])


def installed(side: str) -> bool:
    package = side.removesuffix(" int8").removesuffix(KEPT)
    try:
        return package not in PACKAGES or bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


@contextmanager
def sides(work: str, folder: Path, without: Sequence[str] = ()) -> Iterator[dict[str, Side]]:
    """One process for each side that is installed."""
    opened = {}
    threads = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}  # the same for all, whatever each counts
    for name in filter(installed, {**SIDES, **DECODERS, **ENCODERS}[work]):
        if name in without:
            continue
        command = [sys.executable, "-W", "ignore", "-m", "bench.sides", name, str(folder), work]
        pipe = subprocess.PIPE
        errors = folder / f"{work} {name}.errors"
        with errors.open("wb") as file:
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file, text=True, bufsize=1, env=threads)
        opened[name] = Side(process, errors)
    try:
        yield opened
    finally:
        for side in opened.values():
            side.process.kill()
            side.process.wait()


def prepare(folder: Path) -> None:
    """The same weights for every side, in its own format."""
    torch.manual_seed(0)
    for work, shape, vocabulary in (("train", TRAIN, TRAIN_VOCABULARY), ("decode", DECODE, DECODE_VOCABULARY)):
        peer = marian(transformer(shape), vocabulary)
        with torch.no_grad():
            for name, weight in peer.named_parameters():  # as large as trained ones, so that outputs vary
                if work == "decode" and weight.ndim > 1 and "embed_positions" not in name:
                    weight.normal_(std=0.06)
        save_tensors(folder / f"{work}.safetensors", weights_of(of_marian(peer)), {})
        peer.save_pretrained(folder / f"{work}-marian")
        if work == "decode" and installed("ctranslate2"):
            ctranslate2_folder(peer, folder / "ctranslate2-float32", None)
            ctranslate2_folder(peer, folder / "ctranslate2-int8", "int8")


def in_turns(opened: dict[str, Side], case: dict[str, int], rounds: int, twice: bool = True) -> dict[str, list[float]]:
    """Seconds of each side in each round, the order turned around every other time; the first round warms up.

    Work is done `twice` a turn, and counted once: the first wakes the threads, and brings weights back to caches that
    the other sides have filled. So every side is measured as a program that goes on working.
    """
    seconds: dict[str, list[float]] = {name: [] for name in opened}
    for number in range(rounds + 1):
        for name in list(opened) if number % 2 else reversed(opened):
            if twice:
                opened[name].do(case)
            value = opened[name].do(case)
            if number:
                seconds[name].append(value)
    return seconds


class Report:
    """Rows for the terminal, and the same as plain values."""

    def __init__(self) -> None:
        self.table = Table("what", "side", "median", "Regard is", box=None, pad_edge=False)
        self.results: dict[str, dict[str, Any]] = {}

    def speeds(self, what: str, count: int, seconds: dict[str, list[float]], unit: str = "tokens") -> None:
        rows: dict[str, Any] = {}
        for name, values in seconds.items():
            ours = next((our for our, theirs in RATIO_TO.items() if name in theirs), None)
            speed = count / statistics.median(values)
            row = rows[name] = {f"{unit}_per_second": speed}
            ratio = ""
            if ours:
                row["ratio"] = statistics.median(a / b for a, b in zip(values, seconds[ours], strict=True))
                ratio = f"{row['ratio']:.2f} x"
            shown = f"{speed:,.0f}" if speed >= 20 else f"{speed:.2f}"
            self.table.add_row(what if not self.results.get(what) else "", name, f"{shown} {unit}/s", ratio)
            self.results[what] = rows

    def peaks(self, what: str, opened: dict[str, Side]) -> None:
        for name, side in opened.items():
            self.table.add_row(what if not self.results.get(what) else "", name, f"{side.peak:,.0f} MB", "")
            self.results.setdefault(what, {})[name] = side.peak

    def seconds(self, what: str, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.table.add_row(what if not self.results.get(what) else "", name, f"{value:.2f} s", "")
            self.results.setdefault(what, {})[name] = value


def start_ups(rounds: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in STARTS if installed(name.split(",")[0])}
    for _ in range(rounds):
        for name, values in seconds.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *STARTS[name]], check=True, capture_output=True)
            values.append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def equal_outputs(opened: dict[str, Side]) -> str:
    """How many outputs of the last case equal Hugging Face's, token for token."""
    if "transformers" not in opened:
        return ""
    expected = opened["transformers"].shown
    same = {name: sum(a == b for a, b in zip(side.shown, expected, strict=True)) for name, side in opened.items()}
    return ", ".join(f"{name} {count} of {len(expected)}" for name, count in same.items() if name != "transformers")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and in training only the nearest peer")
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args()
    quick, rounds = options.quick, options.rounds or (2 if options.quick else 9)
    console, report, began = Console(), Report(), time.perf_counter()
    versions = {"torch": torch.__version__} | {
        name: importlib.metadata.version(name) for name in PACKAGES if installed(name)
    }
    missing = [name for name in PACKAGES if name not in versions]
    console.print(", ".join(f"{name} {version}" for name, version in versions.items()), highlight=False)
    console.print(f"{torch.get_num_threads()} threads, {rounds} rounds, medians")
    if missing:
        console.print(f"not installed, left out: {', '.join(missing)} (make bench installs them)")
    equal = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        with sides("train", folder, LEFT_OUT if quick else ()) as opened:
            report.speeds(
                "train, 4+4 layers, 128 wide", STEPS * PAIRS * LENGTH, in_turns(opened, {}, rounds, not quick)
            )
            report.peaks("memory, training", opened)
        with sides("decode", folder) as opened:
            for rows in (1, 32):
                for beam in (1, 4):
                    what = f"decode, {rows} x {'greedy' if beam == 1 else f'beam {beam}'}"
                    twice = rows == 1 or not quick
                    report.speeds(what, rows * TOKENS, in_turns(opened, {"rows": rows, "beam": beam}, rounds, twice))
                    equal[what] = equal_outputs(opened)
            report.peaks("memory, decoding", opened)
    report.seconds("start", start_ups(1 if quick else 5))
    console.print()
    console.print(report.table)
    for what, same in equal.items():
        console.print(f"{what}: equal to transformers, token for token: {same}", highlight=False)
    path = Path(__file__).parent / "results.json"
    path.write_text(json.dumps({"versions": versions, **report.results}, indent=2) + "\n", encoding="utf8")
    console.print(f"written to {path}, after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
