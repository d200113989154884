# SPDX-License-Identifier: Apache-2.0
"""Binary element-wise arithmetic with broadcasting and, for some, a fused activation."""

import numpy as np

from cases._binary import (ACTIVATIONS, BROADCASTS, binary_model, different_from, input_params, plain_values, refusals)
from cases._scales import fit, limits, random_quantized, real
from onemodel import Model, seeded

EXACT = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide,
         "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2}
FUSES_ACTIVATION = {"ADD", "SUB", "MUL", "DIV"}
# Scales of both inputs and of the output.
UNUSUAL_SCALES = {"unequal": (1e-5, 3.0, 3.0), "equal": (0.1, 0.1, 0.1), "first_larger": (0.4, 0.02, 0.3),
                  "tiny": (1e-12, 2e-12, 2e-12), "huge": (1e9, 2e9, 2e9)}
INT32 = np.iinfo(np.int32)
INT64 = np.iinfo(np.int64)


def activation_field(operator, activation):
    return {"fused_activation_function": activation} if operator in FUSES_ACTIVATION else {}


def quantized(operator, name, dtype, shapes, activation="NONE", inputs=None, output=None, values=None, **fields):
    """Input scales that give real values of a few units; the output's fitted to the exact results."""
    rng = seeded(f"{operator} {name}")
    values = [random_quantized(rng, dtype, s) for s in shapes] if values is None else values
    inputs = [input_params(rng, dtype) for _ in range(2)] if inputs is None else inputs
    if operator == "DIV":
        values[1] = different_from(values[1], inputs[1][1], limits(dtype)[1] - 1)
    if output is None:
        output = fit(np.clip(EXACT[operator](*(real(v, *p) for v, p in zip(values, inputs))), -1e3, 1e3), dtype,
                     cover=0.2 if operator in ("DIV", "SQUARED_DIFFERENCE") else 0.9)
    model = binary_model(operator, dtype, shapes, [*inputs, output], **activation_field(operator, activation), **fields)
    return operator, name, model, values


def quantized_cases(operator, dtype, **fields):
    """Every broadcast, each with another activation; then zero points at the ends of the type and unusual scales."""
    low, high = limits(dtype)
    for i, shapes in enumerate(BROADCASTS):
        yield quantized(operator, f"{dtype}_broadcast{i}", dtype, shapes, ACTIVATIONS[i % 4], **fields)
    for activation in ACTIVATIONS:
        yield quantized(operator, f"{dtype}_{activation.lower()}", dtype, ([2, 9], [2, 9]), activation, **fields)
    if dtype == "int16":
        return
    for zero_points in ([low, low, low], [high, high, high], [low, high, low]):
        params = list(zip((0.05, 0.04, 0.07), zero_points))
        yield quantized(operator, f"{dtype}_zero_points_" + "_".join(map(str, zero_points)), dtype, ([3, 8], [3, 8]),
                        inputs=params[:2], output=params[2])


def unusual_scale_cases(operator, dtype):
    middle = sum(limits(dtype)) // 2 + 3
    for label, scales in UNUSUAL_SCALES.items():
        params = [(s, middle) for s in scales]
        yield quantized(operator, f"{dtype}_scales_{label}", dtype, ([24], [24]), inputs=params[:2], output=params[2])


def plain(operator, name, dtype, shapes, activation="NONE", values=None):
    rng = seeded(f"{operator} {name}")
    values = [plain_values(rng, dtype, s) for s in shapes] if values is None else [np.asarray(v) for v in values]
    if operator == "DIV" and dtype != "float32":
        values[1] = different_from(values[1], 0, 7)
    model = binary_model(operator, dtype, shapes, **activation_field(operator, activation))
    return operator, name, model, values


def plain_cases(operator, dtypes):
    for dtype in dtypes:
        for i, shapes in enumerate(BROADCASTS):
            if dtype in ("float32", "int32") or i in (0, 3, 6):
                yield plain(operator, f"plain_{dtype}_broadcast{i}", dtype, shapes, ACTIVATIONS[i % 4])
    for activation in ACTIVATIONS if operator in FUSES_ACTIVATION else ACTIVATIONS[:1]:
        special = np.array([np.inf, -np.inf, np.nan, -0.0, 1e38, 1e-45, 3.4e38, 0.0], np.float32)
        yield plain(operator, f"float32_special_{activation.lower()}", "float32", ([8], [8, 1]), activation,
                    [special, special[::-1].reshape(8, 1)])
    ends = np.array([INT32.max, INT32.min, 1 << 30, -7, 46341])
    yield plain(operator, "int32_wraps", "int32", ([5], [5, 1]), values=[ends, ends[::-1].reshape(5, 1)])
    if "int64" in dtypes:
        ends = np.array([INT64.max, INT64.min, 1 << 62, -7, 1 << 33])
        yield plain(operator, "int64_wraps", "int64", ([5], [5, 1]), values=[ends, ends[::-1].reshape(5, 1)])


