"""Every published encoder with every head equals Hugging Face's: both directions, padded, in shards; attention too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import UserError
from regard.hub.encoders import LAYOUTS, PublishedEncoder, read_encoder, write_encoder
from regard.hub.folder import Folder, read_folder, write_folder
from regard.models import build, named, parse_model
from regard.models.base import Encoder
from regard.models.heads import Headed, HeadName, PreTraining, build_headed
from regard.nn.record import Recording
from regard.nn.weights import load_weights, weights_of

transformers = pytest.importorskip("transformers")

VOCABULARY, CLASSES = 60, 5
BERT_SHAPES: list[dict[str, object]] = [
    {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24},
    {"num_hidden_layers": 3, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40, "hidden_act": "relu",
     "layer_norm_eps": 1e-5, "tie_word_embeddings": False},
]  # fmt: skip


@dataclass(frozen=True)
class Peer:
    """A family of transformers', and its settings in a few shapes."""

    name: str
    shapes: list[dict[str, object]]
    segments: int = 2
    padding: str = "right"


PEERS = [
    Peer("Bert", [*BERT_SHAPES, {**BERT_SHAPES[0], "hidden_act": "gelu_new", "type_vocab_size": 4}]),
    Peer("Roberta", [{**shape, "type_vocab_size": 1} for shape in BERT_SHAPES], segments=1),
    Peer(
        "DistilBert",
        [
            {"n_layers": 1, "dim": 16, "n_heads": 2, "hidden_dim": 24},
            {"n_layers": 2, "dim": 24, "n_heads": 3, "hidden_dim": 40, "activation": "relu"},
        ],
    ),
    Peer(
        "BigBird",
        [
            {**BERT_SHAPES[0], "attention_type": "original_full"},
            {**BERT_SHAPES[1], "block_size": 2, "num_random_blocks": 1, "attention_type": "block_sparse"},
        ],
    ),
    Peer(
        "XLNet",
        [
            {"n_layer": 1, "d_model": 16, "n_head": 2, "d_inner": 24},
            {"n_layer": 2, "d_model": 24, "n_head": 3, "d_inner": 40, "ff_activation": "relu", "dropout": 0.2},
        ],
        segments=3,
        padding="left",  # its summary is the last vector, whatever stands there
    ),
]
CASES = [(peer, shape) for peer in PEERS for shape in peer.shapes]
IDS = [f"{peer.name}-{number}" for peer in PEERS for number in range(len(peer.shapes))]
HEADS: list[HeadName] = ["masked", "pretraining", "sequence", "token", "span", "choice"]


def architecture(peer: Peer, head: HeadName | None) -> str | None:
    """The name of the class of transformers' with this head, if the family has it."""
    for layout in LAYOUTS.values():
        for name, names in layout.heads.items():
            if names.head == head and name.startswith((f"{peer.name}For", f"{peer.name}LM")):
                return name
    return None if head else f"{peer.name}Model"


def their_model(name: str, peer: Peer, shape: dict[str, object], seed: int = 0) -> Any:
    torch.manual_seed(seed)
    classes = {} if "Question" in name else {"num_labels": CLASSES}
    length = {} if peer.name == "XLNet" else {"max_position_embeddings": 20}
    config = getattr(transformers, f"{peer.name}Config")(
        vocab_size=VOCABULARY, attn_implementation="eager", **{**length, **classes, **shape}
    )
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)  # nothing stays zero or one
    return model


def our_model(published: PublishedEncoder) -> Headed:
    assert published.head is not None
    model = build_headed(published.config, 0, published.head, len(published.labels))
    load_weights(model, published.weights, Path("published"))
    return model.eval()


def inputs(peer: Peer, pad: int, head: HeadName | None = None) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    shape = (2, 3, 9) if head == "choice" else (3, 11)
    ids, segments = torch.randint(6, VOCABULARY, shape), torch.randint(0, peer.segments, shape)
    ids[..., 1, 7:], ids[..., 0, 3:] = pad, pad
    return (ids, segments) if peer.padding == "right" else (ids.flip(-1), segments)


def their_answer(model: Any, ids: Tensor, segments: Tensor, pad: int) -> Any:
    given = {"input_ids": ids, "attention_mask": (ids != pad).long()}
    if "DistilBert" not in type(model).__name__:
        given["token_type_ids"] = segments
    return model(**given, output_attentions=True, output_hidden_states=True)


