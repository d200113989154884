# SPDX-License-Identifier: Apache-2.0
"""Shared by the operators that only move elements: one moved input, other operands constant or computed."""

import numpy as np

from onemodel import Model, seeded

ALL_TYPES = ["float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "bool"]


def values(rng, dtype, shape):
    """Every bit pattern may occur in integers; floats are ordinary numbers."""
    if dtype.startswith("float"):
        return rng.uniform(-9, 9, shape).astype(dtype)
    if dtype == "bool":
        return rng.randint(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * info.bits // 8), dtype).reshape(shape)


def case(operator, name, dtype, shape, operands=(), *, outputs=1, first=True, dynamic=(), quantization=None,
         result_shape=(1,), options=None, **fields):
    """A model with one moved input of random values.

    operands: the other inputs, as arrays (constants) or None; those whose position is in `dynamic` are graph inputs
    instead. first: whether the moved input comes first or last.
    """
    rng = seeded(f"{operator} {name}")
    params = {} if quantization is None else {"scale": quantization[0], "zero_point": quantization[1]}
    m = Model()
    x = m.input("x", dtype, shape, **params)
    data, others = [values(rng, dtype, shape)], []
    for i, operand in enumerate(operands):
        if operand is None:
            others.append(None)
        elif i in dynamic:
            others.append(m.input(f"operand{i}", operand.dtype.name, operand.shape))
            data.append(operand)
        else:
            others.append(m.const(f"operand{i}", operand))
    results = [m.output(f"y{i}", dtype, result_shape, **params) for i in range(outputs)]
    m.op(operator, [x, *others] if first else [*others, x], results, **fields)
    return (operator, name, m, data) if options is None else (operator, name, m, data, options)


REFUSED = {"expect_error": True}


def i32(*numbers):
    return np.array(numbers, np.int32)


def i64(*numbers):
    return np.array(numbers, np.int64)


def label(numbers):
    return "_".join(str(n).replace("-", "m") for n in np.ravel(numbers)) or "none"
