"""Random models of Hugging Face's encoder-decoders, and ours with the same weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from regard.hub.bart import BART
from regard.hub.folder import read_folder
from regard.hub.layout import Layout
from regard.hub.marian import MARIAN
from regard.hub.t5 import T5, T5_GATED
from regard.models import build, parse_model
from regard.models.base import EncoderDecoder
from regard.nn.weights import load_weights

VOCABULARY = 60


@dataclass(frozen=True)
class Peer:
    """A kind of theirs: its layout, its special tokens and some shapes."""

    layout: Layout
    config: str
    model: str
    pad: int
    end: int
    start: int
    shape: dict[str, Any]

    def random(self, seed: int = 0, spread: float = 0.1, vocabulary: int = VOCABULARY) -> Any:
        torch.manual_seed(seed)
        given = {"pad_token_id": self.pad, "eos_token_id": self.end, "decoder_start_token_id": self.start}
        config = getattr(transformers, self.config)(
            vocab_size=vocabulary, forced_eos_token_id=None, attn_implementation="eager", **given, **self.shape
        )
        peer = getattr(transformers, self.model)(config).eval()
        with torch.no_grad():
            for name, weight in peer.named_parameters():
                if "embed_positions" not in name or self.layout is BART:
                    weight.add_(torch.randn_like(weight) * spread)  # nothing stays zero or one
            if hasattr(peer, "final_logits_bias"):
                peer.final_logits_bias.normal_()
        if self.layout is T5_GATED:
            peer.lm_head.weight = torch.nn.Parameter(torch.randn_like(peer.lm_head.weight))  # as version 1.1 has it
        return peer

    def ours(self, folder: Path) -> EncoderDecoder:
        """Our model from a folder that `save_pretrained` wrote."""
        read = read_folder(folder)
        assert read.model_type == self.layout.model_type
        config = parse_model(self.layout.settings(read.config, read.weights))
        weights, unused, missing = self.layout.to_ours(read.weights, config.model_dump())
        assert (unused, missing) == ([], [])
        model = build(config, 0)
        assert isinstance(model, EncoderDecoder)
        load_weights(model, weights, folder)
        return model.eval()


def _bart(layers: tuple[int, int], width: int, inner: int, heads: int, **more: object) -> dict[str, object]:
    return {
        "encoder_layers": layers[0], "decoder_layers": layers[1], "d_model": width, "encoder_ffn_dim": inner,
        "decoder_ffn_dim": inner, "encoder_attention_heads": heads, "decoder_attention_heads": heads,
        "max_position_embeddings": 40, **more,
    }  # fmt: skip


def _t5(layers: tuple[int, int], width: int, inner: int, heads: int, size: int, **more: object) -> dict[str, object]:
    return {
        "num_layers": layers[0], "num_decoder_layers": layers[1], "d_model": width, "d_ff": inner, "num_heads": heads,
        "d_kv": size, **more,
    }  # fmt: skip


_BART = (BART, "BartConfig", "BartForConditionalGeneration", 1, 2, 2)
_MARIAN = (MARIAN, "MarianConfig", "MarianMTModel", 59, 0, 59)
_T5 = ("T5Config", "T5ForConditionalGeneration", 0, 1, 0)
_GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
PEERS = {
    "bart": Peer(*_BART, _bart((2, 2), 16, 24, 2)),
    "bart, scaled, relu": Peer(*_BART, _bart((1, 3), 24, 40, 3, scale_embedding=True, activation_function="relu")),
    "bart, tanh": Peer(*_BART, _bart((3, 1), 32, 16, 4, activation_function="gelu_new")),
    "marian": Peer(*_MARIAN, _bart((2, 2), 16, 24, 2, scale_embedding=True, activation_function="swish")),
    "marian, relu": Peer(*_MARIAN, _bart((3, 1), 24, 32, 3, scale_embedding=True, activation_function="relu")),
    "t5": Peer(T5, *_T5, _t5((2, 2), 16, 24, 2, 8)),
    "t5, wide heads, near": Peer(
        T5, *_T5, _t5((3, 2), 24, 32, 3, 5, relative_attention_num_buckets=8, relative_attention_max_distance=9)
    ),
    "t5, version 1.1": Peer(T5_GATED, *_T5, _t5((2, 2), 16, 24, 4, 6, **_GATED)),
    "t5, version 1.1, uneven": Peer(T5_GATED, *_T5, _t5((3, 1), 32, 16, 2, 8, **_GATED)),
}
