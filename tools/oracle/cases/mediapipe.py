# SPDX-License-Identifier: Apache-2.0
"""Custom operators of MediaPipe that LiteRT runs, by XNNPACK."""

import numpy as np

from onemodel import Model, seeded


def cases():
    for padding, number in (("same", 1), ("valid", 2)):
        for size, kernel, stride in ((4, 2, 2), (5, 2, 2), (4, 3, 2), (5, 3, 2), (3, 4, 2), (4, 3, 1), (6, 5, 3)):
            name = f"{padding}_{size}_kernel{kernel}_stride{stride}"
            rng = seeded("Convolution2DTransposeBias " + name)
            inputs, outputs = 3, 2
            total = max(0, kernel - (size - 1) % stride - 1) if number == 1 else 0
            result = stride * (size - 1) + kernel - total
            m = Model()
            x = m.input("x", "float32", [1, size, size + stride, inputs])
            w = m.const("w", rng.uniform(-1, 1, [outputs, kernel, kernel, inputs]).astype(np.float32), "float32")
            b = m.const("b", rng.uniform(-1, 1, [outputs]).astype(np.float32), "float32")
            y = m.output("y", "float32", [1, result, result + stride * stride, outputs])
            options = np.array([number, stride, stride], "<i4").tobytes()
            m.op("custom:Convolution2DTransposeBias", [x, w, b], [y], custom_options=options)
            yield ("custom:Convolution2DTransposeBias", name, m,
                   [rng.uniform(-1, 1, [1, size, size + stride, inputs]).astype(np.float32)], {"tolerance": 1e-5, "runtime": "xnnpack"})
