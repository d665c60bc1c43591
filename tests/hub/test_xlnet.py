"""XLNet's two streams equal Hugging Face's, and no prediction sees its own word or a later one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_published_encoders import PEERS, close, inputs, our_model, their_model
from torch import Tensor

from regard.hub.encoders import read_encoder
from regard.hub.folder import read_folder
from regard.models import build, parse_model
from regard.models.xlnet import XLNet, sees_in_order
from regard.nn.record import Recording

PEER = next(peer for peer in PEERS if peer.name == "XLNet")


def chosen() -> tuple[Tensor, Tensor, Tensor]:
    """Targets (3, 11) on real places of `inputs`, their order, and the places of two of them in each row."""
    places = torch.tensor([[9, 10], [5, 8], [0, 7]])
    targets = torch.zeros(3, 11, dtype=torch.bool).scatter(1, places, True)
    order = torch.stack([torch.randperm(11, generator=torch.Generator().manual_seed(row)) for row in range(3)])
    return targets, order, places


@torch.no_grad()
@pytest.mark.parametrize("shape", PEER.shapes)
def test_both_streams_are_equal(shape: dict[str, object], tmp_path: Path) -> None:
    theirs = their_model("XLNetLMHeadModel", PEER, shape)
    theirs.save_pretrained(tmp_path)
    ours = our_model(read_encoder(read_folder(tmp_path)))
    assert isinstance(ours.encoder, XLNet)
    ids, segments = inputs(PEER, 5)
    targets, order, places = chosen()
    sees = sees_in_order(targets, order)
    mapping = torch.nn.functional.one_hot(places, 11).float()
    answer = theirs(
        input_ids=ids, token_type_ids=segments, attention_mask=(ids != 5).float(), perm_mask=(~sees).float(),
        target_mapping=mapping, output_attentions=True,
    )  # fmt: skip
    recording = Recording()
    hidden = ours.encoder.predict(ids, segments, places, sees, recording)
    close(ours.head(hidden), answer.logits)
    real = (ids != 5)[:, None, :, None]
    for number, (content, query) in enumerate(answer.attentions):
        close(recording.batch(f"encoder.{number}.self"), content, real.expand_as(content))
        rows = places[:, None, :, None].expand(-1, query.shape[1], -1, 11)
        close(recording.batch(f"encoder.{number}.query"), query.gather(2, rows))


def small() -> XLNet:
    torch.manual_seed(0)
    model = build(
        parse_model({"kind": "xlnet", "pad": 5, "layers": 3, "width": 16, "inner": 24, "heads": 2}), 60
    ).eval()
    assert isinstance(model, XLNet)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return model


@torch.no_grad()
def test_no_prediction_sees_its_own_word_or_a_later_one() -> None:
    model = small()
    ids, _ = inputs(PEER, 5)
    ids = ids[2:]
    targets = torch.zeros(1, 11, dtype=torch.bool)
    places, order = torch.tensor([[2, 5, 9]]), torch.full((1, 11), 0)
    targets[0, places[0]] = True
    order[0, places[0]] = torch.tensor([2, 3, 1])  # 9 is predicted first, then 2, then 5
    sees = sees_in_order(targets, order)
    before = model.predict(ids, None, places, sees)
    seen_by = {2: [False, True, False], 5: [False, False, False], 9: [True, True, False], 0: [True, True, True]}
    for place, expected in seen_by.items():
        other = ids.clone()
        other[0, place] = 6 + (ids[0, place] - 5) % 54
        after = model.predict(other, None, places, sees)
        changed = [not torch.allclose(one, two, atol=1e-6) for one, two in zip(before[0], after[0], strict=True)]
        assert changed == expected, f"another word at {place}"


@torch.no_grad()
def test_words_are_guessed_by_the_query_stream_one_after_the_other() -> None:
    model, (ids, segments) = small(), inputs(PEER, 5)
    rows, places = torch.tensor([0, 2, 2, 2]), torch.tensor([9, 1, 4, 8])
    words, hidden = ids[rows, places], ids.index_put((rows, places), torch.tensor(6))
    found = model.guess(hidden, segments, rows, places, words)
    targets = torch.zeros_like(ids, dtype=torch.bool).index_put((rows, places), torch.tensor(True))
    sees = sees_in_order(targets, torch.arange(11).expand_as(ids))
    close(found[1:], model.predict(ids, segments, torch.tensor([[0] * 3, [0] * 3, [1, 4, 8]]), sees)[2])
    close(found[:1], model.guess(hidden[:1], segments[:1], rows[:1], places[:1], words[:1]))
    other = model.guess(hidden, segments, rows, places, torch.tensor([7, 7, 8, 9]))
    same = [torch.allclose(one, two, atol=1e-6) for one, two in zip(found, other, strict=True)]
    assert same == [True, True, False, False], "the first of each row sees no other, the next ones see those before"
    blind = model.guess(ids, segments, rows, places)
    close(blind, model.guess(hidden, segments, rows, places))


@torch.no_grad()
def test_where_all_is_seen_the_content_is_the_encoders() -> None:
    model, (ids, segments) = small(), inputs(PEER, 5)
    recording, other = Recording(), Recording()
    model.predict(
        ids, segments, torch.zeros(3, 1, dtype=torch.long), torch.ones(3, 11, 11, dtype=torch.bool), recording
    )
    model(ids, segments, record=other)
    for site in other.weights:
        close(recording.batch(site), other.batch(site), (ids != 5)[:, None, :, None].expand_as(other.batch(site)))


@torch.no_grad()
@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_padding_on_any_side_changes_nothing(side: str) -> None:
    model = small()
    ids = torch.randint(6, 60, (2, 7), generator=torch.Generator().manual_seed(3))
    left, right = (0 if side == "right" else 2), (0 if side == "left" else 3)
    padded = torch.nn.functional.pad(ids, (left, right), value=5)
    hidden, alone = model(padded), model(ids)
    close(hidden[:, left : left + 7], alone)
    close(model.summary(hidden, padded), alone[:, -1])
