"""One contract for every encoder in the registry."""

from pathlib import Path

import pytest
import torch
from conftest import PAD, VOCABULARY
from torch import Tensor

from regard.models import MODELS, build, parse_model
from regard.models.base import Encoder
from regard.nn.record import Recording
from regard.nn.weights import load_tensors, load_weights, weights_of
from regard.training.folder import save_tensors

_SHAPE = {"layers": 2, "width": 16, "inner": 24, "heads": 2, "max_length": 64}
ENCODERS: dict[str, dict[str, object]] = {
    "bert": {"kind": "bert", **_SHAPE},
    "bert, no pooler": {"kind": "bert", "pooler": False, **_SHAPE},
    "roberta": {"kind": "roberta", **_SHAPE},
    "distilbert": {"kind": "distilbert", **_SHAPE},
    "bigbird": {"kind": "bigbird", "block": 1, "random_blocks": 0, **_SHAPE},
    "bigbird, short": {"kind": "bigbird", **_SHAPE},
    "xlnet": {"kind": "xlnet", **{name: size for name, size in _SHAPE.items() if name != "max_length"}},
}


def small_encoder(variant: str, seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    model = build(parse_model(ENCODERS[variant]), VOCABULARY).eval()
    assert isinstance(model, Encoder), f"{variant}: an encoder"
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    return model


@pytest.fixture(params=ENCODERS)
def variant(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(variant: str) -> Encoder:
    return small_encoder(variant)


def ids(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(4, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_every_family_is_here() -> None:
    kinds = {kind for kind, family in MODELS.items() if issubclass(family.model, Encoder)}
    assert {str(values["kind"]) for values in ENCODERS.values()} == kinds


@torch.no_grad()
def test_a_batch_equals_its_sentences_one_by_one(model: Encoder) -> None:
    lengths = [5, 2, 7]
    together, segments = torch.full((3, 9), PAD), torch.zeros(3, 9, dtype=torch.long)
    for row, length in enumerate(lengths):
        together[row, :length], segments[row, 1:length] = ids(length, seed=row), 1
    hidden = model(together, segments)
    for row, length in enumerate(lengths):
        alone = model(together[row : row + 1, :length], segments[row : row + 1, :length])
        close(hidden[row, :length], alone[0])


@torch.no_grad()
def test_every_token_sees_both_sides(model: Encoder) -> None:
    read = ids(1, 6)
    for place in (0, 5):
        other = read.clone()
        other[0, place] = 4 + (read[0, place] - 3) % (VOCABULARY - 4)
        assert not torch.allclose(model(other)[:, 2], model(read)[:, 2], atol=1e-5)


@torch.no_grad()
def test_layers_end_in_the_output(model: Encoder, variant: str) -> None:
    read = ids(2, 6)
    *_, last = layers = list(model.each_layer(read))
    assert torch.equal(last, model(read))
    assert len(layers) == int(str(ENCODERS[variant]["layers"])) + 1
    assert all(layer.shape == (2, 6, model.width) for layer in layers)


@torch.no_grad()
def test_recording_changes_nothing_and_rows_sum_to_one(model: Encoder) -> None:
    read = ids(2, 6)
    read[1, 4:] = PAD
    recording = Recording()
    assert torch.equal(model(read, record=recording), model(read)), "recorded = unrecorded"
    assert len(recording.weights) == 2
    for site in recording.weights:
        weights = recording.batch(site)
        close(weights.sum(dim=-1)[0], torch.ones(weights.shape[1:3]))
        assert (weights[1, ..., 4:] == 0).all(), f"{site} looks at padding"


@torch.no_grad()
def test_a_record_of_some_heads_and_rows_equals_that_part_of_all(model: Encoder) -> None:
    read = ids(2, 6)
    everything, part = Recording(), Recording(heads=[1], rows=[1, 3])
    model(read, record=everything)
    model(read, record=part)
    for site in everything.weights:
        close(part.batch(site), everything.batch(site)[:, 1:, [1, 3]])


@torch.no_grad()
def test_saved_and_loaded_is_identical(model: Encoder, variant: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_tensors(path, weights_of(model), {})
    other = small_encoder(variant, seed=99)
    load_weights(other, load_tensors(path)[0], path)
    assert torch.equal(other(ids(2, 6)), model(ids(2, 6)))


@torch.no_grad()
@pytest.mark.parametrize("variant", ["roberta", "xlnet"])
def test_where_places_are_counted_over_real_tokens_padding_before_changes_nothing(model: Encoder) -> None:
    read = ids(2, 5)
    padded = torch.cat([torch.full((2, 3), PAD), read], dim=1)
    close(model(padded)[:, 3:], model(read))
