"""The names of Hugging Face's `RobertaModel`, whose encoder is called as BERT's, and of the models that have one."""

from regard.hub.bert import CLASSIFIER, FIELDS, FIXED, IGNORED, MEANS, POOLER, SPAN, TIED, WEIGHTS
from regard.hub.layout import ACTIVATIONS, HeadNames, Layout, named_alike

_WORDS = {
    **named_alike({"dense": "lm_head.dense", "norm": "lm_head.layer_norm"}),
    "output.weight": "lm_head.decoder.weight",
    "output.bias": "lm_head.bias",
}

ROBERTA = Layout(
    model_type="roberta",
    prefix="roberta.",
    fields=FIELDS,
    weights={**WEIGHTS, **named_alike({"pooler": "pooler.dense"})},
    values={"activation": ACTIVATIONS},
    means={
        **MEANS,
        "kind": "roberta",
        "sequence_summary": "dense-tanh",
        "choice_summary": "pooler",
        "word_transform": "gelu",
        "span_layer": False,
    },
    fixed=FIXED,
    only=POOLER,
    ignored=IGNORED,
    bare="RobertaModel",
    heads={
        "RobertaForMaskedLM": HeadNames("masked", _WORDS, TIED, {"lm_head.decoder.bias": "lm_head.bias"}),
        "RobertaForSequenceClassification": HeadNames(
            "sequence", named_alike({"dense": "classifier.dense", "output": "classifier.out_proj"})
        ),
        "RobertaForTokenClassification": HeadNames("token", CLASSIFIER),
        "RobertaForQuestionAnswering": HeadNames("span", SPAN),
        "RobertaForMultipleChoice": HeadNames("choice", CLASSIFIER),
    },
)
