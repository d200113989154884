# SPDX-License-Identifier: Apache-2.0
"""Operators from one tensor to one of the same shape: activations, roots, normalizations, casts, (de)quantization.

Quantized functions of 8 bits are shown every input value there is, those of 16 bits a spread of them. CEIL, ELU and ROUND
are missing from LiteRT's reference resolver and are recorded with TFLite 2.9.1.
"""

import numpy as np

from cases._scales import fit, limits, random_quantized, real
from onemodel import Model, seeded

SPECIAL = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e38, -1e38, 1e-45, -1e-45, 0.5, -0.5, 2.5], np.float32)
SHAPES = [[7], [2, 3], [1, 2, 3, 5], [2, 1, 2, 1, 3], []]
OLD = {"runtime": "tflite29"}
LIBM = {"tolerance": 1e-6}  # exp and its kin differ in the last bit between C libraries; the runtime takes some from Eigen


def model(operator, in_type, shape, out_type=None, in_q=None, out_q=None, axis=0, **fields):
    quantization = lambda q: {} if q is None else {"scale": q[0], "zero_point": q[1], "axis": axis}
    m = Model()
    x = m.input("x", in_type, shape, **quantization(in_q))
    y = m.output("y", out_type or in_type, shape, **quantization(out_q))
    m.op(operator, [x], [y], **fields)
    return m


def case(operator, name, in_type, values, options=None, **model_arguments):
    values = np.asarray(values)
    return operator, name, model(operator, in_type, values.shape, **model_arguments), [values], options or {}


def all_values(dtype):
    low, high = limits(dtype)
    return np.arange(low, high + 1) if dtype != "int16" else spread16()


def spread16():
    """Ends, middle, and a stride that meets every interpolation offset."""
    return np.unique(np.concatenate([np.arange(-32768, 32768, 331), [-32768, -32767, -129, -128, -1, 0, 1, 127, 128, 32766, 32767]]))


def float_cases(operator, low, high, special=True, types=("float32",), options=None, **fields):
    for i, shape in enumerate(SHAPES):
        rng = seeded(f"{operator} float {i}")
        for dtype in types:
            yield case(operator, f"{dtype}_shape{i}", dtype, rng.uniform(low, high, shape), options, **fields)
    if special:
        for dtype in types:
            values = SPECIAL if dtype == "float32" else np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 65504, 6e-8, 0.5, 2.5], np.float16)
            yield case(operator, f"{dtype}_special", dtype, values, options, **fields)
    rng = seeded(f"{operator} float dense")
    yield case(operator, "float32_dense", "float32", np.linspace(low, high, 301) + rng.uniform(-1e-3, 1e-3, 301), options, **fields)
    yield case(operator, "float32_no_elements", "float32", np.zeros([2, 0, 3]), options, **fields)


def function_cases(operator, dtype, function, input_params, options=None, output_params=None, **fields):
    """Every (scale, zero point) of the input with outputs fitted to the function, or as given."""
    values = all_values(dtype)
    for i, in_q in enumerate(input_params):
        with np.errstate(all="ignore"):
            results = function(real(values, *in_q))
        results = results[np.isfinite(results)]
        for j, out_q in enumerate(output_params or [fit(results, dtype), fit(results, dtype, 0.3)]):
            yield case(operator, f"{dtype}_input{i}_output{j}", dtype, values, options, in_q=in_q, out_q=out_q, **fields)


SYMMETRIC16 = [(4 / 32768, 0), (1 / 4096, 0), (0.0007, 0), (1 / 2048, 0), (1e-5, 0), (0.01, 0)]
PARAMS8 = {"int8": [(0.05, -3), (0.01, -128), (0.5, 127), (0.1, 0)], "uint8": [(0.05, 125), (0.01, 0), (0.5, 255), (0.1, 128)]}
POSITIVE8 = [(0.05, -128), (0.5, -128), (0.003, -100), (2.0, -128)]
relu_like = lambda low, high: (lambda x: np.clip(x, low, high))


