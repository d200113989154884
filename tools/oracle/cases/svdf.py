# SPDX-License-Identifier: Apache-2.0
"""SVDF: float, hybrid, integers with 16-bit state, and with 8-bit state as TFLite-Micro has it (others misread it)."""

import numpy as np

from onemodel import Model, seeded

# (batch, inputs, units, rank, memory)
SIZES = {"plain": (2, 5, 4, 1, 3), "rank2": (1, 7, 3, 2, 5), "long_memory": (2, 3, 3, 1, 11), "memory1": (1, 4, 5, 3, 1), "wide": (1, 19, 8, 1, 13)}


def svdf_case(name, kind, sizes, *, bias=True, state_zero_point=None, options=None, weight_dtype="int8", zero_points=(-7, 11), **fields):
    rng = seeded("SVDF " + name)
    batch, inputs, units, rank, memory = sizes
    filters = units * rank
    m = Model()
    quantized = dict(scale=float(np.float32(0.011)), zero_point=0)
    shapes = [filters, inputs], [filters, memory]
    # The 8-bit state must not saturate: up to late 2026 TFLite-Micro let it wrap around then.
    state_dtype, limit, reach = ("int16", 32767, 6) if state_zero_point is None else ("int8", 127, 40)
    if kind == "float":
        weights = [m.const(n, rng.uniform(-1, 1, s).astype(np.float32)) for n, s in zip(("f", "t"), shapes)]
    elif kind == "hybrid":
        values = [rng.randint(-127, 128, s).astype(np.int8) for s in shapes]
        weights = [m.const(n, v.view(weight_dtype), weight_dtype, **quantized) for n, v in zip(("f", "t"), values)]
    else:
        weights = [m.const("f", rng.randint(-128, 128, shapes[0]), "int8", **quantized),
                   m.const("t", rng.randint(-limit, limit + 1, shapes[1]), state_dtype, scale=float(np.float32(1 / limit)),
                           zero_point=0)]
    state_shape = [batch, filters * memory]
    if kind == "int8":
        x = m.input("x", "int8", [batch, inputs], scale=float(np.float32(0.03)), zero_point=zero_points[0])
        state = m.variable("s", state_dtype, state_shape, scale=float(np.float32(reach / limit)), zero_point=state_zero_point or 0)
        y = m.output("y", "int8", [batch, units], scale=float(np.float32(0.05)), zero_point=zero_points[1])
        b = m.const("b", rng.randint(-3000, 3000, [units]), "int32", scale=float(np.float32(reach / limit / limit)), zero_point=0) if bias else None
        draw = lambda: rng.randint(-128, 128, [batch, inputs])
    else:
        x = m.input("x", "float32", [batch, inputs])
        state = m.variable("s", "float32", state_shape)
        y = m.output("y", "float32", [batch, units])
        b = m.const("b", rng.uniform(-1, 1, [units]).astype(np.float32)) if bias else None
        draw = lambda: rng.uniform(-1, 1, [batch, inputs]).astype(np.float32)
    m.op("SVDF", [x, *weights, b, state], [y], rank=rank, **fields)
    return "SVDF", name, m, [draw() for _ in range(4)], {"invocations": 4, **(options or {})}


def cases():
    for label, sizes in SIZES.items():
        yield svdf_case(f"float_{label}", "float", sizes, fused_activation_function="NONE")
        yield svdf_case(f"float_{label}_2_9", "float", sizes, options={"runtime": "tflite29"},
                        fused_activation_function="NONE")
        for asymmetric in (False, True):
            yield svdf_case(f"hybrid_{label}{'_asymmetric' if asymmetric else ''}", "hybrid", sizes,
                            fused_activation_function="NONE", asymmetric_quantize_inputs=asymmetric)
            yield svdf_case(f"hybrid_{label}{'_asymmetric' if asymmetric else ''}_2_9", "hybrid", sizes, options={"runtime": "tflite29"},
                            fused_activation_function="NONE", asymmetric_quantize_inputs=asymmetric)
        for runtime, suffix in (("litert", ""), ("tflite29", "_2_9")):
            yield svdf_case(f"int8_{label}{suffix}", "int8", sizes, options={"runtime": runtime},
                            fused_activation_function="RELU")
    for label, zero_point in (("plain", 0), ("rank2", -50), ("long_memory", 37)):
        yield svdf_case(f"int8_state_{label}", "int8", SIZES[label], state_zero_point=zero_point, options={"runtime": "tflm"},
                        fused_activation_function="RELU")
    yield svdf_case("float_relu_no_bias", "float", SIZES["plain"], bias=False, fused_activation_function="RELU")
    yield svdf_case("float_relu6", "float", SIZES["rank2"], fused_activation_function="RELU6")
    yield svdf_case("hybrid_uint8", "hybrid", SIZES["plain"], weight_dtype="uint8", fused_activation_function="RELU")
    yield svdf_case("int8_no_bias", "int8", SIZES["rank2"], bias=False, fused_activation_function="RELU")
    yield svdf_case("int8_zero_points", "int8", SIZES["plain"], zero_points=(127, -128), fused_activation_function="RELU")
