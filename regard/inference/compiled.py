"""The kernels of `regard.inference.kernels`, compiled by Numba. Each sees one array of numbers, addresses among them,
and does one thread's part.

A product of few rows reads every weight for a handful of operations, so what counts is how fast memory arrives.
Libraries read a matrix row after row; here every thread reads three rows at the same time that lie far apart, which the
memory answers 1.5 times as fast.

All of them stand in one file, because what Numba keeps on disk is made anew only when that file changes.
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

BLOCK, DEPTH = 32, 1024
"""Outputs of each third that four rows are multiplied into before the next four, and how much of a long row at a time:
the four stay in the nearest cache, the weights in the second."""

ZERO, LOWEST = np.float32(0), np.float32(-87)
NOTHING = np.float32(1e-30)
"""Weights below this, as those of forbidden places, change no sum."""

_thread = types.ExternalFunction("omp_get_thread_num", types.int32())
_threads = types.ExternalFunction("omp_get_num_threads", types.int32())
_wait = types.ExternalFunction("GOMP_barrier", types.void())
"""Until all threads have come here. None may leave before, as by an error: hence Numpy's rules for divisions."""


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


_floats, _bytes, _doubles = _memory(types.float32), _memory(types.uint8), _memory(types.float64)


@numba.njit(fastmath=SUMS)
def _outputs(x: Any, w: Any, b: Any, y: Any, first: int, last: int) -> None:
    """Outputs `first` to `last` of every row, three at a time that are a third of them apart, four rows at a time."""
    rows, width = x.shape
    third = (last - first) // 3
    depth = np.uint64(DEPTH if rows > 8 else width)  # no sign: what cannot count from the end is done for many at once
    for block in range(first, first + third, BLOCK):
        end = min(block + BLOCK, first + third)
        for begin in range(np.uint64(0), np.uint64(width), depth):
            stop = min(begin + depth, np.uint64(width))
            for n in range(0, rows if rows > 3 else 0, 4):
                r = min(n, rows - 4)  # of the last four some may have been met before: that is faster than one by one
                for i in range(block, end):
                    j, k = i + third, i + 2 * third
                    i0 = i1 = i2 = i3 = j0 = j1 = j2 = j3 = k0 = k1 = k2 = k3 = ZERO
                    for m in range(begin, stop):  # one row after the other, so that all twelve sums stay in registers
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
                    _add(y, r, i, i0, i1, i2, i3, b[i], begin == 0, n)
                    _add(y, r, j, j0, j1, j2, j3, b[j], begin == 0, n)
                    _add(y, r, k, k0, k1, k2, k3, b[k], begin == 0, n)
        for r in range(0 if rows > 3 else rows):
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


@numba.njit
def _add(y: Any, r: int, i: int, s0: Any, s1: Any, s2: Any, s3: Any, bias: Any, begins: bool, new: int) -> None:
    """Output i of four rows: the sums of the first part of each with the bias, or those of a further part, which rows
    before `new` have already."""
    if begins:
        y[r, i], y[r + 1, i], y[r + 2, i], y[r + 3, i] = s0 + bias, s1 + bias, s2 + bias, s3 + bias
    else:
        y[r, i] += s0 if r >= new else ZERO
        y[r + 1, i] += s1 if r + 1 >= new else ZERO
        y[r + 2, i] += s2 if r + 2 >= new else ZERO
        y[r + 3, i] += s3


@intrinsic
def _as_float(_typing: Any, bits: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], context.get_value_type(types.float32))

    return types.float32(types.int32), build


@numba.njit(fastmath=SUMS, error_model="numpy")
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


@numba.njit(fastmath=SUMS, error_model="numpy")
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


@numba.njit
def _share(count: int) -> tuple[int, int]:
    """Where this thread's part of so many things begins and ends."""
    return count * _thread() // _threads(), count * (_thread() + 1) // _threads()


