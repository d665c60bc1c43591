"""The names of Hugging Face's `BertModel`, and of the models that have one inside."""

from regard.hub.layout import ACTIVATIONS, Layout, joined, named_alike

_LAYER = "encoder.layer.{n}"

BERT = Layout(
    model_type="bert",
    prefix="bert.",
    fields={
        "vocabulary": "vocab_size",
        "layers": "num_hidden_layers",
        "width": "hidden_size",
        "inner": "intermediate_size",
        "heads": "num_attention_heads",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "activation": "hidden_act",
        "norm_epsilon": "layer_norm_eps",
        "segments": "type_vocab_size",
        "max_length": "max_position_embeddings",
        "pad": "pad_token_id",
    },
    weights={
        "words.weight": "embeddings.word_embeddings.weight",
        "positions.table": "embeddings.position_embeddings.weight",
        "segments.weight": "embeddings.token_type_embeddings.weight",
        **joined(
            "encoder.{n}.attention", tuple(f"{_LAYER}.attention.self.{part}" for part in ("query", "key", "value"))
        ),
        **named_alike(
            {
                "norm": "embeddings.LayerNorm",
                "encoder.{n}.attention.output": f"{_LAYER}.attention.output.dense",
                "encoder.{n}.around_attention.norm": f"{_LAYER}.attention.output.LayerNorm",
                "encoder.{n}.feed_forward.inner": f"{_LAYER}.intermediate.dense",
                "encoder.{n}.feed_forward.output": f"{_LAYER}.output.dense",
                "encoder.{n}.around_feed_forward.norm": f"{_LAYER}.output.LayerNorm",
                "pooler": "pooler.dense",
            }
        ),
    },
    values={"activation": ACTIVATIONS},
    fixed={"position_embedding_type": "absolute", "is_decoder": False},
    ignored=("embeddings.position_ids",),
)
