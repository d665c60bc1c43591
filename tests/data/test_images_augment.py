"""Random changes of images: the same seed gives the same images, and each change does what its name says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Generator, Tensor

from regard.data.images_augment import (
    CHANGES,
    affine,
    autocontrast,
    brightness,
    colour,
    contrast,
    cutmix,
    equalize,
    flip,
    grey,
    mixup,
    posterize,
    rand_augment,
    resized_crop,
    saturation,
    sharpness,
    shift,
    solarize,
)


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def images(count: int = 16, channels: int = 3, height: int = 12, width: int = 10) -> Tensor:
    return torch.rand(count, channels, height, width, generator=seeded(5))


RANDOM: dict[str, Callable[[Tensor, Generator], Tensor]] = {
    "shift": lambda x, g: shift(x, 3, g),
    "flip": flip,
    "resized crop": lambda x, g: resized_crop(x, 12, (0.3, 1.0), g),
    "colour": lambda x, g: colour(x, 0.5, g),
    "rand augment": lambda x, g: rand_augment(x, 2, 0.7, g),
    "mixup": lambda x, g: mixup(x, torch.eye(len(x)), 0.4, g)[0],
    "cutmix": lambda x, g: cutmix(x, torch.eye(len(x)), 1.0, g)[0],
}


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("channels", [1, 3])
def test_all_randomness_comes_from_the_generator(name: str, channels: int) -> None:
    change, before = RANDOM[name], images(channels=channels, width=12)
    kept = before.clone()
    torch.manual_seed(1)
    one = change(before, seeded(3))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    assert torch.equal(change(before, seeded(3)), one)
    assert torch.equal(torch.get_rng_state(), state), "the global generator was touched"
    assert not torch.equal(change(before, seeded(4)), one)
    assert torch.equal(before, kept), "the images given were written to"
    assert one.shape == before.shape
    assert float(one.min()) >= -1e-5
    assert float(one.max()) <= 1 + 1e-5


def test_shift_moves_and_mirrors_bytes_too() -> None:
    before = (images(64) * 255).byte()
    after = shift(before, 2, seeded())
    padded = np.pad(before.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")
    places = set()
    for one, wide in zip(after.numpy(), padded, strict=True):
        found = [(r, c) for r in range(5) for c in range(5) if np.array_equal(wide[:, r : r + 12, c : c + 10], one)]
        assert len(found) == 1
        places.add(found[0])
    assert len(places) > 15, "images move by different amounts"
    assert torch.equal(shift(before, 0, seeded()), before)


def test_flip_turns_half_of_them() -> None:
    before = images(400)
    after = flip(before, seeded())
    turned = (after == before.flip(3)).flatten(1).all(1)
    assert ((after == before).flatten(1).all(1) ^ turned).all()
    assert 150 < int(turned.sum()) < 250


def test_resized_crop_of_everything_is_the_image_and_of_a_part_is_a_part() -> None:
    ramp = torch.linspace(0, 1, 32).view(1, 1, 1, 32).expand(200, 1, 32, 32)
    crops = resized_crop(ramp, 16, (0.2, 0.5), seeded())
    spans = crops[:, 0, 8, -1] - crops[:, 0, 8, 0]
    assert (spans > 0.3).all()
    assert (spans < 0.85).all()
    assert float(crops[:, 0, 8].mean()) == pytest.approx(0.5, abs=0.05), "crops fall everywhere"
    assert crops[:, 0].std(dim=1).max() < 1e-4, "rows stay rows"


def pillow(values: Tensor) -> Image.Image:
    return Image.fromarray((values * 255).round().byte().permute(1, 2, 0).numpy())


def test_changes_equal_pillows() -> None:
    before = (images(1) * 255).round() / 255
    pale = (before * 127 + 50).round() / 255
    for ours, theirs in (
        (autocontrast(pale), ImageOps.autocontrast(pillow(pale[0]))),
        (posterize(before, torch.tensor([3.0])), ImageOps.posterize(pillow(before[0]), 3)),
        (solarize(before, torch.tensor([127.5 / 255])), ImageOps.solarize(pillow(before[0]), 128)),
        (grey(before).expand(-1, 3, -1, -1), pillow(before[0]).convert("L").convert("RGB")),
    ):
        expected = torch.from_numpy(np.array(theirs)).permute(2, 0, 1) / 255
        torch.testing.assert_close(ours[0], expected, atol=1.6 / 255, rtol=0)


def test_equalize_spreads_values_evenly() -> None:
    narrow = (torch.rand(2, 3, 40, 40, generator=seeded()) * 60 + 90).round() / 255
    after = equalize(narrow)
    assert float(after.amin()) == 0.0
    assert float(after.amax()) > 0.98
    histogram = torch.histc(after[0, 0], 8, 0, 1) / 1600
    assert (histogram - 1 / 8).abs().max() < 0.04
    order = narrow[0, 0].flatten().argsort()
    assert (after[0, 0].flatten()[order].diff() >= 0).all(), "brighter stays brighter"
    plain = torch.full((1, 3, 4, 4), 0.3)
    assert torch.equal(equalize(plain), plain)
    assert torch.equal(autocontrast(plain), plain)


def test_factors_of_one_change_nothing() -> None:
    before, one = images(), torch.ones(16)
    for change in (brightness, contrast, saturation, sharpness):
        torch.testing.assert_close(change(before, one), before)
        assert not torch.allclose(change(before, 0.5 * one), before)
    assert (brightness(before, 0 * one) == 0).all()
    torch.testing.assert_close(saturation(before, 0 * one), grey(before).expand_as(before))
    assert (contrast(before, 0 * one).flatten(1).std(1) < 1e-6).all()


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_no_amount_are_small_and_full_ones_stay_in_range(name: str) -> None:
    before = images(8, height=16, width=16)
    none, full = torch.zeros(8), torch.tensor([1.0, -1.0] * 4)
    after = CHANGES[name](before, none)
    assert after.shape == before.shape
    if name not in ("autocontrast", "equalize"):
        torch.testing.assert_close(after, before, atol=1 / 255, rtol=0)
    strong = CHANGES[name](before, full)
    assert float(strong.min()) >= 0
    assert float(strong.max()) <= 1 + 1e-5
    assert torch.equal(strong, before) == (name == "identity")


def test_a_quarter_turn_is_a_quarter_turn() -> None:
    before = images(2, height=9, width=9)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]]).repeat(2, 1, 1)
    torch.testing.assert_close(affine(before, quarter), before.rot90(1, (2, 3)), atol=1e-5, rtol=1e-4)


def test_mixed_targets_are_the_share_of_each_image() -> None:
    count = 40
    before, targets = images(count, height=20, width=20), torch.eye(count)
    mixed, soft = mixup(before, targets, 0.8, seeded())
    torch.testing.assert_close(soft.sum(1), torch.ones(count))
    torch.testing.assert_close(mixed.flatten(1), soft @ before.flatten(1), atol=1e-5, rtol=1e-4)
    for seed in range(5):
        pasted, shares = cutmix(before, targets, 1.0, seeded(seed))
        torch.testing.assert_close(shares.sum(1), torch.ones(count))
        own = (pasted == before).all(1).flatten(1).float().mean(1)  # the pixels that are still the image's own
        moved = shares.diagonal() < 1
        torch.testing.assert_close(own[moved], shares.diagonal()[moved], atol=1e-5, rtol=0)
