"""What decoding spends its time on, by kernels of our own (`regard.inference.compiled`): the product of few rows with a
large matrix, attention of one query for each row, the sum and norm between them.

PyTorch's own threads do the work: a second pool of threads would fight with them. They are those of GNU's OpenMP on
Linux; elsewhere nothing `fits`, and models are executed as they are.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import torch
from torch import Tensor

ALONE = 2**15
"""So many multiplications are done before another thread has begun."""


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
def _address(kernel: str) -> int:
    """Where the code of `compiled`'s kernel of that name is. The first use on a machine compiles it, for seconds."""
    from regard.inference import compiled

    return int(getattr(compiled, kernel).address)


def _run(kernel: str, work: int, *given: float) -> None:
    """The kernel on every thread. Numbers travel as float64, which holds addresses exactly."""
    threads = min(torch.get_num_threads(), 1 + work // ALONE)
    pool()(_address(kernel), (ctypes.c_double * len(given))(*given), threads, 0)


def product(inputs: Tensor, weight: Tensor, bias: Tensor, relu: bool = False) -> Tensor:
    """x W' + b, and its positive part where `relu`, for rows of float32: (..., M) and (N, M) -> (..., N)."""
    inputs = inputs.contiguous()
    outputs, width = weight.shape
    output = inputs.new_empty(*inputs.shape[:-1], outputs)
    where = (inputs.data_ptr(), weight.data_ptr(), bias.data_ptr(), output.data_ptr())
    _run("product", inputs.numel() * outputs, *where, inputs.numel() // width, outputs, width, relu)
    return output


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None, scale: float) -> Tensor:
    """`attention` of one query of each row, W rows of each of G groups over the same keys:
    (R, H, 1, D) and (G, H, K, D) twice -> (R, 1, HD). The mask and the bias are broadcast to (G, H, W, K). A score that
    is no number counts as forbidden."""
    assert key.stride() == value.stride(), f"keys and values should lie alike: {key.stride()}, {value.stride()}"
    rows, heads, _, size = query.shape
    groups, _, keys, _ = key.shape
    shape = (groups, heads, rows // groups, keys)
    query = query if query.stride(3) == 1 else query.contiguous()
    weights, output = query.new_empty(shape), query.new_empty(rows, 1, heads * size)
    given: list[float] = [*shape, size, scale, output.data_ptr(), weights.data_ptr()]
    given += [query.data_ptr(), query.stride(0), query.stride(1), key.data_ptr(), value.data_ptr(), *key.stride()[:3]]
    for term in (mask, bias):
        given += [0] * 5 if term is None else [term.data_ptr(), *term.expand(shape).stride()]
    _run("attend", weights.numel() * size, *given)
    return output


def normed_sum(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """LayerNorm(x + y): (..., M) twice -> (..., M)."""
    x, y, output = x.contiguous(), y.contiguous(), torch.empty_like(x)
    where = (x.data_ptr(), y.data_ptr(), weight.data_ptr(), bias.data_ptr(), output.data_ptr())
    _run("normed_sum", x.numel(), *where, x.numel() // len(weight), len(weight), epsilon)
    return output


def store(pairs: Tensor, buffer: Tensor, place: int) -> None:
    """The keys and values of one token (G · W, 1, 2, H, D), written into a buffer (2, G, H, room, W, D) at a place."""
    _, groups, heads, _, width, size = buffer.shape
    to = buffer[:, :, :, place]
    given = (groups, width, heads, size, pairs.data_ptr(), pairs.stride(0), pairs.stride(2), to.data_ptr())
    _run("store", pairs.numel(), *given, *to.stride()[:3])
