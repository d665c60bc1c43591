"""One contract for every encoder-decoder in the registry, whatever its parts (see `VARIANTS` in conftest)."""

from pathlib import Path

import pytest
import torch
from conftest import BOS, EOS, PAD, VARIANTS, VOCABULARY, small_model
from torch import Tensor

from regard.config import SearchConfig
from regard.decoding import Limits, search
from regard.models import MODELS
from regard.models.base import Encoder, EncoderDecoder, ImageEncoder
from regard.models.decoder import Decoder
from regard.nn.record import Recording
from regard.nn.weights import load_tensors, load_weights, weights_of
from regard.training.folder import save_tensors


def ids(*shape: int, seed: int = 1) -> Tensor:
    return torch.randint(4, VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_every_family_is_here() -> None:
    kinds = {kind for kind, family in MODELS.items() if issubclass(family.model, EncoderDecoder | Decoder)}
    assert {str(variant["kind"]) for variant in VARIANTS.values()} == kinds
    others = {kind for kind, family in MODELS.items() if issubclass(family.model, Encoder | ImageEncoder)}
    assert kinds | others == set(MODELS), "a family of another kind needs a contract of its own"


@torch.no_grad()
def test_padding_changes_nothing(model: EncoderDecoder) -> None:
    source, target = ids(2, 5), ids(2, 4, seed=2)
    padded_source = torch.cat([source, torch.full((2, 3), PAD)], dim=1)
    padded_target = torch.cat([target, torch.full((2, 2), PAD)], dim=1)
    close(model(padded_source, padded_target)[:, :4], model(source, target))


@torch.no_grad()
def test_the_future_does_not_change_the_past(model: EncoderDecoder) -> None:
    source, target, other = ids(1, 5), ids(1, 6, seed=2), ids(1, 6, seed=3)
    other[:, :3] = target[:, :3]
    assert not torch.equal(other, target), "the two futures must differ"
    close(model(source, other)[:, :3], model(source, target)[:, :3])


@torch.no_grad()
def test_the_output_depends_on_source_and_past(model: EncoderDecoder) -> None:
    source, target = ids(1, 5), ids(1, 6, seed=2)
    changed_source, changed_past = source.clone(), target.clone()
    changed_source[0, 1] = 4 + (source[0, 1] - 3) % (VOCABULARY - 4)
    changed_past[0, 0] = 4 + (target[0, 0] - 3) % (VOCABULARY - 4)
    expected = model(source, target)[:, -1]
    assert not torch.allclose(model(changed_source, target)[:, -1], expected, atol=1e-6)
    if getattr(model.config, "window", 0) == 0:  # the first token lies outside a narrow window
        assert not torch.allclose(model(source, changed_past)[:, -1], expected, atol=1e-7)


@torch.no_grad()
def test_cached_equals_uncached(model: EncoderDecoder) -> None:
    source, target = ids(3, 5), ids(3, 6, seed=2)
    expected = model.output(model(source, target))
    state = model.start(source)
    for place in range(target.shape[1]):
        logits, state = model.step(target[:, place], state)
        close(logits, expected[:, place])


@torch.no_grad()
def test_selected_rows_go_on_as_they_were(model: EncoderDecoder) -> None:
    source, target = ids(3, 5), ids(3, 6, seed=2)
    expected = model.output(model(source, target))
    _, state = model.step(target[:, 0], model.start(source))
    rows = torch.tensor([2, 0, 2])
    logits, _ = model.step(target[rows, 1], state.select(rows))
    close(logits, expected[rows, 1])


@torch.no_grad()
def test_a_batch_equals_its_sentences_one_by_one(model: EncoderDecoder) -> None:
    lengths = [(5, 3), (2, 6), (7, 1)]
    source, target = torch.full((3, 7), PAD), torch.full((3, 6), PAD)
    for row, (s, t) in enumerate(lengths):
        source[row, :s], target[row, :t] = ids(s, seed=row), ids(t, seed=row + 9)
    together = model(source, target)
    for row, (s, t) in enumerate(lengths):
        close(together[row, :t], model(source[row : row + 1, :s], target[row : row + 1, :t])[0])


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_decoding_a_batch_equals_one_by_one(model: EncoderDecoder, method: str) -> None:
    source = torch.full((3, 7), PAD)
    lengths = [5, 2, 7]
    for row, length in enumerate(lengths):
        source[row, :length] = ids(length, seed=row)
    options = SearchConfig(method=method, beam=3, n_best=2 if method == "beam" else 1)
    limits = Limits(BOS, EOS, [6, 9, 4], never=(PAD, BOS), numbers=[0, 1, 2])
    together = search(model, source, options, limits)
    for row, length in enumerate(lengths):
        alone = Limits(BOS, EOS, [limits.lengths[row]], never=(PAD, BOS), numbers=[row])
        (single,) = search(model, source[row : row + 1, :length], options, alone)
        assert [one.ids for one in together[row]] == [one.ids for one in single]
        assert [one.score for one in together[row]] == pytest.approx([one.score for one in single], abs=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 4])
def test_recording_changes_nothing_and_rows_sum_to_one(model: EncoderDecoder, length: int) -> None:
    source, target = ids(2, 5), ids(2, length, seed=2)
    source[1, 3:] = PAD
    recording = Recording()
    assert torch.equal(model(source, target, record=recording), model(source, target)), "recorded = unrecorded"
    assert bool(recording.weights) == (model.config.kind != "rnn"), "every model but the plain RNN has attention"
    other = Recording()
    model(source, ids(2, 7), record=other)
    assert set(recording.weights) == set(other.weights), "everything is seen, of one token and of many"
    for site in recording.weights:
        weights = recording.batch(site)
        close(weights.sum(dim=-1)[0], torch.ones(weights.shape[1:3]))
        if site.startswith("encoder") or site.endswith("cross"):
            assert (weights[1, ..., 3:] == 0).all(), f"{site} looks at padding"


@torch.no_grad()
def test_a_record_of_some_heads_and_rows_equals_that_part_of_all(model: EncoderDecoder) -> None:
    source, target = ids(2, 5), ids(2, 4, seed=2)
    everything, part = Recording(), Recording(heads=[0], rows=[1, 3])
    model(source, target, record=everything)
    model(source, target, record=part)
    for site in everything.weights:
        close(part.batch(site), everything.batch(site)[:, :1, [1, 3]])


def test_saved_and_loaded_is_identical(model: EncoderDecoder, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_tensors(path, weights_of(model), {})
    variant = next(name for name, values in VARIANTS.items() if model.config == small_model(name).config)
    other = small_model(variant, seed=99)
    load_weights(other, load_tensors(path)[0], path)
    source, target = ids(2, 5), ids(2, 4, seed=2)
    with torch.no_grad():
        assert torch.equal(other(source, target), model(source, target))


def test_every_weight_is_trained(model: EncoderDecoder) -> None:
    model.train()
    model.output(model(ids(3, 6), ids(3, 5, seed=2))).logsumexp(dim=-1).sum().backward()
    idle = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.abs().sum()]
    # A key's bias adds the same to all scores of a row, so the softmax is blind to it: no gradient is right there.
    assert idle == [], f"no gradient: {idle}"
