"""The names of Hugging Face's `BertModel`, and of the models that have one inside."""

from regard.hub.layout import ACTIVATIONS, HeadNames, Layout, joined, named_alike

_LAYER = "encoder.layer.{n}"

FIELDS = {
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
    "head_dropout": "classifier_dropout",
    "tie_words": "tie_word_embeddings",
}
WEIGHTS = {
    "words.weight": "embeddings.word_embeddings.weight",
    "positions.table": "embeddings.position_embeddings.weight",
    "segments.weight": "embeddings.token_type_embeddings.weight",
    **joined("encoder.{n}.attention", tuple(f"{_LAYER}.attention.self.{part}" for part in ("query", "key", "value"))),
    **named_alike(
        {
            "norm": "embeddings.LayerNorm",
            "encoder.{n}.attention.output": f"{_LAYER}.attention.output.dense",
            "encoder.{n}.around_attention.norm": f"{_LAYER}.attention.output.LayerNorm",
            "encoder.{n}.feed_forward.inner": f"{_LAYER}.intermediate.dense",
            "encoder.{n}.feed_forward.output": f"{_LAYER}.output.dense",
            "encoder.{n}.around_feed_forward.norm": f"{_LAYER}.output.LayerNorm",
        }
    ),
}
MEANS = {"norm": "post", "score": "scaled-dot"}
FIXED = {"position_embedding_type": "absolute", "is_decoder": False}
POOLER = {"pooler.weight": "pooler", "pooler.bias": "pooler"}
IGNORED = ("embeddings.position_ids",)

CLASSIFIER = named_alike({"output": "classifier"})
SPAN = named_alike({"output": "qa_outputs"})
_WORDS = {
    **named_alike({"dense": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm"}),
    "output.weight": "cls.predictions.decoder.weight",
    "output.bias": "cls.predictions.bias",
}
_FOLLOWS = "cls.seq_relationship"
TIED = {"output.weight": "tie_words"}
_SAME = {"cls.predictions.decoder.bias": "cls.predictions.bias"}
MASKED = HeadNames("masked", _WORDS, TIED, _SAME)
PRETRAINING = HeadNames("pretraining", {**_WORDS, **named_alike({"next_sentence": _FOLLOWS})}, TIED, _SAME)

BERT = Layout(
    model_type="bert",
    prefix="bert.",
    fields={**FIELDS, "word_transform": "hidden_act"},
    weights={**WEIGHTS, **named_alike({"pooler": "pooler.dense"})},
    values={"activation": ACTIVATIONS, "word_transform": ACTIVATIONS},
    means={
        **MEANS,
        "kind": "bert",
        "sequence_summary": "pooler",
        "choice_summary": "pooler",
        "span_layer": False,
    },
    fixed=FIXED,
    only=POOLER,
    ignored=IGNORED,
    bare="BertModel",
    heads={
        "BertForMaskedLM": MASKED,
        "BertForPreTraining": PRETRAINING,
        "BertForSequenceClassification": HeadNames("sequence", CLASSIFIER),
        "BertForNextSentencePrediction": HeadNames("sequence", named_alike({"output": _FOLLOWS})),
        "BertForTokenClassification": HeadNames("token", CLASSIFIER),
        "BertForQuestionAnswering": HeadNames("span", SPAN),
        "BertForMultipleChoice": HeadNames("choice", CLASSIFIER),
    },
)
