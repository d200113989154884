# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic and selection: element-wise, with broadcasting."""

import numpy as np

from cases._binary import BROADCASTS, binary_model, input_params, plain_values, refusals
from cases._scales import fit, random_quantized, real
from onemodel import Model, seeded

EQUALITIES = ("EQUAL", "NOT_EQUAL")
ORDERINGS = ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def compare(operator, name, dtype, shapes, values, params=(None, None)):
    return operator, name, binary_model(operator, dtype, shapes, [*params, None], "bool"), values


def plain_comparisons(operator):
    dtypes = ("float32", "int32", "int64") + (("bool",) if operator in EQUALITIES else ("int16",))
    for dtype in dtypes + (("int16",) if operator == "EQUAL" else ()):
        for i, shapes in enumerate(BROADCASTS):
            if dtype == "int32" or i in (0, 3, 6):
                rng = seeded(f"{operator} {dtype} {i}")
                values = [plain_values(rng, dtype, s, -2, 2) for s in shapes]
                if dtype == "float32":
                    values = [np.round(v) for v in values]
                yield compare(operator, f"plain_{dtype}_broadcast{i}", dtype, shapes, values)
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-45], np.float32)
    yield compare(operator, "float32_special", "float32", ([6], [6, 1]), [special, special.reshape(6, 1)])


def quantized_comparisons(operator):
    """Each value of the second operand against one close to it and one far from it."""
    for dtype in ("int8", "uint8") + (("int16",) if operator in EQUALITIES else ()):
        for i, shapes in enumerate(BROADCASTS):
            if dtype == "int8" or i in (0, 3, 6):
                rng = seeded(f"{operator} {dtype} {i}")
                values = [random_quantized(rng, dtype, s) for s in shapes]
                params = [input_params(rng, dtype) for _ in shapes]
                yield compare(operator, f"{dtype}_broadcast{i}", dtype, shapes, values, params)
    values = [np.arange(-128, 128, 5), np.arange(-128, 128, 5).reshape(-1, 1)[::7]]
    shapes = [list(v.shape) for v in values]
    for label, params in {"same": [(0.05, 3), (0.05, 3)], "half": [(0.1, -128), (0.05, 127)], "coarse": [(0.9, 0), (0.3, 1)],
                          "fine": [(1e-4, 0), (1e-4, 1)], "vanishing": [(1e-12, 0), (1e-3, 1)],
                          "above_one": [(1.5, 0), (1.5, 10)], "far_above_one": [(300.0, 0), (0.5, 10)],
                          "beyond_shift": [(1e6, 0), (7e8, 1)]}.items():
        yield compare(operator, f"int8_scales_{label}", "int8", shapes, values, params)


def strings(operator):
    words = np.array([b"reef", b"", b"coral", b"cora", b"reef\0", b"\xc3\xa9"], dtype=object)
    for i, (a, b) in enumerate(((words, words), (words, words[:3].reshape(3, 1)), (words, words[2:3]))):
        m = Model()
        inputs = [m.const("a", a, "string"), m.const("b", b, "string")]
        m.op(operator, inputs, [m.output("y", "bool", np.broadcast_shapes(a.shape, b.shape))])
        yield operator, f"string_{i}", m, []


def comparison_cases(operator):
    yield from plain_comparisons(operator)
    yield from quantized_comparisons(operator)
    if operator in EQUALITIES:
        yield from strings(operator)
    yield from refusals(operator, "bool")


def logical_cases():
    for operator in ("LOGICAL_AND", "LOGICAL_OR"):
        for i, shapes in enumerate(BROADCASTS):
            rng = seeded(f"{operator} {i}")
            yield (operator, f"broadcast{i}", binary_model(operator, "bool", shapes),
                   [plain_values(rng, "bool", s) for s in shapes])
        yield from refusals(operator, "bool", ("bool", "int32"))
    for shape in ([5], [], [2, 3, 2], [1, 2, 1, 2, 1, 3], [0, 4]):
        m = Model()
        m.op("LOGICAL_NOT", [m.input("x", "bool", shape)], [m.output("y", "bool", shape)])
        yield "LOGICAL_NOT", f"rank_{len(shape)}_of_{int(np.prod(shape))}", m, [seeded(str(shape)).randint(0, 2, shape).astype(bool)]
    m = Model()
    m.op("LOGICAL_NOT", [m.input("x", "int32", [2])], [m.output("y", "bool", [2])])
    yield "LOGICAL_NOT", "refused_int32", m, None, {"expect_error": True}


def select(operator, name, dtype, shapes, output_shape, **options):
    rng = seeded(f"{operator} {name}")
    m = Model()
    inputs = [m.input(n, d, s) for n, d, s in zip("cxy", ("bool", dtype, dtype), shapes)]
    m.op(operator, inputs, [m.output("out", dtype, output_shape)])
    values = [rng.randint(0, 2, shapes[0]).astype(bool)]
    values += [rng.uniform(-9, 9, s) if dtype.startswith("float") else rng.randint(0, 2 if dtype == "bool" else 100, s)
               for s in shapes[1:]]
    return (operator, name, m, values, *([options] if options else []))


