"""The other sides of the comparisons."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.models.base import Embedding, output_projection
from regard.models.transformer import TransformerConfig
from regard.nn.positions import Positions


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
