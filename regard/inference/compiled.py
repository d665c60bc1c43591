"""The kernels of `regard.inference.kernels`, compiled by Numba. Each sees one array of numbers, addresses among them,
and does one thread's part.

Weights are read in panels: as many outputs as a register has numbers stand together, (P, M, LANES), so that one number
of a row is multiplied by a whole register of weights. A product of few rows reads every weight for a handful of
operations, and what counts is how fast memory arrives: every thread reads three panels at the same time that lie far
apart, which the memory answers 1.5 times as fast as one after the other.

All of them stand in one file, because what Numba keeps on disk is made anew only when that file changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

SUMS = {"reassoc", "contract", "nsz"}
"""A sum may be formed in any order, and a product be added in one operation; infinities stay what they are."""

_said = get_host_cpu_features() if numba.config.CPU_FEATURES is None else numba.config.CPU_FEATURES
_ABLE = {name.removeprefix("+") for name in _said.split(",") if name.startswith("+")}
"""What the processor can, and Numba's settings (`NUMBA_ENABLE_AVX`, `NUMBA_CPU_NAME`) allow."""
LANES = 16 if "avx512f" in _ABLE else 8
ROWS = 8 if LANES == 16 else 4
"""Numbers in a register, and rows that are multiplied at once: with three panels of weights, their sums still fit."""

BYTES = ("avx512vnni" if LANES == 16 else "avxvnni") in _ABLE
"""Whether the processor adds four products of bytes to each number of a register at once (VNNI)."""
FLOAT, WIDENED, ROUNDED = 0, 1, 2
"""Products by weights of float32; by weights of 8 bits, made float32 as they are read; and by those of rows that were
rounded to 8 bits too: weights are 128 too large there, because VNNI wants them positive, and stand in fours."""
TOGETHER = 8
"""So few rows are summed, normed and rounded by every thread for itself, all of which write the same: that is faster
than to wait for each other. What they read meanwhile, none of them may change."""

AHEAD = 768
"""So many bytes before a few rows need weights, they are asked for: the processor by itself asks too late at the
beginning of each page, and panels of 8 bits are two of them."""

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
_signed, _integers = _memory(types.int8), _memory(types.int32)


def _tile(rows: int, panels: int, kind: int) -> Any:
    """A function that multiplies so many rows by so many panels, whose sums all stay in registers.

    It is told, in bytes, where the rows begin and how far they are apart; the same of the panels; how many times four
    bytes of a row there are; where the biases begin; where the outputs do, how far their rows are apart, and those of
    two panels. Of weights in 8 bits, the outputs' scales begin `scales` bytes after their biases. What `_round` leaves
    of a row's sum and scale follows the row.
    """
    pairs, short, integer = [(r, p) for r in range(rows) for p in range(panels)], ir.IntType(32), ir.IntType(64)
    vector, whole = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(short, LANES)
    fours = ir.VectorType(ir.IntType(8), 4 * LANES)
    kept = {FLOAT: vector, WIDENED: ir.VectorType(ir.IntType(8), LANES), ROUNDED: fours}[kind]

    @intrinsic
    def tile(
        _typing: Any,
        x: Any,
        x_row: Any,
        w: Any,
        w_panel: Any,
        depth: Any,
        b: Any,
        scales: Any,
        y: Any,
        y_row: Any,
        y_panel: Any,
    ) -> Any:
        def build(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            x, x_row, w, w_panel, depth, b, scales, y, y_row, y_panel = values

            def load(what: Any, first: Any, *moves: tuple[Any, Any]) -> Any:
                return builder.load(_place(builder, what, first, *moves), align=1)

            def call(name: str, result: Any, *given: Any) -> Any:
                of = ir.FunctionType(result, [one.type for one in given])
                return builder.call(cgutils.get_or_insert_function(builder.module, of, name), given)

            fused = partial(call, f"llvm.fmuladd.v{LANES}f32", vector)
            biases = [load(vector, b, (y_panel, integer(p))) for p in range(panels)]
            beside, nothing = builder.add(x, builder.mul(depth, integer(4))), ir.Constant(vector, [0.0] * LANES)
            begin = {(r, p): biases[p] if kind == FLOAT else nothing for r, p in pairs}
            if kind == ROUNDED:
                totals = [_alike(builder, load(short, beside, (x_row, integer(r)))) for r in range(rows)]
                begin = {(r, p): totals[r] for r, p in pairs}
            sums = {pair: cgutils.alloca_once_value(builder, first) for pair, first in begin.items()}
            with cgutils.for_range(builder, depth) as loop:
                m = loop.index
                along = (m, integer(LANES if kind == WIDENED else 4 * LANES))
                weights = [load(kept, w, along, (w_panel, integer(p))) for p in range(panels)]
                for p in range(panels if rows < ROWS else 0):
                    later = (integer(AHEAD), integer(1))
                    ahead = _place(builder, ir.IntType(8), w, along, (w_panel, integer(p)), later)
                    call("llvm.prefetch.p0", ir.VoidType(), ahead, short(0), short(3), short(1))
                if kind == WIDENED:
                    weights = [builder.sitofp(builder.sext(one, whole), vector) for one in weights]
                for r in range(rows):
                    one = load(short if kind == ROUNDED else ir.FloatType(), x, (m, integer(4)), (x_row, integer(r)))
                    alike = builder.bitcast(_alike(builder, one), kept if kind == ROUNDED else vector)
                    for p in range(panels):
                        before = builder.load(sums[r, p])
                        if kind == ROUNDED:
                            added = call(f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", whole, before, weights[p], alike)
                        else:
                            added = fused(weights[p], alike, before)
                        builder.store(added, sums[r, p])
            for r, p in pairs:
                output = builder.load(sums[r, p])
                if kind != FLOAT:
                    scale = load(vector, builder.add(b, scales), (y_panel, integer(p)))
                    if kind == ROUNDED:
                        own = load(ir.FloatType(), beside, (x_row, integer(r)), (integer(4), integer(1)))
                        scale = builder.fmul(scale, _alike(builder, own))
                        output = builder.sitofp(output, vector)
                    output = fused(output, scale, biases[p])
                builder.store(output, _place(builder, vector, y, (y_row, integer(r)), (y_panel, integer(p))), align=1)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 10), build

    return tile


def _alike(builder: Any, one: Any) -> Any:
    """A register full of one number."""
    places, vector = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(one.type, LANES)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), one, ir.IntType(32)(0))
    return builder.shuffle_vector(first, first, ir.Constant(places, [0] * LANES))


