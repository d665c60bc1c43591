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
