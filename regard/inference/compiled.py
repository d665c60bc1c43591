"""The kernels of `regard.inference.kernels`, compiled by Numba. Each sees one array of numbers, addresses among them,
and does one thread's part.

A product of few rows reads every weight for a handful of operations, so what counts is how fast memory arrives.
Libraries read a matrix row after row; here every thread reads three rows at the same time that lie far apart, which the
memory answers 1.5 times as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import carray, types
from numba.extending import intrinsic

SUMS = {"reassoc", "contract", "nsz"}
"""A sum may be formed in any order, and a product be added in one operation; infinities stay what they are."""

BLOCK = 16
"""Outputs of each third that four rows are multiplied into before the next four: the rows stay in the nearest cache."""

ZERO, LOWEST = np.float32(0), np.float32(-87)
NOTHING = np.float32(1e-30)
"""Weights below this, as those of forbidden places, change no sum."""

_thread = types.ExternalFunction("omp_get_thread_num", types.int32())
_threads = types.ExternalFunction("omp_get_num_threads", types.int32())


def kernel(function: Callable[[Any], None]) -> Any:
    """Compiled, and kept on disk where there is a place for it."""
    signature = types.void(types.CPointer(types.float64))
    try:
        return numba.cfunc(signature, cache=True)(function)
    except (RuntimeError, OSError):
        return numba.cfunc(signature)(function)


def _memory(kind: Any) -> Any:
    """A function that sees numbers of a kind at an address."""

    @intrinsic
    def at(_typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(address), build

    return at


_floats, _bytes = _memory(types.float32), _memory(types.uint8)


@numba.njit(fastmath=SUMS)
def _outputs(x: Any, w: Any, b: Any, y: Any, first: int, last: int) -> None:
    """Outputs `first` to `last` of every row, three at a time that are a third of them apart, four rows at a time."""
    rows, width = x.shape
    third = (last - first) // 3
    for block in range(first, first + third, BLOCK):
        end = min(block + BLOCK, first + third)
        for r in range(0, rows - 3, 4):
            for i in range(block, end):
                j, k = i + third, i + 2 * third
                i0 = i1 = i2 = i3 = j0 = j1 = j2 = j3 = k0 = k1 = k2 = k3 = ZERO
                for m in range(width):  # one row after the other, so that all twelve sums stay in registers
                    wi, wj, wk = w[i, m], w[j, m], w[k, m]
                    v = x[r, m]
                    i0 += wi * v
                    j0 += wj * v
                    k0 += wk * v
                    v = x[r + 1, m]
                    i1 += wi * v
                    j1 += wj * v
                    k1 += wk * v
                    v = x[r + 2, m]
                    i2 += wi * v
                    j2 += wj * v
                    k2 += wk * v
                    v = x[r + 3, m]
                    i3 += wi * v
                    j3 += wj * v
                    k3 += wk * v
                y[r, i], y[r + 1, i], y[r + 2, i], y[r + 3, i] = i0 + b[i], i1 + b[i], i2 + b[i], i3 + b[i]
                y[r, j], y[r + 1, j], y[r + 2, j], y[r + 3, j] = j0 + b[j], j1 + b[j], j2 + b[j], j3 + b[j]
                y[r, k], y[r + 1, k], y[r + 2, k], y[r + 3, k] = k0 + b[k], k1 + b[k], k2 + b[k], k3 + b[k]
        for r in range(rows - rows % 4, rows):
            for i in range(block, end):
                j, k = i + third, i + 2 * third
                i0 = j0 = k0 = ZERO
                for m in range(width):
                    v = x[r, m]
                    i0 += w[i, m] * v
                    j0 += w[j, m] * v
                    k0 += w[k, m] * v
                y[r, i], y[r, j], y[r, k] = i0 + b[i], j0 + b[j], k0 + b[k]
    for i in range(first + 3 * third, last):
        for r in range(rows):
            i0 = ZERO
            for m in range(width):
                i0 += w[i, m] * x[r, m]
            y[r, i] = i0 + b[i]


@kernel
def product(given: Any) -> None:
    """One thread's part: an equal share of the outputs."""
    x, w, b, y, rows, outputs, width, relu = carray(given, (8,)).astype(np.int64)
    first, last = outputs * _thread() // _threads(), outputs * (_thread() + 1) // _threads()
    output = carray(_floats(y), (rows, outputs))
    _outputs(
        carray(_floats(x), (rows, width)),
        carray(_floats(w), (outputs, width)),
        carray(_floats(b), (outputs,)),
        output,
        first,
        last,
    )
    if relu:
        for r in range(rows):
            for i in range(first, last):
                output[r, i] = max(output[r, i], ZERO)


@intrinsic
def _as_float(_typing: Any, bits: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], context.get_value_type(types.float32))

    return types.float32(types.int32), build