def relu_cases():
    for operator, low, high, types in (("RELU", 0, np.inf, ("int8", "uint8", "int16")), ("RELU6", 0, 6, ("int8", "uint8", "int16")),
                                       ("RELU_N1_TO_1", -1, 1, ("int8", "uint8")), ("RELU_0_TO_1", 0, 1, ("int8", "uint8"))):
        yield from float_cases(operator, -8, 8)
        for dtype in types:
            params = [(0.001, 0), (0.0001, 0)] if dtype == "int16" else PARAMS8[dtype]
            yield from function_cases(operator, dtype, relu_like(low, high), params)
        low8, high8 = limits("int8")
        for zero_point in (low8, high8):
            yield case(operator, f"int8_output_zero_point_{zero_point}", "int8", all_values("int8"), in_q=(0.05, 3), out_q=(0.03, zero_point))


def plain_float_cases():
    for operator in ("COS", "SIN"):
        yield from float_cases(operator, -20, 20, types=("float32", "float16"), options=LIBM)
    yield from float_cases("FLOOR", -6, 6, types=("float32", "float16"))
    for operator in ("CEIL", "ROUND"):
        yield from float_cases(operator, -6, 6, special=False, options=OLD)
        ordinary = SPECIAL[(SPECIAL == 0) | ~(np.abs(SPECIAL) < 1e-38)]  # that runtime's process flushes denormals
        yield case(operator, "float32_special", "float32", ordinary, OLD)
        halves = np.arange(-4.5, 5, 0.5)
        yield case(operator, "float32_halves", "float32", np.concatenate([halves, [8388607.5, -8388607.5, 8388609.0]]), OLD)
    yield from float_cases("SQUARE", -6, 6)
    yield from float_cases("ZEROS_LIKE", -6, 6)
    for dtype in ("int32", "int64"):
        yield case("ZEROS_LIKE", dtype, dtype, [[1, -2, 3]])


def sign_cases():
    yield from float_cases("SIGN", -3, 3)
    yield case("SIGN", "float64", "float64", [0.0, -0.0, 1e-300, -1e300, np.inf, -np.inf, np.nan])
    yield case("SIGN", "int32", "int32", [[0, -5], [7, -2**31]])


def neg_abs_cases():
    yield from float_cases("NEG", -3, 3, types=("float32", "float16"))
    for dtype in ("int8", "int16", "int32", "int64"):
        low, high = limits(dtype)
        yield case("NEG", dtype, dtype, [low, low + 1, -1, 0, 1, high])
    yield case("NEG", "int8_quantized", "int8", all_values("int8"), in_q=(0.5, 3), out_q=(0.6, -4))
    yield from float_cases("ABS", -3, 3)
    yield from function_cases("ABS", "int8", np.abs, PARAMS8["int8"])
    yield case("ABS", "int8_same_scale", "int8", all_values("int8"), in_q=(0.5, 3), out_q=(0.5, -100))
    yield from function_cases("ABS", "int16", np.abs, [(0.001, 0), (0.3, 0)])
    yield case("ABS", "int16_same_scale", "int16", spread16(), in_q=(0.5, 0), out_q=(0.5, 0))
    for dtype in ("int16", "int32"):
        low, high = limits(dtype)
        yield case("ABS", f"{dtype}_plain", dtype, [low, low + 1, -1, 0, 1, high])