def _place(builder: Any, kind: Any, first: Any, *moves: tuple[Any, Any]) -> Any:
    """An address and how often how many bytes further, as that of a number of a kind."""
    for bytes_, times in moves:
        first = builder.add(first, builder.mul(bytes_, times))
    return builder.inttoptr(first, kind.as_pointer())


def _products(kind: int) -> Any:
    """One thread's part of a product. A row has `width` times four bytes, and eight more if it was rounded."""
    many, four, one, edge = (_tile(*shape, kind) for shape in ((ROWS, 3), (4, 3), (1, 3), (1, 1)))
    panel_row, beside = LANES if kind == WIDENED else 4 * LANES, 8 if kind == ROUNDED else 0

    @numba.njit
    def three(x: int, w: int, b: int, y: int, rows: int, outputs: int, width: int, panel: int, apart: int) -> None:
        """The outputs of three panels, so many apart, for all rows. The last rows of several at a time may have been
        met before: that is faster than one by one."""
        size, row, y_row, over = panel_row * width, 4 * width + beside, 4 * outputs, 4 * LANES * apart
        scales = 4 * LANES * ((outputs + LANES - 1) // LANES)
        w, b, y = w + panel * size, b + 4 * LANES * panel, y + 4 * LANES * panel
        if rows >= ROWS:
            for n in range(0, rows, ROWS):
                r = min(n, rows - ROWS)
                many(x + r * row, row, w, apart * size, width, b, scales, y + r * y_row, y_row, over)
        elif rows >= 4:
            for n in range(0, rows, 4):
                r = min(n, rows - 4)
                four(x + r * row, row, w, apart * size, width, b, scales, y + r * y_row, y_row, over)
        else:
            for r in range(rows):
                one(x + r * row, row, w, apart * size, width, b, scales, y + r * y_row, y_row, over)

    @numba.njit
    def product(x: int, w: int, b: int, y: int, rows: int, outputs: int, width: int) -> None:
        panels = (outputs + LANES - 1) // LANES
        begin, end = _share(panels)
        whole = min(end, outputs // LANES)
        third = (whole - begin) // 3
        for panel in range(begin, begin + third):
            three(x, w, b, y, rows, outputs, width, panel, third)
        if third and begin + 3 * third < whole:
            three(x, w, b, y, rows, outputs, width, whole - 3, 1)
        for panel in range(whole if third else begin, whole):  # fewer than three: each in all three places
            three(x, w, b, y, rows, outputs, width, panel, 0)
        output, room = carray(_floats(y), (rows, outputs)), np.empty(LANES, np.float32)
        for panel in range(whole, end):
            at, bias, first = w + panel * panel_row * width, b + 4 * LANES * panel, LANES * panel
            for r in range(rows):
                edge(x + r * (4 * width + beside), 0, at, 0, width, bias, 4 * LANES * panels, room.ctypes.data, 0, 0)
                for i in range(first, min(first + LANES, outputs)):
                    output[r, i] = room[i - first]

    return product


_product_float, _product_widened = _products(FLOAT), _products(WIDENED)
_product_rounded = _products(ROUNDED) if BYTES else _product_widened  # a name to compile; nobody calls it then


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
def _look(query: Any, key: int, value: int, step: int, weights: Any, places: Any, output: Any, scale: Any) -> None:
    """One query: the keys and values begin at addresses and are `step` numbers apart; `weights` hold the bias, and -inf
    where it may not look: most of what beams have written, so that the places where it may are listed first."""
    size, count = len(query), 0
    for p in range(len(weights)):
        if weights[p] > -np.inf:
            weights[count], places[count] = weights[p], p
            count += 1
    for n in range(count):
        k, score = carray(_floats(key + 4 * places[n] * step), (size,)), ZERO
        for d in range(size):
            score += query[d] * k[d]
        weights[n] += score * scale
    _softmax(weights[:count])
    output[:] = 0
    for n in range(count):
        weight = weights[n]
        if not weight <= NOTHING:  # what is no number is seen in the output
            v = carray(_floats(value + 4 * places[n] * step), (size,))
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


@numba.njit(error_model="numpy")
def _round(x: int, room: int, rows: int, width: int) -> None:
    """One thread's part: rows of float32 in 8 bits, each filled up to fours; then -128 times their sum, and the scale
    by which they were divided. Rows that hold no number stay so: their scale is none."""
    fours = (width + 3) // 4
    first, last = (0, rows) if rows <= TOGETHER else _share(rows)
    for r in range(first, last):
        at = room + r * (4 * fours + 8)
        row, bits = carray(_floats(x + 4 * r * width), (width,)), carray(_integers(x + 4 * r * width), (width,))
        most = np.int32(0)
        for m in range(width):  # whole numbers are as large as the floats that have their bits
            most = max(most, bits[m] & np.int32(0x7FFFFFFF))
        scale = _as_float(most) / np.float32(127)
        back = np.float32(1) / scale if scale > ZERO else ZERO
        rounded, total = carray(_signed(at), (4 * fours,)), np.int32(0)
        for m in range(width):
            one = np.int32(np.rint(row[m] * back))
            rounded[m] = one
            total += one
        rounded[width:] = 0
        carray(_integers(at + 4 * fours), (1,))[0] = -128 * total
        carray(_floats(at + 4 * fours + 4), (1,))[0] = scale
    if rows > TOGETHER:
        _wait()


@numba.njit
def _product(
    x: int, w: int, b: int, y: int, rows: int, outputs: int, width: int, activation: int, kind: int, room: int
) -> None:
    """One thread's part: an equal share of the panels, three at a time that are a third of them apart."""
    if kind == ROUNDED:
        _round(x, room, rows, width)
        _product_rounded(room, w, b, y, rows, outputs, (width + 3) // 4)
    elif kind == WIDENED:
        _product_widened(x, w, b, y, rows, outputs, width)
    else:
        _product_float(x, w, b, y, rows, outputs, width)
    output = carray(_floats(y), (rows, outputs))
    begin, end = _share((outputs + LANES - 1) // LANES)
    first, last = LANES * begin, min(LANES * end, outputs)
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
    x, w, b, y, rows, outputs, width, activation, kind, room = carray(given, (10,)).astype(np.int64)
    _product(x, w, b, y, rows, outputs, width, activation, kind, room)


@numba.njit
def _store(token: Any, g: int, h: int) -> None:
    """The keys and values of a token, of one head of a group."""
    _, width, _, size, pairs, row, half, buffer, to_half, to_group, to_head = token
    for r in range(width):
        for n in range(2):
            old = carray(_floats(pairs + 4 * ((g * width + r) * row + n * half + h * size)), (size,))
            new = carray(_floats(buffer + 4 * (n * to_half + g * to_group + h * to_head + r * size)), (size,))
            for d in range(size):
                new[d] = old[d]


@kernel
def store(given: Any) -> None:
    token = carray(given, (11,)).astype(np.int64)
    groups, heads = token[0], token[2]
    first, last = _share(groups * heads)
    for unit in range(first, last):
        _store(token, unit // heads, unit % heads)


@numba.njit
def _attend(numbers: Any, scale: Any, token: Any) -> None:
    """One thread's part: an equal share of the heads of all groups. A `token` is stored first, if there is any."""
    groups, heads, width, keys, size = numbers[:5]
    y, weights, q, q_row, q_head, k, v, at_group, at_head, step = numbers[5:15]
    mask, mask_group, mask_head, mask_row, mask_key, bias, bias_group, bias_head, bias_row, bias_key = numbers[15:25]
    first, last = _share(groups * heads)
    places = np.empty(keys, np.int64)
    for unit in range(first, last):
        g, h = unit // heads, unit % heads
        at = 4 * (g * at_group + h * at_head)
        if len(token):
            _store(token, g, h)
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
            _look(query, k + at, v + at, step, row, places, output, scale)


@kernel
def attend(given: Any) -> None:
    _attend(carray(given, (25,)).astype(np.int64), np.float32(carray(given, (26,))[25]), np.empty(0, np.int64))


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
def _connect(
    x: int, y: int, sum_: int, w: int, b: int, normed: int, width: int, epsilon: float, first: int, last: int
) -> None:
    """Some rows of x + y if there is a y, and their norm if there are weights."""
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
    first, last = _share(rows)
    _connect(x, y, output, weight, bias, output, width, carray(given, (8,))[7], first, last)


@numba.njit
def _connect_rows(
    x: int, y: int, sum_: int, w: int, b: int, normed: int, rows: int, width: int, epsilon: float
) -> None:
    """`_connect` of all rows, which every thread can read afterwards. No two of the places may be the same."""
    if rows <= TOGETHER:
        _connect(x, y, sum_, w, b, normed, width, epsilon, 0, rows)
    else:
        first, last = _share(rows)
        _connect(x, y, sum_, w, b, normed, width, epsilon, first, last)
        _wait()


@numba.njit
def _layer(table: int, token: Any, own: Any, memory: Any, rows: int, x: int, y: int, room: int) -> None:
    """One thread's part of a layer: self-attention, attention over the memory if there is one, feed-forward, and what
    stands around them. The layer's sizes and weights are in a table of their own."""
    numbers = carray(_doubles(table), (29,))
    width, joined, inner, activation, pre, cross, kind = numbers[:7].astype(np.int64)
    epsilon, scale, sides = numbers[7], np.float32(numbers[8]), numbers[9:].astype(np.int64)
    in_w, in_b, out_w, out_b, inner_w, inner_b, back_w, back_b, q_w, q_b, read_w, read_b = sides[:12]
    norms = sides[12:]
    parts = room
    heads = parts + 4 * rows * 3 * joined
    added = heads + 4 * rows * joined
    summed = added + 4 * rows * width
    normed = summed + 4 * rows * width
    summed_again = normed + 4 * rows * width
    normed_again = summed_again + 4 * rows * width
    wide = normed_again + 4 * rows * width
    rounded = wide + 4 * rows * inner
    if pre:
        _connect_rows(x, 0, 0, norms[0], norms[1], normed, rows, width, epsilon)
    seen = normed if pre else x
    _product(seen, in_w, in_b, parts, rows, 3 * joined, width, 0, kind, rounded)
    _wait()
    _attend(own, scale, token)
    _wait()
    _product(heads, out_w, out_b, added, rows, width, joined, 0, kind, rounded)
    _wait()
    after = 2 if pre else 0
    _connect_rows(x, added, summed, norms[after], norms[after + 1], normed, rows, width, epsilon)
    x = summed if pre else normed
    if cross:
        _product(normed, q_w, q_b, parts, rows, joined, width, 0, kind, rounded)
        _wait()
        _attend(memory, scale, token[:0])
        _wait()
        _product(heads, read_w, read_b, added, rows, width, joined, 0, kind, rounded)
        _wait()
        after += 2
        _connect_rows(x, added, summed_again, norms[after], norms[after + 1], normed_again, rows, width, epsilon)
        x, normed = summed_again if pre else normed_again, normed_again
    _product(normed, inner_w, inner_b, wide, rows, inner, width, activation, kind, rounded)
    _wait()
    _product(wide, back_w, back_b, added, rows, width, inner, 0, kind, rounded)
    _wait()
    after += 2
    _connect_rows(x, added, y if pre else summed, 0 if pre else norms[after], norms[after + 1], y, rows, width, epsilon)


@kernel
def layers(given: Any) -> None:
    """A token's way through the layers of a decoder, one after the other. What is said of the first one's attentions
    holds for all, but for the places of keys and values, which follow. From the second layer on, what is read and what
    is written are in one place."""
    count, rows, x, y, room, size = carray(given, (6,)).astype(np.int64)
    told = carray(given, (6 + size + 4 * count,))[6:].astype(np.int64)
    token, own, memory = told[:11], told[11:36], told[36:size]
    ahead, apart = token[7] - own[10], own[11] - own[10]
    for n in range(count):
        table, pairs, key, value = told[size + 4 * n : size + 4 * n + 4]
        token[7], own[10], own[11] = pairs + ahead, pairs, pairs + apart
        if len(memory):
            memory[10], memory[11] = key, value
        _layer(table, token, own, memory, rows, y if n else x, y, room)