def their_logits(answer: Any, head: HeadName) -> Tensor:
    if head == "span":
        return torch.stack([answer.start_logits, answer.end_logits], dim=-1)
    return answer.prediction_logits if head == "pretraining" else answer.logits


def close(one: Tensor, other: Tensor, real: Tensor | None = None) -> None:
    if real is not None:
        one, other = one[real], other[real]
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("peer", "shape"), CASES, ids=IDS)
def test_logits_are_equal_both_ways(peer: Peer, shape: dict[str, object], head: HeadName, tmp_path: Path) -> None:
    name = architecture(peer, head)
    if name is None:
        pytest.skip(f"{peer.name} has no head for {head}")
    theirs = their_model(name, peer, shape)
    (tmp_path / "theirs").mkdir()
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="8KB")
    assert (tmp_path / "theirs" / "model.safetensors.index.json").exists(), "in shards"
    published = read_encoder(read_folder(tmp_path / "theirs"))
    assert (published.head, published.unused, published.missing) == (head, [], [])
    ours = our_model(published)
    pad = published.config.pad
    ids, segments = inputs(peer, pad, head)
    answer, logits = their_answer(theirs, ids, segments, pad), ours(ids, segments)
    real = ids != pad if head in ("masked", "pretraining", "token", "span") else None
    close(logits, their_logits(answer, head), real)
    if isinstance(ours.head, PreTraining):
        hidden = ours.encoder(ids, segments)
        close(ours.head.next_sentence(ours.encoder.summary(hidden, ids)), answer.seq_relationship_logits)

    back = tmp_path / "ours"
    back.mkdir()
    write_encoder(back, PublishedEncoder(published.config, head, weights_of(ours), labels=published.labels))
    again, report = getattr(transformers, name).from_pretrained(
        back, output_loading_info=True, attn_implementation="eager"
    )
    assert report["unexpected_keys"] == set(), report
    idle = {"transformer.mask_emb"} if head != "masked" else set()  # theirs has them, and this head has no use for them
    idle |= set() if published.config.under(head).pooler else {"bert.pooler.weight", "bert.pooler.bias"}
    assert report["missing_keys"] <= idle, report
    close(their_logits(their_answer(again.eval(), ids, segments, pad), head), their_logits(answer, head))
    if not theirs.config.tie_word_embeddings:
        idle |= {"cls.predictions.bias", "lm_head.bias"}  # the decoder has another
    for weight_name, weight in theirs.state_dict().items():
        assert weight_name in idle or torch.equal(again.state_dict()[weight_name], weight), weight_name
    if published.labels:
        assert again.config.id2label == theirs.config.id2label
    for ours_name, field in LAYOUTS[theirs.config.model_type].fields.items():
        assert getattr(again.config, str(field)) == getattr(theirs.config, str(field)), ours_name


@torch.no_grad()
@pytest.mark.parametrize(("peer", "shape"), CASES, ids=IDS)
def test_hidden_layers_summary_and_attention_are_equal(peer: Peer, shape: dict[str, object], tmp_path: Path) -> None:
    theirs = their_model(f"{peer.name}Model", peer, shape)
    theirs.save_pretrained(tmp_path)
    published = read_encoder(read_folder(tmp_path))
    assert (published.head, published.unused, published.missing, published.spare) == (None, [], [], {})
    config = published.config
    ours = build(config, 0).eval()
    assert isinstance(ours, Encoder)
    load_weights(ours, {name.removeprefix("encoder."): weight for name, weight in published.weights.items()}, tmp_path)
    ids, segments = inputs(peer, config.pad)
    real = ids != config.pad
    answer = their_answer(theirs, ids, segments, config.pad)
    recording = Recording()
    layers = list(ours.each_layer(ids, segments, recording))
    for one, other in zip(layers, answer.hidden_states, strict=True):
        close(one, other, real)
    if "pooler_output" in answer:
        close(ours.summary(layers[-1], ids), answer.pooler_output)
    for number, expected in enumerate(answer.attentions):
        found = recording.batch(f"encoder.{number}.self")
        close(found, expected, real[:, None, :, None].expand_as(expected))