def select_cases():
    dtypes = ("float32", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
              "float64")
    for operator in ("SELECT", "SELECT_V2"):
        for dtype in dtypes:
            yield select(operator, f"{dtype}_same_shape", dtype, ([2, 3, 4],) * 3, [2, 3, 4])
        yield select(operator, "scalar_condition", "int32", ([], [2, 3], [2, 3]), [2, 3])
        # One element each: the declared output shape stays.
        yield select(operator, "single_elements", "int32", ([1, 1], [1], [1]), [1, 1, 1])
        yield select(operator, "single_elements_scalar", "float32", ([1], [1, 1], []), [])
        yield select(operator, "empty", "int32", ([0, 2],) * 3, [0, 2])
        yield select(operator, "rank_6", "int8", ([2, 1, 2, 1, 2, 2],) * 3, [2, 1, 2, 1, 2, 2])
        yield select(operator, "refused_mismatch", "int32", ([2], [3], [3]), [3], expect_error=True)
    for i, shape in enumerate(([3, 4], [3, 1, 5], [3, 2, 2, 2])):
        yield select("SELECT", f"rows_{i}", "int32", ([3], shape, shape), shape)
        yield select("SELECT", f"rows_float_{i}", "float32", ([3], shape, shape), shape)
    yield select("SELECT", "refused_broadcast_values", "int32", ([2, 3], [2, 3], [3]), [2, 3], expect_error=True)
    yield select("SELECT", "refused_condition_rank_2", "int32", ([3, 1], [3, 2], [3, 2]), [3, 2], expect_error=True)
    for i, shapes in enumerate((([3], [2, 3], [2, 3]), ([2, 1], [1, 3], [2, 3]), ([2, 3, 1], [3, 4], [4]), ([1], [5], [1]),
                                ([4], [], []), ([2, 1, 3], [1, 4, 1], [2, 4, 3]), ([2, 1, 2, 1, 2], [1, 2, 1, 2, 1], [2]),
                                ([1], [0, 2], [1, 2]))):
        output_shape = list(np.broadcast_shapes(*map(tuple, shapes)))
        for dtype in ("float32", "int8", "int64"):
            yield select("SELECT_V2", f"{dtype}_broadcast{i}", dtype, shapes, output_shape)


def where_cases():
    for dtype in ("bool", "float32", "int8", "uint8", "int32", "uint32", "int64"):
        for shape in ([7], [2, 3, 4], [1, 2, 1, 3, 2]):
            rng = seeded(f"WHERE {dtype} {shape}")
            m = Model()
            m.op("WHERE", [m.input("c", dtype, shape)], [m.output("y", "int64", [1, len(shape)], shape_signature=[-1, len(shape)])])
            yield "WHERE", f"{dtype}_rank_{len(shape)}", m, [rng.randint(0, 2, shape)]
    m = Model()
    m.op("WHERE", [m.input("c", "bool", [3, 2])], [m.output("y", "int64", [1, 2])])
    yield "WHERE", "all", m, [np.ones([3, 2], bool)]  # none: the runtime's Python interface cannot read the empty result
    m = Model()
    m.op("WHERE", [m.const("c", np.array([[0, 5, 0], [2, 0, 1]], np.int32))], [m.output("y", "int64", [3, 2])])
    yield "WHERE", "constant", m, []
    m = Model()
    m.op("WHERE", [m.input("c", "float32", [4])], [m.output("y", "int64", [4, 1])])
    yield "WHERE", "float32_special", m, [np.array([np.nan, -0.0, 0.0, 1e-45], np.float32)]
    for label, dtype, shape in (("scalar", "bool", []), ("int16", "int16", [3])):
        m = Model()
        m.op("WHERE", [m.input("c", dtype, shape)], [m.output("y", "int64", [1, 1])])
        yield "WHERE", f"refused_{label}", m, [np.ones(shape)], {"expect_error": True}


def prelu_cases():
    shapes = [([2, 3, 4], [2, 3, 4]), ([1, 3, 5, 4], [1, 1, 4]), ([2, 3, 4], [3, 1]), ([2, 3], []), ([2, 2, 2, 3], [2, 1, 2, 1]),
              ([2, 1, 2, 1, 2], [1, 1, 2]), ([0, 3], [3])]
    for i, (input_shape, alpha_shape) in enumerate(shapes):
        rng = seeded(f"PRELU {i}")
        values = [rng.uniform(-4, 4, input_shape), rng.uniform(-1, 1, alpha_shape)]
        yield "PRELU", f"float32_{i}", binary_model("PRELU", "float32", (input_shape, alpha_shape)), values
        for dtype, alpha_dtype in (("int8", "int8"), ("uint8", "uint8"), ("int16", "int8")):
            values = [random_quantized(rng, dtype, input_shape), random_quantized(rng, alpha_dtype, alpha_shape)]
            params = [input_params(rng, dtype), input_params(rng, alpha_dtype)]
            x, alpha = (real(v, *p) for v, p in zip(values, params))
            params.append(fit(np.where(x >= 0, x, x * alpha), dtype))
            keywords = [{"scale": scale, "zero_point": zero_point} for scale, zero_point in params]
            m = Model()
            inputs = [m.input("x", dtype, input_shape, **keywords[0]), m.input("alpha", alpha_dtype, alpha_shape, **keywords[1])]
            m.op("PRELU", inputs, [m.output("y", dtype, input_shape, **keywords[2])])
            yield "PRELU", f"{dtype}_{i}", m, values
    for low_end in (-128, 127):
        params = [(0.05, low_end), (0.02, low_end), (0.03, low_end)]
        values = [np.arange(-128, 128, 3), random_quantized(seeded("ends"), "int8", [86])]
        yield "PRELU", f"int8_zero_points_{low_end}", binary_model("PRELU", "int8", ([86], [86]), params), values
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, -1e-45], np.float32)
    yield ("PRELU", "float32_special", binary_model("PRELU", "float32", ([6, 6], [6, 1])),
           [np.tile(special, (6, 1)), special.reshape(6, 1)])
    yield ("PRELU", "refused_alpha_larger", binary_model("PRELU", "float32", ([1, 3], [2, 3])), None, {"expect_error": True})


def cases():
    for operator in EQUALITIES + ORDERINGS:
        yield from comparison_cases(operator)
    yield from logical_cases()
    yield from select_cases()
    yield from where_cases()
    yield from prelu_cases()
