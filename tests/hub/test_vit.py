"""Our ViT and Hugging Face's ViT and DeiT are the same function, and folders go both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from regard.data.images_decode import Framing
from regard.errors import UserError
from regard.hub.published import export, open_published
from regard.hub.vit import VIT
from regard.models.vit import SIZES, Vit, VitConfig
from regard.nn.record import Recording
from regard.nn.weights import load_weights
from regard.run import Run
from regard.tasks.image import Image as ImageTask
from regard.tasks.image_classifier import ImageModel
from regard.tasks.saved import Saved

transformers = pytest.importorskip("transformers")

SHAPES = [
    {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 12,
     "patch_size": 4},
    {"num_hidden_layers": 1, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 32, "image_size": 28,
     "patch_size": 8, "num_channels": 1, "hidden_act": "relu", "layer_norm_eps": 1e-6},
    {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 1, "intermediate_size": 48, "image_size": 32,
     "patch_size": 16},
]  # fmt: skip
KINDS = ["ViTForImageClassification", "DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"]


def peer_of(kind: str, shape: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    config = transformers.ViTConfig if kind.startswith("ViT") else transformers.DeiTConfig
    names = {number: f"class {number}" for number in range(5)}
    labels = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    peer = getattr(transformers, kind)(config(attn_implementation="eager", **labels, **shape)).eval()
    with torch.no_grad():
        for weight in peer.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)  # nothing stays zero or one
    return peer


def ours_of(folder: Path) -> tuple[Saved, ImageModel]:
    saved = open_published(folder)
    assert not saved.unused
    model = ImageTask.build(saved.config, 0, saved.facts).eval()
    load_weights(model, saved.weights, folder)
    assert isinstance(model, ImageModel)
    return saved, model


def images(shape: dict[str, Any], height: int, width: int) -> Tensor:
    return torch.randn(2, shape.get("num_channels", 3), height, width, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stretch", [(0, 0), (0, 5), (16, 0), (24, 36)])
def test_logits_hidden_and_attention_are_equal_at_every_size(
    kind: str, shape: dict[str, Any], stretch: tuple[int, int], tmp_path: Path
) -> None:
    peer = peer_of(kind, shape)
    peer.save_pretrained(tmp_path)
    _, ours = ours_of(tmp_path)
    assert isinstance(ours.encoder, Vit)
    seen = images(shape, shape["image_size"] + stretch[0], shape["image_size"] + stretch[1])
    theirs = peer(seen, output_hidden_states=True, output_attentions=True, interpolate_pos_encoding=True)
    recording = Recording()
    torch.testing.assert_close(ours(seen, record=recording), theirs.logits, atol=1e-5, rtol=1e-5)
    *layers, _ = ours.encoder.each_layer(seen)
    for one, other in zip(layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert len(recording.weights) == len(theirs.attentions) == shape["num_hidden_layers"]
    for number, expected in enumerate(theirs.attentions):
        torch.testing.assert_close(recording.batch(f"encoder.{number}.self"), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_we_write_is_what_they_read(kind: str, shape: dict[str, Any], tmp_path: Path) -> None:
    peer = peer_of(kind, shape)
    peer.save_pretrained(tmp_path / "theirs")
    saved, ours = ours_of(tmp_path / "theirs")
    export(saved, tmp_path / "back")
    again = transformers.AutoConfig.from_pretrained(tmp_path / "back")
    assert again.architectures == [kind]
    assert again.id2label == peer.config.id2label
    for name in VIT.fields.values():
        assert getattr(again, str(name)) == getattr(peer.config, str(name)), name
    back = type(peer).from_pretrained(tmp_path / "back")
    for name, weight in peer.state_dict().items():
        assert torch.equal(back.state_dict()[name], weight), name
    seen = images(shape, shape["image_size"], shape["image_size"])
    torch.testing.assert_close(back(seen).logits, ours(seen), atol=1e-5, rtol=1e-5)
    reread, _ = ours_of(tmp_path / "back")
    assert reread.facts == saved.facts
    assert reread.config == saved.config
    with pytest.raises(UserError, match="is there already"):
        export(saved, tmp_path / "back")


def photograph(path: Path, height: int = 45, width: int = 60) -> Path:
    random = np.random.default_rng(0)
    small = Image.fromarray(random.integers(0, 256, (6, 8, 3), np.uint8))
    small.resize((width, height), Image.Resampling.BICUBIC).save(path)
    return path


@pytest.mark.parametrize("model_type", ["vit", "deit"])
@pytest.mark.parametrize("fit", ["squash", "crop"])
def test_images_are_shown_as_their_processor_shows_them(model_type: str, fit: str, tmp_path: Path) -> None:
    shape = {**SHAPES[0], "image_size": 24}
    kind = {"vit": KINDS[0], "deit": KINDS[2]}[model_type]
    peer_of(kind, shape).save_pretrained(tmp_path / "theirs")
    saved = open_published(tmp_path / "theirs")
    stored = 24 if model_type == "vit" else 30
    framing = Framing(24, stored, 3, fit, "bicubic", (0.4, 0.5, 0.6), (0.2, 0.3, 0.25))  # type: ignore[arg-type]
    facts = {"classes": saved.facts["classes"], **framing.facts()}
    export(Saved(saved.path, saved.config, saved.weights, facts=facts), tmp_path / "back")
    assert open_published(tmp_path / "back").facts == facts
    processor = {"vit": "ViTImageProcessorPil", "deit": "DeiTImageProcessorPil"}[model_type]
    theirs = getattr(transformers, processor).from_pretrained(tmp_path / "back")
    path = photograph(tmp_path / "photo.png")
    expected = theirs(Image.open(path), return_tensors="pt")["pixel_values"]
    found = framing.shown(framing.pixels(path)[None])
    torch.testing.assert_close(found, expected, atol=1e-5 if fit == "squash" else 0.05, rtol=1e-4)


def test_a_published_classifier_classifies(tmp_path: Path) -> None:
    peer = peer_of(KINDS[0], SHAPES[0])
    peer.save_pretrained(tmp_path)
    processor = transformers.ViTImageProcessorPil(size={"height": 12, "width": 12})
    processor.save_pretrained(tmp_path)
    path = photograph(tmp_path / "photo.png")
    with torch.no_grad():
        logits = peer(**processor(Image.open(path), return_tensors="pt")).logits[0]
    run = Run.load(tmp_path, device="cpu")
    (found,) = run.predictor.classify([path])
    expected = {f"class {number}": share for number, share in enumerate(logits.softmax(0).tolist())}
    assert found.probabilities == pytest.approx(expected, abs=1e-5)
    assert found.label == max(expected, key=lambda name: expected[name])


def test_two_classes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """ImageNet has two cranes, and a folder may have no processor: then images are as large as the model's."""
    peer = peer_of(KINDS[0], SHAPES[0])
    names = ["crane", "dog", "crane", *(f"class {number}" for number in range(3, peer.config.num_labels))]
    peer.config.id2label = dict(enumerate(names))
    peer.save_pretrained(tmp_path)
    saved = open_published(tmp_path)
    assert saved.facts["classes"][:3] == ["crane (0)", "dog", "crane (2)"]
    assert saved.facts["size"] == saved.facts["stored"] == peer.config.image_size


@pytest.mark.parametrize("setting", [{"summary": "mean"}, {"positions": "sinusoid"}, {"norm": "post"}])
def test_what_they_have_no_name_for_is_refused(setting: dict[str, Any]) -> None:
    config = VitConfig(**{"width": 16, "heads": 2, **setting})
    with pytest.raises(UserError, match=f"model.{next(iter(setting))} = .*: cannot be written as vit"):
        VIT.config(config.model_dump())


def test_sizes_are_those_of_the_papers() -> None:
    for size, patch, millions in (("tiny", 16, 5.5), ("small", 16, 21.7), ("base", 16, 85.8), ("large", 32, 305.5)):
        with torch.device("meta"):
            model = Vit(VitConfig(**{**SIZES[size], "patch": patch}))
        assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)
