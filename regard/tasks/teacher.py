"""A trained model that a smaller one learns from (Sanh 2019): what it expects of hidden words, and its vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import Config
from regard.data.subwords import Subwords
from regard.errors import UserError
from regard.models.base import EncoderConfig
from regard.models.heads import Headed, MaskedWords
from regard.nn.loss import distillation_loss
from regard.tasks.encoder import encoder_config
from regard.tasks.masker import MaskedBatch
from regard.tasks.saved import Saved


@dataclass(frozen=True)
class Teacher:
    model: Headed

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


def check_teacher(saved: Saved, model: nn.Module, config: Config, tokenizer: Subwords) -> None:
    """That it can teach a model of this config, which has this tokenizer."""
    student, name = encoder_config(config), saved.path
    if not isinstance(model, Headed) or not isinstance(model.head, MaskedWords):
        raise UserError(f"options.teacher = {name}: does not guess words (train it by: regard train masked)")
    teacher = model.encoder
    assert isinstance(teacher.config, EncoderConfig), "an encoder has an encoder's config"
    if "xlnet" in (student.kind, teacher.config.kind):
        raise UserError(
            f"options.teacher = {name}: xlnet guesses words in an order of its own, and can neither teach nor be taught"
        )
    if teacher.width != student.width:
        raise UserError(f"model.width = {student.width}: must be that of options.teacher, {teacher.width}")
    if saved.tokenizer.inner.get_vocab() != tokenizer.inner.get_vocab():
        raise UserError(
            f"options.teacher = {name}: has another tokenizer than the student (try --set tokenizer.file={name})"
        )
    if (rows := teacher.words.num_embeddings) != (own := student.vocabulary or len(tokenizer)):
        raise UserError(
            f"options.teacher = {name}: has vectors for {rows:,} tokens, the student for {own:,} "
            f"(try --set model.vocabulary={rows})"
        )
    if teacher.max_length is not None and config.data.max_length > teacher.max_length:
        longest = config.data.max_length
        raise UserError(f"data.max_length = {longest}: must be at most {teacher.max_length}, as options.teacher has it")
