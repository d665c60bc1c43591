"""The other sides of the comparisons: the same shapes, and where it can be the same weights, in other libraries."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.tokenizers import BOS, EOS, PAD
from regard.hub.marian import MARIAN
from regard.models.base import Embedding, output_projection
from regard.models.transformer import Transformer, TransformerConfig
from regard.nn.positions import Positions
from regard.nn.weights import load_weights


class TorchTransformer(nn.Module):
    """PyTorch's own Transformer, with the same embeddings, positions and tied output as ours."""

    def __init__(self, config: TransformerConfig, vocabulary: int) -> None:
        super().__init__()
        self.pad = config.pad
        self.embedding = Embedding(vocabulary, config.width, config.pad)
        self.positions = Positions("sinusoid", config.width, config.max_length)
        self.dropout = nn.Dropout(config.dropout)
        self.inner = nn.Transformer(
            config.width, config.heads, config.encoder_layers, config.decoder_layers, config.inner, config.dropout,
            batch_first=True,
        )  # fmt: skip
        for part in self.inner.modules():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = config.attention_dropout
        self.output = output_projection(self.embedding, config.width, True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding = source == self.pad
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        hidden: Tensor = self.inner(
            self.dropout(self.positions(self.embedding(source))),
            self.dropout(self.positions(self.embedding(target))),
            tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding,
        )  # fmt: skip
        return hidden


def marian(config: TransformerConfig, vocabulary: int) -> Any:
    """Hugging Face's Marian, which is the paper's Transformer, in the shape of `config`."""
    from transformers import MarianConfig, MarianMTModel

    known = {**config.model_dump(), "vocabulary": vocabulary, "pad": PAD, "decoder_start": BOS}
    tokens = {"bos_token_id": BOS, "eos_token_id": EOS, "forced_eos_token_id": None}
    return MarianMTModel(MarianConfig(**MARIAN.config(known), **tokens))


def of_marian(peer: Any) -> Transformer:
    """Our Transformer with the weights of a Marian."""
    config = TransformerConfig(**MARIAN.settings(peer.config.to_dict()))
    weights, unused, missing = MARIAN.to_ours(peer.state_dict(), config.model_dump())
    assert (unused, missing) == ([], []), f"not used: {unused}, missing: {missing}"
    ours = Transformer(config, peer.config.vocab_size)
    load_weights(ours, weights, Path("marian"))
    return ours.eval()


def ctranslate2_folder(peer: Any, path: Path, quantization: str | None) -> Path:
    """A Marian written for CTranslate2, with the numbers of its tokens for a vocabulary."""
    from ctranslate2.converters.transformers import BartLoader

    peer = copy.deepcopy(peer)  # the converter scales weights in place
    peer.config.normalize_before = peer.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(peer)
    tokens = {BOS: "<s>", EOS: "</s>", PAD: "<pad>"}
    vocabulary = [tokens.get(number, str(number)) for number in range(peer.config.vocab_size)]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.decoder_start_token, spec.config.bos_token, spec.config.eos_token = "<s>", "<s>", "</s>"
    spec.validate()
    spec.optimize(quantization=quantization)
    path.mkdir(parents=True, exist_ok=True)
    spec.save(str(path))
    return path


def joeynmt(config: TransformerConfig, vocabulary: int) -> Any:
    """JoeyNMT's Transformer in the shape of `config`; its padding is token 1."""
    from types import SimpleNamespace

    from joeynmt.model import build_model
    from joeynmt.transformer_layers import MultiHeadedAttention
    from joeynmt.vocabulary import Vocabulary

    names = ["unk", "pad", "bos", "eos"]
    special = {f"{name}_token": f"<{name}>" for name in names} | {
        f"{name}_id": place for place, name in enumerate(names)
    }
    words = Vocabulary(
        [str(number) for number in range(4, vocabulary)],
        SimpleNamespace(**special, sep_token=None, sep_id=None, lang_tags=[]),
    )

    def stack(layers: int) -> dict[str, object]:
        embeddings = {"embedding_dim": config.width, "scale": True, "dropout": config.dropout}
        return {
            "type": "transformer", "num_layers": layers, "num_heads": config.heads, "embeddings": embeddings,
            "hidden_size": config.width, "ff_size": config.inner, "dropout": config.dropout, "layer_norm": config.norm,
        }  # fmt: skip

    shape = {"encoder": stack(config.encoder_layers), "decoder": stack(config.decoder_layers)}
    model = build_model({"tied_embeddings": True, "tied_softmax": True, **shape}, words, words)
    model.loss_function = ("crossentropy", 0.1)
    for part in model.modules():
        if isinstance(part, MultiHeadedAttention):
            part.dropout.p = config.attention_dropout
    return model
