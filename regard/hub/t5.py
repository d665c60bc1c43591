"""The names of Hugging Face's `T5ForConditionalGeneration`, versions 1.0 and 1.1."""

from __future__ import annotations

from regard.hub.layout import Layout

_DISTANCES = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def _layer(ours: str, theirs: str, attentions: dict[str, str], gated: bool) -> dict[str, str | tuple[str, ...]]:
    """A sublayer of theirs is numbered, and has its norm beside it."""
    names: dict[str, str | tuple[str, ...]] = {}
    for number, (mine, other) in enumerate(attentions.items()):
        names |= {
            f"{ours}.{mine}.weight": tuple(f"{theirs}.layer.{number}.{other}.{letter}.weight" for letter in "qkv"),
            f"{ours}.{mine}.output.weight": f"{theirs}.layer.{number}.{other}.o.weight",
            f"{ours}.around_{mine}.norm.weight": f"{theirs}.layer.{number}.layer_norm.weight",
        }
    last = f"{theirs}.layer.{len(attentions)}"
    inner = ("wi_0", "wi_1") if gated else ("wi",)
    return names | {
        f"{ours}.feed_forward.inner.weight": tuple(f"{last}.DenseReluDense.{name}.weight" for name in inner),
        f"{ours}.feed_forward.output.weight": f"{last}.DenseReluDense.wo.weight",
        f"{ours}.around_feed_forward.norm.weight": f"{last}.layer_norm.weight",
    }


def t5_layout(gated: bool) -> Layout:
    """Version 1.1 has a gated feed-forward, of two matrices where version 1.0 has one."""
    return Layout(
        model_type="t5",
        fields={
            "vocabulary": "vocab_size",
            "encoder_layers": "num_layers",
            "decoder_layers": "num_decoder_layers",
            "width": "d_model",
            "inner": "d_ff",
            "heads": "num_heads",
            "head_width": "d_kv",
            "dropout": "dropout_rate",
            "attention_dropout": "dropout_rate",
            "activation": "feed_forward_proj",
            "gated": "feed_forward_proj",
            "norm_epsilon": "layer_norm_epsilon",
            "buckets": "relative_attention_num_buckets",
            "farthest": "relative_attention_max_distance",
            "tie_output": "tie_word_embeddings",
            "scale_output": "scale_decoder_outputs",
            "pad": "pad_token_id",
            "decoder_start": "decoder_start_token_id",
        },
        values={
            "activation": {"relu": "relu", "gated-gelu": "gelu-tanh"},
            "gated": {"relu": False, "gated-gelu": True},
        },
        fallbacks={
            "num_decoder_layers": "num_layers",
            "scale_decoder_outputs": "tie_word_embeddings",
            "decoder_start_token_id": "pad_token_id",
        },
        weights={
            "words.weight": "shared.weight",
            "output.weight": "lm_head.weight",
            "source_distances.table": f"encoder.{_DISTANCES}",
            "target_distances.table": f"decoder.{_DISTANCES}",
            "encoder_norm.norm.weight": "encoder.final_layer_norm.weight",
            "decoder_norm.norm.weight": "decoder.final_layer_norm.weight",
            **_layer("encoder.{e}", "encoder.block.{e}", {"attention": "SelfAttention"}, gated),
            **_layer(
                "decoder.{d}", "decoder.block.{d}", {"attention": "SelfAttention", "cross": "EncDecAttention"}, gated
            ),
        },
        means={"kind": "t5", "norm": "pre", "score": "dot"},
        fixed={"is_encoder_decoder": True},
        layers={"{e}": "encoder_layers", "{d}": "decoder_layers"},
        unless={"output.weight": "tie_output"},
        copies={"output.weight": "words.weight"},
        stands_in={"shared.weight": ("decoder.embed_tokens.weight", "encoder.embed_tokens.weight")},
        ignored=(
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",  # written once by mistake
        ),
    )


T5, T5_GATED = t5_layout(gated=False), t5_layout(gated=True)
