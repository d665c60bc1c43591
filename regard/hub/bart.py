"""The names of Hugging Face's `BartModel` and `BartForConditionalGeneration`."""

from __future__ import annotations

from regard.hub.layout import ACTIVATIONS, Layout, joined, named_alike

FIELDS: dict[str, str | tuple[str, ...]] = {
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "width": "d_model",
    "inner": ("encoder_ffn_dim", "decoder_ffn_dim"),
    "heads": ("encoder_attention_heads", "decoder_attention_heads"),
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "inner_dropout": "activation_dropout",
    "activation": "activation_function",
    "max_length": "max_position_embeddings",
    "pad": "pad_token_id",
    "decoder_start": "decoder_start_token_id",
}
LAYERS = {"{e}": "encoder_layers", "{d}": "decoder_layers"}
FIXED = {"normalize_before": False, "add_final_layer_norm": False, "is_encoder_decoder": True}
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")


def _layer(ours: str, theirs: str, attentions: dict[str, str]) -> dict[str, str | tuple[str, ...]]:
    names: dict[str, str | tuple[str, ...]] = {}
    for mine, other in attentions.items():
        names |= joined(f"{ours}.{mine}", tuple(f"{theirs}.{other}.{letter}_proj" for letter in "qkv"))
        names |= named_alike(
            {
                f"{ours}.{mine}.output": f"{theirs}.{other}.out_proj",
                f"{ours}.around_{mine}.norm": f"{theirs}.{other}_layer_norm",
            }
        )
    last = {"feed_forward.inner": "fc1", "feed_forward.output": "fc2", "around_feed_forward.norm": "final_layer_norm"}
    return names | named_alike({f"{ours}.{mine}": f"{theirs}.{other}" for mine, other in last.items()})


STACKS = {
    **_layer("encoder.{e}", "encoder.layers.{e}", {"attention": "self_attn"}),
    **_layer("decoder.{d}", "decoder.layers.{d}", {"attention": "self_attn", "cross": "encoder_attn"}),
}
"""The layers of both stacks: Marian calls them the same."""

BART = Layout(
    model_type="bart",
    prefix="model.",
    fields={**FIELDS, "vocabulary": "vocab_size", "scale_embedding": "scale_embedding"},
    values={"activation": ACTIVATIONS},
    weights={
        "words.weight": "shared.weight",
        "source_positions.table": "encoder.embed_positions.weight",
        "target_positions.table": "decoder.embed_positions.weight",
        "output.bias": "final_logits_bias",
        **named_alike({"source_norm": "encoder.layernorm_embedding", "target_norm": "decoder.layernorm_embedding"}),
        **STACKS,
    },
    means={"kind": "bart", "norm": "post", "score": "scaled-dot", "norm_epsilon": 1e-5},
    fixed={**FIXED, "normalize_embedding": True, "tie_word_embeddings": True},
    layers=LAYERS,
    outside=("final_logits_bias",),
    one_row=("final_logits_bias",),
    zeros={"output.bias": "words.weight"},
    stands_in={"shared.weight": COPIES},
    ignored=COPIES,
)
