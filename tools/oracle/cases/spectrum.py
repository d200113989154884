# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms and complex numbers."""

import numpy as np

from onemodel import Model, seeded

ROUNDING = {"tolerance": 2e-6}


def rfft_cases():
    shapes = (([1, 8], [1, 8]), ([3, 16], [1, 16]), ([2, 4, 8], [4, 8]), ([5, 7], [8, 4]), ([2, 2, 3, 5], [2, 8]),
              ([1, 512], [1, 512]))  # of single columns LiteRT gives what happens to lie in memory
    for shape, length in shapes:
        name = f"{'x'.join(map(str, shape))}_to_{length[0]}x{length[1]}"
        rng = seeded("RFFT2D " + name)
        m = Model()
        x = m.input("x", "float32", shape)
        size = m.const("size", np.array(length), "int32")
        y = m.output("y", "complex64", [*shape[:-2], length[0], length[1] // 2 + 1])
        m.op("RFFT2D", [x, size], [y])
        yield "RFFT2D", name, m, [rng.uniform(-1, 1, shape).astype(np.float32)], {"tolerance": 1e-5}


def part_cases():
    for operator in ("REAL", "IMAG", "COMPLEX_ABS"):
        for shape in ([7], [2, 3, 4]):
            rng = seeded(f"{operator} {shape}")
            m = Model()
            x = m.input("x", "complex64", shape)
            y = m.output("y", "float32", shape)
            m.op(operator, [x], [y])
            values = (rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)).astype(np.complex64)
            yield operator, f"rank{len(shape)}", m, [values], ROUNDING


def cases():
    yield from rfft_cases()
    yield from part_cases()
