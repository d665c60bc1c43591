"""The names of Hugging Face's `MarianMTModel`: the Transformer of 2017, with sines before cosines."""

from __future__ import annotations

from regard.hub.bart import COPIES, FIELDS, FIXED, LAYERS, STACKS
from regard.hub.layout import ACTIVATIONS, Layout

MARIAN = Layout(
    model_type="marian",
    prefix="model.",
    fields={**FIELDS, "vocabulary": ("vocab_size", "decoder_vocab_size")},
    values={"activation": ACTIVATIONS},
    weights={"target_embedding.weight": "shared.weight", "output.bias": "final_logits_bias", **STACKS},
    means={
        "kind": "transformer",
        "norm": "post",
        "norm_epsilon": 1e-5,
        "score": "scaled-dot",
        "positions": "sinusoid-halves",
        "position_join": "add",
        "window": 0,
        "share_embeddings": True,
        "tie_output": True,
    },
    fixed={
        **FIXED,
        "normalize_embedding": False,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
    },
    layers=LAYERS,
    outside=("final_logits_bias",),
    one_row=("final_logits_bias",),
    zeros={"output.bias": "target_embedding.weight"},
    stands_in={"shared.weight": COPIES},
    ignored=(*COPIES, "embed_positions.weight"),
)