def table_cases():
    yield from float_cases("ELU", -8, 8, options={**OLD, **LIBM})
    yield from function_cases("ELU", "int8", lambda x: np.where(x < 0, np.expm1(x), x), PARAMS8["int8"], OLD)
    yield from float_cases("EXP", -10, 10, options=LIBM)
    yield from function_cases("EXP", "int8", np.exp, [(0.05, -3), (0.01, -128), (0.1, 0), (0.02, 127)])
    yield from function_cases("EXP", "int16", np.exp, [(4 / 32768, 0), (0.0001, 0), (1 / 4096, 0)])
    yield case("EXP", "int8_overflow", "int8", all_values("int8"), in_q=(1.0, -100), out_q=(0.1, 7))
    yield from float_cases("LOG", 0, 20, options=LIBM)
    yield from function_cases("LOG", "int8", np.log, [*POSITIVE8, (0.1, 3)])
    yield from function_cases("LOG", "int16", np.log, [(0.001, 0), (0.0001, 0)])
    gelu = lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    for approximate in (False, True):
        renamed = lambda cases: ((o, f"{n}_{'approximate' if approximate else 'exact'}", *rest) for o, n, *rest in cases)
        yield from renamed(float_cases("GELU", -6, 6, special=False, options=LIBM, approximate=approximate))
        for dtype in ("int8", "uint8"):
            yield from renamed(function_cases("GELU", dtype, gelu, PARAMS8[dtype][:2], approximate=approximate))
        yield from renamed(function_cases("GELU", "int16", gelu, [(4 / 32768, 0), (0.0003, 0)], approximate=approximate))


def root_cases():
    yield from float_cases("SQRT", 0, 20)
    yield from function_cases("SQRT", "int8", lambda x: np.sqrt(np.abs(x)), POSITIVE8[:2] + POSITIVE8[3:])
    positive16 = spread16()[spread16() >= 0]
    for i, scale in enumerate((0.001, 0.3)):
        in_q = (scale, 0)
        yield case("SQRT", f"int16_{i}", "int16", positive16, in_q=in_q, out_q=fit(np.sqrt(real(positive16, *in_q)), "int16"))
        yield case("RSQRT", f"int16_{i}", "int16", positive16, in_q=in_q, out_q=fit(5 / np.sqrt(real(positive16[1:], *in_q)), "int16", 0.02))
    yield from float_cases("RSQRT", 0, 20)
    yield from function_cases("RSQRT", "int8", lambda x: 1 / np.sqrt(np.abs(x)), POSITIVE8[:2] + POSITIVE8[3:])
    for zero_point in (-128, 0, 100):
        values = np.arange(zero_point, 128)
        yield case("RSQRT", f"int8_zero_point_{zero_point}", "int8", values, in_q=(0.07, zero_point), out_q=(0.02, -zero_point - 1))
    for operator in ("SQRT", "RSQRT"):
        yield case(operator, "refused_negative", "int8", [1, -1], {"expect_error": True}, in_q=(0.1, 0), out_q=(0.1, 0))


