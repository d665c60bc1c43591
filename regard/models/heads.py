"""Heads: what makes answers of an encoder's vectors. Each is a small module; `Headed` is an encoder with one on top.

    head          reads                         gives
    masked        each token (B, T, M)          the word that stands there, (B, T, V)
    pretraining   as masked, and the summary    also, by `next_sentence`, whether the second sentence follows, (B, 2)
    sequence      the summary (B, M)            a class, or one number, (B, C)
    token         each token                    its class, (B, T, C)
    span          each token                    whether an answer starts and ends there, (B, T, 2)
    choice        the summary of each choice    how good it is, (B, N)

What families do differently is in their settings: `sequence_summary`, `choice_summary`, `word_transform`, `span_layer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import UserError
from regard.models import build
from regard.models.base import Encoder, EncoderConfig, Features, HeadName, SummaryKind, last
from regard.models.bert import initialise
from regard.nn.dropout import Dropout
from regard.nn.layers import ACTIVATIONS, FeedForward, Residual
from regard.nn.record import Recording

DENSE: dict[SummaryKind, Callable[[Tensor], Tensor] | None] = {
    "pooler": None,
    "mean": None,
    "dense-tanh": torch.tanh,
    "dense-relu": F.relu,
    "dense-gelu": F.gelu,
    "dense-gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
}


class Head(nn.Module):
    """Vectors (..., M) -> answers.

    `of_summary`: it reads one vector for the whole input, not one for each token; `of_mean`: the mean of all.
    """

    of_summary = of_mean = False


class MaskedWords(Head):
    """The word in a token's place: norm(activation(W h + b)) times the table of words (Devlin 2019, section 3.1)."""

    def __init__(self, config: EncoderConfig, words: nn.Embedding) -> None:
        super().__init__()
        self.dense = self.norm = None
        if config.word_transform != "none":
            self.dense = nn.Linear(config.width, config.width)
            self.activation = ACTIVATIONS[config.word_transform]
            self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.output = nn.Linear(config.width, words.num_embeddings)
        initialise(self)
        if config.tie_words:
            self.output.weight = words.weight

    def transform(self, hidden: Tensor) -> Tensor:
        """What `output` turns into logits."""
        if self.dense is None or self.norm is None:
            return hidden
        transformed: Tensor = self.norm(self.activation(self.dense(hidden)))
        return transformed

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.output(self.transform(hidden))
        return logits


class PreTraining(MaskedWords):
    """Both tasks of BERT's pre-training: as `MaskedWords`, and `next_sentence` of the summary: (B, M) -> (B, 2), of
    which 0 says that the second sentence follows the first."""

    def __init__(self, config: EncoderConfig, words: nn.Embedding) -> None:
        super().__init__(config, words)
        self.next_sentence = nn.Linear(config.width, 2)
        initialise(self.next_sentence)


class Sequence(Head):
    """A class, or one number, for the whole input."""

    of_summary = True

    def __init__(self, config: EncoderConfig, summary: SummaryKind, classes: int) -> None:
        super().__init__()
        self.activation, self.of_mean = DENSE[summary], summary == "mean"
        self.dense = None if self.activation is None else nn.Linear(config.width, config.width)
        self.dropout = _dropout(config)
        self.output = nn.Linear(config.width, classes)
        initialise(self)

    def forward(self, summary: Tensor) -> Tensor:
        if self.dense is not None and self.activation is not None:
            summary = self.activation(self.dense(summary))
        logits: Tensor = self.output(self.dropout(summary))
        return logits


class Choice(Sequence):
    """How good one choice is: one number."""

    def __init__(self, config: EncoderConfig, summary: SummaryKind) -> None:
        super().__init__(config, summary, 1)

    def forward(self, summary: Tensor) -> Tensor:
        return super().forward(summary).squeeze(-1)


class Token(Head):
    """A class for each token."""

    def __init__(self, config: EncoderConfig, classes: int) -> None:
        super().__init__()
        wide = min(4, config.layers) if config.features == "concat-last-four" else 1
        self.dropout, self.output = _dropout(config), nn.Linear(wide * config.width, classes)
        initialise(self)

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.output(self.dropout(hidden))
        return logits


class Span(Head):
    """Where an answer starts and where it ends (Devlin 2019, section 4.2): (..., M) -> (..., 2)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.feed_forward = self.around = None
        if config.span_layer:
            self.feed_forward = FeedForward(config.width, config.inner, activation=config.activation)
            self.around = Residual(config.width, "post", config.dropout, config.norm_epsilon)
        self.output = nn.Linear(config.width, 2)
        initialise(self)

    def forward(self, hidden: Tensor) -> Tensor:
        if self.feed_forward is not None and self.around is not None:
            hidden = self.around.after(hidden, self.feed_forward(hidden))
        logits: Tensor = self.output(hidden)
        return logits


class Headed(nn.Module):
    """An encoder and a head. Weights are named `encoder.*` and `head.*`."""

    def __init__(self, encoder: Encoder, head: Head) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, ids: Tensor, segments: Tensor | None = None, *, record: Recording | None = None) -> Tensor:
        """Tokens (B, T), or choices (B, N, T) -> logits.

        Where only some tokens matter, as with masked words: `head(encoder(ids, segments)[chosen])`.
        """
        rows = ids.flatten(0, -2)
        layers = self.encoder.each_layer(rows, None if segments is None else segments.flatten(0, -2), record)
        hidden = features(layers, self.encoder.config.features if isinstance(self.head, Token) else "last")
        if self.head.of_summary:
            hidden = self.encoder.mean(hidden, rows) if self.head.of_mean else self.encoder.summary(hidden, rows)
        logits: Tensor = self.head(hidden)
        return logits.reshape(*ids.shape[:-1], *logits.shape[1:])


def features(layers: Iterable[Tensor], kind: Features) -> Tensor:
    """One vector for each token from the embeddings and the outputs of all layers: (B, T, M), or (B, T, 4M)."""
    if kind == "last":
        return last(layers)
    four = deque(islice(layers, 1, None), maxlen=4)
    return torch.stack(tuple(four)).sum(dim=0) if kind == "sum-last-four" else torch.cat(tuple(four), dim=-1)


def build_headed(config: ModelConfig, vocabulary: int, head: HeadName, classes: int = 0) -> Headed:
    """An encoder with a head, with fresh weights."""
    if not isinstance(config, EncoderConfig):
        raise UserError(f"model.kind = {config.kind!r}: is no encoder, which this task needs (try bert)")
    if config.features != "last" and head != "token":
        raise UserError(f"model.features = {config.features!r}: is for tagging; this task reads the last layer")
    config = config.under(head)
    encoder = build(config, vocabulary)
    assert isinstance(encoder, Encoder), f"{config.kind} has an encoder's config"
    heads: dict[HeadName, Callable[[], Head]] = {
        "masked": lambda: MaskedWords(config, encoder.words),
        "pretraining": lambda: PreTraining(config, encoder.words),
        "sequence": lambda: Sequence(config, config.sequence_summary, classes),
        "token": lambda: Token(config, classes),
        "span": lambda: Span(config),
        "choice": lambda: Choice(config, config.choice_summary),
    }
    return Headed(encoder, heads[head]())


def _dropout(config: EncoderConfig) -> Dropout:
    return Dropout(config.dropout if config.head_dropout is None else config.head_dropout)