@numba.njit(fastmath=SUMS)
def _exp(x: Any) -> Any:
    """e^x of a number that is not positive, to 2 units in the last place: 2^n e^f with |f| <= ln 2 / 2 (Cephes's
    polynomial); written out because a call cannot be done for eight numbers at once."""
    x = max(x, LOWEST)
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    f = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    return (p * f * f + f + np.float32(1)) * _as_float((np.int32(n) + np.int32(127)) << np.int32(23))


@numba.njit(fastmath=SUMS)
def _softmax(scores: Any) -> None:
    """In place; zeros where everything is -inf."""
    most = ZERO - np.float32(np.inf)
    for p in range(len(scores)):
        most = max(most, scores[p])
    if most == -np.inf:
        scores[:] = 0
        return
    total = ZERO
    for p in range(len(scores)):
        scores[p] = _exp(scores[p] - most)
        total += scores[p]
    for p in range(len(scores)):
        scores[p] /= total


@numba.njit(fastmath=SUMS)
def _look(query: Any, key: int, value: int, step: int, weights: Any, output: Any, scale: Any) -> None:
    """One query: the keys and values begin at addresses and are `step` numbers apart; `weights` hold the bias, and -inf
    where it may not look."""
    size = len(query)
    for p in range(len(weights)):
        if weights[p] > -np.inf:
            k, score = carray(_floats(key + 4 * p * step), (size,)), ZERO
            for d in range(size):
                score += query[d] * k[d]
            weights[p] += score * scale
    _softmax(weights)
    output[:] = 0
    for p in range(len(weights)):
        weight = weights[p]
        if weight > NOTHING:
            v = carray(_floats(value + 4 * p * step), (size,))
            for d in range(size):
                output[d] += weight * v[d]


@kernel
def attend(given: Any) -> None:
    """One thread's part: an equal share of the heads of all groups."""
    numbers = carray(given, (26,)).astype(np.int64)
    groups, heads, width, keys, size = numbers[:5]
    y, weights, q, q_row, q_head, k, v, at_group, at_head, step = numbers[6:16]
    mask, mask_group, mask_head, mask_row, mask_key, bias, bias_group, bias_head, bias_row, bias_key = numbers[16:]
    scale, me, threads = np.float32(given[5]), _thread(), _threads()
    for unit in range(groups * heads * me // threads, groups * heads * (me + 1) // threads):
        g, h = unit // heads, unit % heads
        at = 4 * (g * at_group + h * at_head)
        for r in range(width):
            row = carray(_floats(weights + 4 * (unit * width + r) * keys), (keys,))
            row[:] = 0
            if bias:
                first = bias + 4 * (g * bias_group + h * bias_head + r * bias_row)
                for p in range(keys):
                    row[p] = carray(_floats(first + 4 * p * bias_key), (1,))[0]
            if mask:
                first = mask + g * mask_group + h * mask_head + r * mask_row
                for p in range(keys):
                    if not carray(_bytes(first + p * mask_key), (1,))[0]:
                        row[p] = -np.inf
            query = carray(_floats(q + 4 * ((g * width + r) * q_row + h * q_head)), (size,))
            output = carray(_floats(y + 4 * ((g * width + r) * heads + h) * size), (size,))
            _look(query, k + at, v + at, step, row, output, scale)


@numba.njit(fastmath=SUMS)
def _normed(x: Any, y: Any, w: Any, b: Any, output: Any, epsilon: float) -> None:
    width, mean, variance = np.float32(len(x)), ZERO, ZERO
    for m in range(len(x)):
        output[m] = x[m] + y[m]
        mean += output[m]
    mean /= width
    for m in range(len(x)):
        variance += (output[m] - mean) * (output[m] - mean)
    scale = np.float32(1 / np.sqrt(variance / width + epsilon))
    for m in range(len(x)):
        output[m] = (output[m] - mean) * scale * w[m] + b[m]


@kernel
def normed_sum(given: Any) -> None:
    """One thread's part: an equal share of the rows."""
    x, y, weight, bias, output, rows, width = carray(given, (7,)).astype(np.int64)
    w, b = carray(_floats(weight), (width,)), carray(_floats(bias), (width,))
    for r in range(rows * _thread() // _threads(), rows * (_thread() + 1) // _threads()):
        one, other = carray(_floats(x + 4 * r * width), (width,)), carray(_floats(y + 4 * r * width), (width,))
        _normed(one, other, w, b, carray(_floats(output + 4 * r * width), (width,)), given[7])


@kernel
def store(given: Any) -> None:
    """One thread's part: an equal share of the groups."""
    numbers = carray(given, (11,)).astype(np.int64)
    groups, width, heads, size, pairs, row, half, buffer, to_half, to_group, to_head = numbers
    for g in range(groups * _thread() // _threads(), groups * (_thread() + 1) // _threads()):
        for r in range(width):
            for n in range(2):
                for h in range(heads):
                    old = carray(_floats(pairs + 4 * ((g * width + r) * row + n * half + h * size)), (size,))
                    new = carray(_floats(buffer + 4 * (n * to_half + g * to_group + h * to_head + r * size)), (size,))
                    for d in range(size):
                        new[d] = old[d]
