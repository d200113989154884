# SPDX-License-Identifier: Apache-2.0
"""CONV_3D, which TFLite's reference kernels have for floats: windows, strides and dilations that differ between the axes."""

import numpy as np

from onemodel import Model, seeded

# name: (input [batch, depth, height, width, channels], window, output channels, strides, dilations, padding, activation, bias)
GEOMETRIES = {
    "same": ([1, 4, 5, 6, 3], (3, 3, 3), 4, (1, 1, 1), (1, 1, 1), "SAME", "NONE", True),
    "valid": ([1, 5, 4, 6, 2], (2, 3, 1), 5, (1, 1, 1), (1, 1, 1), "VALID", "RELU", True),
    "strides": ([2, 6, 7, 5, 3], (3, 2, 3), 3, (2, 3, 1), (1, 1, 1), "SAME", "RELU6", True),
    "dilations": ([1, 7, 6, 8, 2], (3, 2, 3), 4, (1, 1, 1), (2, 3, 1), "SAME", "NONE", True),
    "strides_valid": ([1, 7, 6, 9, 1], (2, 2, 2), 17, (2, 1, 3), (1, 2, 1), "VALID", "RELU_N1_TO_1", False),
    "points": ([2, 2, 3, 3, 9], (1, 1, 1), 33, (1, 1, 1), (1, 1, 1), "SAME", "NONE", True),
    "larger_than_input": ([1, 2, 2, 2, 3], (5, 3, 4), 2, (1, 1, 1), (1, 1, 1), "SAME", "NONE", False),
}


def size(length, window, stride, dilation, padding):
    reach = (window - 1) * dilation + 1
    return -(-length // stride) if padding == "SAME" else (length - reach) // stride + 1


def cases():
    for name, (shape, window, channels, strides, dilations, padding, activation, has_bias) in GEOMETRIES.items():
        rng = seeded("CONV_3D " + name)
        m = Model()
        x = m.input("x", "float32", shape)
        operands = [x, m.const("w", rng.uniform(-1, 1, [*window, shape[4], channels]).astype(np.float32))]
        if has_bias:
            operands.append(m.const("b", rng.uniform(-1, 1, channels).astype(np.float32)))
        sizes = [size(*each, padding) for each in zip(shape[1:4], window, strides, dilations)]
        y = m.output("y", "float32", [shape[0], *sizes, channels])
        m.op("CONV_3D", operands, [y], padding=padding, stride_d=strides[0], stride_h=strides[1], stride_w=strides[2],
             dilation_d_factor=dilations[0], dilation_h_factor=dilations[1], dilation_w_factor=dilations[2],
             fused_activation_function=activation)
        yield "CONV_3D", name, m, [rng.uniform(-2, 2, shape).astype(np.float32)]
