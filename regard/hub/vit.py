"""The names of Hugging Face's `ViTModel` and `DeiTModel`, and of the models that have one inside."""

from __future__ import annotations

from regard.hub.layout import ACTIVATIONS, Layout, joined, named_alike

_LAYER = "encoder.layer.{n}"
_FIELDS = {
    "image": "image_size",
    "patch": "patch_size",
    "channels": "num_channels",
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "inner": "intermediate_size",
    "heads": "num_attention_heads",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "activation": "hidden_act",
    "norm_epsilon": "layer_norm_eps",
}
_WEIGHTS = {
    "class_token": "embeddings.cls_token",
    "positions": "embeddings.position_embeddings",
    **joined(
        "encoder.{n}.attention", tuple(f"{_LAYER}.attention.attention.{part}" for part in ("query", "key", "value"))
    ),
    **named_alike(
        {
            "patches": "embeddings.patch_embeddings.projection",
            "encoder.{n}.attention.output": f"{_LAYER}.attention.output.dense",
            "encoder.{n}.around_attention.norm": f"{_LAYER}.layernorm_before",
            "encoder.{n}.feed_forward.inner": f"{_LAYER}.intermediate.dense",
            "encoder.{n}.feed_forward.output": f"{_LAYER}.output.dense",
            "encoder.{n}.around_feed_forward.norm": f"{_LAYER}.layernorm_after",
            "norm": "layernorm",
        }
    ),
}
_MEANS = {"summary": "class", "positions": "learned", "norm": "pre", "score": "scaled-dot"}
_POOLER = ("pooler.dense.weight", "pooler.dense.bias")  # trained for nothing that is published

VIT = Layout(
    model_type="vit",
    prefix="vit.",
    fields=_FIELDS,
    weights=_WEIGHTS,
    values={"activation": ACTIVATIONS},
    means={**_MEANS, "distillation": False},
    fixed={"qkv_bias": True},
    ignored=_POOLER,
)
DEIT = Layout(
    model_type="deit",
    prefix="deit.",
    fields=_FIELDS,
    weights={**_WEIGHTS, "distillation_token": "embeddings.distillation_token"},
    values={"activation": ACTIVATIONS},
    means={**_MEANS, "distillation": True},
    fixed={"qkv_bias": True},
    ignored=_POOLER,
)