def hard_swish_cases():
    swish = lambda x: x * np.clip(x + 3, 0, 6) / 6
    yield from float_cases("HARD_SWISH", -6, 6)
    for dtype in ("int8", "uint8"):
        low, high = limits(dtype)
        params = [*PARAMS8[dtype], (0.0234, low), (2.0, low + 30), (1e-4, high - 5), (30.0, (low + high) // 2)]
        for i, in_q in enumerate(params):
            scale, zero_point = fit(swish(real(all_values(dtype), *in_q)), dtype)
            for j, coarser in enumerate((1, 3)):  # the runtime refuses outputs more than 128 times finer than the input
                out_q = (max(scale, in_q[0] / 100) * coarser, zero_point)
                yield case("HARD_SWISH", f"{dtype}_input{i}_output{j}", dtype, all_values(dtype), in_q=in_q, out_q=out_q)
        yield case("HARD_SWISH", f"{dtype}_coarse_output", dtype, all_values(dtype), in_q=(0.02, low + 100), out_q=(40.0, low + 60))


def leaky_relu_cases():
    for i, alpha in enumerate((0.1, 0.0, -0.5, 1.5)):
        leaky = lambda x: np.where(x > 0, x, alpha * x)
        renamed = lambda cases: ((o, f"{n}_alpha{i}", *rest) for o, n, *rest in cases)
        yield from renamed(float_cases("LEAKY_RELU", -6, 6, special=i == 2, alpha=alpha) if i % 2 == 0 else [])
        for dtype in ("int8", "uint8"):
            yield from renamed(function_cases("LEAKY_RELU", dtype, leaky, PARAMS8[dtype][i:i + 1], alpha=alpha))
        if i < 3:
            yield from renamed(function_cases("LEAKY_RELU", "int16", leaky, [(0.001, 0)], alpha=alpha))


def logistic_tanh_cases():
    for operator, function, scale in (("LOGISTIC", lambda x: 1 / (1 + np.exp(-x)), 1 / 256), ("TANH", np.tanh, 1 / 128)):
        yield from float_cases(operator, -20, 20, types=("float32", "float16"), options=LIBM)
        for dtype in ("int8", "uint8"):
            low, high = limits(dtype)
            zero_point = low if operator == "LOGISTIC" else (low + high + 1) // 2
            params = [*PARAMS8[dtype], (0.0235, low + 12), (1.5, high - 4), (0.001, low)]
            yield from function_cases(operator, dtype, function, params, output_params=[(scale, zero_point)])
        yield from function_cases(operator, "int16", function, [*SYMMETRIC16, (3.0, 0), (2.0**-13, 0), (2.0**-14, 0), (1e-9, 0)],
                                  output_params=[(1 / 32768, 0)])
        rng = seeded(operator + " batch")
        yield case(operator, "int8_shape", "int8", random_quantized(rng, "int8", [2, 3, 1, 4]), in_q=(0.1, 3), out_q=(scale, -128 if operator == "LOGISTIC" else 0))
    yield case("LOGISTIC", "uint8_other_zero_point", "uint8", all_values("uint8"), in_q=(0.05, 100), out_q=(1 / 256, 17))
    yield case("TANH", "int8_other_output", "int8", all_values("int8"), in_q=(0.05, 10), out_q=(0.005, 17))
    yield case("LOGISTIC", "refused_output_scale", "int8", [1, 2], {"expect_error": True}, in_q=(0.1, 0), out_q=(1 / 255, -128))
    yield case("TANH", "refused_int16_zero_point", "int16", [1, 2], {"expect_error": True}, in_q=(0.1, 5), out_q=(1 / 32768, 0))


SOFTMAX_SHAPES = [[5], [3, 10], [1, 2, 2, 7], [2, 3, 17], [1, 1], [1, 300]]


def softmax_cases():
    for i, shape in enumerate(SOFTMAX_SHAPES):
        for j, (scale, beta) in enumerate(((0.1, 1.0), (0.01, 1.0), (1.0, 0.5), (3.0, 20.0), (1e-6, 1.0))):
            if (i + j) % 2 or i == 5 and j:
                continue
            rng = seeded(f"SOFTMAX {i} {j}")
            for from_type, to_type, out_q in (("int8", "int8", (1 / 256, -128)), ("uint8", "uint8", (1 / 256, 0)),
                                              ("int8", "int16", (1 / 65536, -32768)), ("uint8", "int16", (1 / 65536, -32768)),
                                              ("int16", "int16", (1 / 32768, 0))):
                if from_type != to_type and i % 3:
                    continue
                values = random_quantized(rng, from_type, shape)
                in_q = (scale / 64 if from_type == "int16" else scale, 0 if from_type == "int16" else 3)
                yield case("SOFTMAX", f"{from_type}_{to_type}_shape{i}_{j}", from_type, values, out_type=to_type, in_q=in_q, out_q=out_q, beta=beta)
            if j < 3:
                yield case("SOFTMAX", f"float32_shape{i}_{j}", "float32", rng.uniform(-10, 10, shape), LIBM, beta=beta)
                if not i % 2:
                    yield case("SOFTMAX", f"float16_shape{i}_{j}", "float16", rng.uniform(-10, 10, shape), LIBM, beta=beta)
    yield case("SOFTMAX", "float32_special", "float32", [[np.inf, 1, 2], [-np.inf, 1, 2], [np.nan, 1, 2], [1e38, -1e38, 0]], LIBM, beta=1.0)
    yield case("SOFTMAX", "float32_negative_beta", "float32", [[1, 2, 3, -4]], LIBM, beta=-0.7)
    yield case("SOFTMAX", "float32_rank5", "float32", seeded("SOFTMAX rank5").uniform(-3, 3, [1, 2, 1, 2, 3]), LIBM, beta=1.0)
    yield case("SOFTMAX", "int8_equal", "int8", np.full([2, 200], 5), in_q=(0.1, 0), out_q=(1 / 256, -128), beta=1.0)
    for dtype, out_q in (("int8", (1 / 256, -128)), ("uint8", (1 / 256, 0))):
        yield case("SOFTMAX", f"{dtype}_pairs", dtype, np.stack([all_values(dtype), all_values(dtype)[::-1]], 1), in_q=(0.04, 0), out_q=out_q, beta=1.0)
    yield case("SOFTMAX", "refused_output_scale", "int8", [[1, 2]], {"expect_error": True}, in_q=(0.1, 0), out_q=(1 / 250, -128), beta=1.0)
    yield case("SOFTMAX", "int16_rank5", "int16", np.arange(-4, 8).reshape(2, 1, 2, 1, 3), in_q=(0.1, 0), out_q=(1 / 32768, 0), beta=1.0)


def log_softmax_cases():
    for i, shape in enumerate(SOFTMAX_SHAPES):
        for j, scale in enumerate((0.1, 0.01, 1.0, 20.0, 1e-5)):
            rng = seeded(f"LOG_SOFTMAX {i} {j}")
            for dtype, zero_point in (("int8", 127), ("uint8", 255)):
                if i < 5:
                    yield case("LOG_SOFTMAX", f"{dtype}_shape{i}_{j}", dtype, random_quantized(rng, dtype, shape), in_q=(scale, 3), out_q=(1 / 16, zero_point))
        yield case("LOG_SOFTMAX", f"float32_shape{i}", "float32", rng.uniform(-10, 10, shape), LIBM)
    yield case("LOG_SOFTMAX", "float32_special", "float32", [[np.inf, 1, 2], [-np.inf, 1, 2], [np.nan, 1, 2], [1e38, -1e38, 0]], LIBM)
    for dtype, zero_point in (("int8", 127), ("uint8", 255)):
        values = np.stack([all_values(dtype), all_values(dtype)[::-1], np.zeros(256, int)], 1)
        yield case("LOG_SOFTMAX", f"{dtype}_triples", dtype, values, in_q=(0.06, 0), out_q=(1 / 16, zero_point))
    yield case("LOG_SOFTMAX", "refused_zero_point", "int8", [[1, 2]], {"expect_error": True}, in_q=(0.1, 0), out_q=(1 / 16, 126))


def normalization_cases():
    for i, shape in enumerate([[5], [3, 10], [1, 2, 2, 7], [2, 3, 17], [4, 1], [1, 300], [2, 1, 2, 1, 6]]):
        rng = seeded(f"L2_NORMALIZATION {i}")
        yield case("L2_NORMALIZATION", f"float32_shape{i}", "float32", rng.uniform(-5, 5, shape))
        for dtype, zero_point in (("int8", 0), ("uint8", 128)):
            low, high = limits(dtype)
            for in_zero_point in (low, high, low + 100):
                values = random_quantized(rng, dtype, shape)
                yield case("L2_NORMALIZATION", f"{dtype}_shape{i}_zero_point{in_zero_point}", dtype, values, in_q=(0.1, in_zero_point), out_q=(1 / 128, zero_point))
    for dtype, zero_point in (("int8", 0), ("uint8", 128)):
        tiny = np.array([[7, 7, 7], [7, 8, 7], [7, 6, 7], [8, 8, 7], [9, 7, 7], [9, 10, 7], [5, 7, 8]])
        yield case("L2_NORMALIZATION", f"{dtype}_tiny", dtype, tiny, in_q=(0.1, 7), out_q=(1 / 128, zero_point))
    yield case("L2_NORMALIZATION", "float32_tiny", "float32", [[0, 0, 0], [1e-8, 0, 0], [1e-4, 1e-4, 0], [1e30, 0, 1]])
    yield case("L2_NORMALIZATION", "refused_zero_point", "int8", [[1, 2]], {"expect_error": True}, in_q=(0.1, 0), out_q=(1 / 128, 1))
    for i, fields in enumerate(({"radius": 2, "bias": 1.0, "alpha": 0.1, "beta": 0.5}, {"radius": 20, "bias": 9.0, "alpha": 4.0, "beta": 0.75},
                                {"radius": 0, "bias": 2.0, "alpha": 1.0, "beta": 1.0}, {"radius": 1, "bias": 0.5, "alpha": 0.001, "beta": -0.3},
                                {"radius": -3, "bias": 2.0, "alpha": 1.0, "beta": 0.5}, {})):
        for j, shape in enumerate([[1, 1, 1, 6], [2, 3, 2, 9], [1, 2, 1, 1]]):
            rng = seeded(f"LRN {i} {j}")
            yield case("LOCAL_RESPONSE_NORMALIZATION", f"params{i}_shape{j}", "float32", rng.uniform(-5, 5, shape), LIBM, **fields)


def cast_cases():
    types = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "float32", "float64"]
    for from_type in types:
        if from_type == "bool":
            values = np.array([True, False, True])
        elif from_type.startswith("float"):
            values = np.array([0, -0.0, 0.3, -0.7, 1.5, -1.5, 127.9, 128, -128.9, -129, 255.5, 256, 300, -3, 32767.5, 60000, -60000,
                               np.inf, -np.inf, np.nan] + ([3e9, -3e9, 4294967296, 1e19, -1e19, 1e30, 2147483647] if from_type != "float16" else []))
        else:
            low, high = limits(from_type)
            values = np.array([low, low + 1, -1 if low else 5, 0, 1, 100, high - 1, high] + ([128, 200, 255] if high > 255 else [])
                              + ([65535, 70000, -70000, 16777217] if high > 10**9 and low else []))
        whole = from_type in ("int8", "int32", "float16", "float32", "float64")
        for to_type in types if whole else ("bool", "int8", "uint32", "float32"):
            yield case("CAST", f"{from_type}_to_{to_type}", from_type, values, out_type=to_type)
    yield case("CAST", "shape", "int32", [[[1, -2]], [[3, 400]]], out_type="float32")
    yield case("CAST", "ignores_quantization", "int8", [[1, -2]], out_type="float32", in_q=(0.5, 3))
    yield case("CAST", "no_elements", "int32", np.zeros([0, 3]), out_type="int64")
    yield case("CAST", "refused_uint64", "float32", [1.0], {"expect_error": True}, out_type="uint64")


def quantize_cases():
    for dtype in ("int8", "uint8", "int16"):
        low, high = limits(dtype)
        for i, (scale, zero_point) in enumerate(((0.1, low), (0.5, high), (0.03, (low + high) // 2 + 3))):
            rng = seeded(f"QUANTIZE {dtype} {i}")
            reach = scale * (high - low)
            values = np.concatenate([rng.uniform(-reach, reach, 40), scale * (np.arange(-6, 7) / 2), [1e9 * scale, -1e9 * scale]])
            yield case("QUANTIZE", f"float32_{dtype}_{i}", "float32", values, out_type=dtype, out_q=(scale, zero_point))
        yield case("QUANTIZE", f"float32_{dtype}_special", "float32", SPECIAL, out_type=dtype, out_q=(0.5, 3))
        for axis, count in ((0, 2), (1, 3), (3, 4)):
            rng = seeded(f"QUANTIZE per channel {dtype} {axis}")
            scales, zero_points = rng.uniform(0.01, 0.2, count), rng.randint(low, high + 1, count)
            values = rng.uniform(-10, 10, [2, 3, 2, 4])
            yield case("QUANTIZE", f"float32_{dtype}_axis{axis}", "float32", values, out_type=dtype, out_q=(scales, zero_points), axis=axis)
    pairs = [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8"), ("int16", "int8"), ("int16", "int16"), ("int16", "int32"),
             ("int32", "int8"), ("int32", "int16"), ("int8", "int16"), ("uint8", "int16")]
    for from_type, to_type in pairs:
        rng = seeded(f"QUANTIZE {from_type} {to_type}")
        for i, ratio in enumerate((1.0, 0.37, 1.9)):
            low, high = limits(from_type)
            symmetric = from_type == to_type == "int16"
            values = all_values(from_type)[i::3] if from_type != "int32" else rng.randint(-40000, 40000, 60)
            zero_points = (0, 0) if symmetric or "int32" in (from_type, to_type) else (int(values[len(values) // 3]), int(all_values(to_type)[-20]))
            yield case("QUANTIZE", f"{from_type}_{to_type}_{i}", from_type, values, out_type=to_type, in_q=(0.05, zero_points[0]),
                       out_q=(0.05 / ratio, zero_points[1]))
    yield case("QUANTIZE", "int8_uint8_shift", "int8", all_values("int8"), out_type="uint8", in_q=(0.05, -10), out_q=(0.05, 118))
    yield case("QUANTIZE", "int32_int16_zero_points", "int32", [-2**31, 2**31 - 1, 5, -70000], out_type="int16", in_q=(0.001, 70000), out_q=(0.002, 9))
    yield case("QUANTIZE", "float32_scalar", "float32", 1.25, out_type="int8", out_q=(0.1, 3))
    yield case("QUANTIZE", "refused_uint8_int32", "uint8", [1], {"expect_error": True}, out_type="int32", in_q=(1.0, 0), out_q=(1.0, 0))


def dequantize_cases():
    for dtype in ("int8", "uint8", "int16"):
        low, high = limits(dtype)
        for i, (scale, zero_point) in enumerate(((0.1, low), (0.037, high), (1e-7, (low + high) // 2 + 3), (3e5, 1))):
            zero_point = 0 if dtype == "int16" else zero_point
            yield case("DEQUANTIZE", f"{dtype}_{i}", dtype, all_values(dtype), out_type="float32", in_q=(scale, zero_point))
    for dtype in ("int8", "uint8"):
        for axis, count in ((0, 2), (1, 3), (3, 4)):
            rng = seeded(f"DEQUANTIZE per channel {dtype} {axis}")
            low, high = limits(dtype)
            scales, zero_points = rng.uniform(0.01, 0.2, count), rng.randint(low, high + 1, count)
            yield case("DEQUANTIZE", f"{dtype}_axis{axis}", dtype, random_quantized(rng, dtype, [2, 3, 2, 4]), out_type="float32",
                       in_q=(scales, zero_points), axis=axis)
    yield case("DEQUANTIZE", "float16", "float16", [0, -0.0, 1.5, -65504, 6e-8, np.inf, np.nan, 0.1], out_type="float32")
    for name, scale, axis in (("per_tensor", 0.3, 0), ("axis1", [0.1, 0.2, 0.3, 0.4, 0.5], 1)):
        m = Model()  # packed tensors cannot be inputs here: numpy lacks the type
        q = np.arange(-8, 7).reshape(3, 5)
        x = m.const("x", q, "int4", scale=scale, zero_point=0, axis=axis)
        m.op("DEQUANTIZE", [x], [m.output("y", "float32", q.shape)])
        yield "DEQUANTIZE", f"int4_{name}", m, []


def fake_quant_cases():
    for i, (low, high, bits) in enumerate(((-1, 1, 8), (0, 6, 8), (-0.3, 5, 4), (-7, 0, 16), (-2, 3, 2), (0.5, 2.5, 8), (-3, -1, 8))):
        rng = seeded(f"FAKE_QUANT {i}")
        values = np.concatenate([rng.uniform(low - 1, high + 1, 30), [low, high, 0, np.inf, -np.inf]])
        yield case("FAKE_QUANT", f"range{i}", "float32", values, min=low, max=high, num_bits=bits)
    yield case("FAKE_QUANT", "refused_narrow_range", "float32", [1.0], {"expect_error": True}, min=-1.0, max=1.0, num_bits=8, narrow_range=True)


def cases():
    for family in (relu_cases, plain_float_cases, sign_cases, neg_abs_cases, table_cases, root_cases, hard_swish_cases, leaky_relu_cases,
                   logistic_tanh_cases, softmax_cases, log_softmax_cases, normalization_cases, cast_cases, quantize_cases,
                   dequantize_cases, fake_quant_cases):
        yield from family()
