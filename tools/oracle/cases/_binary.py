# SPDX-License-Identifier: Apache-2.0
"""What the generators of binary element-wise operators share: shapes to broadcast, models, random operands."""

import numpy as np

from cases._scales import limits, random_quantized
from onemodel import Model

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]

# (first shape, second shape)
BROADCASTS = [
    ([1, 3, 5, 4], [1, 3, 5, 4]),
    ([2, 3, 4], [4]),
    ([1], [7, 3]),
    ([2, 1, 3, 1], [1, 4, 1, 5]),
    ([], [6]),
    ([2, 1, 2, 1, 3], [1, 3, 1, 2, 3]),
    ([2, 1, 2, 1, 2, 1], [1, 2, 1, 2, 1, 2]),
    ([3, 1], [3, 4]),
    ([0, 3], [1, 3]),
    ([5], []),
]


def binary_model(operator, dtype, shapes, params=(None, None, None), output_dtype=None, **fields):
    """params: (scale, zero point) or None, for the two inputs and the output."""
    quantization = [{} if p is None else {"scale": p[0], "zero_point": p[1]} for p in params]
    m = Model()
    a = m.input("a", dtype, shapes[0], **quantization[0])
    b = m.input("b", dtype, shapes[1], **quantization[1])
    y = m.output("y", output_dtype or dtype, np.broadcast_shapes(*map(tuple, shapes)), **quantization[2])
    m.op(operator, [a, b], [y], **fields)
    return m


def input_params(rng, dtype):
    """(scale, zero point) with which real values reach a few units, so that RELU6 and its kind cut."""
    low, high = limits(dtype)
    zero_point = 0 if dtype == "int16" else int(rng.randint(low // 2, high // 2 + 1))
    return float(np.float32(rng.uniform(2, 12) / (high - low))), zero_point


def plain_values(rng, dtype, shape, low=-6, high=6):
    """Small numbers: floats, or integers with ends included. Unsigned types and bools get what fits."""
    if dtype == "bool":
        return rng.randint(0, 2, shape).astype(bool)
    if dtype == "float32":
        return rng.uniform(low, high, shape).astype(np.float32)
    return rng.randint(max(low, limits(dtype)[0]), high + 1, shape)


def different_from(values, forbidden, replacement):
    """The values with every `forbidden` replaced: divisors without zeros."""
    return np.where(np.asarray(values) == forbidden, replacement, values)


def refusals(operator, output_dtype=None, mixed=("float32", "int32")):
    """Models that every binary operator must refuse."""
    for label, dtypes, shapes in (("incompatible_shapes", ("float32", "float32"), ([2, 3], [2, 4])),
                                  ("mixed_types", mixed, ([2], [2]))):
        m = Model()
        a, b = (m.input(n, d, s) for n, d, s in zip("ab", dtypes, shapes))
        m.op(operator, [a, b], [m.output("y", output_dtype or dtypes[0], shapes[1])])
        yield operator, f"refused_{label}", m, None, {"expect_error": True}
