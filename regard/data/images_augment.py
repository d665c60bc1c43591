"""Images changed at random, so that a small set of them teaches more. All randomness comes from the generator given.

Every function takes a batch (B, C, height, width) and returns one; each image draws for itself. Values are from 0 to 1,
except that `shift` and `flip` move pixels of any type. Seen by eye, all of them keep what an image shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor


def shift(images: Tensor, most: int, generator: Generator) -> Tensor:
    """Each image moved by up to `most` pixels each way; what comes in from outside is mirrored."""
    count, _, height, width = images.shape

    def places(size: int) -> Tensor:
        moved = torch.randint(-most, most + 1, (count, 1), generator=generator) + torch.arange(size)  # (B, size)
        return (size - 1 - (size - 1 - moved.abs()).abs()).clamp(0, size - 1)

    rows, columns = places(height), places(width)
    return images[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


def flip(images: Tensor, generator: Generator) -> Tensor:
    """Every second image, by chance, with left and right exchanged."""
    turned = torch.rand(len(images), generator=generator) < 0.5
    return torch.where(turned[:, None, None, None], images.flip(3), images)


def resized_crop(images: Tensor, size: int, scale: tuple[float, float], generator: Generator) -> Tensor:
    """A part of each image, of `scale` of its area and proportions from 3:4 to 4:3, as `size` x `size` pixels.

    (Szegedy 2015, section 6.)
    """
    count = len(images)
    area = scale[0] + (scale[1] - scale[0]) * torch.rand(count, generator=generator)
    ratio = torch.exp((torch.rand(count, generator=generator) * 2 - 1) * math.log(4 / 3))
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    x, y = ((torch.rand(count, generator=generator) * 2 - 1) * (1 - side) for side in (wide, high))
    zero = torch.zeros(count)
    maps = torch.stack([torch.stack([wide, zero, x], 1), torch.stack([zero, high, y], 1)], 1)  # (B, 2, 3)
    grid = F.affine_grid(maps, [count, images.shape[1], size, size], align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def colour(images: Tensor, strength: float, generator: Generator) -> Tensor:
    """Brightness, contrast and saturation, each multiplied by 1 - strength to 1 + strength."""
    for change in (brightness, contrast, saturation):
        factor = 1 + strength * (2 * torch.rand(len(images), generator=generator) - 1)
        images = change(images, factor)
    return images


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    return (images * factor.view(-1, 1, 1, 1)).clamp(0, 1)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Away from, or towards, the image's mean grey."""
    mean = grey(images).mean(dim=(1, 2, 3), keepdim=True)
    return (mean + (images - mean) * factor.view(-1, 1, 1, 1)).clamp(0, 1)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Away from, or towards, each pixel's grey; grey images stay as they are."""
    dull = grey(images)
    return (dull + (images - dull) * factor.view(-1, 1, 1, 1)).clamp(0, 1)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Away from, or towards, the mean of each pixel's neighbourhood."""
    soft = F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    return (soft + (images - soft) * factor.view(-1, 1, 1, 1)).clamp(0, 1)


