"""What Transformers are made of: multi-head attention, feed-forward, and the residual-and-norm around both."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, Literal, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.attention import SCORES, ScoreName, attention
from regard.nn.dropout import Dropout
from regard.nn.products import Linear, linear
from regard.nn.record import Recording
from regard.nn.rotary import Turn
from regard.nn.state import KeyValue

NormPlacement = Literal["pre", "post"]
NormKind = Literal["layer", "rms"]
NORMS: dict[NormKind, type[nn.LayerNorm] | type[nn.RMSNorm]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


Layer = TypeVar("Layer", bound=nn.Module)


class Stack(nn.ModuleList, Generic[Layer]):
    """Layers one above the other: a `ModuleList` whose members keep their type."""

    def __iter__(self) -> Iterator[Layer]:
        return cast(Iterator[Layer], super().__iter__())


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_H) W_O  (Vaswani 2017, section 3.2.2).

    The projections of query, key and value are one matrix (3HD, M): attention over a memory uses its first third for
    the queries and the rest for the memory, self-attention multiplies by it once. D is M / H unless it is given.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        head_width: int | None = None,
        biases: bool = True,
        score: ScoreName = "scaled-dot",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        size = head_width or width // heads
        self.heads, self.joined, self.dropout = heads, heads * size, dropout
        self.weight = nn.Parameter(torch.empty(3 * self.joined, width))
        self.bias = nn.Parameter(torch.zeros(3 * self.joined)) if biases else None
        self.output = Linear(self.joined, width, bias=biases)
        self.score = SCORES[score](size, size)
        for third in self.weight.chunk(3):
            nn.init.xavier_uniform_(third)
        nn.init.xavier_uniform_(self.output.weight)
        if biases:
            nn.init.zeros_(self.output.bias)

    def query(self, inputs: Tensor) -> Tensor:
        """(B, Q, M) -> (B, H, Q, D)."""
        return self._split(self._projected(inputs, slice(0, self.joined)))

    def memory(self, inputs: Tensor) -> KeyValue:
        """The keys and values of (B, K, M), to be attended to any number of times."""
        key, value = self._projected(inputs, slice(self.joined, None)).chunk(2, dim=-1)
        return KeyValue(self.score.key(self._split(key)), self._split(value))

    def forward(
        self,
        query: Tensor,
        memory: KeyValue,
        *,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        record: Recording | None = None,
        site: str = "",
    ) -> Tensor:
        """Queries (B, H, Q, D) over a memory -> (B, Q, M)."""
        heads = attention(
            query,
            memory.key,
            memory.value,
            mask=mask,
            bias=bias,
            score=self.score,
            dropout=self.dropout if self.training else 0.0,
            record=record,
            site=site,
        )
        output: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # (B, Q, M)
        return output

    def _projected(self, inputs: Tensor, rows: slice) -> Tensor:
        return linear(inputs, self.weight[rows], None if self.bias is None else self.bias[rows])

    def _split(self, joined: Tensor) -> Tensor:
        return joined.reshape(*joined.shape[:2], self.heads, -1).transpose(1, 2)  # (B, T, HD) -> (B, H, T, D)


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values of one and the same sequence."""

    def nothing(self, inputs: Tensor) -> KeyValue:
        """The memory before the first token, for as many rows as `inputs` (B, ..., M)."""
        empty = inputs.new_empty(len(inputs), self.heads, 0, self.joined // self.heads)
        return KeyValue(empty, empty)

    def query_and_memory(self, inputs: Tensor, past: KeyValue | None = None) -> tuple[Tensor, KeyValue]:
        """Both from (B, T, M) at once, the memory appended to what was seen in the past."""
        query, key, value = map(self._split, linear(inputs, self.weight, self.bias).chunk(3, dim=-1))
        key = self.score.key(key)
        return query, KeyValue(key, value) if past is None else past.append(key, value)


class GroupedSelfAttention(nn.Module):
    """Self-attention whose queries share keys and values in groups (Ainslie 2023), turned by their places (Su 2021).

    There are fewer heads of keys and values than of queries, which makes the cache that much smaller; head h of the
    queries looks at head h // (heads / key_heads) of the memory. The projections have no bias.
    """

    def __init__(self, width: int, heads: int, key_heads: int, head_width: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.key_heads, self.head_width, self.dropout = heads, key_heads, head_width, dropout
        self.query = _linear(width, heads * head_width, biases=False)
        self.memory = _linear(width, 2 * key_heads * head_width, biases=False)
        self.output = _linear(heads * head_width, width, biases=False)

    def nothing(self, inputs: Tensor) -> KeyValue:
        """The memory before the first token, for as many rows as `inputs` (B, ..., M)."""
        empty = inputs.new_empty(len(inputs), self.key_heads, 0, self.head_width)
        return KeyValue(empty, empty)

    def query_and_memory(self, inputs: Tensor, turn: Turn, past: KeyValue | None = None) -> tuple[Tensor, KeyValue]:
        """Both from (B, T, M), the memory appended to what was seen in the past."""
        shape = (*inputs.shape[:2], -1, self.head_width)
        query = turn(self.query(inputs).view(shape).transpose(1, 2))  # (B, H, T, D)
        key, value = self.memory(inputs).view(shape).transpose(1, 2).chunk(2, dim=1)  # (B, key heads, T, D)
        key = turn(key)
        return query, KeyValue(key, value) if past is None else past.append(key, value)

    def forward(
        self,
        query: Tensor,
        memory: KeyValue,
        *,
        mask: Tensor | None = None,
        record: Recording | None = None,
        site: str = "",
    ) -> Tensor:
        """Queries (B, H, Q, D) over a memory -> (B, Q, M)."""
        group = self.heads // self.key_heads
        key, value = memory.key, memory.value
        if group > 1:
            key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
        dropout = self.dropout if self.training else 0.0
        heads = attention(query, key, value, mask=mask, dropout=dropout, record=record, site=site)
        output: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # (B, Q, M)
        return output


class FeedForward(nn.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2  (Vaswani 2017, eq. 2)."""

    def __init__(
        self,
        width: int,
        inner: int,
        *,
        activation: Activation = "relu",
        dropout: float = 0.0,
        biases: bool = True,
    ) -> None:
        super().__init__()
        self.inner, self.output = _linear(width, inner, biases), _linear(inner, width, biases)
        self.activation, self.dropout = ACTIVATIONS[activation], Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.output(self.dropout(self.activation(self.inner(inputs))))
        return output


class GatedFeedForward(nn.Module):
    """FFN(x) = (activation(x W_1) * x V) W_2  (Shazeer 2020, eq. 6): W_1 and V are one matrix."""

    def __init__(
        self,
        width: int,
        inner: int,
        *,
        activation: Activation = "gelu-tanh",
        dropout: float = 0.0,
        biases: bool = False,
    ) -> None:
        super().__init__()
        self.inner, self.output = _linear(width, 2 * inner, biases), _linear(inner, width, biases)
        self.activation, self.dropout = ACTIVATIONS[activation], Dropout(dropout)

    def forward(self, inputs: Tensor) -> Tensor:
        gate, values = self.inner(inputs).chunk(2, dim=-1)
        output: Tensor = self.output(self.dropout(self.activation(gate) * values))
        return output


class Residual(nn.Module):
    """The connection around a sublayer: LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) when "pre".

    A sublayer is called between `before` and `after`, which keeps its own arguments and results in sight:

        x = residual.after(x, sublayer(residual.before(x)))
    """

    def __init__(
        self, width: int, placement: NormPlacement, dropout: float, epsilon: float = 1e-5, norm: NormKind = "layer"
    ) -> None:
        super().__init__()
        self.norm, self.placement, self.dropout = NORMS[norm](width, epsilon), placement, Dropout(dropout)

    def before(self, inputs: Tensor) -> Tensor:
        normed: Tensor = self.norm(inputs) if self.placement == "pre" else inputs
        return normed

    def after(self, inputs: Tensor, output: Tensor) -> Tensor:
        summed: Tensor = inputs + self.dropout(output)
        return self.norm(summed) if self.placement == "post" else summed


def _linear(inputs: int, outputs: int, biases: bool) -> Linear:
    made = Linear(inputs, outputs, bias=biases)
    nn.init.xavier_uniform_(made.weight)
    if biases:
        nn.init.zeros_(made.bias)
    return made
