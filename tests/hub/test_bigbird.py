"""BigBird equals Hugging Face's on texts of many blocks, alone or beside others, with its random blocks or without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from test_published_encoders import PEERS, close, their_model
from torch import Tensor

import regard
from regard.data.subwords import Subwords
from regard.hub.encoders import PublishedEncoder, read_encoder
from regard.hub.folder import read_folder
from regard.models import bigbird, build
from regard.models.bigbird import BigBird
from regard.nn.record import Recording
from regard.nn.sparse import seen_counts
from regard.nn.weights import load_weights

PEER = next(peer for peer in PEERS if peer.name == "BigBird")
BLOCK, LENGTHS = 4, [61, 29, 64, 70, 3]  # of 16, 8, 16, 18 and 1 blocks; up to 9 all is seen
SHAPE = {
    "num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24,
    "block_size": BLOCK, "num_random_blocks": 2, "attention_type": "block_sparse", "max_position_embeddings": 80,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Any, BigBird]:
    theirs = their_model("BigBirdModel", PEER, SHAPE)
    theirs.save_pretrained(tmp_path)
    published = read_encoder(read_folder(tmp_path))
    return theirs, our_encoder(published)


def our_encoder(published: PublishedEncoder) -> BigBird:
    model = build(published.config, 0).eval()
    assert isinstance(model, BigBird)
    weights = {name.removeprefix("encoder."): weight for name, weight in published.weights.items()}
    load_weights(model, weights, Path("published"))
    return model


def batch() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    ids, segments = torch.randint(6, 60, (len(LENGTHS), 72)), torch.randint(0, 2, (len(LENGTHS), 72))
    for row, length in enumerate(LENGTHS):
        ids[row, length:] = 0
    return ids, segments


@torch.no_grad()
def test_some_heads_and_rows_are_those_of_all(pair: tuple[Any, BigBird]) -> None:
    ids, segments = batch()
    everything, some = Recording(), Recording(heads=[1], rows=[2, 30, 63])
    for recording in (everything, some):
        pair[1](ids, segments, record=recording)
    for site in everything.weights:
        torch.testing.assert_close(some.batch(site), everything.batch(site)[:, [1]][:, :, [2, 30, 63]])


@torch.no_grad()
def test_each_text_equals_theirs_alone(pair: tuple[Any, BigBird], tmp_path: Path) -> None:
    theirs, ours = pair
    ids, segments = batch()
    recording = Recording()
    hidden = ours(ids, segments, record=recording)
    assert torch.equal(hidden, ours(ids, segments)), "recorded = unrecorded"
    for row, length in enumerate(LENGTHS):
        theirs.set_attention_type("block_sparse")
        alone = {"input_ids": ids[row : row + 1, :length], "token_type_ids": segments[row : row + 1, :length]}
        expected = theirs(**alone, attention_mask=torch.ones(1, length), output_attentions=True)
        close(hidden[row, :length], expected.last_hidden_state[0])
        blocks = -(-length // BLOCK)
        sparse = blocks > 9
        counts = seen_counts(bigbird.seen_blocks(2, blocks, 2, None), BLOCK)[:, :length, :length] if sparse else 1
        for number, weights in enumerate(expected.attentions):
            found = recording.batch(f"encoder.{number}.self")[row, :, :length, :length]
            close(found.sum(dim=-1), torch.ones(2, length))
            theirs_counted = weights[0, :, :length, :length] * counts  # theirs shows a block that counts thrice once
            close(found, theirs_counted)


@torch.no_grad()
def test_with_blocks_drawn_as_theirs(pair: tuple[Any, BigBird], monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs draws in training only, with numpy's generator seeded by the layer's number."""
    theirs, ours = pair
    ids, segments = (values[2:3, :64] for values in batch())
    theirs.train(), ours.train()

    def drawn(heads: int, blocks: int, count: int, layer: int) -> Tensor:
        attention = theirs.encoder.layer[layer].attention.self
        np.random.seed(layer)
        plan = attention._get_rand_attn_plan(64, BLOCK, count)
        return torch.tensor(
            np.stack(attention._bigbird_block_rand_mask_with_head(64, 64, BLOCK, BLOCK, heads, *plan)), dtype=torch.long
        )

    assert drawn(2, 16, 2, 0).unique().numel() > 4, "random indeed"
    monkeypatch.setattr(bigbird, "drawn_blocks", drawn)
    expected = theirs(input_ids=ids, token_type_ids=segments).last_hidden_state
    close(ours(ids, segments), expected)
    monkeypatch.setattr(bigbird, "drawn_blocks", lambda *_: torch.zeros(2, 14, 2, dtype=torch.long))
    assert not torch.allclose(ours(ids, segments), expected, atol=1e-4), "other blocks, another result"


@torch.no_grad()
def test_texts_in_a_batch_equal_those_alone_with_blocks_drawn(pair: tuple[Any, BigBird]) -> None:
    _, first = pair
    config = first.config.model_copy(update={"outside_training": "drawn"})
    torch.manual_seed(0)
    ours = BigBird(config, 60).eval()
    ids, segments = batch()
    hidden = ours(ids, segments)
    for row, length in enumerate(LENGTHS):
        close(hidden[row, :length], ours(ids[row : row + 1, :length], segments[row : row + 1, :length])[0])


@torch.no_grad()
def test_packed_equals_plain(pair: tuple[Any, BigBird]) -> None:
    from regard.inference import pack

    _, ours = pair
    ids, segments = batch()
    close(pack(ours)(ids, segments), ours(ids, segments), ids != 0)


def test_pairs_are_one_segment_as_in_their_tokenizer(tmp_path: Path) -> None:
    """Theirs gives no segments to a model that classifies, but a folder of ours says that it was trained with them."""
    text = Subwords.learn(["the white cat sleeps, the dog does not"] * 4, kind="wordpiece", vocabulary=60)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BigBirdConfig(vocab_size=len(text), attention_type="original_full", num_labels=2, **shape)
    torch.manual_seed(0)
    model = transformers.BigBirdForSequenceClassification(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.5)
    model.save_pretrained(tmp_path)
    text.save(tmp_path / "tokenizer.json")
    pair = "the white cat", "the dog sleeps"
    ids = torch.tensor([text.inputs([pair[0]], [pair[1]], most=40)[0].ids])
    segments = (ids == 3).long().cumsum(dim=1).clamp(max=1)
    with torch.no_grad():
        expected = model(input_ids=ids).logits.softmax(dim=-1)[0].tolist()
        other = model(input_ids=ids, token_type_ids=segments).logits.softmax(dim=-1)[0]
    found = list(regard.load(tmp_path).classify([pair[0]], [pair[1]])[0].probabilities.values())
    assert found == pytest.approx(expected, abs=1e-5)
    assert found != pytest.approx(other.tolist(), abs=1e-5)
    told = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf8")
    (row,) = regard.load(tmp_path).predictor.reader.tokenizer.inputs([pair[0]], [pair[1]], most=40)
    assert set(row.type_ids) == {0, 1}
