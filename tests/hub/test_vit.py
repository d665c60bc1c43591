"""Our ViT and Hugging Face's ViT and DeiT are the same function, and folders go both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import UserError
from regard.hub.folder import read_folder, write_folder
from regard.hub.layout import Layout
from regard.hub.vit import DEIT, VIT
from regard.models.vit import SIZES, Vit, VitConfig
from regard.nn.record import Recording

transformers = pytest.importorskip("transformers")

SHAPES = [
    {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 12,
     "patch_size": 4},
    {"num_hidden_layers": 1, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 32, "image_size": 28,
     "patch_size": 8, "num_channels": 1, "hidden_act": "relu", "layer_norm_eps": 1e-6},
    {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 1, "intermediate_size": 48, "image_size": 32,
     "patch_size": 16},
]  # fmt: skip
KINDS = ["vit", "deit"]
LAYOUTS = {"vit": VIT, "deit": DEIT}


def peer_of(kind: str, shape: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    config, model = {
        "vit": (transformers.ViTConfig, transformers.ViTModel),
        "deit": (transformers.DeiTConfig, transformers.DeiTModel),
    }[kind]
    peer = model(config(attn_implementation="eager", **shape), add_pooling_layer=False).eval()
    with torch.no_grad():
        for weight in peer.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)  # nothing stays zero or one
    return peer


def ours_of(layout: Layout, folder: Path) -> Vit:
    read = read_folder(folder)
    assert read.model_type == layout.model_type
    config = VitConfig(**layout.settings(read.config))
    model = Vit(config).eval()
    weights, unused, missing = layout.to_ours(read.weights, config.model_dump())
    assert (unused, missing) == ([], [])
    model.load_state_dict(weights)
    return model


def images(shape: dict[str, Any], height: int, width: int) -> Tensor:
    return torch.randn(2, shape.get("num_channels", 3), height, width, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stretch", [(0, 0), (0, 5), (16, 0), (24, 36)])
def test_hidden_and_attention_are_equal_at_every_size(
    kind: str, shape: dict[str, Any], stretch: tuple[int, int], tmp_path: Path
) -> None:
    peer = peer_of(kind, shape)
    peer.save_pretrained(tmp_path)
    ours = ours_of(LAYOUTS[kind], tmp_path)
    seen = images(shape, shape["image_size"] + stretch[0], shape["image_size"] + stretch[1])
    theirs = peer(seen, output_hidden_states=True, output_attentions=True, interpolate_pos_encoding=True)
    recording = Recording()
    *layers, hidden = ours.each_layer(seen, recording)
    for one, other in zip(layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(hidden, theirs.last_hidden_state, atol=1e-5, rtol=1e-5)
    assert len(recording.weights) == len(theirs.attentions) == ours.config.layers
    for number, expected in enumerate(theirs.attentions):
        torch.testing.assert_close(recording.batch(f"encoder.{number}.self"), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_we_write_is_what_they_read(kind: str, shape: dict[str, Any], tmp_path: Path) -> None:
    peer = peer_of(kind, shape)
    peer.save_pretrained(tmp_path)
    layout = LAYOUTS[kind]
    ours = ours_of(layout, tmp_path)
    (tmp_path / "back").mkdir()
    config = layout.config(ours.config.model_dump())
    write_folder(tmp_path / "back", config, layout.to_theirs(dict(ours.state_dict()), ours.config.model_dump()))
    again = type(peer).from_pretrained(tmp_path / "back", add_pooling_layer=False)
    for name, weight in peer.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name
    for name in layout.fields.values():
        assert getattr(again.config, name) == getattr(peer.config, name), name
    seen = images(shape, shape["image_size"], shape["image_size"])
    torch.testing.assert_close(again(seen).last_hidden_state, ours(seen), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("setting", [{"summary": "mean"}, {"positions": "sinusoid"}, {"distillation": True}])
def test_what_they_have_no_name_for_is_refused(setting: dict[str, Any]) -> None:
    config = VitConfig(**{"width": 16, "heads": 2, **setting})
    with pytest.raises(UserError, match=f"model.{next(iter(setting))} = .*: cannot be written as vit"):
        VIT.config(config.model_dump())


def test_sizes_are_those_of_the_papers() -> None:
    for size, patch, millions in (("tiny", 16, 5.5), ("small", 16, 21.7), ("base", 16, 85.8), ("large", 32, 305.5)):
        with torch.device("meta"):
            model = Vit(VitConfig(**{**SIZES[size], "patch": patch}))
        assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)
