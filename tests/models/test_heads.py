"""What heads promise: shapes, no weight without use, tied words; a student begins as its teacher."""

import pytest
import torch
from conftest import VOCABULARY
from test_encoders import ENCODERS, close, ids

from regard.errors import UserError
from regard.inference import pack
from regard.inference.kernels import pool
from regard.inference.linear import PackedLinear, SharedLinear
from regard.models import parse_model
from regard.models.base import EncoderConfig
from regard.models.distilbert import student_weights
from regard.models.heads import Headed, HeadName, MaskedWords, PreTraining, build_headed
from regard.models.xlnet import XLNet, sees_in_order
from regard.nn.weights import weights_of

SHAPES: dict[HeadName, tuple[int, ...]] = {
    "masked": (2, 6, VOCABULARY),
    "pretraining": (2, 6, VOCABULARY),
    "sequence": (2, 3),
    "token": (2, 6, 3),
    "span": (2, 6, 2),
    "choice": (2, 4),
}


def headed(variant: str, head: HeadName, seed: int = 0) -> Headed:
    torch.manual_seed(seed)
    return build_headed(parse_model(ENCODERS[variant]), VOCABULARY, head, 3)


@pytest.mark.parametrize("head", SHAPES)
@pytest.mark.parametrize("variant", ENCODERS)
def test_shapes_and_no_weight_without_use(variant: str, head: HeadName) -> None:
    model = headed(variant, head).train()
    read = ids(2, 4, 6) if head == "choice" else ids(2, 6)
    logits = model(read, torch.zeros_like(read))
    assert logits.shape == SHAPES[head]
    total = logits.logsumexp(dim=-1).sum()
    if isinstance(model.head, PreTraining):
        total = total + model.head.next_sentence(model.encoder.summary(model.encoder(read), read)).logsumexp(-1).sum()
    if isinstance(model.encoder, XLNet) and isinstance(model.head, MaskedWords):
        sees = sees_in_order(torch.ones_like(read, dtype=torch.bool), torch.arange(6).expand_as(read))
        total = total + model.head(model.encoder.predict(read, None, torch.tensor([[1], [3]]), sees)).sum()
    total.backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
    assert {name.split(".")[0] for name, _ in model.named_parameters()} == {"encoder", "head"}


@torch.no_grad()
@pytest.mark.parametrize("variant", ENCODERS)
def test_the_mean_is_read_of_all_that_is_no_padding(variant: str) -> None:
    config = parse_model({**ENCODERS[variant], "sequence_summary": "mean"})
    model, read = build_headed(config, VOCABULARY, "sequence", 3).eval(), ids(2, 6)
    assert not [name for name, _ in model.named_parameters() if "pooler" in name or "dense" in name], "without use"
    close(model(read), model.head.get_submodule("output")(model.encoder(read).mean(dim=1)))
    padded = torch.cat([read, torch.full((2, 3), model.encoder.config.pad)], dim=1)
    close(model(padded), model(read))


@torch.no_grad()
def test_choices_are_read_one_by_one() -> None:
    model, read = headed("bert", "choice").eval(), ids(2, 4, 6)
    for choice in range(4):
        close(model(read)[:, choice], model(read[:, choice : choice + 1])[:, 0])


@torch.no_grad()
def test_chosen_words_equal_those_of_all() -> None:
    model, read = headed("bert", "masked").eval(), ids(2, 6)
    assert isinstance(model.head, MaskedWords)
    chosen = torch.zeros(2, 6, dtype=torch.bool)
    chosen[0, 2] = chosen[1, 5] = True
    close(model.head(model.encoder(read)[chosen]), model(read)[chosen])
    assert model.head.output.weight is model.encoder.words.weight
    assert "head.output.weight" not in weights_of(model)


def test_only_an_encoder_can_have_a_head() -> None:
    with pytest.raises(UserError, match=r"model.kind = 'rnn': is no encoder"):
        build_headed(parse_model({"kind": "rnn"}), VOCABULARY, "token", 2)


@torch.no_grad()
def test_a_student_begins_as_every_second_layer_of_its_teacher() -> None:
    config = parse_model({**ENCODERS["bert"], "layers": 4})
    teacher = build_headed(config, VOCABULARY, "pretraining")
    student = headed("distilbert", "masked")
    first = student_weights(weights_of(teacher))
    assert first.keys() == weights_of(student).keys()
    assert isinstance(student.encoder.config, EncoderConfig)
    for ours, theirs in ((0, 0), (1, 2)):
        name = "encoder.encoder.{}.attention.weight"
        assert torch.equal(first[name.format(ours)], weights_of(teacher)[name.format(theirs)])
    bare = student_weights(weights_of(teacher.encoder))
    assert bare.keys() == weights_of(student.encoder).keys()


@torch.no_grad()
@pytest.mark.parametrize("head", SHAPES)
@pytest.mark.parametrize("variant", ENCODERS)
def test_packed_is_the_same(variant: str, head: HeadName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inference.LARGE", 0)
    plain, read = headed(variant, head).eval(), ids(2, 4, 6) if head == "choice" else ids(2, 6)
    packed = pack(plain)
    close(packed(read, torch.zeros_like(read)), plain(read, torch.zeros_like(read)))
    kinds = {type(module) for module in packed.modules()}
    assert (SharedLinear if pool() is None else PackedLinear) in kinds
