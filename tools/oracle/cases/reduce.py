# SPDX-License-Identifier: Apache-2.0
"""Reductions and index searches.

Quantized MEAN and SUM and the NaN rules of ARG_MAX and ARG_MIN changed after TFLite 2.9: cases whose names start with
v2_9 are recorded from it.
"""

import numpy as np

from cases._plain import QUANTIZED, floats, middle_zero_point, plain_values, quantization
from cases._scales import fit, limits, random_quantized, real
from onemodel import Model, seeded


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


def cases():
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
