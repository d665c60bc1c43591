"""The names of Hugging Face's `BigBirdModel`, whose encoder is called as BERT's, and of the models that have one."""

from regard.hub.bert import CLASSIFIER, FIELDS, FIXED, IGNORED, MASKED, MEANS, POOLER, PRETRAINING, WEIGHTS
from regard.hub.layout import ACTIVATIONS, HeadNames, Layout, named_alike

_SPAN = named_alike(
    {
        "feed_forward.inner": "qa_classifier.intermediate.dense",
        "feed_forward.output": "qa_classifier.output.dense",
        "around.norm": "qa_classifier.output.LayerNorm",
        "output": "qa_classifier.qa_outputs",
    }
)

BIGBIRD = Layout(
    model_type="big_bird",
    prefix="bert.",
    fields={
        **FIELDS,
        "word_transform": "hidden_act",
        "sequence_summary": "hidden_act",
        "attention": "attention_type",
        "block": "block_size",
        "random_blocks": "num_random_blocks",
    },
    weights={**WEIGHTS, **named_alike({"pooler": "pooler"})},
    values={
        "activation": ACTIVATIONS,
        "word_transform": ACTIVATIONS,
        "sequence_summary": {theirs: f"dense-{ours}" for theirs, ours in ACTIVATIONS.items() if ours != "silu"},
        "attention": {"block_sparse": "block-sparse", "original_full": "full"},
    },
    means={**MEANS, "kind": "bigbird", "choice_summary": "pooler", "span_layer": True},
    read_as={"outside_training": "first"},
    fixed={**FIXED, "use_bias": True, "rescale_embeddings": False},
    only=POOLER,
    ignored=IGNORED,
    bare="BigBirdModel",
    heads={
        "BigBirdForMaskedLM": MASKED,
        "BigBirdForPreTraining": PRETRAINING,
        "BigBirdForSequenceClassification": HeadNames(
            "sequence", named_alike({"dense": "classifier.dense", "output": "classifier.out_proj"})
        ),
        "BigBirdForTokenClassification": HeadNames("token", CLASSIFIER),
        "BigBirdForQuestionAnswering": HeadNames("span", _SPAN),
        "BigBirdForMultipleChoice": HeadNames("choice", CLASSIFIER),
    },
)