def grey(images: Tensor) -> Tensor:
    """The lightness of each pixel (ITU-R 601): (B, 1, height, width)."""
    if images.shape[1] == 1:
        return images
    return (images * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Only the highest `bits` of each byte."""
    step = 2.0 ** (8 - bits).view(-1, 1, 1, 1)
    return ((images * 255).round() / step).floor() * step / 255


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """What is brighter than the threshold, inverted."""
    return torch.where(images > threshold.view(-1, 1, 1, 1), 1 - images, images)


def autocontrast(images: Tensor) -> Tensor:
    """Each channel stretched from 0 to 1; one of a single value stays."""
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp(min=1e-6), images)


def equalize(images: Tensor) -> Tensor:
    """Each channel so that its values are spread evenly: a value becomes the share of pixels below it."""
    flat = (images * 255).round().long().flatten(2)  # (B, C, pixels)
    counts = torch.zeros(*flat.shape[:2], 256).scatter_add_(2, flat, torch.ones_like(flat, dtype=torch.float32))
    below = counts.cumsum(2) - counts
    first = counts.gather(2, flat.amin(2, keepdim=True))  # of the smallest value, which becomes 0
    room = flat.shape[2] - first
    spread = ((below - first).clamp(min=0) + 0.5 * counts).div(room.clamp(min=1)).clamp(0, 1)
    spread[below == 0] = 0.0
    return torch.where(room[..., None] > 0, spread.gather(2, flat).view_as(images), images)


def affine(images: Tensor, maps: Tensor) -> Tensor:
    """Each image seen through its map (B, 2, 2 or 3) from new to old places, both from -1 to 1; outside is black."""
    maps = maps if maps.shape[2] == 3 else F.pad(maps, (0, 1))
    grid = F.affine_grid(maps, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def _turned(angle: Tensor) -> Tensor:
    cosine, sine = angle.cos(), angle.sin()
    return torch.stack([torch.stack([cosine, -sine], 1), torch.stack([sine, cosine], 1)], 1)


def _moved(entry: tuple[int, int], by: Tensor) -> Tensor:
    maps = torch.eye(2, 3).repeat(len(by), 1, 1)
    maps[:, entry[0], entry[1]] += by
    return maps


# Each with an amount from -1 to 1, whose sign matters where a change has two directions (Cubuk 2020, figure 2).
CHANGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "identity": lambda images, amount: images,
    "autocontrast": lambda images, amount: autocontrast(images),
    "equalize": lambda images, amount: equalize(images),
    "rotate": lambda images, amount: affine(images, _turned(amount * math.radians(30))),
    "solarize": lambda images, amount: solarize(images, 1 - amount.abs()),
    "saturation": lambda images, amount: saturation(images, 1 + 0.9 * amount),
    "posterize": lambda images, amount: posterize(images, (8 - 4 * amount.abs()).round()),
    "contrast": lambda images, amount: contrast(images, 1 + 0.9 * amount),
    "brightness": lambda images, amount: brightness(images, 1 + 0.9 * amount),
    "sharpness": lambda images, amount: sharpness(images, 1 + 0.9 * amount),
    "shear across": lambda images, amount: affine(images, _moved((0, 1), 0.3 * amount)),
    "shear down": lambda images, amount: affine(images, _moved((1, 0), 0.3 * amount)),
    "move across": lambda images, amount: affine(images, _moved((0, 2), 0.6 * amount)),
    "move down": lambda images, amount: affine(images, _moved((1, 2), 0.6 * amount)),
}


def rand_augment(images: Tensor, changes: int, magnitude: float, generator: Generator) -> Tensor:
    """`changes` of the list above for each image, one after the other, each of a strength up to `magnitude`."""
    images = images.clone()
    for _ in range(changes):
        chosen = torch.randint(len(CHANGES), (len(images),), generator=generator)
        amount = magnitude * (2 * torch.rand(len(images), generator=generator) - 1)
        for number, change in enumerate(CHANGES.values()):
            rows = (chosen == number).nonzero()[:, 0]
            if len(rows):
                images[rows] = change(images[rows], amount[rows])
    return images


def mixup(images: Tensor, targets: Tensor, alpha: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """Each image and target (B, classes) blended with those of another by a share from Beta(alpha, alpha).

    (Zhang 2018, eq. 1-2.)
    """
    share = _beta(alpha, generator)
    other = torch.randperm(len(images), generator=generator)
    return share * images + (1 - share) * images[other], share * targets + (1 - share) * targets[other]


def cutmix(images: Tensor, targets: Tensor, alpha: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """A rectangle of each image replaced by another's, and as much of the target (Yun 2019, section 3.1)."""
    height, width = images.shape[2:]
    side = math.sqrt(1 - _beta(alpha, generator))
    x, y = (int(torch.randint(size, (), generator=generator)) for size in (width, height))
    left, right = (min(max(round(x + sign * side * width / 2), 0), width) for sign in (-1, 1))
    top, bottom = (min(max(round(y + sign * side * height / 2), 0), height) for sign in (-1, 1))
    other = torch.randperm(len(images), generator=generator)
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[other, :, top:bottom, left:right]
    share = 1 - (bottom - top) * (right - left) / (height * width)
    return mixed, share * targets + (1 - share) * targets[other]


def _beta(alpha: float, generator: Generator) -> float:
    seed = int(torch.randint(2**62, (), generator=generator))
    return float(np.random.default_rng(seed).beta(alpha, alpha))
