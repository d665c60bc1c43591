"""Where a classifier of images looked, for the docs: python -m bench.rollouts RUN OUT.png

Draws the first held-out images, each beside its rollout. Where the background is black (Fashion-MNIST), says too how
much of the weight is on the object, beside its share of the area: an even gaze has as much as the area.
"""

import sys
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from regard.explorer.pictures import contact_sheet, gaze, overlay
from regard.nn.record import Recording
from regard.run import Run

SHOWN, COUNTED = 12, 500
DARK = 25
"""Pixels up to this are background."""


def on_object(pixels: np.ndarray, looked: np.ndarray) -> tuple[float, float]:
    """The share of the weight, and of the area, that is on the object."""
    inside = (pixels.max(axis=2) > DARK).astype(np.float32)
    rows, columns = looked.shape
    shares = inside.reshape(rows, len(inside) // rows, columns, -1).mean(axis=(1, 3))  # of each patch
    return float((looked * shares).sum()), float(shares.mean())


def main() -> None:
    run, out = Run.load(Path(sys.argv[1])), Path(sys.argv[2])
    examples = list(islice(run.held_out()["test"], COUNTED))
    classifier = run.predictor
    found = classifier.probabilities(np.stack([example.pixels for example in examples]))
    pictures, captions, shares = [], [], []
    for example, chances in zip(examples, found, strict=True):
        looked = gaze(classifier.look(example.pixels, Recording()))
        shares.append(on_object(example.pixels, looked))
        if len(pictures) < 2 * SHOWN:
            large = np.asarray(Image.fromarray(np.squeeze(example.pixels)).resize((224, 224), Image.Resampling.NEAREST))
            large = large if large.ndim == 3 else large[..., None]
            pictures += [large, overlay(large, looked)]
            taken_for = classifier.classes[int(chances.argmax())]
            captions += [classifier.classes[example.label], f"{taken_for} {chances.max():.2f}"]
    contact_sheet(pictures, captions, out)
    weight, area = np.mean(shares, axis=0)
    print(f"{out}: over {len(found)} images {weight:.0%} of the weight on {area:.0%} of the area (not black)")


if __name__ == "__main__":
    main()
