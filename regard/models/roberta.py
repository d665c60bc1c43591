"""RoBERTa: "A Robustly Optimized BERT Pretraining Approach" (Liu et al., 2019).

The model is BERT's. What the paper changed is the training: masks drawn anew each time a text is read, no next
sentence, longer and larger batches, byte-level BPE (section 4). Two things differ here:

    ids        <s>   The  cat  </s>  <pad> <pad>
    places      2     3    4    5      1     1       counted over real tokens, from behind the padding's own number

and a sequence is classified from the vector of <s> by a dense layer of the head's own, so that no pooler is needed.

Site: `encoder.{layer}.self`.
"""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from regard.models.base import SummaryKind
from regard.models.bert import Bert, BertConfig
from regard.nn.positions import too_long


class RobertaConfig(BertConfig):
    """The defaults are those of RoBERTa-base."""

    kind: str = "roberta"
    norm_epsilon: float = Field(default=1e-5, gt=0)
    segments: int = Field(default=1, ge=0, description="1: sentences are not told apart")
    max_length: int = Field(default=514, ge=3, description="places, of which pad + 1 are never used")
    sequence_summary: SummaryKind = "dense-tanh"

    @property
    def longest_input(self) -> int:
        return self.max_length - self.pad - 1


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"layers": 2, "width": 128, "inner": 512, "heads": 2},
    "small": {"layers": 4, "width": 512, "inner": 2048, "heads": 8},
    "base": {"layers": 12, "width": 768, "inner": 3072, "heads": 12},
    "large": {"layers": 24, "width": 1024, "inner": 4096, "heads": 16},
}


class Roberta(Bert):
    def __init__(self, config: RobertaConfig, vocabulary: int) -> None:
        super().__init__(config, vocabulary)
        self.max_length = config.longest_input
        self.positions.limit, self.positions.offset = config.longest_input, config.pad + 1

    def place(self, x: Tensor, ids: Tensor) -> Tensor:
        if ids.shape[1] > self.max_length:
            raise too_long(ids.shape[1], self.max_length)
        real = (ids != self.config.pad).long()
        return x + self.positions.table[real.cumsum(dim=1) * real + self.positions.offset - 1]
