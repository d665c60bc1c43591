"""The registry of models: one line each.

A name is a family and a size (`transformer-base`), or a family alone, which stands for its size for a laptop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from regard.config import ModelConfig, validated
from regard.errors import UserError, nearest
from regard.models import (
    bart,
    bert,
    bigbird,
    distilbert,
    gpt,
    llama,
    rnn,
    rnn_attention,
    roberta,
    t5,
    transformer,
    vit,
    xlnet,
)


@dataclass(frozen=True)
class Family:
    papers: str
    config: type[ModelConfig]
    model: type[nn.Module]
    sizes: Mapping[str, Mapping[str, object]]
    default: str = "tiny"
    usual: Mapping[str, object] = field(default_factory=dict)
    """Settings as its paper has them, for tasks that pre-train or fine-tune as papers do."""


_BYTES, _PIECES = {"tokenizer.kind": "byte-bpe"}, {"tokenizer.kind": "unigram"}
_SPANS = {"options.noise": ["spans"], "options.share": 0.15}
MODELS: dict[str, Family] = {
    "rnn": Family("Cho 2014, Sutskever 2014", rnn.RNNConfig, rnn.RNN, rnn.SIZES),
    "rnn-attention": Family(
        "Bahdanau 2015, Luong 2015", rnn_attention.RNNAttentionConfig, rnn_attention.RNNAttention, rnn_attention.SIZES
    ),
    "transformer": Family("Vaswani 2017", transformer.TransformerConfig, transformer.Transformer, transformer.SIZES),
    "bert": Family("Devlin 2019", bert.BertConfig, bert.Bert, bert.SIZES),
    "roberta": Family("Liu 2019", roberta.RobertaConfig, roberta.Roberta, roberta.SIZES, usual=_BYTES),
    "distilbert": Family("Sanh 2019", distilbert.DistilBertConfig, distilbert.DistilBert, distilbert.SIZES),
    "bigbird": Family("Zaheer 2020", bigbird.BigBirdConfig, bigbird.BigBird, bigbird.SIZES),
    "xlnet": Family("Yang 2019", xlnet.XLNetConfig, xlnet.XLNet, xlnet.SIZES, usual=_PIECES),
    "gpt": Family("Radford 2018 and 2019, Brown 2020", gpt.GPTConfig, gpt.GPT, gpt.SIZES, default="nano"),
    "llama": Family("Touvron 2023", llama.LlamaConfig, llama.Llama, llama.SIZES, default="nano"),
    "bart": Family("Lewis 2020", bart.BartConfig, bart.Bart, bart.SIZES),
    "t5": Family("Raffel 2020", t5.T5Config, t5.T5, t5.SIZES, usual={**_PIECES, **_SPANS}),
    "vit": Family("Dosovitskiy 2021, Touvron 2021", vit.VitConfig, vit.Vit, vit.SIZES, default="micro"),
}


def model_names() -> list[str]:
    return [name for kind, family in MODELS.items() for name in (kind, *(f"{kind}-{size}" for size in family.sizes))]


def named(name: str) -> dict[str, object]:
    """The settings that a model's name stands for: `transformer-tiny` -> kind, size and the size's values."""
    for kind, family in MODELS.items():
        size = family.default if name == kind else name.removeprefix(f"{kind}-")
        if size in family.sizes and size != name:
            return {"kind": kind, "size": size, **family.sizes[size]}
    raise UserError(f"model = {name!r}: unknown{nearest(name, model_names())}")


def parse_model(values: Mapping[str, Any]) -> ModelConfig:
    """The `model` section of a config as that model's own config."""
    kind = values.get("kind")
    if kind not in MODELS:
        raise UserError(f"model.kind = {kind!r}: unknown{nearest(str(kind), MODELS)}")
    return validated(MODELS[kind].config, values, "model.")


def build(config: ModelConfig, vocabulary: int) -> nn.Module:
    """The model, with fresh weights, for a tokenizer of `vocabulary` entries."""
    return MODELS[config.kind].model(config, config.vocabulary or vocabulary)
