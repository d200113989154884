# SPDX-License-Identifier: Apache-2.0
"""Pools, resizes, reductions, index searches and the small ops that make or broadcast tensors.

Quantized MEAN and SUM and the NaN rules of ARG_MAX and ARG_MIN changed after TFLite 2.9: cases whose names start with
v2_9 are recorded from it.
SEGMENT_SUM is too, because LiteRT's reference resolver does not know it.
"""

import numpy as np

from cases._scales import fit, limits, random_quantized, real
from onemodel import Model, seeded

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]
QUANTIZED = ["int8", "uint8", "int16"]


def quantization(params):
    return {} if params is None else {"scale": params[0], "zero_point": params[1]}


def middle_zero_point(dtype):
    return {"int8": -3, "uint8": 120, "int16": 0}.get(dtype)


def floats(rng, shape, spread=5.0):
    """Normal values with some zeros of both signs among them."""
    values = np.asarray(rng.normal(0, spread, shape), np.float32)
    if values.size > 4:
        flat = values.reshape(-1)
        flat[rng.randint(flat.size)], flat[rng.randint(flat.size)] = 0.0, -0.0
    return values


def plain_values(rng, dtype, shape):
    if dtype == "float32":
        return floats(rng, shape)
    if dtype == "bool":
        return rng.randint(0, 2, shape).astype(bool)
    if dtype in ("int32", "int64"):
        return rng.randint(-1000, 1000, shape)
    return random_quantized(rng, dtype, shape)


# ---------------------------------------------------------------------------------------------------- pools

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


# -------------------------------------------------------------------------------------------------- resizes

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


# ----------------------------------------------------------------------------------------------- reductions

# (shape, axes, keep_dims)
REDUCTIONS = [
    ([2, 3, 4, 5], [1, 2], False),
    ([2, 3, 4, 3], [2], True),
    ([2, 3, 4], [0], False),
    ([2, 3, 4], [-1, 2, -1], True),
    ([3, 4], [0, 1], False),
    ([2, 2, 3, 2, 2], [0, 2, 4], False),
    ([7], [0], True),
    ([2, 3], [], False),
    ([1, 5, 1], [1], False),
]


def reduced_shape(shape, axes, keep_dims):
    gone = {a % len(shape) for a in axes} if shape else set()
    return [1 if i in gone else d for i, d in enumerate(shape) if keep_dims or i not in gone]


def reduce_case(operator, name, dtype, reduction, values, params=None, output_params=None, computed_axes=False, **options):
    shape, axes, keep_dims = reduction
    m = Model()
    x = m.input("x", dtype, shape, **quantization(params))
    a = m.input("axes", "int32", [len(axes)]) if computed_axes else m.const("axes", np.array(axes, np.int32))
    y = m.output("y", dtype, reduced_shape(*reduction), **quantization(params if output_params is None else output_params))
    m.op(operator, [x, a], [y], keep_dims=keep_dims)
    return operator, name, m, [values, *([np.array(axes, np.int32)] if computed_axes else [])], options


def plain_reduce_cases(operator, dtypes):
    for dtype in dtypes:
        # All shapes for the first type, a few for the others: what differs between them is arithmetic, not traversal.
        for i, reduction in enumerate(REDUCTIONS if dtype == dtypes[0] else REDUCTIONS[:2]):
            rng = seeded(f"{operator} {dtype} {i}")
            values = plain_values(rng, dtype, reduction[0])
            if operator == "REDUCE_PROD" and dtype == "float32":
                values = values / 3
            yield reduce_case(operator, f"{dtype}_{i}", dtype, reduction, values)
        yield reduce_case(operator, f"{dtype}_scalar", dtype, ([], [], False), plain_values(seeded("s"), dtype, []))
        yield reduce_case(operator, f"{dtype}_computed_axes", dtype, ([2, 3, 2], [-2], True),
                          plain_values(seeded(operator), dtype, [2, 3, 2]), computed_axes=True)
    if operator != "REDUCE_PROD":  # there an axis that does not exist kills the runtime
        yield reduce_case(operator, "axis_out_of_range", dtypes[0], ([2, 3], [2], False), None, expect_error=True)


