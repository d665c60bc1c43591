"""The names of Hugging Face's `DistilBertModel`, and of the models that have one inside."""

from regard.hub.bert import CLASSIFIER, IGNORED, MEANS, SPAN, TIED
from regard.hub.layout import ACTIVATIONS, HeadNames, Layout, joined, named_alike

_LAYER = "transformer.layer.{n}"
_SUMMARY = named_alike({"dense": "pre_classifier", "output": "classifier"})
_WORDS = named_alike({"dense": "vocab_transform", "norm": "vocab_layer_norm", "output": "vocab_projector"})

DISTILBERT = Layout(
    model_type="distilbert",
    prefix="distilbert.",
    fields={
        "vocabulary": "vocab_size",
        "layers": "n_layers",
        "width": "dim",
        "inner": "hidden_dim",
        "heads": "n_heads",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "activation": "activation",
        "word_transform": "activation",
        "max_length": "max_position_embeddings",
        "pad": "pad_token_id",
        "head_dropout": "seq_classif_dropout",
        "tie_words": "tie_word_embeddings",
    },
    weights={
        "words.weight": "embeddings.word_embeddings.weight",
        "positions.table": "embeddings.position_embeddings.weight",
        **joined("encoder.{n}.attention", tuple(f"{_LAYER}.attention.{part}_lin" for part in ("q", "k", "v"))),
        **named_alike(
            {
                "norm": "embeddings.LayerNorm",
                "encoder.{n}.attention.output": f"{_LAYER}.attention.out_lin",
                "encoder.{n}.around_attention.norm": f"{_LAYER}.sa_layer_norm",
                "encoder.{n}.feed_forward.inner": f"{_LAYER}.ffn.lin1",
                "encoder.{n}.feed_forward.output": f"{_LAYER}.ffn.lin2",
                "encoder.{n}.around_feed_forward.norm": f"{_LAYER}.output_layer_norm",
            }
        ),
    },
    values={"activation": ACTIVATIONS, "word_transform": ACTIVATIONS},
    means={
        **MEANS,
        "kind": "distilbert",
        "norm_epsilon": 1e-12,
        "sequence_summary": "dense-relu",
        "choice_summary": "dense-relu",
        "span_layer": False,
    },
    ignored=IGNORED,
    bare="DistilBertModel",
    heads={
        "DistilBertForMaskedLM": HeadNames("masked", _WORDS, TIED),
        "DistilBertForSequenceClassification": HeadNames("sequence", _SUMMARY),
        "DistilBertForTokenClassification": HeadNames("token", CLASSIFIER),
        "DistilBertForQuestionAnswering": HeadNames("span", SPAN),
        "DistilBertForMultipleChoice": HeadNames("choice", _SUMMARY),
    },
)
