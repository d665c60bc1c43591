"""The names of Hugging Face's `XLNetModel`, and of the models that have one inside."""

from regard.hub.bert import CLASSIFIER, SPAN, TIED
from regard.hub.layout import ACTIVATIONS, HeadNames, Layout, named_alike

_ATTENTION = {
    "query": "q",
    "key": "k",
    "value": "v",
    "distance": "r",
    "output": "o",
    "content_bias": "r_w_bias",
    "distance_bias": "r_r_bias",
    "segment_bias": "r_s_bias",
    "segment": "seg_embed",
}
_SUMMARY = named_alike({"dense": "sequence_summary.summary", "output": "logits_proj"})

XLNET = Layout(
    model_type="xlnet",
    prefix="transformer.",
    fields={
        "vocabulary": "vocab_size",
        "layers": "n_layer",
        "width": "d_model",
        "inner": "d_inner",
        "heads": "n_head",
        "dropout": "dropout",
        "attention_dropout": "dropout",
        "activation": "ff_activation",
        "norm_epsilon": "layer_norm_eps",
        "pad": "pad_token_id",
        "head_dropout": "summary_last_dropout",
        "tie_words": "tie_word_embeddings",
    },
    weights={
        "words.weight": "word_embedding.weight",
        "unknown": "mask_emb",
        **{f"encoder.{{n}}.attention.{ours}": f"layer.{{n}}.rel_attn.{theirs}" for ours, theirs in _ATTENTION.items()},
        **named_alike(
            {
                "encoder.{n}.around_attention.norm": "layer.{n}.rel_attn.layer_norm",
                "encoder.{n}.feed_forward.inner": "layer.{n}.ff.layer_1",
                "encoder.{n}.feed_forward.output": "layer.{n}.ff.layer_2",
                "encoder.{n}.around_feed_forward.norm": "layer.{n}.ff.layer_norm",
            }
        ),
    },
    values={"activation": ACTIVATIONS},
    means={
        "kind": "xlnet",
        "sequence_summary": "dense-tanh",
        "choice_summary": "dense-tanh",
        "word_transform": "none",
        "span_layer": False,
    },
    fixed={
        "attn_type": "bi",
        "bi_data": False,
        "clamp_len": -1,
        "same_length": False,
        "summary_type": "last",
        "summary_use_proj": True,
        "summary_activation": "tanh",
    },
    bare="XLNetModel",
    only={"unknown": "two_streams"},
    heads={
        "XLNetLMHeadModel": HeadNames("masked", named_alike({"output": "lm_loss"}), TIED),
        "XLNetForSequenceClassification": HeadNames("sequence", _SUMMARY),
        "XLNetForTokenClassification": HeadNames("token", CLASSIFIER),
        "XLNetForQuestionAnsweringSimple": HeadNames("span", SPAN),
        "XLNetForMultipleChoice": HeadNames("choice", _SUMMARY),
    },
)
