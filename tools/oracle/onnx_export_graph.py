# SPDX-License-Identifier: Apache-2.0
"""What graphs of make_onnx_exports.py are written with: nodes as PyTorch's exporters write them, and the list of cases."""
import zlib

import numpy as np
from onnx import TensorProto as T, helper, numpy_helper

CASES = {}


TOLERANCES = {}  # of cases whose results may differ by more than rounding, relative to the largest value


def case(transposes=0, opset=17, keep=(), tolerance=None):
    def register(build):
        CASES[build.__name__] = (build, transposes, opset, keep)
        if tolerance:
            TOLERANCES[build.__name__] = tolerance
        return build
    return register


class Graph:
    def __init__(self, name):
        self.rng = np.random.RandomState(abs(hash_of(name)))
        self.nodes, self.constants, self.inputs, self.feeds, self.outputs, self.functions, self.count = [], [], [], {}, [], [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def const(self, value, dtype=None):
        value = np.asarray(value, dtype) if dtype else np.asarray(value)
        if value.dtype == np.float64:
            value = value.astype(np.float32)
        self.constants.append(numpy_helper.from_array(value, self.name()))
        return self.constants[-1].name

    def ints(self, *values):
        return self.const(np.array(values, np.int64))

    def weights(self, *shape, scale=0.3):
        return self.const(self.rng.uniform(-scale, scale, shape).astype(np.float32))

    def input(self, name, shape, dims=None, dtype=np.float32, low=-1, high=1):
        """`dims`: as the file says them, with names for open sizes."""
        kind = {np.float32: T.FLOAT, np.int64: T.INT64, np.int32: T.INT32, np.bool_: T.BOOL}[dtype]
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims or shape))
        draw = self.rng.uniform(low, high, shape) if dtype == np.float32 else self.rng.randint(low, high, shape)
        self.feeds[name] = draw.astype(dtype)
        return name

    def node(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def output(self, value, name="output", dtype=T.FLOAT):
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, None))

    # As the exporters write them.
    def size(self, x, axis):
        return self.node("Gather", self.node("Shape", x), self.const(np.int64(axis)), axis=0)

    def shape_of(self, *parts):
        rows = [self.node("Unsqueeze", p, self.ints(0)) if isinstance(p, str) else self.ints(p) for p in parts]
        return self.node("Concat", *rows, axis=0)

    def conv(self, x, i, o, k, stride=1, groups=1, bias=True, pad=None, dims=2):
        pad = k // 2 if pad is None else pad
        inputs = [x, self.weights(o, i // groups, *[k] * dims)] + ([self.weights(o)] if bias else [])
        return self.node("Conv", *inputs, kernel_shape=[k] * dims, strides=[stride] * dims, pads=[pad] * (2 * dims), group=groups, dilations=[1] * dims)

    def norm(self, x, c):
        return self.node("BatchNormalization", x, self.weights(c), self.weights(c), self.weights(c), self.const(self.rng.uniform(0.5, 1.5, c).astype(np.float32)), epsilon=1e-5)

    def linear(self, x, i, o):
        return self.node("Add", self.weights(o), self.node("MatMul", x, self.weights(i, o)))


def hash_of(text):
    return zlib.crc32(text.encode()) & 0x7FFFFFFF
