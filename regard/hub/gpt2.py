"""The names of Hugging Face's `GPT2LMHeadModel` and `OpenAIGPTLMHeadModel`.

Both keep the matrices of their linear maps turned over (`Conv1D`).
"""

from typing import Any

from regard.hub.layout import ACTIVATIONS, Layout, Names, named_alike

_BLOCK = {
    "decoder.{n}.attention": "h.{n}.attn.c_attn",
    "decoder.{n}.attention.output": "h.{n}.attn.c_proj",
    "decoder.{n}.feed_forward.inner": "h.{n}.mlp.c_fc",
    "decoder.{n}.feed_forward.output": "h.{n}.mlp.c_proj",
    "decoder.{n}.around_attention.norm": "h.{n}.ln_1",
    "decoder.{n}.around_feed_forward.norm": "h.{n}.ln_2",
}
_FIELDS: Names = {
    "vocabulary": "vocab_size",
    "layers": "n_layer",
    "width": "n_embd",
    "heads": "n_head",
    "dropout": ("resid_pdrop", "embd_pdrop"),
    "attention_dropout": "attn_pdrop",
    "norm_epsilon": "layer_norm_epsilon",
    "tie_output": "tie_word_embeddings",
    "max_length": "n_positions",
}

_COMMON: dict[str, Any] = {
    "prefix": "transformer.",
    "outside": ("lm_head.weight",),
    "unless": {"output.weight": "tie_output"},
    "transposed": ("attention.weight", "attention.output.weight", "inner.weight", "feed_forward.output.weight"),
    "ignored": (".attn.bias", ".attn.masked_bias"),  # the causal mask
}

GPT2 = Layout(
    model_type="gpt2",
    fields={**_FIELDS, "inner": "n_inner", "activation": "activation_function"},
    values={"activation": ACTIVATIONS},
    weights={
        "words.weight": "wte.weight",
        "places.weight": "wpe.weight",
        **named_alike({**_BLOCK, "norm": "ln_f"}),
        "output.weight": "lm_head.weight",
    },
    means={"kind": "gpt", "norm": "pre"},
    stands_in={"wte.weight": ("lm_head.weight",)},
    fixed={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
    },
    **_COMMON,
)

GPT1 = Layout(
    model_type="openai-gpt",
    fields={**_FIELDS, "activation": "afn"},
    values={"activation": {"gelu": "gelu-tanh", "relu": "relu", "silu": "silu", "swish": "silu"}},
    weights={
        "words.weight": "tokens_embed.weight",
        "places.weight": "positions_embed.weight",
        **named_alike(_BLOCK),
        "output.weight": "lm_head.weight",
    },
    means={"kind": "gpt", "norm": "post"},
    **_COMMON,
)