def int16_power_of_two_cases(operator):
    """Power-of-two scales take another path, where one input's scale equals the output's."""
    for i, exponents in enumerate(((-15, -15, -15), (-15, -12, -12), (-11, -12, -11), (-20, -5, -5))):
        params = [(2.0 ** e, 0) for e in exponents]
        yield quantized(operator, f"int16_power_of_two_{i}", "int16", ([3, 8], [3, 8]), ACTIVATIONS[(i * 3) % 4],
                        params[:2], params[2])
    params = [(2.0 ** -12, 0), (2.0 ** -13, 0), (2.0 ** -12 * 1.1, 0)]  # one scale is not: the general path
    yield quantized(operator, "int16_nearly_power_of_two", "int16", ([24], [24]), "RELU6", params[:2], params[2])
    params = [(2.0 ** -12, 0), (2.0 ** -12, 0), (2.0 ** -13, 0)]
    yield (*quantized(operator, "refused_int16_finer_output", "int16", ([4], [4]), "NONE", params[:2], params[2]),
           {"expect_error": True})
    params = [(0.1, 0), (0.1, 3), (0.1, 0)]
    yield (*quantized(operator, "refused_int16_zero_point", "int16", ([4], [4]), "NONE", params[:2], params[2]),
           {"expect_error": True})


def sum_cases(operator):
    for dtype in ("int8", "uint8"):
        yield from quantized_cases(operator, dtype)
    yield from unusual_scale_cases(operator, "int8")
    yield from quantized_cases(operator, "int16", pot_scale_int16=False)
    yield from int16_power_of_two_cases(operator)
    yield from plain_cases(operator, ("float32", "int32", "int64") + (("int16",) if operator == "ADD" else ()))
    yield from refusals(operator)
    if operator == "SUB":  # an output so fine that the factor exceeds 1
        for scale in (1e-7, 5e-7):
            yield quantized(operator, f"int8_output_scale_{scale}", "int8", ([5, 8], [5, 8]), "NONE", [(1.0, 0), (1.0, 1)],
                            (scale, 3))


def mul_cases():
    for dtype in ("int8", "uint8", "int16"):
        yield from quantized_cases("MUL", dtype)
    yield from unusual_scale_cases("MUL", "uint8")
    yield quantized("MUL", "int8_factor_above_one", "int8", ([24], [24]), "NONE", [(3.0, 1), (2.0, -2)], (0.7, 5))
    yield from plain_cases("MUL", ("float32", "int32", "int64", "int16"))
    for i, activation in enumerate(("NONE", "RELU", "RELU6")):
        yield plain("MUL", f"uint32_{activation.lower()}", "uint32", BROADCASTS[3 * (i % 2)], activation)
    for output_dtype, zero_point in (("int8", -7), ("uint8", 130)):
        for activation in ("NONE", "RELU6"):
            name = f"int16_to_{output_dtype}_{activation.lower()}"
            values = [random_quantized(seeded(name + s), "int16", [30]) for s in "ab"]
            values[0][0] = values[1][0] = -32768
            model = binary_model("MUL", "int16", ([30], [30]), [(2.0 ** -15, 0), (2.0 ** -15, 0), (0.1, zero_point)],
                                 output_dtype, fused_activation_function=activation)
            yield "MUL", name, model, values
    params = [(0.1, 0), (0.1, 3), (0.1, 0)]
    yield (*quantized("MUL", "refused_int16_zero_point", "int16", ([4], [4]), "NONE", params[:2], params[2]),
           {"expect_error": True})
    yield from refusals("MUL")


def div_cases():
    for dtype in ("uint8", "int8", "int16"):
        yield from quantized_cases("DIV", dtype)
    # All numerators by some denominators: includes those so small that the reference's last shift overflows.
    numerators = np.arange(-128, 128)
    for zero_points, denominators in (((0, 0, 0), [1, -1, 127]), ((-128, 5, 10), [-128, 6, 3]), ((17, -128, -128), [127])):
        params = list(zip((0.5, 0.03, 0.25), zero_points))
        yield quantized("DIV", f"int8_all_numerators_{denominators[0]}", "int8", ([256], [len(denominators), 1]), "NONE",
                        params[:2], params[2], [numerators, np.array(denominators).reshape(-1, 1)])
    yield from plain_cases("DIV", ("float32", "int32"))
    for dtype, divisor, params in (("int32", 0, (None,) * 3), ("uint8", 3, ((0.5, 1), (0.5, 3), (0.5, 0))),
                                   ("int8", -3, ((0.5, 1), (0.5, -3), (0.5, 0)))):
        yield ("DIV", f"refused_{dtype}_zero_divisor", binary_model("DIV", dtype, ([3], [3]), params),
               [np.array([1, 2, 3]), np.array([1, divisor, 2])], {"expect_error": True})
    yield from refusals("DIV")