@numba.njit(fastmath=SUMS, error_model="numpy")
def _gelu(x: Any) -> Any:
    """x Φ(x), with the error function to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26)."""
    z = abs(x) * np.float32(0.70710678)
    t = np.float32(1) / (np.float32(1) + np.float32(0.3275911) * z)
    p = np.float32(1.061405429)
    p = p * t - np.float32(1.453152027)
    p = p * t + np.float32(1.421413741)
    p = p * t - np.float32(0.284496736)
    p = p * t + np.float32(0.254829592)
    beyond = np.float32(0.5) * p * t * _exp(-z * z)  # 1 - Φ(|x|)
    return x * (np.float32(1) - beyond if x > ZERO else beyond)


@numba.njit(fastmath=SUMS, error_model="numpy")
def _gelu_tanh(x: Any) -> Any:
    """x σ(2u), which is x (1 + tanh u) / 2 for u = √(2/π) (x + 0.044715 x³)."""
    u = np.float32(1.59576912) * (x + np.float32(0.044715) * x * x * x)
    e = _exp(-abs(u))
    return x * (np.float32(1) if u > ZERO else e) / (np.float32(1) + e)


@numba.njit
def _product(x: int, w: int, b: int, y: int, rows: int, outputs: int, width: int, activation: int) -> None:
    """One thread's part: an equal share of the outputs."""
    first, last = _share(outputs)
    output = carray(_floats(y), (rows, outputs))
    inputs, weights = carray(_floats(x), (rows, width)), carray(_floats(w), (outputs, width))
    _outputs(inputs, weights, carray(_floats(b), (outputs,)), output, first, last)
    for r in range(rows if activation else 0):
        mine = output[r, first:last]
        if activation == 1:
            for i in range(len(mine)):
                mine[i] = max(mine[i], ZERO)
        elif activation == 2:
            for i in range(len(mine)):
                mine[i] = _gelu(mine[i])
        else:
            for i in range(len(mine)):
                mine[i] = _gelu_tanh(mine[i])


@kernel
def product(given: Any) -> None:
    x, w, b, y, rows, outputs, width, activation = carray(given, (8,)).astype(np.int64)
    _product(x, w, b, y, rows, outputs, width, activation)


@numba.njit
def _attend(numbers: Any, scale: Any) -> None:
    """One thread's part: an equal share of the heads of all groups."""
    groups, heads, width, keys, size = numbers[:5]
    y, weights, q, q_row, q_head, k, v, at_group, at_head, step = numbers[5:15]
    mask, mask_group, mask_head, mask_row, mask_key, bias, bias_group, bias_head, bias_row, bias_key = numbers[15:25]
    first, last = _share(groups * heads)
    for unit in range(first, last):
        g, h = unit // heads, unit % heads
        at = 4 * (g * at_group + h * at_head)
        for r in range(width):
            row = carray(_floats(weights + 4 * (unit * width + r) * keys), (keys,))
            row[:] = 0
            if bias:
                place = bias + 4 * (g * bias_group + h * bias_head + r * bias_row)
                for p in range(keys):
                    row[p] = carray(_floats(place + 4 * p * bias_key), (1,))[0]
            if mask:
                place = mask + g * mask_group + h * mask_head + r * mask_row
                for p in range(keys):
                    if not carray(_bytes(place + p * mask_key), (1,))[0]:
                        row[p] = -np.inf
            query = carray(_floats(q + 4 * ((g * width + r) * q_row + h * q_head)), (size,))
            output = carray(_floats(y + 4 * ((g * width + r) * heads + h) * size), (size,))
            _look(query, k + at, v + at, step, row, output, scale)


@kernel
def attend(given: Any) -> None:
    _attend(carray(given, (25,)).astype(np.int64), np.float32(carray(given, (26,))[25]))


@numba.njit(fastmath=SUMS, error_model="numpy")
def _norm(x: Any, w: Any, b: Any, output: Any, epsilon: float) -> None:
    width, mean, variance = np.float32(len(x)), ZERO, ZERO
    for m in range(len(x)):
        mean += x[m]
    mean /= width
    for m in range(len(x)):
        variance += (x[m] - mean) * (x[m] - mean)
    scale = np.float32(1 / np.sqrt(variance / width + epsilon))
    for m in range(len(x)):
        output[m] = (x[m] - mean) * scale * w[m] + b[m]


