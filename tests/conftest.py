"""What tests share: small models of every family, and a cache of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small_runs import pair

from regard.models import build, parse_model
from regard.models.base import EncoderDecoder
from regard.models.decoder import Decoder
from regard.models.prompted import Prompted

pytest_plugins = ["explored_runs"]

VOCABULARY = 23
PAD, UNK, BOS, EOS = range(4)

_TRANSFORMER = {
    "kind": "transformer",
    "encoder_layers": 2,
    "decoder_layers": 2,
    "width": 16,
    "inner": 24,
    "heads": 2,
    "max_length": 64,
}
_GPT = {"kind": "gpt", "layers": 2, "width": 16, "inner": 24, "heads": 2, "max_length": 80}
_BART = {**_TRANSFORMER, "kind": "bart"}
_T5 = {
    "kind": "t5", "encoder_layers": 2, "decoder_layers": 2, "width": 16, "inner": 24, "heads": 2, "head_width": 5,
    "buckets": 4, "farthest": 5,
}  # fmt: skip
_RNN = {"embedding": 12, "width": 16}

VARIANTS: dict[str, dict[str, object]] = {
    "transformer": _TRANSFORMER,
    "transformer, post-norm, learned positions": {**_TRANSFORMER, "norm": "post", "positions": "learned"},
    "transformer, window": {**_TRANSFORMER, "window": 2},
    "transformer, untied": {**_TRANSFORMER, "share_embeddings": False, "tie_output": False, "activation": "gelu"},
    "transformer, binary positions": {**_TRANSFORMER, "positions": "binary", "position_join": "concatenate"},
    "transformer, index positions": {**_TRANSFORMER, "positions": "index"},
    "transformer, no positions": {**_TRANSFORMER, "positions": "none"},
    "transformer, additive": {**_TRANSFORMER, "score": "additive"},
    "transformer, cosine": {**_TRANSFORMER, "score": "cosine"},
    "gpt": _GPT,
    "gpt, post-norm": {**_GPT, "norm": "post", "tie_output": False},
    "llama": {**_GPT, "kind": "llama"},
    "llama, grouped heads": {**_GPT, "kind": "llama", "heads": 4, "key_heads": 2, "tie_output": True},
    "bart": _BART,
    "bart, scaled": {**_BART, "scale_embedding": True, "decoder_layers": 3},
    "t5": _T5,
    "t5, version 1.1": {**_T5, "activation": "gelu-tanh", "gated": True, "tie_output": False, "scale_output": False},
    "rnn": {"kind": "rnn", **_RNN},
    "rnn, lstm": {"kind": "rnn", "cell": "lstm", "layers": 2, "reverse_source": True, "repeat_summary": False, **_RNN},
    "rnn, both ways": {"kind": "rnn", "both_ways": True, **_RNN},
    "rnn-attention": {"kind": "rnn-attention", **_RNN},
    **{
        f"rnn-attention, wide memory, {query} {context}": {
            "kind": "rnn-attention", "query": query, "context": context, "memory": 24, **_RNN,
        }
        for query, context in [("previous", "input"), *(("current", how) for how in ("input", "concatenate", "add"))]
    },
    **{
        f"rnn-attention, {score}": {"kind": "rnn-attention", "score": score, **_RNN}
        for score in ("dot", "scaled-dot", "general", "concat", "cosine")
    },
    **{
        f"rnn-attention, {query} {context}{' fed' if fed else ''}": {
            "kind": "rnn-attention",
            "query": query,
            "context": context,
            "input_feeding": fed,
            **_RNN,
        }
        for query in ("previous", "current")
        for context in ("input", "concatenate", "add")
        for fed in (False, True)
    },
    **{
        f"rnn-attention, with words, {query}": {
            "kind": "rnn-attention", "query": query, "context": "input", "memory": 24, "remember_words": True, **_RNN,
        }
        for query in ("previous", "current")
    },
    "rnn-attention, luong lstm": {
        "kind": "rnn-attention", "cell": "lstm", "layers": 2, "query": "current", "context": "concatenate",
        "score": "general", "input_feeding": True, **_RNN,
    },
}  # fmt: skip


def small_model(variant: str, seed: int = 0) -> EncoderDecoder:
    torch.manual_seed(seed)
    model = build(parse_model(VARIANTS[variant]), VOCABULARY).eval()
    if isinstance(model, Decoder):
        model = Prompted(model, PAD)
    assert isinstance(model, EncoderDecoder), f"{variant}: an encoder-decoder"
    with torch.no_grad():
        for weight in model.parameters():  # none is zero, or one: what is forgotten shows
            weight.add_(torch.randn_like(weight), alpha=0.02)
    return model


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return small_model(request.param)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REGARD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in map(pair, range(300))), encoding="utf8")
    return path
