"""Recurrent layers as they learn on a CPU: the numbers of PyTorch's own, and their gradients in less time.

A recurrent weight is used at every step. Autograd multiplies a matrix as large as the weight for each of its uses and
adds it to the others; and PyTorch's layer fills one as large as all steps together for every step of a padded sequence.
Here each use adds its product to one sum, in the product itself, and autograd is given that. A test says that both
agree. (What a decoder attends to is used at every step as well: see `step_attention`.)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from regard.nn.state import Hidden

Memories = tuple[Tensor, ...]
"""What a cell remembers, (B, width) each: its state, and for the LSTM its memory cell."""


def learns_on_cpu(tensor: Tensor) -> bool:
    """Whether a gradient will come back to a tensor, to be formed on a CPU."""
    return torch.is_grad_enabled() and tensor.requires_grad and tensor.device.type == "cpu"


def product_kind(tensor: Tensor) -> torch.dtype:
    """The numbers that products with a tensor are made in: autocast's, or its own."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else tensor.dtype


class Unrolled:
    """The layers of an `nn.GRU` or `nn.LSTM` for one pass of training: it may be called for every step in turn."""

    def __init__(self, layers: nn.RNNBase) -> None:
        self.dropout = layers.dropout if layers.training else 0.0
        self.cell, self.memories = {"GRU": (_gru, 1), "LSTM": (_lstm, 2)}[layers.mode]
        self.width = layers.hidden_size
        self.ways = 2 if layers.bidirectional else 1
        weights = layers.all_weights  # of each way of each layer
        self.maps = [(_Weight(one[0], one[2]), _Weight(one[1], one[3])) for one in weights]

    def __call__(
        self, inputs: Tensor, state: Hidden | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Hidden]:
        """(B, T, inputs) -> outputs (B, T, ways · width), and the state after the last token, which `lengths` (B,)
        tells. Under autocast, outputs have its precision, while states are not rounded."""
        before = self._before(inputs, state)
        real = None if lengths is None else _real(lengths, inputs.shape[1])
        after: list[Memories] = []
        hidden = inputs.transpose(0, 1)  # (T, B, inputs)
        for first in range(0, len(self.maps), self.ways):
            if first and self.dropout:
                hidden = torch.dropout(hidden, self.dropout, True)
            read = [self._read(hidden, place, before[place], real) for place in range(first, first + self.ways)]
            hidden = read[0][0] if self.ways == 1 else torch.cat([outputs for outputs, _ in read], dim=-1)
            after += [memories for _, memories in read]
        outputs = hidden.transpose(0, 1).contiguous()  # once, for all who multiply by it
        return outputs, Hidden(*(torch.stack(memory, dim=1) for memory in zip(*after, strict=True)))

    def _before(self, inputs: Tensor, state: Hidden | None) -> list[Memories]:
        """What each way of each layer remembers before the first token."""
        if state is None:
            return [(inputs.new_zeros(len(inputs), self.width),) * self.memories] * len(self.maps)
        kinds = [state.hidden, *([] if state.cell is None else [state.cell])]
        return list(zip(*(kind.unbind(1) for kind in kinds), strict=True))

    def _read(
        self, inputs: Tensor, place: int, memories: Memories, real: list[Tensor | None] | None
    ) -> tuple[Tensor, Memories]:
        """One way of one layer: (T, B, inputs) -> (T, B, width), and what it remembers at its end."""
        from_inputs, from_states = self.maps[place]
        gates = from_inputs(inputs).unbind(0)  # (B, G) each
        steps = range(len(gates)) if place % self.ways == 0 else reversed(range(len(gates)))
        outputs = list(gates)  # to be overwritten
        for step in steps:
            new = self.cell(gates[step], memories, from_states)
            mask = None if real is None else real[step]
            if mask is not None:
                new = tuple(torch.where(mask, one, old) for one, old in zip(new, memories, strict=True))
            outputs[step] = new[0] if mask is None else new[0] * mask
            memories = new
        return torch.stack(outputs).to(gates[0].dtype), memories


def _real(lengths: Tensor, steps: int) -> list[Tensor | None]:
    """For each step, which rows have a token there (B, 1); None where all have."""
    every = int(lengths.min())
    return [None if step < every else (lengths > step)[:, None] for step in range(steps)]