@numba.njit
def _connect(x: int, y: int, sum_: int, w: int, b: int, normed: int, rows: int, width: int, epsilon: float) -> None:
    """One thread's part, an equal share of the rows: x + y if there is a y, and its norm if there are weights."""
    first, last = _share(rows)
    for r in range(first, last):
        at = 4 * r * width
        summed = carray(_floats((sum_ if y else x) + at), (width,))
        if y:
            one, other = carray(_floats(x + at), (width,)), carray(_floats(y + at), (width,))
            for m in range(width):
                summed[m] = one[m] + other[m]
        if w:
            weight, bias = carray(_floats(w), (width,)), carray(_floats(b), (width,))
            _norm(summed, weight, bias, carray(_floats(normed + at), (width,)), epsilon)


@kernel
def normed_sum(given: Any) -> None:
    x, y, weight, bias, output, rows, width = carray(given, (7,)).astype(np.int64)
    _connect(x, y, output, weight, bias, output, rows, width, carray(given, (8,))[7])


@numba.njit
def _store(numbers: Any) -> None:
    """One thread's part: an equal share of the groups."""
    groups, width, heads, size, pairs, row, half, buffer, to_half, to_group, to_head = numbers
    first, last = _share(groups)
    for g in range(first, last):
        for r in range(width):
            for n in range(2):
                for h in range(heads):
                    old = carray(_floats(pairs + 4 * ((g * width + r) * row + n * half + h * size)), (size,))
                    new = carray(_floats(buffer + 4 * (n * to_half + g * to_group + h * to_head + r * size)), (size,))
                    for d in range(size):
                        new[d] = old[d]


@kernel
def store(given: Any) -> None:
    _store(carray(given, (11,)).astype(np.int64))


@kernel
def layer(given: Any) -> None:
    """A token's way through a decoder layer: self-attention, attention over the memory if there is one, feed-forward,
    and what stands around them. The layer's sizes and weights are in a table of their own."""
    table, rows, x, y, room = carray(given, (5,)).astype(np.int64)
    numbers = carray(_doubles(table), (28,))
    width, joined, inner, activation, pre, cross = numbers[:6].astype(np.int64)
    epsilon, scale, sides = numbers[6], np.float32(numbers[7]), numbers[8:].astype(np.int64)
    in_w, in_b, out_w, out_b, inner_w, inner_b, back_w, back_b, q_w, q_b, read_w, read_b = sides[:12]
    norms = sides[12:]
    parts = room
    heads = parts + 4 * rows * 3 * joined
    added = heads + 4 * rows * joined
    summed = added + 4 * rows * width
    normed = summed + 4 * rows * width
    wide = normed + 4 * rows * width
    if pre:
        _connect(x, 0, 0, norms[0], norms[1], normed, rows, width, epsilon)
        _wait()
    seen = normed if pre else x
    _product(seen, in_w, in_b, parts, rows, 3 * joined, width, 0)
    _wait()
    _store(carray(given, (16,))[5:].astype(np.int64))
    _wait()
    _attend(carray(given, (41,))[16:].astype(np.int64), scale)
    _wait()
    _product(heads, out_w, out_b, added, rows, width, joined, 0)
    _wait()
    after = 2 if pre else 0
    _connect(x, added, summed, norms[after], norms[after + 1], normed, rows, width, epsilon)
    _wait()
    x = summed if pre else normed
    if cross:
        _product(normed, q_w, q_b, parts, rows, joined, width, 0)
        _wait()
        _attend(carray(given, (66,))[41:].astype(np.int64), scale)
        _wait()
        _product(heads, read_w, read_b, added, rows, width, joined, 0)
        _wait()
        after += 2
        _connect(x, added, summed, norms[after], norms[after + 1], normed, rows, width, epsilon)
        _wait()
    _product(normed, inner_w, inner_b, wide, rows, inner, width, activation)
    _wait()
    _product(wide, back_w, back_b, added, rows, width, inner, 0)
    _wait()
    after += 2
    _connect(x, added, y, 0 if pre else norms[after], norms[after + 1], y, rows, width, epsilon)
