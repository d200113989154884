# SPDX-License-Identifier: Apache-2.0
"""Choose quantization so that a case can tell a right kernel from a wrong one.

A randomly chosen output scale mostly saturates or mostly gives zero, and then almost any arithmetic passes.
These helpers look at the real values that a case will produce.
"""

import numpy as np


def limits(dtype):
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def fit(real, dtype, cover=0.9):
    """(scale, zero point) that represent the middle `cover` of the values' range and zero; the rest saturates.

    int16 is symmetric, as TFLite wants it. Constant values still get a usable scale.
    """
    low, high = limits(dtype)
    smallest, largest = min(0.0, float(np.min(real, initial=0))), max(0.0, float(np.max(real, initial=0)))
    if dtype == "int16":
        return float(np.float32((max(-smallest, largest) or 1.0) * cover / high)), 0
    scale = float(np.float32(((largest - smallest) or 1.0) * cover / (high - low)))
    middle = (largest + smallest) / 2
    zero_point = int(np.clip(round((low + high) / 2 - middle / scale), low, high))
    return scale, zero_point


def real(quantized, scale, zero_point=0):
    return (np.asarray(quantized, np.float64) - zero_point) * scale


def random_quantized(rng, dtype, shape):
    """Values over the whole range of the type, ends included."""
    low, high = limits(dtype)
    values = rng.randint(low, high + 1, shape)
    if np.size(values) > 2:
        flat = values.reshape(-1)
        flat[rng.randint(flat.size)], flat[rng.randint(flat.size)] = low, high
    return values
