"""`python -m bench.cifar10 SHEETS OUT`: CIFAR-10 from the sheets of `../shared/data/cifar10_png` to IDX files.

A sheet is a PNG of 10,000 rows of 1,024 pixels, an image each; the labels of the first sheet are the first 10,000.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from regard.data.images import write_idx


def main() -> None:
    sheets, out = map(Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for name, sheet, labels in (
        ("train", "data_batch_1.png", "train_lables.json"),
        ("test", "test_batch.png", "test_lables.json"),
    ):
        with Image.open(sheets / sheet) as image:
            pixels = np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3)
        answers = np.array(json.loads((sheets / labels).read_text(encoding="utf8")), np.uint8)[: len(pixels)]
        write_idx(out / f"{name}-images-idx4-ubyte", pixels)
        write_idx(out / f"{name}-labels-idx1-ubyte", answers)
        print(f"{name}: {len(pixels):,} images")


if __name__ == "__main__":
    main()