def rewritten(path: Path, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Folder:
    """A folder with other settings or weights."""
    path.mkdir()
    write_folder(path, config, {name: weight.detach().clone() for name, weight in weights.items()})
    return read_folder(path)


def test_names_of_the_first_years_and_both_tasks_are_read(tmp_path: Path) -> None:
    """As the folder of bert-base-uncased is: said to be of masked words, with all weights of the pre-training."""
    theirs = their_model("BertForPreTraining", PEERS[0], BERT_SHAPES[0])
    theirs.save_pretrained(tmp_path)
    folder = read_folder(tmp_path)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in folder.weights.items()
    }
    copy = {"cls.predictions.decoder.weight": theirs.cls.predictions.decoder.weight}
    said = {**folder.config, "architectures": ["BertForMaskedLM"]}
    found = read_encoder(rewritten(tmp_path / "again", said, {**old, **copy}))
    assert (found.head, found.unused, found.missing) == ("pretraining", [], [])
    assert found.weights.keys() == weights_of(our_model(found)).keys()


def test_a_pooler_that_the_head_does_not_need_is_spare(tmp_path: Path) -> None:
    their_model("BertForTokenClassification", PEERS[0], BERT_SHAPES[0]).save_pretrained(tmp_path)
    folder = read_folder(tmp_path)
    pooler = {"bert.pooler.dense.weight": torch.ones(16, 16), "bert.pooler.dense.bias": torch.ones(16)}
    found = read_encoder(rewritten(tmp_path / "again", folder.config, {**folder.weights, **pooler}))
    assert sorted(found.spare) == ["encoder.pooler.bias", "encoder.pooler.weight"]
    assert (found.unused, found.missing) == ([], [])


def test_what_is_unused_or_missing_is_named(tmp_path: Path) -> None:
    their_model("BertForSequenceClassification", PEERS[0], BERT_SHAPES[0]).save_pretrained(tmp_path)
    folder = read_folder(tmp_path)
    weights = dict(folder.weights)
    del weights["bert.pooler.dense.bias"], weights["classifier.bias"]
    found = read_encoder(rewritten(tmp_path / "again", folder.config, {**weights, "odd.weight": torch.zeros(1)}))
    assert found.unused == ["odd.weight"]
    assert sorted(found.missing) == ["bert.pooler.dense.bias", "classifier.bias"]


def test_labels_and_the_kind_of_problem_are_kept(tmp_path: Path) -> None:
    model = their_model("BertForSequenceClassification", PEERS[0], BERT_SHAPES[0])
    model.config.id2label = dict(enumerate("abcde"))
    model.config.problem_type = "multi_label_classification"
    model.save_pretrained(tmp_path)
    found = read_encoder(read_folder(tmp_path))
    assert (list(found.labels), found.problem) == (list("abcde"), "multi_label_classification")
    (tmp_path / "out").mkdir()
    write_encoder(tmp_path / "out", found)
    written = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf8"))
    assert written["label2id"] == {label: number for number, label in enumerate("abcde")}
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert again.config.id2label == model.config.id2label
    assert again.config.problem_type == "multi_label_classification"


def test_a_setting_that_their_layout_has_no_word_for_is_refused(tmp_path: Path) -> None:
    found = PublishedEncoder(
        build_headed(_config(norm="pre"), VOCABULARY, "token", 2).encoder.config, "token", _weights(norm="pre")
    )
    with pytest.raises(UserError, match=r"model.norm = 'pre': cannot be written as bert, which has 'post'"):
        write_encoder(tmp_path, found)


def test_a_setting_that_ours_has_no_choice_for_is_refused() -> None:
    with pytest.raises(UserError, match="position_embedding_type = 'relative_key'"):
        LAYOUTS["bert"].settings({"position_embedding_type": "relative_key"})


@pytest.mark.parametrize(
    ("name", "vocabulary", "millions"),
    [("bert-base", 30_522, 110), ("bert-large", 30_522, 335), ("roberta-base", 50_265, 125),
     ("roberta-large", 50_265, 355), ("distilbert-base", 30_522, 66), ("xlnet-base", 32_000, 117)],
)  # fmt: skip
def test_sizes_are_those_of_the_papers(name: str, vocabulary: int, millions: float) -> None:
    with torch.device("meta"):
        model = build(parse_model(named(name)), vocabulary)
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.02)


def _config(**settings: object) -> Any:
    return parse_model({"kind": "bert", "layers": 1, "width": 8, "inner": 8, "heads": 1, **settings})


def _weights(**settings: object) -> dict[str, Tensor]:
    return weights_of(build_headed(_config(**settings), VOCABULARY, "token", 2))