def quantized_sum_or_mean(operator, name, dtype, reduction, params=None, output_params=None, values=None, **kwargs):
    rng = seeded(operator + name)
    low, high = limits(dtype)
    if params is None:
        zero_point = 0 if dtype == "int16" else int(rng.randint(low // 2, high // 2 + 1))
        params = (float(np.float32(rng.uniform(2, 12) / (high - low))), zero_point)
    if values is None:
        values = random_quantized(rng, dtype, reduction[0])
    if output_params is None:
        axes = tuple({a % len(reduction[0]) for a in reduction[1]})
        exact = real(values, *params)
        output_params = fit(exact.sum(axes) if operator == "SUM" else exact.mean(axes), dtype)
    return reduce_case(operator, name, dtype, reduction, values, params, output_params, **kwargs)


def image_means(prefix, dtype, count, **options):
    """Means over the axes 1 and 2 of images, for which 2.9 has kernels of its own."""
    for i in range(count):
        rng = seeded(f"{prefix} image mean {dtype} {i}")
        low, high = limits(dtype)
        shape = [int(rng.randint(1, 3)), int(rng.randint(1, 6)), int(rng.randint(1, 6)), int(rng.randint(1, 7))]
        params = (float(np.float32(rng.uniform(2, 20) / (high - low))), 0 if dtype == "int16" else int(rng.randint(low, high + 1)))
        values = random_quantized(rng, dtype, shape)
        output_params = params if i % 4 == 0 else fit(real(values, *params).mean((1, 2)), dtype)
        yield reduce_case("MEAN", f"{prefix}{dtype}_image_{i}", dtype, (shape, [[1, 2], [2, 1]][i % 2], True), values, params,
                          output_params, **options)


def int8_sum(name, reduction, **kwargs):
    """The recording runtime sums int8 as if it were uint8: right as long as nothing is negative, neither in nor out."""
    rng = seeded("SUM" + name)
    values = rng.randint(0, 128, reduction[0])
    params = (float(np.float32(rng.uniform(0.01, 0.1))), int(rng.randint(40, 90)))
    sums = real(values, *params).sum(tuple({a % len(reduction[0]) for a in reduction[1]}))
    low, high = min(0.0, float(np.min(sums))), max(0.0, float(np.max(sums)))
    scale = float(np.float32((high - low) / 120))
    return reduce_case("SUM", name, "int8", reduction, values, params, (scale, round(3 - low / scale)), **kwargs)


def sum_cases():
    yield from plain_reduce_cases("SUM", ["float32", "int32", "int64"])
    # int16 is left out: what the recording runtime returns for it is what was in memory.
    for i, reduction in enumerate(REDUCTIONS[:6]):
        yield int8_sum(f"int8_{i}", reduction)
        yield quantized_sum_or_mean("SUM", f"uint8_{i}", "uint8", reduction)
    yield from sum_or_mean_cases("SUM", ["uint8"])
    yield from old_sum_or_mean_cases("SUM")


def mean_cases():
    yield from plain_reduce_cases("MEAN", ["float32", "int32", "int64"])
    for dtype in QUANTIZED:
        for i, reduction in enumerate(REDUCTIONS[:6] if dtype == "int8" else REDUCTIONS[:2]):
            yield quantized_sum_or_mean("MEAN", f"{dtype}_{i}", dtype, reduction)
        yield from image_means("", dtype, 2)
        yield from image_means("v2_9_", dtype, 6 if dtype == "int8" else 3, runtime="tflite29")
    yield from sum_or_mean_cases("MEAN", ["int8"])
    yield from old_sum_or_mean_cases("MEAN")


def old_sum_or_mean_cases(operator):
    for dtype in QUANTIZED if operator == "MEAN" else ("int8", "uint8"):
        for i, reduction in enumerate(REDUCTIONS[:6] if dtype == "int8" else REDUCTIONS[:3]):
            yield quantized_sum_or_mean(operator, f"v2_9_{dtype}_{i}", dtype, reduction, runtime="tflite29")
    for dtype in QUANTIZED:
        params = (0.1, middle_zero_point(dtype))
        name = f"v2_9_{dtype}_same_scale"
        yield quantized_sum_or_mean(operator, name, dtype, REDUCTIONS[2], params, params, runtime="tflite29")
    params = (0.03, 9), (0.03, 9)
    yield quantized_sum_or_mean(operator, "v2_9_int8_same_scale_all", "int8", ([3, 4], [0, 1], False), *params, runtime="tflite29")
    yield quantized_sum_or_mean(operator, "v2_9_int8_image_negative_axes", "int8", ([1, 5, 3, 4], [-3, -2], True), runtime="tflite29")
    # Sums that do not fit the type.
    params = (0.5, 10), (0.1, -20)
    yield quantized_sum_or_mean(operator, "v2_9_int8_overflow", "int8", ([4, 5], [1], False), *params, runtime="tflite29")


def sum_or_mean_cases(operator, quantized_types):
    for dtype in quantized_types:
        for scales in ((0.1, 0.1), (1e-3, 5.0), (0.5, 0.01)):
            params = [(s, middle_zero_point(dtype)) for s in scales]
            yield quantized_sum_or_mean(operator, f"{dtype}_scales_{scales[0]}_{scales[1]}", dtype, REDUCTIONS[2], *params)
        for zero_point in limits(dtype) if dtype != "int16" else ():
            params = ((0.02, zero_point), (0.03, limits(dtype)[0] + limits(dtype)[1] - zero_point))
            yield quantized_sum_or_mean(operator, f"{dtype}_zero_point_{zero_point}", dtype, ([3, 7], [0], False), *params)
    yield quantized_sum_or_mean(operator, "uint8_computed_axes", "uint8", ([2, 3, 2], [1], False), computed_axes=True)
    yield quantized_sum_or_mean(operator, "uint8_image_kept", "uint8", ([1, 3, 3, 4], [1, 2], True))
    yield reduce_case(operator, "int16_zero_point", "int16", ([2, 3], [1], False), None, (0.1, 5), expect_error=True)
    negative_zeros = np.full([2, 3], -0.0, np.float32)
    yield reduce_case(operator, "float32_negative_zeros_all", "float32", ([2, 3], [0, 1], False), negative_zeros)
    yield reduce_case(operator, "float32_negative_zeros_rows", "float32", ([2, 3], [1], False), negative_zeros)


def max_or_min_cases(operator):
    yield from plain_reduce_cases(operator, ["float32", "int32", "int64", "bool"])
    for dtype in QUANTIZED:
        for i, reduction in enumerate(REDUCTIONS[:6]):
            params = (0.1, middle_zero_point(dtype))
            values = random_quantized(seeded(f"{operator} {dtype} {i}"), dtype, reduction[0])
            yield reduce_case(operator, f"{dtype}_{i}", dtype, reduction, values, params)
    yield reduce_case(operator, "int8_not_quantized", "int8", REDUCTIONS[0], None)
    special = np.array([[np.nan, 1, -2], [3, np.nan, 4], [np.nan] * 3, [-np.inf, np.inf, 0], [-np.inf] * 3], np.float32)
    yield reduce_case(operator, "float32_not_finite_rows", "float32", ([5, 3], [1], False), special)
    yield reduce_case(operator, "float32_not_finite_all", "float32", ([5, 3], [0, 1], False), special)


def quantized_product(name, dtype, reduction, scales, zero_points=(0, 0), spread=None):
    rng = seeded("REDUCE_PROD" + name)
    low, high = limits(dtype)
    spread = spread or high
    values = np.clip(rng.randint(-spread, spread + 1, reduction[0]), low, high)
    return reduce_case("REDUCE_PROD", name, dtype, reduction, values, (scales[0], zero_points[0]), (scales[1], zero_points[1]))


def product_cases():
    yield from plain_reduce_cases("REDUCE_PROD", ["float32", "int32", "int64", "int8", "int16", "uint8"])
    for dtype in ("int8", "int16"):
        unit = 1 / limits(dtype)[1]
        for i, reduction in enumerate(REDUCTIONS[:6]):
            yield quantized_product(f"{dtype}_quantized_{i}", dtype, reduction, (2 * unit, 1.5 * unit))
        for scales in ((unit, unit), (3 * unit, 20 * unit), (0.5 * unit, 0.01 * unit), (10 * unit, 1000 * unit)):
            name = f"{dtype}_scales_{scales[0] / unit:.2g}_{scales[1] / unit:.2g}"
            yield quantized_product(name, dtype, ([6, 4], [1], False), scales)
    yield quantized_product("int8_zero_points", "int8", ([5, 3], [1], False), (0.02, 0.03), (-7, 11))
    yield quantized_product("int8_zero_points_at_ends", "int8", ([5, 3], [0], False), (0.01, 0.02), (-128, 127))


def any_or_all_cases(operator):
    for i, reduction in enumerate(REDUCTIONS):
        share = 0.3 if operator == "REDUCE_ANY" else 0.8
        values = seeded(f"{operator} {i}").uniform(size=reduction[0]) < share
        yield reduce_case(operator, f"{i}", "bool", reduction, values)
    for value in (False, True):
        yield reduce_case(operator, f"scalar_{value}".lower(), "bool", ([], [], False), np.array(value))
        yield reduce_case(operator, f"constant_{value}".lower(), "bool", ([2, 3], [1], True), np.full([2, 3], value))
    yield reduce_case(operator, "int32", "int32", ([2, 3], [1], True), None, expect_error=True)


def empty_reduce_cases():
    """Reductions of nothing. Only where the runtime defines a result."""
    empty = ([0, 3], [0], False)
    for operator in ("REDUCE_MAX", "REDUCE_MIN", "SUM", "REDUCE_PROD", "MEAN"):
        for dtype in ("float32", "int32"):
            yield reduce_case(operator, f"{dtype}_empty", dtype, empty, np.zeros([0, 3], dtype))
    yield reduce_case("MEAN", "int8_empty", "int8", empty, np.zeros([0, 3], np.int8), (0.1, 5))
    yield reduce_case("SUM", "int8_empty", "int8", empty, np.zeros([0, 3], np.int8), (0.1, 5))
    yield reduce_case("REDUCE_MAX", "float32_empty_all", "float32", ([0, 3], [0, 1], False), np.zeros([0, 3], np.float32))


# --------------------------------------------------------------------------------------------- index searches

def arg_case(operator, name, dtype, shape, axis, values, index_type="int32", axis_type="int32", computed_axis=False, **options):
    m = Model()
    x = m.input("x", dtype, shape)
    a = m.input("axis", axis_type, []) if computed_axis else m.const("axis", np.array(axis, axis_type))
    rest = [d for i, d in enumerate(shape) if i != axis % max(len(shape), 1)]
    y = m.output("y", index_type, rest)
    m.op(operator, [x, a], [y], output_type=index_type)
    return operator, name, m, [values, *([np.array(axis, axis_type)] if computed_axis else [])], options


def arg_cases(operator):
    shapes = [([6], 0), ([3, 5], 1), ([3, 5], 0), ([2, 3, 4], -2), ([2, 3, 2, 3], 1), ([1, 1], -1)]
    for dtype in ("float32", "int8", "uint8", "int32", "bool"):
        for i, (shape, axis) in enumerate(shapes):
            for index_type in ("int32", "int64"):
                rng = seeded(f"{operator} {dtype} {i} {index_type}")
                # Few different values, so that there are ties.
                values = rng.randint(0, 2 if dtype == "bool" else 4, shape)
                if dtype != "bool":
                    values = values * 3 - (4 if dtype != "uint8" else 0)
                values = values.astype(bool) if dtype == "bool" else values
                yield arg_case(operator, f"{dtype}_{i}_{index_type}", dtype, shape, axis, values, index_type)
    yield arg_case(operator, "axis_int64", "float32", [3, 4], 1, floats(seeded("a"), [3, 4]), axis_type="int64")
    yield arg_case(operator, "computed_axis", "int8", [3, 4], -1, None, computed_axis=True)
    yield arg_case(operator, "many_neighbours", "int8", [3, 300], 0, None)
    special = np.array([[np.nan, 1, 2], [1, np.nan, 2], [2, np.nan, 1], [np.nan] * 3, [-np.inf, np.inf, np.nan],
                        [0.0, -0.0, 0.0]], np.float32)
    yield arg_case(operator, "float32_not_finite", "float32", [6, 3], 1, special)
    yield arg_case(operator, "v2_9_float32_not_finite", "float32", [6, 3], 1, special, runtime="tflite29")
    yield arg_case(operator, "axis_out_of_range", "int8", [3, 4], 2, None, expect_error=True)
    yield arg_case(operator, "int16", "int16", [3, 4], 1, None, expect_error=True)


def topk_case(name, dtype, shape, k, values, index_type="int32", k_type="int32", computed_k=False, **options):
    m = Model()
    x = m.input("x", dtype, shape)
    kt = m.input("k", k_type, []) if computed_k else m.const("k", np.array(k, k_type))
    out = [*shape[:-1], max(k, 0)]
    v, i = m.output("values", dtype, out), m.output("indices", index_type, out)
    m.op("TOPK_V2", [x, kt], [v, i])
    return "TOPK_V2", name, m, [values, *([np.array(k, k_type)] if computed_k else [])], options


def topk_cases():
    shapes = [([7], 3), ([2, 9], 9), ([2, 2, 5], 1), ([3, 4], 4), ([1, 30], 5)]
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        for i, (shape, k) in enumerate(shapes):
            rng = seeded(f"topk {dtype} {i}")
            values = rng.randint(0, 6, shape) * 7 - (0 if dtype == "uint8" else 20)
            yield topk_case(f"{dtype}_{i}", dtype, shape, k, values)
    yield topk_case("k_zero", "int8", [2, 3], 0, None)
    yield topk_case("computed_k", "float32", [2, 6], 4, floats(seeded("k"), [2, 6]), computed_k=True)
    yield topk_case("int16_indices", "int8", [2, 6], 4, None, index_type="int16", k_type="int16")
    yield topk_case("k_too_large", "int8", [2, 3], 4, None, expect_error=True)
    infinities = np.array([[1, np.inf, -np.inf, 0.0, -0.0, np.inf, 2]], np.float32)
    yield topk_case("float32_infinities", "float32", [1, 7], 7, infinities)


def cumsum_cases():
    for dtype in ("float32", "int32", "int64"):
        for i, (shape, axis) in enumerate([([6], 0), ([3, 4], 0), ([3, 4], -1), ([2, 3, 2, 2], 1), ([2, 1, 3], 1)]):
            for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
                name = f"{dtype}_{i}" + ("_exclusive" if exclusive else "") + ("_reverse" if reverse else "")
                m = Model()
                x = m.input("x", dtype, shape)
                y = m.output("y", dtype, shape)
                m.op("CUMSUM", [x, m.const("axis", np.array(axis, np.int32))], [y], exclusive=exclusive, reverse=reverse)
                yield "CUMSUM", name, m, [plain_values(seeded("cumsum" + name), dtype, shape)]
    m = Model()
    x, a = m.input("x", "int32", [4]), m.input("axis", "int32", [])
    m.op("CUMSUM", [x, a], [m.output("y", "int32", [4])])
    wrap = np.array([2**31 - 1, 2**31 - 1, 5, -2**31])
    yield "CUMSUM", "int32_wraps_computed_axis", m, [wrap, np.array(0)]
    m = Model()
    x = m.input("x", "int32", [4])
    m.op("CUMSUM", [x, m.const("axis", np.array(1, np.int32))], [m.output("y", "int32", [4])])
    yield "CUMSUM", "axis_out_of_range", m, None, {"expect_error": True}


# ------------------------------------------------------------------------------- making and broadcasting tensors

def one_hot_case(name, dtype, indices, depth, axis, on=3, off=1, index_type="int32", computed_depth=False, **options):
    m = Model()
    shape = list(np.shape(indices))
    i = m.input("indices", index_type, shape)
    d = m.input("depth", "int32", []) if computed_depth else m.const("depth", np.array(depth, np.int32))
    scalars = [m.const(n, np.array(v).astype(dtype), dtype) for n, v in (("on", on), ("off", off))]
    at = len(shape) if axis == -1 else axis
    m.op("ONE_HOT", [i, d, *scalars], [m.output("y", dtype, [*shape[:at], max(depth, 0), *shape[at:]])], axis=axis)
    return "ONE_HOT", name, m, [np.array(indices), *([np.array(depth)] if computed_depth else [])], options


def one_hot_cases():
    indices = np.array([[0, 2, -1], [5, 1, 3]])
    for dtype, on, off in (("float32", 2.5, -1), ("int8", -128, 127), ("uint8", 255, 1), ("int32", 10**9, -1),
                           ("int64", 2**40, 3), ("bool", True, False), ("bool", False, True)):
        for axis in (-1, 0, 1):
            for index_type in ("int32", "int64"):
                yield one_hot_case(f"{dtype}_{on}_axis{axis}_{index_type}", dtype, indices, 4, axis, on, off, index_type)
    yield one_hot_case("scalar", "float32", np.array(1), 3, -1)
    yield one_hot_case("vector_axis0", "int32", np.array([2, 0, 1]), 3, 0)
    yield one_hot_case("depth_one", "int32", np.array([0, 1]), 1, -1)
    yield one_hot_case("computed_depth", "float32", indices, 5, 1, computed_depth=True)
    yield one_hot_case("wide_index", "int32", np.array([2**32 + 1, 2**31, 1]), 3, -1, index_type="int64")
    yield one_hot_case("axis_out_of_range", "int32", np.array([1]), 3, 2, expect_error=True)
    yield one_hot_case("negative_depth", "int32", np.array([1]), -3, 0, expect_error=True)


def range_case(name, dtype, start, limit, delta, computed=True, **options):
    m = Model()
    values = [np.array(v, dtype) for v in (start, limit, delta)]
    names = ("start", "limit", "delta")
    inputs = [m.input(n, dtype, []) if computed else m.const(n, v) for n, v in zip(names, values)]
    m.op("RANGE", inputs, [m.output("y", dtype, [1], shape_signature=[-1])])
    return "RANGE", name, m, values if computed else [], options


def range_cases():
    # Empty ranges are left out: the runtime's Python side cannot read empty outputs back.
    steps = [(0, 5, 1), (0, 5, 2), (10, 3, -3), (-7, 8, 4), (1, 2, 100)]
    for dtype in ("int32", "int64", "float32"):
        for i, (start, limit, delta) in enumerate(steps):
            for computed in (False, True):
                yield range_case(f"{dtype}_{i}" + ("_computed" if computed else ""), dtype, start, limit, delta, computed)
    for i, (start, limit, delta) in enumerate([(0, 1, 0.1), (0.1, 0.95, 0.05), (1, -1, -0.3), (0, 2.5, 0.7), (-0.0, 3, 1)]):
        yield range_case(f"float32_fraction_{i}", "float32", start, limit, delta)
    for i, (start, limit, delta) in enumerate([(0, 5, 0), (0, 5, -1), (5, 0, 1)]):
        yield range_case(f"endless_{i}", "int32", start, limit, delta, expect_error=True)
    yield range_case("float32_nan", "float32", 0, 5, np.nan, expect_error=True)


def fill_case(name, dtype, dims, value, dims_type="int32", computed_dims=False, params=None, **options):
    m = Model()
    d = m.input("dims", dims_type, [len(dims)]) if computed_dims else m.const("dims", np.array(dims, dims_type))
    v = m.input("value", dtype, [], **quantization(params))
    shape = [max(int(x), 0) for x in dims]
    m.op("FILL", [d, v], [m.output("y", dtype, shape, **quantization(params))])
    return "FILL", name, m, [*([np.array(dims, dims_type)] if computed_dims else []), np.array(value).astype(dtype)], options


def fill_cases():
    for dtype, value in (("float32", -1.5), ("int8", -128), ("uint8", 255), ("int16", -32768), ("int32", 2**31 - 1),
                         ("int64", -2**63), ("bool", True), ("float16", 0.5)):
        for i, dims in enumerate(([3], [2, 3, 5], [1], [], [2, 0, 3])):
            yield fill_case(f"{dtype}_{i}", dtype, dims, value)
    yield fill_case("dims_int64", "float32", [2, 3], 7, dims_type="int64")
    yield fill_case("computed_dims", "int8", [2, 3], 7, computed_dims=True)
    yield fill_case("quantized", "int8", [2, 3], 7, params=(0.1, 3))
    yield fill_case("negative_size", "int8", [2, -3], 7, expect_error=True)


def broadcast_to_case(name, dtype, shape, target, shape_type="int32", computed=False, **options):
    m = Model()
    x = m.input("x", dtype, shape)
    s = m.input("shape", shape_type, [len(target)]) if computed else m.const("shape", np.array(target, shape_type))
    m.op("BROADCAST_TO", [x, s], [m.output("y", dtype, target)])
    values = plain_values(seeded("broadcast" + name), dtype, shape)
    return "BROADCAST_TO", name, m, [values, *([np.array(target, shape_type)] if computed else [])], options


def broadcast_to_cases():
    pairs = [([3], [2, 3]), ([2, 1], [2, 4]), ([1], [5]), ([], [2, 2]), ([2, 1, 3, 1], [2, 2, 3, 4]), ([2, 3], [2, 3]),
             ([1, 2, 1, 1, 2, 1], [2, 2, 2, 1, 2, 3]), ([2, 1, 1, 2], [1, 2, 2, 1, 2, 1, 2, 2]), ([1, 3], [0, 3])]
    for dtype in ("float32", "int8", "int16", "int32", "int64", "bool"):
        for i, (shape, target) in enumerate(pairs):
            yield broadcast_to_case(f"{dtype}_{i}", dtype, shape, target)
    yield broadcast_to_case("uint8", "uint8", *pairs[0])
    yield broadcast_to_case("shape_int64", "float32", *pairs[4], shape_type="int64")
    yield broadcast_to_case("computed_shape", "int8", *pairs[4], computed=True)
    yield broadcast_to_case("does_not_fit", "int8", [3], [2, 4], expect_error=True)
    yield broadcast_to_case("fewer_dimensions", "int8", [1, 3], [3], expect_error=True)


def broadcast_args_cases():
    pairs = [([2, 1, 3], [4, 1]), ([5], [5]), ([1, 1], [7, 3]), ([], [2, 3]), ([2], []), ([0, 1], [1, 4])]
    for dtype in ("int32", "int64"):
        for i, (a, b) in enumerate(pairs):
            for computed in (False, True):
                m = Model()
                arrays = [np.array(v, dtype) for v in (a, b)]
                inputs = [m.input(n, dtype, v.shape) if computed else m.const(n, v) for n, v in zip("ab", arrays)]
                m.op("BROADCAST_ARGS", inputs, [m.output("y", dtype, [max(len(a), len(b))])])
                yield "BROADCAST_ARGS", f"{dtype}_{i}" + ("_computed" if computed else ""), m, arrays if computed else []


def shape_cases():
    for dtype in ("float32", "int8", "bool"):
        for i, shape in enumerate(([], [3], [2, 0, 3], [1, 2, 3, 4, 5, 6])):
            m = Model()
            m.op("RANK", [m.input("x", dtype, shape)], [m.output("y", "int32", [])])
            values = np.zeros(shape, dtype)
            yield "RANK", f"{dtype}_{i}", m, [values]
            for index_type in ("int32", "int64") if shape else ():  # empty outputs cannot be read back
                m = Model()
                m.op("SHAPE", [m.input("x", dtype, shape)], [m.output("y", index_type, [len(shape)])], out_type=index_type)
                yield "SHAPE", f"{dtype}_{i}_{index_type}", m, [values]
    # A shape that feeds an op which needs it to know its own: all of it known before the first invocation.
    m = Model()
    x, y = m.input("x", "int8", [2, 3]), m.input("y", "int8", [1, 3])
    s = m.tensor("s", "int32", [2])
    m.op("SHAPE", [x], [s], out_type="int32")
    m.op("BROADCAST_TO", [y, s], [m.output("z", "int8", [2, 3])])
    yield "SHAPE", "feeds_broadcast_to", m, None


def unique_cases():
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        for index_type in ("int32", "int64"):
            for i, size in enumerate((1, 9, 30)):
                m = Model()
                x = m.input("x", dtype, [size])
                outputs = [m.output("y", dtype, [1], shape_signature=[-1]), m.output("i", index_type, [size])]
                m.op("UNIQUE", [x], outputs, idx_out_type=index_type)
                values = seeded(f"unique {dtype} {i}").randint(0, 8, size) * (1 if dtype == "uint8" else -3)
                yield "UNIQUE", f"{dtype}_{i}_{index_type}", m, [values]
    m = Model()
    x = m.input("x", "float32", [4])
    m.op("UNIQUE", [x], [m.output("y", "float32", [1], shape_signature=[-1]), m.output("i", "int32", [4])], idx_out_type="int32")
    yield "UNIQUE", "float32_zeros", m, [np.array([0.0, -0.0, 1, 0.0], np.float32)]


def segment_sum_case(name, dtype, ids, rest, values, **options):
    m = Model()
    x, s = m.input("x", dtype, [len(ids), *rest]), m.input("ids", "int32", [len(ids)])
    m.op("SEGMENT_SUM", [x, s], [m.output("y", dtype, [max(ids[-1], 0) + 1, *rest])], version=1)
    return "SEGMENT_SUM", name, m, [values, np.array(ids)], {"runtime": "tflite29", **options}


def segment_sum_cases():
    shapes = [([0, 0, 1, 2, 2], []), ([0, 1, 2], [3]), ([0, 0, 0, 0], [2, 2]), ([0, 0, 1], [1, 3, 1]), ([0], [4])]
    for dtype in ("float32", "int32"):
        for i, (ids, rest) in enumerate(shapes):
            values = plain_values(seeded(f"segment {dtype} {i}"), dtype, [len(ids), *rest])
            yield segment_sum_case(f"{dtype}_{i}", dtype, ids, rest, values)
    for i, ids in enumerate(([1, 1, 2], [0, 2, 2], [0, 1, 0])):
        yield segment_sum_case(f"bad_ids_{i}", "int32", ids, [], None, expect_error=True)


def cases():
    yield from pool_cases("AVERAGE_POOL_2D", ["float32", *QUANTIZED])
    yield from pool_cases("MAX_POOL_2D", ["float32", *QUANTIZED])
    yield from pool_cases("L2_POOL_2D", ["float32"])
    yield from resize_cases("RESIZE_BILINEAR")
    yield from resize_cases("RESIZE_NEAREST_NEIGHBOR")
    yield from sum_cases()
    yield from mean_cases()
    for operator in ("REDUCE_MAX", "REDUCE_MIN"):
        yield from max_or_min_cases(operator)
    yield from product_cases()
    for operator in ("REDUCE_ANY", "REDUCE_ALL"):
        yield from any_or_all_cases(operator)
    yield from empty_reduce_cases()
    for operator in ("ARG_MAX", "ARG_MIN"):
        yield from arg_cases(operator)
    yield from topk_cases()
    yield from cumsum_cases()
    yield from one_hot_cases()
    yield from range_cases()
    yield from fill_cases()
    yield from broadcast_to_cases()
    yield from broadcast_args_cases()
    yield from shape_cases()
    yield from unique_cases()
    yield from segment_sum_cases()