def squared_difference_cases():
    yield from quantized_cases("SQUARED_DIFFERENCE", "int8")
    yield from plain_cases("SQUARED_DIFFERENCE", ("float32", "int32"))
    yield from refusals("SQUARED_DIFFERENCE")


def extremum_cases(operator):
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        for i, shapes in enumerate(BROADCASTS):
            if dtype in ("float32", "int8") or i in (0, 3, 6):
                rng = seeded(f"{operator} {dtype} {i}")
                params = [(0.5, 3)] * 3 if dtype in ("int8", "uint8") else (None,) * 3
                values = [plain_values(rng, dtype, s, -100, 100) for s in shapes]
                yield operator, f"{dtype}_broadcast{i}", binary_model(operator, dtype, shapes, params), values
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 1e38, 1e-45, 0.0], np.float32)
    yield (operator, "float32_special", binary_model(operator, "float32", ([7], [7, 1])),
           [special, special[::-1].reshape(7, 1)])
    yield from refusals(operator)


def floor_cases(operator):
    dtypes = ("float32", "int8", "int16", "int32") + (("int64",) if operator == "FLOOR_MOD" else ())
    for dtype in dtypes:
        for i, shapes in enumerate(BROADCASTS):
            if dtype in ("float32", "int32") or i in (0, 3, 6):
                rng = seeded(f"{operator} {dtype} {i}")
                values = [plain_values(rng, dtype, s, -60, 60) for s in shapes]
                values[1] = different_from(values[1], 0, -1)
                yield operator, f"{dtype}_broadcast{i}", binary_model(operator, dtype, shapes), values
        if dtype != "float32":
            low, high = limits(dtype)
            numerators, divisors = np.array([low, high, low + 1, -1, 0]), np.array([[high], [low], [2], [-3]])
            if operator == "FLOOR_DIV":
                divisors = np.append(divisors, [[-1]], axis=0)  # the reference's remainder by -1 traps
            yield (operator, f"{dtype}_ends", binary_model(operator, dtype, ([5], list(divisors.shape))),
                   [numerators, divisors])
            yield (operator, f"refused_{dtype}_zero_divisor", binary_model(operator, dtype, ([2], [2])),
                   [np.array([1, 2]), np.array([1, 0])], {"expect_error": True})
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 1e38, 1e-45, -2.5], np.float32)
    divisors = np.array([[2.0], [-0.3], [np.inf], [-np.inf], [1e-45]] + ([[0.0]] if operator == "FLOOR_MOD" else []), np.float32)
    yield operator, "float32_special", binary_model(operator, "float32", ([7], list(divisors.shape))), [special, divisors]
    yield from refusals(operator)


def pow_cases():
    rng = seeded("POW")
    libm = {"tolerance": 1e-6}
    for i, shapes in enumerate(BROADCASTS):
        values = [rng.uniform(0.1, 4, shapes[0]), rng.uniform(-3, 3, shapes[1])]
        yield "POW", f"float32_broadcast{i}", binary_model("POW", "float32", shapes), values, libm
        values = [rng.randint(-6, 7, shapes[0]), rng.randint(0, 6, shapes[1])]
        yield "POW", f"int32_broadcast{i}", binary_model("POW", "int32", shapes), values
    bases = rng.uniform(-3, 3, 16).astype(np.float32)
    for exponent in (1, 2, 3, 5, 6, 7, 10, 13, 31, 2.000005, 2.5, 0, -2, 3e9, np.nan, np.inf):
        model = binary_model("POW", "float32", ([16], [1]))
        exact = 1 <= exponent < 2 ** 31 and abs(exponent - round(exponent)) < 1e-5
        yield ("POW", f"float32_scalar_exponent_{exponent}", model, [bases, np.array([exponent], np.float32)],
               {} if exact else libm)
    yield ("POW", "float32_same_shape_integer_exponent", binary_model("POW", "float32", ([1], [1])),
           [bases[:1], np.array([3.0], np.float32)], libm)
    integers = np.array([3, -3, 10, 2, 0, 1, -1, 46341, INT32.max, INT32.min])
    for exponent in (0, 1, 2, 9, 31, 32):
        yield ("POW", f"int32_scalar_exponent_{exponent}", binary_model("POW", "int32", ([10], [1])),
               [integers, np.array([exponent])])
        yield ("POW", f"int32_exponent_{exponent}", binary_model("POW", "int32", ([10], [10])),
               [integers, np.full(10, exponent)])
    yield ("POW", "refused_int32_negative_exponent", binary_model("POW", "int32", ([2], [2])),
           [np.array([1, 2]), np.array([2, -1])], {"expect_error": True})
    yield from refusals("POW")


