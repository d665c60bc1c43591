"""`python -m bench.long`: seconds and memory of one text of 512 to 8,192 tokens, block-sparse attention and full.

BigBird with base shapes, cut to two layers (all layers cost the same), reads one text without padding. Each length has
a process of its own, so that the peak of its memory is known; what the process holds before the text is subtracted.
Seconds are the processor's, which other work on the machine does not lengthen. Linux only.
The exponent is the slope of log cost over log length, by least squares from 1,024 tokens on: 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import ctypes
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

LENGTHS = (512, 1024, 2048, 4096, 8192)
KINDS = ("block-sparse", "full")
LAYERS, WIDTH, INNER, HEADS, VOCABULARY = 2, 768, 3072, 12, 1000


def one(kind: str, length: int) -> None:
    """Read one text three times, and print the median of the seconds and the megabytes."""
    import torch

    from regard.inference import pack
    from regard.models.bigbird import BigBird, BigBirdConfig

    torch.manual_seed(0)
    config = BigBirdConfig.model_validate(
        {"attention": kind, "layers": LAYERS, "width": WIDTH, "inner": INNER, "heads": HEADS, "max_length": LENGTHS[-1]}
    )
    model = pack(BigBird(config, VOCABULARY).eval())
    ids = torch.randint(1, VOCABULARY, (1, length))
    with torch.inference_mode():
        model(ids[:, :64])
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # give back what packing freed
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the highest peak so far
        before = held("VmRSS")
        seconds = []
        for _ in range(3):
            began = time.process_time()
            model(ids)
            seconds.append(time.process_time() - began)
    print(json.dumps([statistics.median(seconds), held("VmHWM") - before]))


def held(what: str) -> float:
    """Megabytes of this process: VmRSS now, VmHWM at the highest."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def exponent(costs: dict[int, float]) -> float:
    return statistics.linear_regression(
        [math.log(length) for length in costs], list(map(math.log, costs.values()))
    ).slope


def main() -> None:
    seconds: dict[str, dict[int, float]] = {kind: {} for kind in KINDS}
    memory: dict[str, dict[int, float]] = {kind: {} for kind in KINDS}
    print(f"{'tokens':>8} " + " ".join(f"{kind + ', s':>16} {'MB':>8}" for kind in KINDS), flush=True)
    for length in LENGTHS:
        for kind in KINDS:
            command = [sys.executable, "-m", "bench.long", kind, str(length)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            seconds[kind][length], memory[kind][length] = json.loads(answer)
        row = " ".join(f"{seconds[kind][length]:>16.3f} {memory[kind][length]:>8.0f}" for kind in KINDS)
        print(f"{length:>8,} {row}", flush=True)
    slopes = []
    for kind in KINDS:
        for costs, width in ((seconds[kind], 16), (memory[kind], 8)):
            slopes.append(f"{exponent({length: cost for length, cost in costs.items() if length >= 1024}):>{width}.2f}")
    print(f"{'exponent':>8} " + " ".join(slopes))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        one(sys.argv[1], int(sys.argv[2]))
    else:
        main()
