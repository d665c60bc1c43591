"""`make bench`: training speed beside PyTorch's own `nn.Transformer`, decoding speed, and the time to start.

Both sides do the same work on the same shapes with the same threads, in turns; the table shows the median of the
rounds and the median ratio. Results are also written to bench/results.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from bench.peers import TorchTransformer
from regard.config import SearchConfig, TrainConfig
from regard.data.tokenizers import BOS, EOS, PAD
from regard.decoding import Limits, search
from regard.models.transformer import Transformer, TransformerConfig
from regard.nn.loss import plain_loss, projected_loss
from regard.training.memory import keep_freed_memory
from regard.training.optimizer import build_optimizer

ROUNDS = 7
VOCABULARY, PAIRS, LENGTH = 9_700, 128, 16  # the small translator of Multi30k
SHAPE = TransformerConfig(encoder_layers=4, decoder_layers=4, width=128, inner=256, heads=4, dropout=0.3, norm="post")


def training_steps() -> dict[str, Callable[[], int]]:
    """One training step of each side: the target tokens it learned from."""
    torch.manual_seed(0)
    source = torch.randint(4, VOCABULARY, (PAIRS, LENGTH))
    target = torch.randint(4, VOCABULARY, (PAIRS, LENGTH + 1))
    steps: dict[str, Callable[[], int]] = {}
    for name, model, loss in (
        ("regard", Transformer(SHAPE, VOCABULARY), projected_loss),
        ("nn.Transformer", TorchTransformer(SHAPE, VOCABULARY), plain_loss),
    ):
        optimizer = build_optimizer(model, TrainConfig())
        model.train()

        def step(model=model, loss=loss, optimizer=optimizer) -> int:
            hidden = model(source, target[:, :-1])
            weight, bias = model.output.weight, model.output.bias
            loss(hidden.flatten(0, 1), weight, bias, target[:, 1:].flatten(), 0.1).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return PAIRS * LENGTH

        steps[name] = step
    return steps


def decoding(rows: int, beam: int) -> Callable[[], int]:
    """One batch decoded to 24 tokens by a Transformer of 6+6 layers, 512 wide."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(), 8_000).eval()
    source = torch.randint(4, 8_000, (rows, 24))
    limits = Limits(BOS, EOS, [24] * rows, never=(PAD, BOS))
    options = SearchConfig(method="beam" if beam > 1 else "greedy", beam=beam, min_length=24)

    def decode() -> int:
        search(model, source, options, limits)
        return rows * 24

    return decode


def start_up(code: list[str]) -> Callable[[], float]:
    def start() -> float:
        began = time.perf_counter()
        subprocess.run(code, check=True, capture_output=True)
        return time.perf_counter() - began

    return start


def rate(work: Callable[[], int]) -> float:
    began = time.perf_counter()
    return work() / (time.perf_counter() - began)


def in_turns(sides: dict[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Each side measured in each round, the order turned around every other time; the first round warms up."""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name in list(sides) if number % 2 else reversed(sides):
            value = sides[name]()
            if number:
                measured[name].append(value)
    return measured


def main() -> None:
    keep_freed_memory()
    console = Console()
    console.print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {ROUNDS} rounds, medians\n")
    results: dict[str, dict[str, float]] = {}
    table = Table("what", "side", "median", "best", "ratio", box=None, pad_edge=False)

    def report(what: str, unit: str, measured: dict[str, list[float]], best: Callable[[list[float]], float]) -> None:
        *_, last = measured.values()
        for name, values in measured.items():
            ratio = statistics.median(a / b for a, b in zip(values, last, strict=True))
            middle = statistics.median(values)
            results.setdefault(what, {})[name] = middle
            table.add_row(what, name, f"{middle:,.2f} {unit}", f"{best(values):,.2f}", f"{ratio:.2f}")

    steps = training_steps()
    speeds = in_turns({name: (lambda step=step: rate(step)) for name, step in steps.items()})
    report("train, 4+4 layers", "tokens/s", speeds, max)
    for rows in (1, 32):
        for beam in (1, 4):
            work = decoding(rows, beam)
            what = f"decode, {rows} x beam {beam}"
            report(what, "tokens/s", in_turns({"regard": lambda work=work: rate(work)}, 3), max)
    python = [sys.executable]
    sides = {
        "regard --help": start_up([*python, "-m", "regard", "--help"]),
        "import torch": start_up([*python, "-c", "import torch"]),
    }
    report("start", "s", in_turns(sides, 5), min)
    console.print(table)
    path = Path(__file__).parent / "results.json"
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")
    console.print(f"\nwritten to {path}")


main()
