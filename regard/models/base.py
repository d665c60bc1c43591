"""What models promise to the tasks, the search and the contract tests."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.nn.attention import ScoreName
from regard.nn.layers import Activation, NormPlacement
from regard.nn.record import Recording
from regard.nn.state import State


class EncoderDecoder(nn.Module, ABC):
    """Source tokens in, target tokens out. Padding on either side changes nothing.

    Training calls the model once on whole sentences; decoding calls `start` once and `step` for every token.
    """

    output: nn.Linear
    """The projection onto the vocabulary, (M) -> (V)."""
    max_length: int | None = None
    """The most tokens of a source, if there is a limit."""
    decoder_start: int | None = None
    """The token before the first of the target, where it is not the tokenizer's."""
    joined: bool = False
    """Source and target are one sequence, and `decoder.*.self` is over both."""

    @property
    def max_target(self) -> int | None:
        """The most tokens of a target, if there is a limit."""
        return self.max_length

    @abstractmethod
    def forward(self, source: Tensor, target: Tensor, *, record: Recording | None = None) -> Tensor:
        """Source (B, S) and the target so far (B, T) -> what `output` turns into logits: (B, T, M)."""

    @abstractmethod
    def start(self, source: Tensor) -> State:
        """Read the source (B, S): the state before the first target token."""

    @abstractmethod
    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """One target token for each row (B,) -> the logits of the next (B, V), and the state after it."""


SummaryKind = Literal["pooler", "mean", "dense-tanh", "dense-relu", "dense-gelu", "dense-gelu-tanh"]
"""What a head reads of a whole input: what the encoder's pooler made of one token's vector, the mean of all vectors, or
a dense layer over one token's."""


Features = Literal["last", "sum-last-four", "concat-last-four"]
"""What stands for a token: its vector of the last layer, or those of the last four (Devlin 2019, section 5.3)."""


HeadName = Literal["masked", "pretraining", "sequence", "token", "span", "choice"]
"""See `regard.models.heads`."""


class EncoderConfig(ModelConfig):
    """What encoders have in common: Devlin 2019, section 3, "Model Architecture"; and what their heads differ in."""

    layers: int = Field(default=12, ge=1)
    width: int = Field(default=768, ge=1)
    inner: int = Field(default=3072, ge=1)
    heads: int = Field(default=12, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    activation: Activation = "gelu"
    norm: NormPlacement = "post"
    norm_epsilon: float = Field(default=1e-12, gt=0)
    score: ScoreName = "scaled-dot"
    segments: int = Field(default=2, ge=0, description="sentences that an input can have and the model tell apart")
    pooler: bool = Field(default=True, description="a dense layer over the summary's token, for heads that need it")
    sequence_summary: SummaryKind = Field(default="pooler", description="what classification reads")
    choice_summary: SummaryKind = Field(default="pooler", description="what multiple choice reads")
    word_transform: Activation | Literal["none"] = Field(default="gelu", description="before words are predicted")
    span_layer: bool = Field(default=False, description="a feed-forward layer before spans are predicted")
    features: Features = Field(default="last", description="what a head for tokens reads of each")
    head_dropout: float | None = Field(default=None, ge=0, lt=1, description="of heads; as dropout")
    tie_words: bool = Field(default=True, description="words are predicted by their own embeddings")

    def under(self, head: HeadName) -> Self:
        """The config of an encoder that has only what this head needs: a weight without use cannot be trained."""
        summaries: dict[HeadName, SummaryKind] = {
            "pretraining": "pooler",
            "sequence": self.sequence_summary,
            "choice": self.choice_summary,
        }
        return self.model_copy(update={"pooler": self.pooler and summaries.get(head) == "pooler"})


def last(layers: Iterable[Tensor]) -> Tensor:
    """The last of them; none is kept longer than the next one needs it."""
    (hidden,) = deque(layers, maxlen=1)
    return hidden


class Encoder(nn.Module, ABC):
    """Tokens in, a vector for each of them out; a token may see those on both sides. Padding behind changes nothing."""

    config: EncoderConfig
    max_length: int | None
    """The most tokens the model can read, if there is a limit."""
    words: nn.Embedding
    """The table of token embeddings, (V, M); a head that predicts words may share it."""

    @property
    def width(self) -> int:
        """M, the width of the vectors."""
        return self.config.width

    def forward(self, ids: Tensor, segments: Tensor | None = None, *, record: Recording | None = None) -> Tensor:
        """Tokens (B, T), and which sentence each belongs to (0 for all without it) -> hidden (B, T, M)."""
        return last(self.each_layer(ids, segments, record))

    @abstractmethod
    def each_layer(
        self, ids: Tensor, segments: Tensor | None = None, record: Recording | None = None
    ) -> Iterator[Tensor]:
        """The embeddings, then the output of every layer: (B, T, M) each."""

    def guess(
        self, ids: Tensor, segments: Tensor | None, rows: Tensor, places: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """The vectors that hidden words are guessed from, at places (N,) of rows (N,), row by row: (N, M).

        `words` (N,) are those that stand there. A model that guesses one after the other lets a later guess see an
        earlier word; others make no use of them.
        """
        hidden: Tensor = self(ids, segments)
        return hidden[rows, places]

    @abstractmethod
    def summary(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """One vector for the whole input, that of the token kept for it, through the pooler if there is one:
        (B, T, M), (B, T) -> (B, M)."""

    def mean(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """The mean of the vectors of all that is no padding: (B, T, M), (B, T) -> (B, M)."""
        real = (ids != self.config.pad).unsqueeze(-1)
        return (hidden * real).sum(dim=1) / real.sum(dim=1)


class ImageEncoder(nn.Module, ABC):
    """Images in, a vector for each patch out, behind those of the tokens that stand before the patches."""

    width: int
    """M, the width of the vectors."""

    extra_tokens: list[str]
    """The names of the tokens before the patches."""

    @abstractmethod
    def forward(self, images: Tensor, *, record: Recording | None = None) -> Tensor:
        """(B, C, height, width), any size of at least one patch -> hidden (B, T, M)."""

    @abstractmethod
    def summaries(self, hidden: Tensor) -> list[Tensor]:
        """What a head reads, (B, M) each: one for the whole image, and that of a distillation token with a head."""

    @abstractmethod
    def grid_of(self, images: Tensor) -> tuple[int, int]:
        """The rows and columns of patches that images (B, C, height, width) are cut into."""


class Embedding(nn.Embedding):
    """Token embeddings times √M (Vaswani 2017, section 3.4): as inputs they have the size of 1, while the table itself
    is small enough to serve as the output projection. Padding is the zero vector, unless `pad` is None. `scale` stands
    in for √M."""

    def __init__(self, vocabulary: int, width: int, pad: int | None, scale: float | None = None) -> None:
        super().__init__(vocabulary, width, padding_idx=pad)
        self.scale = math.sqrt(width) if scale is None else scale
        nn.init.normal_(self.weight, std=width**-0.5)
        if pad is not None:
            with torch.no_grad():
                self.weight[pad].zero_()

    def forward(self, ids: Tensor) -> Tensor:
        embedded = super().forward(ids)
        return embedded if self.scale == 1 else embedded * self.scale


def output_projection(table: Embedding, width: int, tied: bool, bias: bool = True) -> nn.Linear:
    """Logits from (M): the embedding table itself when tied (Press 2017), else a matrix of its own."""
    output = nn.Linear(width, table.num_embeddings, bias=bias)
    if bias:
        nn.init.zeros_(output.bias)
    if tied:
        output.weight = table.weight
    return output
