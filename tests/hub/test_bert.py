"""BERT equals Hugging Face's on the same weights, in both directions, with padding; its attention too."""

from __future__ import annotations

import pytest
import torch

from regard.errors import UserError
from regard.hub.bert import BERT
from regard.models.bert import Bert, BertConfig
from regard.nn.record import Recording

transformers = pytest.importorskip("transformers")

SHAPES = [
    {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24},
    {
        "num_hidden_layers": 3,
        "hidden_size": 24,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "hidden_act": "relu",
    },
    {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 64, "type_vocab_size": 4},
]


def peer_of(shape: dict[str, object], seed: int = 0) -> transformers.BertModel:
    torch.manual_seed(seed)
    config = transformers.BertConfig(vocab_size=60, max_position_embeddings=20, attn_implementation="eager", **shape)
    peer = transformers.BertModel(config).eval()
    with torch.no_grad():
        for weight in peer.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)  # nothing stays zero or one
    return peer


def ours_of(peer: transformers.BertModel) -> Bert:
    settings = BERT.settings(peer.config.to_dict())
    config = BertConfig(**settings)
    model = Bert(config, config.vocabulary or 0).eval()
    weights, unused, missing = BERT.to_ours(peer.state_dict(), config.model_dump())
    assert (unused, missing) == ([], [])
    model.load_state_dict(weights)
    return model


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    ids, segments = torch.randint(1, 60, (3, 11)), torch.randint(0, 2, (3, 11))
    ids[1, 7:], ids[2, 3:] = 0, 0
    return ids, segments


@torch.no_grad()
@pytest.mark.parametrize("shape", SHAPES)
def test_hidden_summary_and_attention_are_equal(shape: dict[str, object]) -> None:
    peer = peer_of(shape)
    ours = ours_of(peer)
    ids, segments = inputs()
    real = ids != 0
    theirs = peer(
        input_ids=ids, token_type_ids=segments, attention_mask=real.long(), output_hidden_states=True,
        output_attentions=True,
    )  # fmt: skip
    recording = Recording()
    layers = list(ours.each_layer(ids, segments, recording))
    for one, other in zip(layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(one[real], other[real], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours.summary(layers[-1], ids), theirs.pooler_output, atol=1e-5, rtol=1e-5)
    for number, expected in enumerate(theirs.attentions):
        found = recording.batch(f"encoder.{number}.self")
        rows = real[:, None, :, None].expand_as(expected)
        torch.testing.assert_close(found[rows], expected[rows], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_there_and_back_is_the_same(shape: dict[str, object]) -> None:
    peer = peer_of(shape)
    ours = ours_of(peer)
    back = BERT.to_theirs(dict(ours.state_dict()), ours.config.model_dump())
    expected = {f"bert.{name}": weight for name, weight in peer.state_dict().items()}
    assert back.keys() == expected.keys()
    assert all(torch.equal(back[name], weight) for name, weight in expected.items())
    config = transformers.BertConfig.from_dict(BERT.config(ours.config.model_dump()))
    for name in map(str, BERT.fields.values()):
        assert getattr(config, name) == getattr(peer.config, name), name


def test_what_is_unused_or_missing_is_named() -> None:
    theirs = dict(peer_of(SHAPES[0]).state_dict())
    gone = theirs.pop("pooler.dense.bias")
    _, unused, missing = BERT.to_ours({**theirs, "cls.seq_relationship.bias": gone}, {"layers": 1})
    assert (unused, missing) == (["cls.seq_relationship.bias"], ["pooler.dense.bias"])


def test_a_setting_that_ours_has_no_choice_for_is_refused() -> None:
    with pytest.raises(UserError, match="position_embedding_type = 'relative_key'"):
        BERT.settings({"position_embedding_type": "relative_key"})


def test_sizes_are_those_of_the_paper() -> None:
    from regard.models.bert import SIZES

    for size, millions in (("base", 110), ("large", 335)):
        with torch.device("meta"):
            model = Bert(BertConfig(**SIZES[size]), 30_522)
        assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)
