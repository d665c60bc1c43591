"""Sizes agree with the papers, names with settings."""

import pytest
import torch

from regard.errors import UserError
from regard.models import build, model_names, named, parse_model


def parameters(name: str, vocabulary: int) -> int:
    with torch.device("meta"):
        model = build(parse_model(named(name)), vocabulary)
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(("name", "millions"), [("transformer-base", 65), ("transformer-big", 213)])
def test_transformer_sizes_are_the_papers(name: str, millions: float) -> None:
    """Vaswani 2017, table 3, with the shared vocabulary of about 37,000 (section 5.1)."""
    assert parameters(name, 37_000) / 1e6 == pytest.approx(millions, rel=0.035)


@pytest.mark.parametrize("name", model_names())
def test_every_name_builds(name: str) -> None:
    assert parameters(name, 100) > 0


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UserError, match=r"model = 'rnn-atention': unknown; did you mean 'rnn-attention'\?"):
        named("rnn-atention")
    with pytest.raises(UserError, match=r"model.kind = 'lstm': unknown"):
        parse_model({"kind": "lstm"})


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("gpt-124m", 124.4), ("gpt-355m", 354.8), ("gpt-774m", 774.0), ("gpt-1.5b", 1557.6),
        ("gpt-3-125m", 125), ("gpt-3-350m", 350), ("gpt-3-760m", 760), ("gpt-3-1.3b", 1320), ("gpt-3-2.7b", 2650),
        ("gpt-3-6.7b", 6660), ("gpt-3-13b", 12_850), ("gpt-3-175b", 174_600),
    ],
)  # fmt: skip
def test_gpt_sizes_are_the_papers(name: str, millions: float) -> None:
    """GPT-2's published weights, and Brown 2020, table 2.1; both have 50,257 tokens."""
    assert parameters(name, 50_257) / 1e6 == pytest.approx(millions, rel=0.02 if "gpt-3" in name else 0.001)


@pytest.mark.parametrize(("name", "millions"), [("bert-base", 110), ("bert-large", 340)])
def test_bert_sizes_are_the_papers(name: str, millions: float) -> None:
    """Devlin 2019, section 3, with the published vocabulary."""
    assert parameters(name, 30_522) / 1e6 == pytest.approx(millions, rel=0.02)


def test_gpt_1_and_the_small_llamas_are_the_published() -> None:
    assert parameters("gpt-1", 40_478) / 1e6 == pytest.approx(116.5, rel=0.001)
    assert parameters("llama-15m", 32_000) / 1e6 == pytest.approx(15.2, rel=0.003)
    assert parameters("llama-135m", 49_152) / 1e6 == pytest.approx(134.5, rel=0.001)


def test_the_memory_of_an_rnn_may_be_wider_than_its_state_unless_the_score_compares_them() -> None:
    with pytest.raises(UserError, match=r"memory = 24: dot compares it with the state, so it must be as wide: 16"):
        parse_model({"kind": "rnn-attention", "width": 16, "memory": 24, "score": "dot"})
    words = {"embedding": 6, "memory": 10, "remember_words": True}
    with pytest.raises(UserError, match=r"memory = 10 \+ 6 of the words: dot compares"):
        parse_model({"kind": "rnn-attention", "width": 20, **words, "score": "dot"})
    with pytest.raises(UserError, match="memory = 25: must be even"):
        parse_model({"kind": "rnn-attention", "width": 16, "memory": 25})
    with pytest.raises(UserError, match="width = 15: must be even"):
        parse_model({"kind": "rnn-attention", "width": 15})
