"""DistilBERT: "a distilled version of BERT: smaller, faster, cheaper and lighter" (Sanh et al., 2019).

    teacher (BERT)       student
    layer 0   --copy-->  layer 0
    layer 1
    layer 2   --copy-->  layer 1       half the layers; no segments and no pooler (section 2)
    layer 3
    ...

The student starts as every second layer of its teacher, and learns from what the teacher expects in the place of a
masked word, from the word itself, and from the direction of the teacher's hidden vectors: `regard.nn.loss`.

Site: `encoder.{layer}.self`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field
from torch import Tensor

from regard.models.base import SummaryKind
from regard.models.bert import Bert, BertConfig


class DistilBertConfig(BertConfig):
    """The defaults are those of DistilBERT-base."""

    kind: str = "distilbert"
    layers: int = Field(default=6, ge=1)
    segments: Literal[0] = 0
    pooler: Literal[False] = False
    sequence_summary: SummaryKind = "dense-relu"
    choice_summary: SummaryKind = "dense-relu"


SIZES: dict[str, dict[str, object]] = {
    "tiny": {"layers": 1, "width": 128, "inner": 512, "heads": 2},
    "small": {"layers": 2, "width": 512, "inner": 2048, "heads": 8},
    "base": {"layers": 6, "width": 768, "inner": 3072, "heads": 12},
}


class DistilBert(Bert):
    """BERT without segments and pooler; the settings say so."""


def student_weights(teacher: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A student's first weights from a teacher's, by name, with or without a head: every second layer, and the rest but
    for segments and pooler."""
    chosen: dict[str, Tensor] = {}
    for name, weight in teacher.items():
        if layer := re.search(r"(?<=encoder\.)\d+(?=\.)", name):
            number = int(layer.group())
            if number % 2 == 0:
                chosen[f"{name[: layer.start()]}{number // 2}{name[layer.end() :]}"] = weight
        elif not re.search(r"(^|\.)(segments|pooler|next_sentence)\.", name):
            chosen[name] = weight
    return chosen
