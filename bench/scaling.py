"""`python -m bench.scaling RUN`: seconds and memory to translate 1,000, 10,000 and 100,000 sentences of the demo.

Cost should grow with the number of sentences, memory should not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

COUNTS = (1_000, 10_000, 100_000)


def sources(folder: Path) -> list[str]:
    """Source sentences of the built-in corpus, again from the start when it ends."""
    command = [sys.executable, "-m", "regard", "corpus", "english-french", "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    lines = (folder / "train.tsv").read_text(encoding="utf8").splitlines()
    return list(islice(cycle(line.split("\t")[0] for line in lines), COUNTS[-1]))


def main() -> None:
    (run,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        sentences = sources(Path(folder))
        print(f"{'sentences':>10} {'seconds':>8} {'a second':>9} {'peak MB':>8}")
        for count in COUNTS:
            path = Path(folder) / "sentences.txt"
            path.write_text("\n".join(sentences[:count]) + "\n", encoding="utf8")
            began = time.perf_counter()
            command = [sys.executable, "-m", "regard", "translate", run, str(path), "--out", f"{path}.out"]
            process = subprocess.Popen(command)
            _, code, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            assert code == 0, command
            print(f"{count:>10,} {seconds:>8.1f} {count / seconds:>9.0f} {used.ru_maxrss / 1024:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
