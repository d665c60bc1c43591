"""A trained model that a smaller one learns from (Sanh 2019): what it expects of hidden words, and its vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.errors import UserError
from regard.models.base import EncoderConfig
from regard.models.heads import Headed, MaskedWords
from regard.nn.loss import distillation_loss
from regard.tasks.masker import MaskedBatch


@dataclass(frozen=True)
class Teacher:
    model: Headed

    @classmethod
    def for_student(cls, model: nn.Module, name: str, config: EncoderConfig, vocabulary: int) -> Teacher:
        """The teacher, if it can teach a model of this config."""
        if not isinstance(model, Headed) or not isinstance(model.head, MaskedWords):
            raise UserError(f"options.teacher = {name}: does not guess words (train it by: regard train masked)")
        encoder = model.encoder
        if encoder.width != config.width:
            raise UserError(f"model.width = {config.width}: must be that of options.teacher, {encoder.width}")
        if encoder.words.num_embeddings != vocabulary:
            raise UserError(
                f"options.teacher = {name}: knows {encoder.words.num_embeddings:,} tokens, the student {vocabulary:,}; "
                f"both must have the same tokenizer (try --set tokenizer.file={name})"
            )
        return cls(model.eval().requires_grad_(False))

    def loss(self, student: nn.Module, batch: MaskedBatch, pad: int) -> Tensor:
        """Summed over the hidden words. The directions are those of all tokens, weighed as if as many."""
        assert isinstance(student, Headed), "an encoder with a head"
        ids, where = batch.inputs.ids, (batch.rows, batch.places)
        with torch.no_grad():
            expected = self.model.encoder(ids, batch.inputs.segments)  # (B, T, M)
            words = self.model.head(expected[where])
        hidden = student.encoder(ids, batch.inputs.segments)
        real = ids != pad
        return distillation_loss(student.head(hidden[where]), words, batch.words, hidden[real], expected[real])
