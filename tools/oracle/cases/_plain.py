# SPDX-License-Identifier: Apache-2.0
"""Random values and quantization shared by pools, resizes, reductions and the small ops beside them."""

import numpy as np

from cases._scales import random_quantized

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
