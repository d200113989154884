# SPDX-License-Identifier: Apache-2.0
"""Small ops that make, broadcast or count tensors.

SEGMENT_SUM is recorded from TFLite 2.9 because LiteRT's reference resolver does not know it.
"""

import numpy as np

from cases._plain import plain_values, quantization
from onemodel import Model, seeded


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
    yield from one_hot_cases()
    yield from range_cases()
    yield from fill_cases()
    yield from broadcast_to_cases()
    yield from broadcast_args_cases()
    yield from shape_cases()
    yield from unique_cases()
    yield from segment_sum_cases()
