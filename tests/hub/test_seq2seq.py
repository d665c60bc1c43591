"""BART, T5 and Marian equal Hugging Face's on the same weights: logits, attention, and outputs token for token."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")
from seq2seq import PEERS, VOCABULARY, Peer

from regard.config import SearchConfig
from regard.decoding import Limits, search
from regard.errors import UserError
from regard.hub.bart import BART
from regard.hub.folder import read_folder, write_folder
from regard.hub.t5 import T5, T5_GATED
from regard.inference import pack
from regard.models import build, named, parse_model
from regard.nn.record import Recording
from regard.nn.weights import weights_of


@pytest.fixture(params=PEERS)
def kind(request: pytest.FixtureRequest) -> Peer:
    return PEERS[request.param]


def sentences(kind: Peer, side: str = "right", seed: int = 1) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    source, target = torch.randint(3, VOCABULARY - 1, (3, 13)), torch.randint(3, VOCABULARY - 1, (3, 9))
    target[:, 0] = kind.start
    for row, kept in ((1, 7), (2, 3)):
        if side == "right":
            source[row, kept:] = kind.pad
        else:
            source[row, :-kept] = kind.pad
    return source, target


def theirs(peer: Any, kind: Peer, source: Tensor, target: Tensor) -> Any:
    mask = (source != kind.pad).long()
    return peer(input_ids=source, attention_mask=mask, decoder_input_ids=target, output_attentions=True)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("side", ["right", "left"])
def test_logits_and_attention_are_equal(kind: Peer, side: str, tmp_path: Path) -> None:
    peer = kind.random()
    peer.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1, "the test should read several files"
    ours = kind.ours(tmp_path)
    source, target = sentences(kind, side)
    expected, recording = theirs(peer, kind, source, target), Recording()
    close(ours.output(ours(source, target, record=recording)), expected.logits)
    seen = {
        "encoder.{}.self": expected.encoder_attentions,
        "decoder.{}.self": expected.decoder_attentions,
        "decoder.{}.cross": expected.cross_attentions,
    }
    assert len(recording.weights) == sum(map(len, seen.values()))
    for site, layers in seen.items():
        for number, weights in enumerate(layers):
            close(recording.batch(site.format(number)), weights)


@torch.no_grad()
def test_what_we_write_is_what_they_read(kind: Peer, tmp_path: Path) -> None:
    peer = kind.random()
    peer.save_pretrained(tmp_path)
    ours = kind.ours(tmp_path)
    settings = ours.config.model_dump()  # type: ignore[union-attr, operator]
    (tmp_path / "back").mkdir()
    back = kind.layout.to_theirs(weights_of(ours), settings)
    write_folder(tmp_path / "back", kind.layout.config(settings), back)
    assert back.keys() == read_folder(tmp_path).weights.keys()
    again = type(peer).from_pretrained(tmp_path / "back", attn_implementation="eager")
    for name, weight in peer.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name
    source, target = sentences(kind)
    assert torch.equal(theirs(again, kind, source, target).logits, theirs(peer, kind, source, target).logits)


def test_the_same_tokens(kind: Peer, tmp_path: Path) -> None:
    """Greedily and by beams, plain and packed. No pair of tokens may occur twice: random models like to stammer."""
    lengths = set()
    for seed, (beam, penalty) in enumerate([(1, 1.0), (4, 1.0), (3, 0.0), (5, 2.0), (4, 0.6)]):
        peer = kind.random(seed, spread=0.3)
        with torch.no_grad():
            peer.get_output_embeddings().weight[kind.end] *= 3  # outputs end at different lengths
        peer.save_pretrained(tmp_path)
        ours = kind.ours(tmp_path)
        source = torch.cat([sentences(kind, seed=1)[0], sentences(kind, seed=2)[0]])
        found = peer.generate(
            source, attention_mask=(source != kind.pad).long(), num_beams=beam, do_sample=False, max_new_tokens=15,
            length_penalty=penalty, early_stopping=False, bad_words_ids=[[kind.pad]], no_repeat_ngram_size=2,
        )[:, 1:].tolist()  # fmt: skip
        expected = [[token for token in row if token not in (kind.pad, kind.end)] for row in found]
        lengths |= {len(row) for row in expected}
        method: Literal["beam", "greedy"] = "beam" if beam > 1 else "greedy"
        options = SearchConfig(method=method, beam=beam, length_penalty=penalty, no_repeat_ngram=2)
        limits = Limits(kind.start, kind.end, [15] * len(source), never=(kind.pad,))
        for model in (ours, pack(ours)):
            assert [best[0].ids for best in search(model, source, options, limits)] == expected
    assert len(lengths) > 1, "the test should see outputs of several lengths"


def test_a_bare_bart_has_no_prefix_and_no_bias(tmp_path: Path) -> None:
    peer = PEERS["bart"].random()
    peer.final_logits_bias.zero_()
    peer.model.save_pretrained(tmp_path)
    ours = PEERS["bart"].ours(tmp_path)
    source, target = sentences(PEERS["bart"])
    with torch.no_grad():
        close(ours.output(ours(source, target)), theirs(peer, PEERS["bart"], source, target).logits)


def test_settings_that_ours_has_no_choice_for_are_refused() -> None:
    with pytest.raises(UserError, match="encoder_ffn_dim = 8, decoder_ffn_dim = 9: only equal values"):
        BART.settings({"encoder_ffn_dim": 8, "decoder_ffn_dim": 9})
    with pytest.raises(UserError, match="normalize_before = True: only False is supported"):
        BART.settings({"normalize_before": True})
    with pytest.raises(UserError, match="feed_forward_proj = 'gated-silu': must be one of 'relu', 'gated-gelu'"):
        T5.settings({"feed_forward_proj": "gated-silu"})
    config = parse_model({"kind": "t5", "gated": True})
    with pytest.raises(UserError, match=r"model\.gated = True: t5 has no such feed_forward_proj"):
        T5_GATED.config(config.model_dump())


@pytest.mark.parametrize(
    ("name", "vocabulary", "millions"),
    [
        ("bart-base", 50265, 139.4), ("bart-large", 50265, 406.3), ("t5-small", 32128, 60.5), ("t5-base", 32128, 222.9),
        ("t5-large", 32128, 737.7), ("t5-3b", 32128, 2851.6), ("t5-11b", 32128, 11307.3),
        ("t5-1.1-small", 32128, 77.0), ("t5-1.1-base", 32128, 247.6), ("t5-1.1-large", 32128, 783.2),
    ],
)  # fmt: skip
def test_sizes_are_the_published_ones(name: str, vocabulary: int, millions: float) -> None:
    with torch.device("meta"):
        model = build(parse_model(named(name)), vocabulary)
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.003)