def add_n_cases():
    for dtype in ("float32", "int32"):
        for shape, count in (([2, 3, 4], 2), ([7], 3), ([1, 5], 7), ([], 4), ([2, 1, 1, 2, 1, 2], 5), ([0, 3], 2)):
            rng = seeded(f"ADD_N {dtype} {count}")
            m = Model()
            inputs = [m.input(f"x{i}", dtype, shape) for i in range(count)]
            m.op("ADD_N", inputs, [m.output("y", dtype, shape)])
            values = [plain_values(rng, dtype, shape, -1000, 1000) for _ in range(count)]
            if dtype == "int32":
                values[0] = values[0] + (INT32.max - 500)
            yield "ADD_N", f"{dtype}_{count}_of_rank_{len(shape)}", m, values
    m = Model()
    inputs = [m.input(f"x{i}", "float32", [4]) for i in range(3)]
    m.op("ADD_N", inputs, [m.output("y", "float32", [4])])
    yield "ADD_N", "float32_special", m, [np.array([-0.0, np.inf, np.nan, 3e38], np.float32)] * 3
    m = Model()
    inputs = [m.input(f"x{i}", "float32", [2]) for i in range(4)]
    m.op("ADD_N", inputs, [m.output("y", "float32", [2])])
    yield "ADD_N", "float32_limits_partial_sums", m, list(np.array([[3e38, -3e38], [3e38, -2e38], [-3e38, 3e38], [1e38, 0]], np.float32))
    for label, dtypes, shapes in (("shapes", ["float32"] * 2, ([2], [1])), ("types", ["float32", "int32"], ([2], [2])),
                                  ("one_input", ["float32"], ([2],)), ("int8", ["int8"] * 2, ([2], [2]))):
        m = Model()
        inputs = [m.input(f"x{i}", d, s) for i, (d, s) in enumerate(zip(dtypes, shapes))]
        m.op("ADD_N", inputs, [m.output("y", dtypes[0], shapes[0])])
        yield "ADD_N", f"refused_{label}", m, None, {"expect_error": True}


def bit_cases(operator):
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
        low, high = limits(dtype)
        for i in (0, 3, 4, 6):
            rng = seeded(f"{operator} {dtype} {i}")
            a, b = (rng.randint(low, high + 1, s, dtype=np.int64) for s in BROADCASTS[i])
            if operator == "RIGHT_SHIFT":
                b = rng.randint(max(low, -2), 36, BROADCASTS[i][1])
            yield operator, f"{dtype}_broadcast{i}", binary_model(operator, dtype, BROADCASTS[i]), [a, b]
    yield from refusals(operator)


def atan2_cases():
    rng = seeded("ATAN2")
    for dtype in ("float32", "float64"):
        for shape in ([2, 3, 4], [], [1, 2, 1, 2, 1, 2]):
            values = [rng.uniform(-3, 3, shape) for _ in range(2)]
            yield "ATAN2", f"{dtype}_rank_{len(shape)}", binary_model("ATAN2", dtype, (shape, shape)), values, {"tolerance": 1e-6}
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1.0], np.float32)
    grid = [g.reshape(-1) for g in np.meshgrid(special, special)]
    yield "ATAN2", "float32_special", binary_model("ATAN2", "float32", ([36], [36])), grid, {"tolerance": 1e-6}
    yield "ATAN2", "refused_int32", binary_model("ATAN2", "int32", ([2], [2])), None, {"expect_error": True}


def cases():
    yield from sum_cases("ADD")
    yield from sum_cases("SUB")
    yield from mul_cases()
    yield from div_cases()
    yield from squared_difference_cases()
    yield from extremum_cases("MAXIMUM")
    yield from extremum_cases("MINIMUM")
    yield from floor_cases("FLOOR_DIV")
    yield from floor_cases("FLOOR_MOD")
    yield from pow_cases()
    yield from add_n_cases()
    yield from bit_cases("BITWISE_XOR")
    yield from bit_cases("RIGHT_SHIFT")
    yield from atan2_cases()
