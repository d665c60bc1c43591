"""What every ViT keeps, whatever its parts: batches, records, sizes, positions, saved weights."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import UserError
from regard.inference import pack
from regard.inference.linear import PackedLinear
from regard.models.vit import Patches, Vit, VitConfig, grid_sinusoid
from regard.nn.record import Recording
from regard.nn.weights import load_tensors, load_weights, weights_of
from regard.training.folder import save_tensors

SMALL = {"image": 12, "patch": 4, "layers": 2, "width": 16, "inner": 24, "heads": 2}
VARIANTS = {
    "class": {},
    "mean": {"summary": "mean"},
    "distillation": {"distillation": "head"},
    "distillation, token only": {"distillation": "token"},
    "distillation, mean": {"distillation": "head", "summary": "mean"},
    "sinusoid": {"positions": "sinusoid"},
    "no positions, post-norm": {"positions": "none", "norm": "post"},
    "grey": {"channels": 1, "patch": 3},
}


def small(variant: str, seed: int = 0) -> Vit:
    torch.manual_seed(seed)
    model = Vit(VitConfig(**{**SMALL, **VARIANTS[variant]})).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return model


def pictures(model: Vit, count: int = 3, height: int = 12, width: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(count, model.config.channels, height, width, generator=generator)


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest) -> Vit:
    return small(request.param)


@torch.no_grad()
@pytest.mark.parametrize("size", [(12, 12), (20, 12), (13, 31), (4, 4)])
def test_a_batch_equals_its_images_one_by_one(model: Vit, size: tuple[int, int]) -> None:
    images = pictures(model, 3, *size)
    hidden = model(images)
    rows, columns = model.grid_of(images)
    assert hidden.shape == (3, len(model.config.extra) + rows * columns, 16)
    for index in range(3):
        torch.testing.assert_close(model(images[index : index + 1])[0], hidden[index], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_recording_changes_nothing_and_rows_sum_to_one(model: Vit) -> None:
    images, recording, part = pictures(model), Recording(), Recording(heads=[1], rows=[0, 2])
    assert torch.equal(model(images, record=recording), model(images))
    model(images, record=part)
    assert list(recording.weights) == ["encoder.0.self", "encoder.1.self"]
    for site in recording.weights:
        weights = recording.batch(site)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        torch.testing.assert_close(part.batch(site), weights[:, 1:, [0, 2]])


def test_saved_and_loaded_is_identical(model: Vit, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_tensors(path, weights_of(model), {})
    other = Vit(model.config).eval()
    load_weights(other, load_tensors(path)[0], path)
    with torch.no_grad():
        assert torch.equal(other(pictures(model)), model(pictures(model)))


def test_every_weight_is_trained(model: Vit) -> None:
    model.train()
    sum(one.logsumexp(-1).sum() for one in model.summaries(model(pictures(model)))).backward()  # type: ignore[union-attr]
    idle = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.abs().sum()]
    assert idle == []


@torch.no_grad()
def test_summaries_are_the_class_token_or_the_mean_and_the_distillation_token() -> None:
    hidden = torch.randn(2, 11, 16)
    for variant, expected in (
        ("class", [hidden[:, 0]]),
        ("mean", [hidden.mean(1)]),
        ("distillation, token only", [hidden[:, 0]]),
        ("distillation", [hidden[:, 0], hidden[:, 1]]),
        ("distillation, mean", [hidden[:, 1:].mean(1), hidden[:, 0]]),
    ):
        found = small(variant).summaries(hidden)
        assert len(found) == len(expected)
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True)), variant


@pytest.mark.parametrize(("channels", "patch", "size"), [(3, 4, (12, 12)), (1, 3, (10, 14)), (3, 5, (5, 23))])
def test_patches_are_a_convolution(channels: int, patch: int, size: tuple[int, int]) -> None:
    patches = Patches(channels, patch, 8)
    torch.nn.init.normal_(patches.weight)
    torch.nn.init.normal_(patches.bias)
    images = torch.randn(2, channels, *size)
    expected = F.conv2d(images, patches.weight, patches.bias, stride=patch).flatten(2).transpose(1, 2)
    torch.testing.assert_close(patches(images), expected, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_without_positions_patches_are_a_set_and_with_them_they_are_not(model: Vit) -> None:
    images = pictures(model)
    patch = model.config.patch
    swapped = torch.cat([images[..., patch : 2 * patch], images[..., :patch], images[..., 2 * patch :]], dim=-1)
    same = torch.allclose(model.summaries(model(images))[0], model.summaries(model(swapped))[0], atol=1e-5)
    assert same == (model.config.positions == "none")


def test_sinusoids_name_rows_and_columns() -> None:
    table = grid_sinusoid(3, 5, 16).view(3, 5, 16)
    assert (table[:, :, :8] == table[:, :1, :8]).all(), "the first half says the row only"
    assert (table[:, :, 8:] == table[:1, :, 8:]).all(), "the second half says the column only"
    assert len({tuple(row) for row in table.flatten(0, 1).tolist()}) == 15, "every place is different"
    assert torch.equal(grid_sinusoid(7, 5, 16).view(7, 5, 16)[:3], table), "a larger grid goes on where it was"


def test_what_does_not_fit_is_said() -> None:
    model = small("class")
    for images, text in (
        (torch.zeros(1, 1, 12, 12), "1 channels: this model reads 3"),
        (torch.zeros(1, 3, 3, 12), r"3 x 12 pixels: smaller than one patch \(4\)"),
    ):
        with pytest.raises(UserError, match=text):
            model(images)
    for settings, text in (
        ({"patch": 16}, "patch = 16: must be at most image = 12"),
        ({"heads": 3}, "width = 16: must be a multiple of heads = 3"),
        ({"width": 18, "positions": "sinusoid"}, "multiple of 4 for sinusoids"),
    ):
        with pytest.raises(ValueError, match=text):
            VitConfig(**{**SMALL, **settings})


@torch.no_grad()
def test_packed_is_the_same(model: Vit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inference.LARGE", 0)
    packed = pack(model)
    torch.testing.assert_close(packed(pictures(model)), model(pictures(model)), atol=1e-4, rtol=1e-4)
    assert any(isinstance(module, PackedLinear) for module in packed.modules())
