# SPDX-License-Identifier: Apache-2.0
"""Binary element-wise arithmetic with broadcasting and a fused activation."""

import numpy as np

from cases._scales import fit, limits, random_quantized, real
from onemodel import Model, seeded

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]

# (first shape, second shape)
BROADCASTS = [
    ([1, 3, 5, 4], [1, 3, 5, 4]),
    ([2, 3, 4], [4]),
    ([1], [7, 3]),
    ([2, 1, 3, 1], [1, 4, 1, 5]),
    ([], [6]),
    ([2, 1, 2, 1, 3], [1, 3, 1, 2, 3]),
]


def binary_model(operator, dtype, shapes, params=(None, None, None), **fields):
    """params: (scale, zero point) or None, for the two inputs and the output."""
    quantization = [{} if p is None else {"scale": p[0], "zero_point": p[1]} for p in params]
    m = Model()
    a = m.input("a", dtype, shapes[0], **quantization[0])
    b = m.input("b", dtype, shapes[1], **quantization[1])
    y = m.output("y", dtype, np.broadcast_shapes(*map(tuple, shapes)), **quantization[2])
    m.op(operator, [a, b], [y], **fields)
    return m


def quantized_add(name, dtype, shapes, activation, input_params=None, output_params=None, **fields):
    """Input scales that give real values of a few units, so that RELU6 and its kind cut; the output's fitted to the sums."""
    rng = seeded("ADD " + name)
    values = [random_quantized(rng, dtype, s) for s in shapes]
    low, high = limits(dtype)
    if input_params is None:
        zero_point = lambda: 0 if dtype == "int16" else int(rng.randint(low // 2, high // 2 + 1))
        input_params = [(float(rng.uniform(2, 12)) / (high - low), zero_point()) for _ in range(2)]
    if output_params is None:
        output_params = fit(sum(real(v, *p) for v, p in zip(values, input_params)), dtype)
    model = binary_model("ADD", dtype, shapes, [*input_params, output_params], fused_activation_function=activation, **fields)
    return "ADD", name, model, values


def add_8bit_cases(dtype):
    low, high = limits(dtype)
    for i, shapes in enumerate(BROADCASTS):
        for activation in ACTIVATIONS:
            yield quantized_add(f"{dtype}_broadcast{i}_{activation.lower()}", dtype, shapes, activation)
    for zero_points in ([low, low, low], [high, high, high], [low, high, low], [high, low, high]):
        name = f"{dtype}_zero_points_" + "_".join(map(str, zero_points))
        params = list(zip((0.05, 0.04, 0.07), zero_points))
        yield quantized_add(name, dtype, BROADCASTS[0], "NONE", params[:2], params[2])
    for label, scales in {"unequal_scales": (1e-5, 3.0, 3.0), "equal_scales": (0.1, 0.1, 0.1),
                          "first_scale_larger": (0.4, 0.02, 0.3), "tiny_scales": (1e-12, 2e-12, 2e-12),
                          "huge_scales": (1e9, 2e9, 2e9)}.items():
        params = [(s, (low + high) // 2 + 3) for s in scales]
        yield quantized_add(f"{dtype}_{label}", dtype, BROADCASTS[0], "NONE", params[:2], params[2])


def add_int16_cases():
    for i, shapes in enumerate(BROADCASTS):
        for activation in ACTIVATIONS:
            name = f"int16_general_broadcast{i}_{activation.lower()}"
            yield quantized_add(name, "int16", shapes, activation, pot_scale_int16=False)
    # Power-of-two scales take another path, where one input's scale equals the output's.
    for exponents in ((-15, -15, -15), (-15, -12, -12), (-11, -12, -11)):
        params = [(2.0 ** e, 0) for e in exponents]
        name = "int16_power_of_two_" + "_".join(str(-e) for e in exponents)
        yield quantized_add(name, "int16", BROADCASTS[0], "RELU6", params[:2], params[2])


def add_plain_cases():
    for dtype in ("float32", "int32", "int64", "int16"):
        for i, shapes in enumerate(BROADCASTS):
            for activation in ACTIVATIONS:
                rng = seeded(f"ADD {dtype} {i} {activation}")
                values = [rng.uniform(-5, 5, s) if dtype == "float32" else rng.randint(-6, 7, s) for s in shapes]
                model = binary_model("ADD", dtype, shapes, fused_activation_function=activation)
                yield "ADD", f"{dtype}_broadcast{i}_{activation.lower()}", model, values
    big = np.array([np.iinfo(np.int32).max, np.iinfo(np.int32).min, 1 << 30, -7])
    yield "ADD", "int32_wraps", binary_model("ADD", "int32", [[4], [4]]), [big, big]
    special = np.array([np.inf, -np.inf, np.nan, -0.0, 1e38, 1e-45], np.float32)
    for activation in ("NONE", "RELU6"):
        model = binary_model("ADD", "float32", [[6], [6]], fused_activation_function=activation)
        yield "ADD", f"float32_special_{activation.lower()}", model, [special, special[::-1].copy()]


def add_refusals():
    for label, dtypes, shapes in (("incompatible_shapes", ("float32", "float32"), ([2, 3], [2, 4])),
                                  ("mixed_types", ("float32", "int32"), ([2], [2]))):
        m = Model()
        a, b = (m.input(n, d, s) for n, d, s in zip("ab", dtypes, shapes))
        m.op("ADD", [a, b], [m.output("y", "float32", shapes[1])])
        yield "ADD", f"refused_{label}", m, None, {"expect_error": True}


def cases():
    yield from add_8bit_cases("int8")
    yield from add_8bit_cases("uint8")
    yield from add_int16_cases()
    yield from add_plain_cases()
    yield from add_refusals()
