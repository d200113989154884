# SPDX-License-Identifier: Apache-2.0
"""Pools and resizes."""

import numpy as np

from cases._plain import QUANTIZED, floats, middle_zero_point, quantization
from cases._scales import limits, random_quantized
from onemodel import Model, seeded

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]

# (input shape, window, stride, padding): odd sizes, 1x1 images, windows beyond the image, strides beyond the window
POOLS = [
    ([1, 5, 5, 3], (2, 2), (2, 2), "VALID"),
    ([2, 5, 4, 2], (3, 3), (1, 2), "SAME"),
    ([1, 1, 1, 5], (1, 1), (1, 1), "SAME"),
    ([1, 4, 6, 1], (4, 6), (1, 1), "VALID"),
    ([1, 3, 3, 2], (7, 5), (2, 3), "SAME"),
    ([1, 7, 6, 2], (2, 1), (3, 4), "SAME"),
    ([1, 2, 3, 17], (2, 2), (1, 1), "SAME"),
]


def pool_output(shape, window, stride, padding):
    sizes = []
    for size, w, s in zip(shape[1:3], window, stride):
        sizes.append(-(-size // s) if padding == "SAME" else (size - w) // s + 1)
    return [shape[0], *sizes, shape[3]]


def pool_case(operator, name, dtype, pool, activation, params, values):
    shape, window, stride, padding = pool
    m = Model()
    x = m.input("x", dtype, shape, **quantization(params))
    y = m.output("y", dtype, pool_output(*pool), **quantization(params))
    m.op(operator, [x], [y], padding=padding, filter_height=window[0], filter_width=window[1], stride_h=stride[0],
         stride_w=stride[1], fused_activation_function=activation)
    return operator, name, m, [values]


def pool_cases(operator, dtypes):
    for dtype in dtypes:
        for i, pool in enumerate(POOLS):
            activation = ACTIVATIONS[i % 4]
            name = f"{dtype}_{i}_{activation.lower()}"
            rng = seeded(operator + name)
            values = floats(rng, pool[0]) if dtype == "float32" else random_quantized(rng, dtype, pool[0])
            params = None if dtype == "float32" else (12.0 / (limits(dtype)[1] * 2), middle_zero_point(dtype))
            yield pool_case(operator, name, dtype, pool, activation, params, values)
        for activation in ACTIVATIONS:
            pool = POOLS[1]
            rng = seeded(f"{operator} {dtype} {activation}")
            values = floats(rng, pool[0]) if dtype == "float32" else random_quantized(rng, dtype, pool[0])
            params = None if dtype == "float32" else (0.05 if dtype != "int16" else 0.0005, middle_zero_point(dtype))
            yield pool_case(operator, f"{dtype}_activation_{activation.lower()}", dtype, pool, activation, params, values)
        if dtype in ("int8", "uint8"):
            for zero_point in limits(dtype):
                values = random_quantized(seeded(f"{operator} {zero_point}"), dtype, POOLS[0][0])
                yield pool_case(operator, f"{dtype}_zero_point_{zero_point}", dtype, POOLS[0], "RELU6", (0.1, zero_point), values)
        if dtype != "float32":
            # All sums that a window of four can have around zero: rounding of halves and negatives.
            low = -9 if dtype != "uint8" else 0
            values = np.repeat(np.arange(low, low + 18), 4).reshape(1, 18, 4, 1)
            values = values + np.array([0, 0, 1, 0] if operator != "MAX_POOL_2D" else [0] * 4).reshape(1, 1, 4, 1)
            yield pool_case(operator, f"{dtype}_rounding", dtype, ([1, 18, 4, 1], (2, 2), (1, 1), "VALID"), "NONE",
                            (0.1, middle_zero_point(dtype)), values)
    if operator == "AVERAGE_POOL_2D":
        yield pool_case(operator, "int8_large_window", "int8", ([1, 40, 33, 1], (40, 33), (40, 33), "VALID"), "NONE", (0.1, 0), None)
        yield pool_case(operator, "float32_large_window", "float32", ([1, 40, 33, 1], (40, 33), (1, 1), "VALID"), "NONE", None, None)
    special = np.array([np.inf, -np.inf, np.nan, 1, np.nan, np.nan, -2, 5, -np.inf], np.float32).reshape(1, 3, 3, 1)
    yield pool_case(operator, "float32_not_finite", "float32", ([1, 3, 3, 1], (2, 2), (1, 1), "VALID"), "NONE", None, special)


RESIZES = [([1, 2, 2, 1], [3, 3]), ([2, 3, 4, 2], [7, 5]), ([1, 5, 7, 3], [2, 3]), ([1, 1, 1, 4], [3, 2]),
           ([1, 4, 4, 1], [4, 4]), ([1, 3, 5, 2], [1, 1]), ([1, 6, 5, 1], [13, 11])]


def resize_case(operator, name, dtype, shape, size, align, half, values, computed_size=False, **options):
    params = None if dtype == "float32" else (0.1, middle_zero_point(dtype))
    m = Model()
    x = m.input("x", dtype, shape, **quantization(params))
    s = m.input("size", "int32", [2]) if computed_size else m.const("size", np.array(size, np.int32))
    y = m.output("y", dtype, [shape[0], *size, shape[3]], **quantization(params))
    m.op(operator, [x, s], [y], align_corners=align, half_pixel_centers=half)
    return operator, name, m, [values, *([np.array(size, np.int32)] if computed_size else [])], options


def resize_cases(operator):
    modes = [(False, False), (True, False), (False, True)]
    if operator == "RESIZE_NEAREST_NEIGHBOR":
        modes.append((True, True))
    for dtype in ("float32", *QUANTIZED):
        for i, (shape, size) in enumerate(RESIZES):
            for align, half in modes:
                few = operator != "RESIZE_BILINEAR" and dtype != "float32"  # nearest neighbours only move bytes
                if i >= 3 and (few or (not half if dtype != "int8" else align)):
                    continue
                name = f"{dtype}_{i}" + ("_align" if align else "") + ("_half" if half else "")
                rng = seeded(operator + name)
                values = floats(rng, shape) if dtype == "float32" else random_quantized(rng, dtype, shape)
                yield resize_case(operator, name, dtype, shape, size, align, half, values)
    yield resize_case(operator, "int8_computed_size", "int8", [1, 3, 3, 2], [4, 5], False, True, None, computed_size=True)
    yield resize_case(operator, "wide", "int8", [1, 2, 40, 1], [3, 90], True, False, None)
    if operator == "RESIZE_BILINEAR":
        yield resize_case(operator, "both_modes", "int8", [1, 3, 3, 1], [4, 5], True, True, None, expect_error=True)
        yield resize_case(operator, "size_zero", "int8", [1, 3, 3, 1], [0, 5], False, False, None, expect_error=True)


def cases():
    yield from pool_cases("AVERAGE_POOL_2D", ["float32", *QUANTIZED])
    yield from pool_cases("MAX_POOL_2D", ["float32", *QUANTIZED])
    yield from pool_cases("L2_POOL_2D", ["float32"])
    yield from resize_cases("RESIZE_BILINEAR")
    yield from resize_cases("RESIZE_NEAREST_NEIGHBOR")
