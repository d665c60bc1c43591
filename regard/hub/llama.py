"""The names of Hugging Face's `LlamaForCausalLM`."""

from regard.hub.layout import ACTIVATIONS, Layout

_LAYER = "layers.{n}"

LLAMA = Layout(
    model_type="llama",
    prefix="model.",
    fields={
        "vocabulary": "vocab_size",
        "layers": "num_hidden_layers",
        "width": "hidden_size",
        "inner": "intermediate_size",
        "heads": "num_attention_heads",
        "key_heads": "num_key_value_heads",
        "head_width": "head_dim",
        "attention_dropout": "attention_dropout",
        "activation": "hidden_act",
        "norm_epsilon": "rms_norm_eps",
        "rotary_base": "rope_parameters.rope_theta",
        "rotary": "rope_parameters.rope_type",
        "rotary_factor": "rope_parameters.factor",
        "rotary_low": "rope_parameters.low_freq_factor",
        "rotary_high": "rope_parameters.high_freq_factor",
        "rotary_first": "rope_parameters.original_max_position_embeddings",
        "tie_output": "tie_word_embeddings",
        "max_length": "max_position_embeddings",
    },
    values={"activation": ACTIVATIONS, "rotary": {"default": "default", "llama3": "llama3"}},
    fallbacks={
        "rope_parameters.rope_theta": "rope_theta",
        **{
            f"rope_parameters.{name}": f"rope_scaling.{name}"
            for name in (
                "rope_type",
                "factor",
                "low_freq_factor",
                "high_freq_factor",
                "original_max_position_embeddings",
            )
        },
    },
    weights={
        "words.weight": "embed_tokens.weight",
        "decoder.{n}.attention.query.weight": f"{_LAYER}.self_attn.q_proj.weight",
        "decoder.{n}.attention.memory.weight": (
            f"{_LAYER}.self_attn.k_proj.weight",
            f"{_LAYER}.self_attn.v_proj.weight",
        ),
        "decoder.{n}.attention.output.weight": f"{_LAYER}.self_attn.o_proj.weight",
        "decoder.{n}.feed_forward.inner.weight": (f"{_LAYER}.mlp.gate_proj.weight", f"{_LAYER}.mlp.up_proj.weight"),
        "decoder.{n}.feed_forward.output.weight": f"{_LAYER}.mlp.down_proj.weight",
        "decoder.{n}.around_attention.norm.weight": f"{_LAYER}.input_layernorm.weight",
        "decoder.{n}.around_feed_forward.norm.weight": f"{_LAYER}.post_attention_layernorm.weight",
        "norm.weight": "norm.weight",
        "output.weight": "lm_head.weight",
    },
    outside=("lm_head.weight",),
    unless={"output.weight": "tie_output"},
    means={"kind": "llama"},
    fixed={
        "rope_scaling.type": None,  # of older files: another way to stretch
        "attention_bias": False,
        "mlp_bias": False,
    },
    ignored=("rotary_emb.inv_freq",),
)