class _Weight:
    """x W' + b with a weight of many uses."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.sum = _Sum(weight.dtype)
        self.weight, self.bias = _Gather.apply(weight, bias, product_kind(weight), self.sum)  # type: ignore[no-untyped-call]

    def __call__(self, inputs: Tensor) -> Tensor:
        """(..., K) -> (..., N)."""
        output: Tensor = _Multiply.apply(inputs, self.weight, self.bias, self.sum)  # type: ignore[no-untyped-call]
        return output


class _Sum:
    """The gradients of a weight and its bias, from the uses that were passed so far on the way back."""

    def __init__(self, kind: torch.dtype) -> None:
        self.kind, self.way_back = kind, -1
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None

    def add(self, inputs: Tensor, grad: Tensor) -> None:
        """What went into a use (B, K), and what came back to its outputs (B, N)."""
        way_back = torch._C._current_graph_task_id()
        if self.weight is None or self.bias is None or way_back != self.way_back:
            self.way_back = way_back  # a new one: what one before it left is not for this
            self.weight, self.bias = (grad.t() @ inputs).to(self.kind), grad.sum(dim=0, dtype=self.kind)
            return
        if grad.dtype == self.kind:
            self.weight.addmm_(grad.t(), inputs)
        else:  # sums in bfloat16 would lose too much
            self.weight += grad.t() @ inputs
        self.bias += grad.sum(dim=0)

    def take(self) -> tuple[Tensor | None, Tensor | None]:
        """Both, to be kept no longer: what nobody else has becomes the gradient itself, without a copy."""
        weight, bias, self.weight, self.bias = self.weight, self.bias, None, None
        return weight, bias


class _Gather(torch.autograd.Function):
    """A weight and its bias, unchanged; backwards, the gradients of all their uses at once: autograd comes here after
    everything that depends on them."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, kind: torch.dtype, total: _Sum) -> tuple[Tensor, Tensor]:
        ctx.total = total
        ctx.set_materialize_grads(False)
        return weight.to(kind).view_as(weight), bias.to(kind).view_as(bias)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return *ctx.total.take(), None, None


class _Multiply(torch.autograd.Function):
    """x W' + b, one of the uses."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, total: _Sum) -> Tensor:
        flat = inputs.to(weight.dtype).flatten(0, -2)
        ctx.save_for_backward(flat, weight)
        ctx.total, ctx.shape, ctx.kind = total, inputs.shape, inputs.dtype
        return torch.addmm(bias, flat, weight.t()).view(*inputs.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs, weight = ctx.saved_tensors
        grad = grads[0].to(weight.dtype).flatten(0, -2)
        ctx.total.add(inputs, grad)
        back = (grad @ weight).view(ctx.shape).to(ctx.kind) if ctx.needs_input_grad[0] else None
        return back, None, None, None


def _gru(gates: Tensor, memories: Memories, weight: _Weight) -> Memories:
    (hidden,) = memories
    new: Tensor = _GRU.apply(gates, weight(hidden), hidden)  # type: ignore[no-untyped-call]
    return (new,)


class _GRU(torch.autograd.Function):
    """h' = (1-z)·n + z·h with n = tanh(x_n + r·h_n)  (Cho 2014, eq. 5-8, as PyTorch has it)."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, recurrent: Tensor, hidden: Tensor) -> Tensor:
        width = hidden.shape[1]
        both = torch.add(gates[:, : 2 * width], recurrent[:, : 2 * width]).to(hidden.dtype).sigmoid_()
        reset, update = both.chunk(2, dim=1)
        asked = recurrent[:, 2 * width :].to(hidden.dtype)
        new = torch.addcmul(gates[:, 2 * width :].to(hidden.dtype), reset, asked).tanh_()
        ctx.save_for_backward(both, new, asked, hidden)
        ctx.kind = gates.dtype
        return torch.lerp(new, hidden, update)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        both, new, asked, hidden = ctx.saved_tensors
        (grad,) = grads
        width = new.shape[1]
        reset, update = both.chunk(2, dim=1)
        kept = grad * update
        to_gates = grad.new_empty(len(grad), 3 * width)
        to_reset, to_update, to_new = to_gates.chunk(3, dim=1)
        torch.sub(grad, kept, out=to_new)  # g (1 - z)
        torch.ops.aten.tanh_backward.grad_input(to_new, new, grad_input=to_new)
        torch.mul(grad, hidden - new, out=to_update)
        torch.mul(to_new, asked, out=to_reset)
        to_both = to_gates[:, : 2 * width]
        torch.ops.aten.sigmoid_backward.grad_input(to_both, both, grad_input=to_both)
        to_recurrent = to_gates.clone()
        to_recurrent[:, 2 * width :] *= reset
        return to_gates.to(ctx.kind), to_recurrent.to(ctx.kind), kept


def _lstm(gates: Tensor, memories: Memories, weight: _Weight) -> Memories:
    """c' = f·c + i·g and h' = o·tanh(c')  (Hochreiter 1997; Gers 2000)."""
    hidden, cell = memories
    admit, forget, new, show = (gates + weight(hidden)).to(cell.dtype).chunk(4, dim=1)
    cell = forget.sigmoid() * cell + admit.sigmoid() * new.tanh()
    return show.sigmoid() * cell.tanh(), cell
