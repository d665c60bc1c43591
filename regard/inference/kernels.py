"""What models spend their time on, by kernels of our own (`regard.inference.compiled`): the product of rows with a
large matrix, attention of one query for each row, the sum and norm between them.

PyTorch's own threads do the work: a second pool of threads would fight with them. They are those of GNU's OpenMP on
Linux; elsewhere nothing `fits`, and models are executed as they are.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from regard.nn.layers import ACTIVATIONS

_LOG = logging.getLogger("regard")

ALONE = 2**15
"""So many multiplications are done before another thread has begun."""

CODES: dict[Callable[[Tensor], Tensor] | None, int] = {
    None: 0,
    ACTIVATIONS["relu"]: 1,
    ACTIVATIONS["gelu"]: 2,
    ACTIVATIONS["gelu-tanh"]: 3,
}
"""The activations that a product can end with."""

KINDS = {torch.float32: 0, torch.int8: 1, torch.uint8: 2}
"""How a product is formed, by the kind of its weights: see `compiled`."""


@cache
def pool() -> Any:
    """`GOMP_parallel(function, arguments, threads, flags)` of the OpenMP that PyTorch runs on."""
    if sys.platform != "linux":
        return None
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except AttributeError:
        return None
    parallel.argtypes, parallel.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
    return parallel


def fits(numbers: Tensor) -> bool:
    """Whether the kernels can work on such numbers, of which no gradient is asked."""
    alike = numbers.dtype == torch.float32 and numbers.device.type == "cpu"
    return alike and not numbers.requires_grad and pool() is not None


@cache
def _compiled() -> Any:
    """`regard.inference.compiled`: the first use on a machine compiles it."""
    with said_if_slow("compiling kernels for this processor: once on a machine, ten to twenty seconds", after=3.0):
        from regard.inference import compiled

    return compiled


@contextmanager
def said_if_slow(words: str, after: float) -> Iterator[None]:
    """Nothing is said of what is done within so many seconds."""
    timer = threading.Timer(after, _LOG.warning, [words])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def run(kernel: str, work: int, given: Sequence[float]) -> None:
    """The kernel on every thread. Numbers travel as float64, which holds addresses exactly."""
    threads = min(torch.get_num_threads(), 1 + work // ALONE)
    numbers = array("d", given)
    pool()(getattr(_compiled(), kernel).address, numbers.buffer_info()[0], threads, 0)


def panels(rows: Tensor) -> Tensor:
    """Weights (N, M), or biases (N), as `product` reads them: the rows of as many outputs as a register has numbers
    stand together, (P, M, lanes); what is missing in the last panel is zero."""
    lanes = _compiled().LANES
    packed = rows.new_empty(-(-len(rows) // lanes), *rows.shape[1:], lanes)
    whole, rest = divmod(len(rows), lanes)
    packed[:whole] = rows[: whole * lanes].unflatten(0, (whole, lanes)).movedim(1, -1)
    if rest:
        packed[whole] = 0
        packed[whole, ..., :rest] = rows[whole * lanes :].movedim(0, -1)
    return packed


def multiplies_bytes() -> bool:
    """Whether the processor can multiply rows in 8 bits by weights in 8 bits, faster than any other way."""
    return bool(_compiled().BYTES)


def byte_panels(rows: Tensor) -> Tensor:
    """Weights of 8 bits (N, M) as `product` reads them for rows in 8 bits: panels of fours, (P, M / 4, lanes, 4)."""
    filled = torch.nn.functional.pad(rows.int() + 128, (0, -rows.shape[1] % 4), value=128).to(torch.uint8)
    return panels(filled.unflatten(1, (-1, 4))).movedim(-1, 2).contiguous()


def room_to_round(width: int) -> int:
    """The bytes that a row in 8 bits needs, with its sum and its scale."""
    return -(-width // 4) * 4 + 8


def from_panels(packed: Tensor, outputs: int) -> Tensor:
    """The inverse of `panels`."""
    return packed.movedim(-1, 1).flatten(0, 1)[:outputs]


def product(inputs: Tensor, weight: Tensor, bias: Tensor, outputs: int, activation: int = 0) -> Tensor:
    """activation(x W' + b), by its code, for rows of float32: (..., M) and `panels` of (N, M) and (N) -> (..., N).

    Weights may have 8 bits; then the panels of their scales (N) follow those of the biases. By `byte_panels`, the rows
    are rounded to 8 bits too, each by a scale of its own.
    """
    inputs, width, kind = inputs.contiguous(), inputs.shape[-1], KINDS[weight.dtype]
    rounds = weight.dtype == torch.uint8
    held = -(-width // 4) if rounds else width
    assert weight.shape[1] == held, f"weights for rows of {weight.shape[1]}, not of {held}"
    output, rows = inputs.new_empty(*inputs.shape[:-1], outputs), inputs.numel() // width
    room = torch.empty(rows * room_to_round(width) if rounds else 0, dtype=torch.uint8)
    where = (inputs.data_ptr(), weight.data_ptr(), bias.data_ptr(), output.data_ptr())
    sizes = (rows, outputs, width, activation, kind)
    run("product", inputs.numel() * outputs, (*where, *sizes, room.data_ptr()))
    return output


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None, scale: float) -> Tensor:
    """`attention` of one query of each row, W rows of each of G groups over the same keys:
    (R, H, 1, D) and (G, H, K, D) twice -> (R, 1, HD). The mask and the bias are broadcast to (G, H, W, K). A bias that
    is no number forbids."""
    rows, heads, _, size = query.shape
    query = query if query.stride(3) == 1 else query.contiguous()
    weights, output = query.new_empty(rows, heads, key.shape[2]), query.new_empty(rows, 1, heads * size)
    asked = (query.data_ptr(), query.stride(0), query.stride(1))
    told = about_attention(rows, asked, seen(key, value), mask, bias, output.data_ptr(), weights.data_ptr())
    run("attend", weights.numel() * size, (*told, scale))
    return output


@dataclass(frozen=True)
class Seen:
    """Where keys and values (G, H, K, D) begin, and how far groups, heads and keys are apart."""

    shape: tuple[int, int, int, int]
    key: int
    value: int
    apart: tuple[int, int, int]


def seen(key: Tensor, value: Tensor) -> Seen:
    apart = key.stride()
    assert apart == value.stride(), f"keys and values should lie alike: {apart}, {value.stride()}"
    groups, heads, keys, size = key.shape
    return Seen((groups, heads, keys, size), key.data_ptr(), value.data_ptr(), (apart[0], apart[1], apart[2]))


def about_attention(
    rows: int,
    asked: tuple[int, int, int],
    memory: Seen,
    mask: Tensor | None,
    bias: Tensor | None,
    output: int,
    weights: int,
) -> list[int]:
    """What the kernels are told of an attention. Of the queries: where they begin, how far rows and heads are apart."""
    groups, heads, keys, size = memory.shape
    shape = (groups, heads, rows // groups, keys)
    told = [*shape, size, output, weights, *asked, memory.key, memory.value, *memory.apart]
    for term in (mask, bias):
        told += [0] * 5 if term is None else [term.data_ptr(), *term.expand(shape).stride()]
    return told


def normed_sum(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """LayerNorm(x + y): (..., M) twice -> (..., M)."""
    x, y, output = x.contiguous(), y.contiguous(), torch.empty_like(x)
    where = (x.data_ptr(), y.data_ptr(), weight.data_ptr(), bias.data_ptr(), output.data_ptr())
    run("normed_sum", x.numel(), (*where, x.numel() // len(weight), len(weight), epsilon))
    return output


def store(pairs: Tensor, buffer: Tensor, place: int) -> None:
    """The keys and values of one token (G · W, 1, 2, H, D), written into a buffer (2, G, H, room, W, D) at a place."""
    run("store", pairs.numel(), about_token(pairs.data_ptr(), pairs.stride(0), pairs.stride(2), buffer, place))


def about_token(pairs: int, row: int, half: int, buffer: Tensor, place: int) -> list[int]:
    """What the kernels are told of a token to be stored: where its keys and values are, how far rows and both halves
    are apart."""
    _, groups, heads, _, width, size = buffer.shape
    to_half, to_group, to_head, to_place, _, _ = buffer.stride()
    to = buffer.data_ptr() + 4 * place * to_place
    return [groups, width, heads, size, pairs, row, half, to, to_half, to_group, to_head]
