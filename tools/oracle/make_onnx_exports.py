#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs as PyTorch's exporters write them, with random weights, and what ONNX Runtime computes for them.

  make_onnx_exports.py [--out tests/onnx_exports] [NAME...]      writes model, inputs and outputs of each
  make_onnx_exports.py --check REEF [NAME...]                    converts them with Reef and compares LiteRT with ONNX Runtime

Written by hand from what the TorchScript and the dynamo exporter emit for the operation in the name: chains of Shape,
Gather, Unsqueeze, Concat and Reshape for sizes, Expand for states, normalizations by way of others, attention with Where.
Folders have the layout of ONNX's own tests; `transposes` holds how many TRANSPOSE the converted model may have.
"""
import argparse, json, os, pathlib, shutil, subprocess, sys, tempfile

import numpy as np
import onnx
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
    import zlib
    return zlib.crc32(text.encode()) & 0x7FFFFFFF


@case()
def dynamic_batch_cnn(g):
    x = g.input("input", [1, 3, 16, 16], ["batch", 3, 16, 16])
    x = g.node("Relu", g.norm(g.conv(x, 3, 8, 3, bias=False), 8))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 0, 0], ceil_mode=1)
    x = g.node("Relu", g.conv(x, 8, 8, 3, stride=2, groups=8))
    flat = g.node("Reshape", x, g.shape_of(g.size(x, 0), -1))
    g.output(g.node("Gemm", flat, g.weights(5, 8 * 4 * 4), g.weights(5), transB=1))


@case()
def mobilenet_v3_block(g):
    x = g.input("input", [1, 8, 12, 12])
    y = g.node("HardSwish", g.norm(g.conv(x, 8, 16, 1, bias=False), 16), domain="")
    y = g.node("HardSwish", g.norm(g.conv(y, 16, 16, 5, groups=16, bias=False), 16))
    s = g.node("Relu", g.conv(g.node("GlobalAveragePool", y), 16, 4, 1))
    s = g.node("HardSigmoid", g.conv(s, 4, 16, 1), alpha=1 / 6, beta=0.5)
    y = g.norm(g.conv(g.node("Mul", s, y), 16, 8, 1, bias=False), 8)
    g.output(g.node("Add", x, y))


@case(transposes=2)
def shuffle_net_block(g):
    x = g.input("input", [1, 8, 6, 10], ["batch", 8, 6, 10])
    a, b = g.node("Split", x, g.ints(4, 4), outputs=2, axis=1)
    b = g.node("Relu", g.conv(g.conv(b, 4, 4, 1), 4, 4, 3, groups=4))
    y = g.node("Concat", a, b, axis=1)
    n, h, w = g.size(y, 0), g.size(y, 2), g.size(y, 3)
    per = g.node("Div", g.size(y, 1), g.const(np.int64(2)))
    y = g.node("Reshape", y, g.shape_of(n, 2, g.node("Cast", per, to=T.INT64), h, w))
    y = g.node("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = g.node("Reshape", y, g.shape_of(n, -1, h, w))
    g.output(g.conv(y, 8, 8, 3))


@case(transposes=4)
def attention_with_where_mask(g):
    x = g.input("input", [1, 6, 16], ["batch", 6, 16])
    q, k, v = (g.linear(x, 16, 16) for _ in range(3))

    def heads(t, perm):
        t = g.node("Reshape", t, g.shape_of(g.size(t, 0), g.size(t, 1), 4, 4))
        return g.node("Transpose", t, perm=perm)
    scores = g.node("MatMul", heads(q, [0, 2, 1, 3]), heads(k, [0, 2, 3, 1]))
    scores = g.node("Div", scores, g.const(np.float32(2)))
    mask = g.const(np.triu(np.ones((1, 1, 6, 6), bool), 1))
    scores = g.node("Where", mask, g.const(np.float32(-np.inf)), scores)
    y = g.node("MatMul", g.node("Softmax", scores, axis=-1), heads(v, [0, 2, 1, 3]))
    y = g.node("Transpose", y, perm=[0, 2, 1, 3])
    y = g.node("Reshape", y, g.shape_of(g.size(x, 0), g.size(x, 1), 16))
    g.output(g.linear(y, 16, 16))


@case(transposes=4, opset=18)
def scaled_dot_product_dynamo(g):
    x = g.input("input", [1, 6, 16])
    mask = g.input("mask", [1, 1, 6, 6], dtype=np.bool_, low=0, high=2)
    qkv = g.node("Gemm", g.node("Reshape", x, g.ints(6, 16)), g.weights(48, 16), g.weights(48), transB=1)
    qkv = g.node("Reshape", qkv, g.ints(1, 6, 3, 4, 4), allowzero=1)
    qkv = g.node("Transpose", qkv, perm=[2, 0, 3, 1, 4])
    q, k, v = (g.node("Gather", qkv, g.const(np.int64(i)), axis=0) for i in range(3))
    root = g.const(np.float32(np.sqrt(0.5)))
    scores = g.node("MatMul", g.node("Mul", q, root), g.node("Mul", g.node("Transpose", k, perm=[0, 1, 3, 2]), root))
    bias = g.node("Where", mask, g.const(np.float32(0)), g.const(np.float32(-1e9)))
    p = g.node("Softmax", g.node("Add", scores, bias), axis=-1)
    y = g.node("Transpose", g.node("MatMul", p, v), perm=[0, 2, 1, 3])
    y = g.node("Reshape", y, g.ints(6, 16), allowzero=1)
    y = g.node("Gemm", y, g.weights(16, 16), g.weights(16), transB=1)
    g.output(g.node("Reshape", y, g.ints(1, 6, 16)))


@case()
def interpolate_nearest(g):
    x = g.conv(g.input("input", [1, 4, 5, 7], ["n", 4, 5, 7]), 4, 4, 3)
    y = g.node("Resize", x, "", g.const(np.array([1, 1, 2, 2], np.float32)), coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")
    sizes = g.node("Concat", g.node("Slice", g.node("Shape", y), g.ints(0), g.ints(2), g.ints(0)), g.ints(20, 21), axis=0)
    y = g.node("Resize", g.conv(y, 4, 4, 1), "", "", sizes, coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")
    g.output(g.conv(y, 4, 2, 3))


@case()
def interpolate_bilinear(g):
    x = g.conv(g.input("input", [1, 4, 6, 6]), 4, 4, 3)
    a = g.node("Resize", x, "", g.const(np.array([1, 1, 2, 2], np.float32)), coordinate_transformation_mode="pytorch_half_pixel", mode="linear", cubic_coeff_a=-0.75)
    b = g.node("Resize", x, "", "", g.ints(1, 4, 12, 12), coordinate_transformation_mode="align_corners", mode="linear")
    g.output(g.conv(g.node("Add", a, b), 4, 2, 3))


@case()
def interpolate_bicubic(g):
    x = g.conv(g.input("input", [1, 4, 6, 6]), 4, 4, 3)
    y = g.node("Resize", x, "", "", g.ints(1, 4, 9, 11), coordinate_transformation_mode="pytorch_half_pixel", mode="cubic", cubic_coeff_a=-0.75)
    g.output(g.conv(y, 4, 2, 3))


@case()
def interpolate_antialias(g):
    x = g.conv(g.input("input", [1, 4, 12, 12]), 4, 4, 3)
    y = g.node("Resize", x, "", "", g.ints(1, 4, 5, 7), coordinate_transformation_mode="half_pixel", mode="linear", antialias=1)
    g.output(g.conv(y, 4, 2, 3))


CASES["interpolate_antialias"] = (*CASES["interpolate_antialias"][:2], 18, ())


@case()
def group_norm(g):
    x = g.conv(g.input("input", [1, 3, 8, 8], ["batch", 3, 8, 8]), 3, 8, 3)
    y = g.node("Reshape", x, g.ints(0, 2, -1))
    y = g.node("InstanceNormalization", y, g.const(np.ones(2, np.float32)), g.const(np.zeros(2, np.float32)), epsilon=1e-5)
    y = g.node("Reshape", y, g.node("Shape", x))
    y = g.node("Add", g.node("Mul", y, g.weights(8, 1, 1)), g.weights(8, 1, 1))
    g.output(g.conv(g.node("Mul", y, g.node("Sigmoid", y)), 8, 4, 3))


@case()
def pixel_shuffle(g):
    x = g.conv(g.input("input", [1, 3, 6, 6]), 3, 12, 3)
    x = g.node("PRelu", g.node("DepthToSpace", x, blocksize=2, mode="CRD"), g.weights(3, 1, 1))
    y = g.conv(x, 3, 8, 3)  # written out, as older exporters do
    y = g.node("Reshape", y, g.ints(1, 2, 2, 2, 12, 12))
    y = g.node("Transpose", y, perm=[0, 1, 4, 2, 5, 3])
    g.output(g.conv(g.node("Reshape", y, g.ints(1, 2, 24, 24)), 2, 3, 3))


@case(transposes=1)
def pixel_unshuffle(g):
    x = g.input("input", [1, 3, 8, 8])
    y = g.node("Reshape", x, g.ints(1, 3, 4, 2, 4, 2))
    y = g.node("Reshape", g.node("Transpose", y, perm=[0, 1, 3, 5, 2, 4]), g.ints(1, 12, 4, 4))
    g.output(g.conv(y, 12, 5, 3))


@case()
def conv1d(g):
    x = g.input("input", [1, 6, 40], ["batch", 6, 40])
    y = g.node("Relu", g.norm(g.conv(x, 6, 8, 5, stride=2, bias=False, dims=1), 8))
    y = g.node("AveragePool", y, kernel_shape=[2], strides=[2], pads=[0, 0], ceil_mode=0, count_include_pad=1)
    y = g.node("Relu", g.conv(y, 8, 8, 3, groups=8, dims=1))
    y = g.node("ReduceMean", y, axes=[2], keepdims=0)
    g.output(g.node("Gemm", y, g.weights(4, 8), g.weights(4), transB=1))


@case(transposes=1)
def lstm_with_states(g):
    x = g.input("input", [2, 7, 5], ["batch", 7, 5])
    h0, c0 = g.input("h0", [2, 2, 6], [2, "batch", 6]), g.input("c0", [2, 2, 6], [2, "batch", 6])
    y, h, c = g.node("LSTM", g.node("Transpose", x, perm=[1, 0, 2]), g.weights(2, 24, 5), g.weights(2, 24, 6), g.weights(2, 48), "", h0, c0,
                     outputs=3, hidden_size=6, direction="bidirectional")
    y = g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    g.output(g.node("Transpose", y, perm=[1, 0, 2]))
    g.output(h, "hn")
    g.output(c, "cn")


@case()
def gru_with_expanded_state(g):
    x = g.input("input", [1, 9, 5], ["batch", 9, 5])
    t = g.node("Transpose", x, perm=[1, 0, 2])
    h0 = g.node("Expand", g.const(np.float32(0)), g.shape_of(1, g.size(t, 1), 6))
    y, _ = g.node("GRU", t, g.weights(1, 18, 5), g.weights(1, 18, 6), g.weights(1, 36), "", h0, outputs=2, hidden_size=6, linear_before_reset=1)
    y = g.node("Transpose", g.node("Squeeze", y, g.ints(1)), perm=[1, 0, 2])
    last = g.node("Gather", y, g.const(np.int64(-1)), axis=1)
    g.output(g.node("Gemm", last, g.weights(3, 6), g.weights(3), transB=1))


@case(transposes=0)
def long_lstm(g):
    x = g.input("input", [150, 1, 4])
    y, h = g.node("LSTM", x, g.weights(1, 24, 4), g.weights(1, 24, 6), g.weights(1, 48), outputs=2, hidden_size=6)
    g.output(g.node("Squeeze", y, g.ints(1)))
    g.output(h, "hn")


@case(transposes=0)
def einsum_attention(g):
    q, k, v = (g.input(n, [1, 2, 5, 4]) for n in "qkv")
    scores = g.node("Mul", g.node("Einsum", q, k, equation="bhid,bhjd->bhij"), g.const(np.float32(0.5)))
    g.output(g.node("Einsum", g.node("Softmax", scores, axis=-1), v, equation="bhij,bhjd->bhid"))


@case()
def pad_reflect(g):
    x = g.input("input", [1, 3, 8, 8], ["batch", 3, 8, 8])
    # The exporter's way from F.pad's list (last axis first) to ONNX's.
    given = g.ints(1, 2, 3, 1)
    missing = g.node("Sub", g.node("Mul", g.node("Size", g.node("Shape", x)), g.const(np.int64(2))), g.node("Gather", g.node("Shape", given), g.const(np.int64(0)), axis=0))
    zeros = g.node("ConstantOfShape", g.node("Unsqueeze", missing, g.ints(0)), value=numpy_helper.from_array(np.zeros(1, np.int64)))
    pads = g.node("Reshape", g.node("Concat", given, zeros, axis=0), g.ints(-1, 2))
    pads = g.node("Slice", pads, g.ints(-1), g.ints(-(2**63) + 1), g.ints(0), g.ints(-1))
    pads = g.node("Cast", g.node("Reshape", g.node("Transpose", pads, perm=[1, 0]), g.ints(-1)), to=T.INT64)
    y = g.node("Pad", x, pads, mode="reflect")
    g.output(g.conv(y, 3, 4, 3, pad=0))


@case()
def if_from_jit(g):
    x = g.conv(g.input("input", [1, 3, 8, 8]), 3, 1, 3)
    is_one = g.node("Equal", g.size(x, 1), g.const(np.int64(1)))
    then = helper.make_graph([helper.make_node("Squeeze", [x, g.ints(1)], ["t"])], "then", [], [helper.make_tensor_value_info("t", T.FLOAT, None)])
    other = helper.make_graph([helper.make_node("Identity", [x], ["e"])], "else", [], [helper.make_tensor_value_info("e", T.FLOAT, None)])
    y = g.node("If", is_one, then_branch=then, else_branch=other)
    total = g.node("Greater", g.node("ReduceSum", y, keepdims=0), g.const(np.float32(0)))
    minus = helper.make_graph([helper.make_node("Neg", [y], ["m"])], "then", [], [helper.make_tensor_value_info("m", T.FLOAT, None)])
    plus = helper.make_graph([helper.make_node("Relu", [y], ["p"])], "else", [], [helper.make_tensor_value_info("p", T.FLOAT, None)])
    g.output(g.node("If", total, then_branch=minus, else_branch=plus))


@case(transposes=0)
def gelu_forms(g):
    x = g.input("input", [1, 5, 8])
    a = g.linear(x, 8, 8)
    a = g.node("Mul", g.node("Mul", a, g.node("Add", g.node("Erf", g.node("Div", a, g.const(np.float32(np.sqrt(2))))), g.const(np.float32(1)))), g.const(np.float32(0.5)))
    b = g.linear(a, 8, 8)
    cube = g.node("Mul", g.node("Pow", b, g.const(np.float32(3))), g.const(np.float32(0.044715)))
    inner = g.node("Tanh", g.node("Mul", g.node("Add", b, cube), g.const(np.float32(np.sqrt(2 / np.pi)))))
    b = g.node("Mul", g.node("Mul", g.const(np.float32(0.5)), b), g.node("Add", inner, g.const(np.float32(1))))
    g.output(g.node("Gelu", g.linear(b, 8, 8), approximate="tanh"))


CASES["gelu_forms"] = (*CASES["gelu_forms"][:2], 20, ())


@case(transposes=0, opset=18)
def layer_norms(g):
    x = g.input("input", [1, 5, 8], ["batch", "tokens", 8])
    a = g.node("LayerNormalization", x, g.weights(8), g.weights(8), axis=-1, epsilon=1e-5)
    mean = g.node("ReduceMean", a, g.ints(-1))
    d = g.node("Sub", a, mean)
    var = g.node("ReduceMean", g.node("Pow", d, g.const(np.float32(2))), g.ints(-1))
    b = g.node("Div", d, g.node("Sqrt", g.node("Add", var, g.const(np.float32(1e-5)))))
    b = g.node("Add", g.node("Mul", b, g.weights(8)), g.weights(8))
    square = g.node("ReduceMean", g.node("Pow", b, g.const(np.float32(2))), g.ints(-1), keepdims=1)
    r = g.node("Reciprocal", g.node("Sqrt", g.node("Add", square, g.const(np.float32(1e-6)))))
    g.output(g.node("Mul", g.node("Mul", b, r), g.weights(8)))


@case()
def unet_up(g):
    x = g.input("input", [1, 4, 8, 8], ["batch", 4, 8, 8])
    skip = g.node("Relu", g.conv(x, 4, 6, 3))
    y = g.node("Relu", g.conv(g.node("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 6, 8, 3))
    y = g.node("ConvTranspose", y, g.weights(8, 6, 2, 2), g.weights(6), kernel_shape=[2, 2], strides=[2, 2])
    g.output(g.conv(g.node("Concat", y, skip, axis=1), 12, 2, 1))


@case(transposes=1)
def yolo_head(g):
    x = g.node("LeakyRelu", g.conv(g.input("input", [1, 3, 16, 16], ["batch", 3, 16, 16]), 3, 8, 3, stride=2), alpha=0.1)
    y = g.conv(x, 8, 2 * 7, 1)
    y = g.node("Reshape", y, g.shape_of(g.size(y, 0), 2, 7, g.size(y, 2), g.size(y, 3)))
    y = g.node("Sigmoid", g.node("Transpose", y, perm=[0, 1, 3, 4, 2]))
    xy, wh, rest = g.node("Split", y, g.ints(2, 2, 3), outputs=3, axis=4)
    grid = g.const(np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1)[None, None].astype(np.float32) - 0.5)
    xy = g.node("Mul", g.node("Add", g.node("Mul", xy, g.const(np.float32(2))), grid), g.const(np.float32(2)))
    wh = g.node("Mul", g.node("Pow", g.node("Mul", wh, g.const(np.float32(2))), g.const(np.float32(2))), g.weights(1, 2, 1, 1, 2, scale=4))
    y = g.node("Concat", xy, wh, rest, axis=4)
    g.output(g.node("Reshape", y, g.shape_of(g.size(x, 0), -1, 7)))


@case(transposes=2)
def swin_windows(g):
    x = g.input("input", [1, 8, 8, 6])
    r = g.node("Concat", g.node("Slice", x, g.ints(2), g.ints(2**63 - 1), g.ints(1)), g.node("Slice", x, g.ints(0), g.ints(2), g.ints(1)), axis=1)
    w = g.node("Transpose", g.node("Reshape", r, g.ints(1, 2, 4, 2, 4, 6)), perm=[0, 1, 3, 2, 4, 5])
    w = g.linear(g.node("Reshape", w, g.ints(-1, 16, 6)), 6, 6)
    w = g.node("Transpose", g.node("Reshape", w, g.ints(1, 2, 2, 4, 4, 6)), perm=[0, 1, 3, 2, 4, 5])
    g.output(g.node("Add", x, g.node("Reshape", w, g.ints(1, 8, 8, 6))))


@case(transposes=0)
def position_embedding(g):
    x = g.input("tokens", [1, 7], ["batch", "time"], dtype=np.int64, low=0, high=20)
    e = g.node("Gather", g.weights(20, 6), x, axis=0)
    places = g.node("Range", g.const(np.int64(0)), g.size(x, 1), g.const(np.int64(1)))
    p = g.node("Gather", g.weights(12, 6), g.node("Expand", g.node("Unsqueeze", places, g.ints(0)), g.node("Shape", x)), axis=0)
    mask = g.node("Cast", g.node("Unsqueeze", g.node("Not", g.node("Equal", x, g.const(np.int64(0)))), g.ints(2)), to=T.FLOAT)
    y = g.node("Mul", g.node("Add", e, p), mask)
    g.output(g.node("Div", g.node("ReduceSum", y, g.ints(1), keepdims=0), g.node("Clip", g.node("ReduceSum", mask, g.ints(1), keepdims=0), g.const(np.float32(1)))))


@case()
def model_function(g):
    x = g.input("input", [1, 4, 8, 8])
    body = [helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), helper.make_node("Sigmoid", ["c"], ["s"]), helper.make_node("Mul", ["c", "s"], ["y"])]
    g.functions.append(helper.make_function("pkg.module", "ConvSilu", ["x", "w"], ["y"], body, [helper.make_opsetid("", 18)]))
    y = g.node("ConvSilu", x, g.weights(4, 4, 3, 3), domain="pkg.module")
    g.output(g.node("ConvSilu", y, g.weights(4, 4, 3, 3), domain="pkg.module"))


CASES["model_function"] = (*CASES["model_function"][:2], 18, ())


@case(transposes=2)
def detection_with_nms(g):
    x = g.input("input", [1, 3, 16, 16])
    y = g.node("Sigmoid", g.conv(x, 3, 12, 3, stride=2))
    y = g.node("Transpose", g.node("Reshape", y, g.ints(1, 6, 128)), perm=[0, 2, 1])
    boxes, scores = g.node("Split", y, g.ints(4, 2), outputs=2, axis=2)
    chosen = g.node("NonMaxSuppression", boxes, g.node("Transpose", scores, perm=[0, 2, 1]), g.ints(4), g.const(np.array([0.3], np.float32)), g.const(np.array([0.2], np.float32)), center_point_box=1)
    g.output(chosen, "chosen", T.INT64)


@case(transposes=2)
def rotary_attention(g):
    x = g.input("input", [1, 6, 16], ["batch", "time", 16])
    q = g.node("Transpose", g.node("Reshape", g.linear(x, 16, 16), g.ints(0, -1, 2, 8)), perm=[0, 2, 1, 3])
    place = g.node("Cast", g.node("Range", g.const(np.int64(0)), g.size(x, 1), g.const(np.int64(1))), to=T.FLOAT)
    angle = g.node("Mul", g.node("Unsqueeze", place, g.ints(1)), g.const((1 / 10000 ** (np.arange(0, 8, 2) / 8)).astype(np.float32)))
    angle = g.node("Concat", angle, angle, axis=-1)
    first, second = g.node("Slice", q, g.ints(0), g.ints(4), g.ints(3)), g.node("Slice", q, g.ints(4), g.ints(2**63 - 1), g.ints(3))
    turned = g.node("Concat", g.node("Neg", second), first, axis=-1)
    q = g.node("Add", g.node("Mul", q, g.node("Cos", angle)), g.node("Mul", turned, g.node("Sin", angle)))
    y = g.node("MatMul", g.node("Softmax", g.node("MatMul", q, g.node("Transpose", q, perm=[0, 1, 3, 2])), axis=-1), q)
    g.output(g.node("Reshape", g.node("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, -1, 16)))


@case(transposes=0)
def slice_assignment(g):
    # x[:, 1:3, ::2] = y, by way of an index of all elements and ScatterND.
    x, y = g.input("input", [2, 4, 6]), g.input("value", [2, 2, 3])
    places = g.node("Reshape", g.node("Range", g.const(np.int64(0)), g.node("ReduceProd", g.node("Shape", x), keepdims=0), g.const(np.int64(1))), g.node("Shape", x))
    places = g.node("Slice", places, g.ints(1, 0), g.ints(3, 2**63 - 1), g.ints(1, 2), g.ints(1, 2))
    flat = g.node("ScatterND", g.node("Reshape", x, g.ints(-1)), g.node("Unsqueeze", g.node("Reshape", places, g.ints(-1)), g.ints(-1)), g.node("Reshape", y, g.ints(-1)))
    g.output(g.node("Reshape", flat, g.node("Shape", x)))


@case(transposes=0)
def position_ids_of_a_mask(g):
    ids = g.input("ids", [1, 7], ["batch", "time"], dtype=np.int64, low=0, high=9)
    mask = g.node("Cast", g.node("Not", g.node("Equal", ids, g.const(np.int64(1)))), to=T.INT32)
    place = g.node("Mul", g.node("CumSum", mask, g.const(np.int64(1))), mask)
    place = g.node("Add", g.node("Cast", place, to=T.INT64), g.const(np.int64(1)))
    bias = g.node("Mul", g.node("Sub", g.const(np.float32(1)), g.node("Cast", g.node("Unsqueeze", mask, g.ints(1, 2)), to=T.FLOAT)), g.const(np.float32(-10000)))
    g.output(g.node("Gather", g.weights(12, 4), place, axis=0))
    g.output(g.node("Softmax", bias, axis=-1), "weights")


@case(transposes=2)
def distribution_focal_loss_head(g):
    x = g.input("input", [1, 3, 16, 16])
    y = g.conv(g.node("Mul", *(lambda c: (c, g.node("Sigmoid", c)))(g.conv(x, 3, 8, 3, stride=2))), 8, 18, 1)
    y = g.node("Reshape", y, g.ints(1, 18, -1))
    boxes, classes = g.node("Split", y, g.ints(16, 2), outputs=2, axis=1)
    boxes = g.node("Softmax", g.node("Transpose", g.node("Reshape", boxes, g.ints(1, 4, 4, 64)), perm=[0, 2, 1, 3]), axis=1)
    boxes = g.node("Reshape", g.node("Conv", boxes, g.const(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)), kernel_shape=[1, 1]), g.ints(1, 4, 64))
    low, high = g.node("Slice", boxes, g.ints(0), g.ints(2), g.ints(1)), g.node("Slice", boxes, g.ints(2), g.ints(4), g.ints(1))
    grid = g.const(np.stack(np.meshgrid(np.arange(8) + 0.5, np.arange(8) + 0.5)).reshape(1, 2, 64).astype(np.float32))
    start, end = g.node("Sub", grid, low), g.node("Add", grid, high)
    center = g.node("Div", g.node("Add", start, end), g.const(np.float32(2)))
    g.output(g.node("Concat", g.node("Mul", g.node("Concat", center, g.node("Sub", end, start), axis=1), g.const(np.float32(2))), g.node("Sigmoid", classes), axis=1))


@case()
def list_of_pieces(g):
    x = g.conv(g.input("input", [1, 3, 8, 6]), 3, 6, 3)
    pieces = g.node("SplitToSequence", x, g.const(np.int64(2)), axis=1)
    parts = [g.node("SequenceAt", pieces, g.const(np.int64(i))) for i in range(3)]
    joined = g.node("SequenceConstruct", g.node("Relu", parts[2]), parts[0], g.node("Mul", parts[1], parts[0]))
    g.output(g.conv(g.node("ConcatFromSequence", joined, axis=1, new_axis=0), 6, 2, 3))


@case(transposes=2)
def unfold_and_fold(g):
    x = g.conv(g.input("input", [1, 3, 6, 8]), 3, 4, 3)
    rows = g.const((np.arange(2)[:, None] + np.arange(3) * 2).astype(np.int64))
    columns = g.const((np.arange(2)[:, None] + np.arange(4) * 2).astype(np.int64))
    y = g.node("Gather", g.node("Gather", x, rows, axis=2), columns, axis=4)
    y = g.node("Reshape", g.node("Transpose", y, perm=[0, 1, 2, 4, 3, 5]), g.ints(1, 16, 12))
    y = g.node("Col2Im", g.node("Sigmoid", y), g.ints(6, 8), g.ints(2, 2), strides=[2, 2], dilations=[1, 1], pads=[0, 0, 0, 0])
    g.output(g.conv(y, 4, 2, 3))


CASES["unfold_and_fold"] = (*CASES["unfold_and_fold"][:2], 18, ())


@case()
def style_transfer(g):
    x = g.input("input", [1, 3, 10, 12], ["batch", 3, 10, 12])
    y = g.node("Pad", x, g.ints(0, 0, 2, 2, 0, 0, 2, 2), mode="reflect")
    y = g.node("InstanceNormalization", g.conv(y, 3, 6, 5, pad=0), g.weights(6), g.weights(6), epsilon=1e-5)
    y = g.node("Relu", y)
    y = g.node("ConvTranspose", y, g.weights(6, 1, 4, 4), g.weights(6), kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1], group=6)
    y = g.node("AveragePool", y, kernel_shape=[5, 6], strides=[5, 6])  # adaptive, to 4 x 4
    g.output(g.node("Tanh", g.conv(y, 6, 3, 3)))


@case(transposes=0)
def spatial_transformer(g):
    x, theta = g.input("input", [1, 3, 6, 8]), g.input("theta", [1, 2, 3])
    grid = g.node("AffineGrid", theta, g.ints(1, 3, 6, 8), align_corners=0)
    g.output(g.conv(g.node("GridSample", g.conv(x, 3, 3, 3), grid, mode="linear", padding_mode="zeros", align_corners=0), 3, 2, 3))


CASES["spatial_transformer"] = (*CASES["spatial_transformer"][:2], 20, ())


@case()
def quantized_conv(g):
    x = g.input("input", [1, 3, 8, 8])

    def through(value, scale, zero):
        pair = [g.const(np.float32(scale)), g.const(np.uint8(zero))]
        return g.node("DequantizeLinear", g.node("QuantizeLinear", value, *pair), *pair)
    weights = g.node("DequantizeLinear", g.const(g.rng.randint(-127, 128, (4, 3, 3, 3)).astype(np.int8)), g.const(np.full(4, 0.004, np.float32)), g.const(np.zeros(4, np.int8)), axis=0)
    bias = g.node("DequantizeLinear", g.const(g.rng.randint(-2000, 2000, 4).astype(np.int32)), g.const(np.full(4, 0.004 / 127.5, np.float32)), g.const(np.zeros(4, np.int32)), axis=0)
    y = g.node("Conv", through(x, 1 / 127.5, 128), weights, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    g.output(through(g.node("Relu", y), 0.02, 0))


@case(transposes=0)
def convolutions_over_three_axes(g):
    """Video: kernels of all kinds, over time alone, over pictures alone, in groups; pools."""
    def conv3(x, i, o, kernel, strides=(1, 1, 1), pads=(0, 0, 0, 0, 0, 0), dilations=(1, 1, 1), group=1):
        return g.node("Conv", x, g.weights(o, i // group, *kernel), g.weights(o), kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations, group=group)
    x = g.input("input", [1, 3, 6, 9, 8])
    y = g.node("Relu", conv3(x, 3, 4, [3, 3, 3], [1, 2, 2], [1, 1, 1, 1, 1, 1]))
    y = conv3(y, 4, 6, [2, 3, 1], [2, 1, 1], [0, 2, 0, 1, 0, 0], [1, 2, 1])
    y = g.node("Relu", conv3(y, 6, 6, [3, 1, 1], pads=[1, 0, 0, 1, 0, 0]))
    y = conv3(y, 6, 8, [1, 3, 3], [1, 1, 1], [0, 1, 1, 0, 1, 1], group=2)
    y = g.node("MaxPool", y, kernel_shape=[1, 2, 2], strides=[1, 2, 2])
    g.output(g.node("GlobalAveragePool", conv3(y, 8, 5, [2, 1, 1], [1, 1, 1])))
    g.output(conv3(g.input("places", [1, 1, 6, 7, 5]), 1, 4, [3, 3, 1], pads=[1, 1, 0, 1, 1, 0]), "around")


@case()
def table_with_labels(g):
    """A network for tables as scikit-learn's exporter writes it: scaled columns, and the class's name."""
    ml = {"domain": "ai.onnx.ml"}
    x = g.input("input", [3, 4])
    x = g.node("Imputer", x, imputed_value_floats=[0.5], replaced_value_float=0.25, **ml)
    x = g.node("Scaler", x, offset=[0.1, 0.2, -0.3, 0.0], scale=[2.0, 1.5, 0.5, 1.0], **ml)
    kind = g.input("kind", [3, 1], dtype=np.int64, low=0, high=4)
    columns = g.node("Reshape", g.node("OneHotEncoder", kind, cats_int64s=[0, 1, 2], zeros=1, **ml), g.ints(3, 3))
    x = g.node("Normalizer", g.node("FeatureVectorizer", x, columns, inputdimensions=[4, 3], **ml), norm="L2", **ml)
    x = g.node("Softmax", g.linear(g.node("Relu", g.linear(x, 7, 8)), 8, 3), axis=-1)
    best = g.node("ArgMax", x, axis=1, keepdims=0)
    names = g.const(np.array(["cat", "dog", "bird"], dtype=object))
    name = g.node("Reshape", g.node("ArrayFeatureExtractor", names, best, **ml), g.ints(-1))
    number = g.node("LabelEncoder", name, keys_strings=["bird", "cat"], values_int64s=[7, 8], default_int64=-5, **ml)
    g.output(number, "number", T.INT64)
    g.output(x, "probabilities")
    g.output(g.node("LinearRegressor", x, coefficients=[0.5, -1.0, 2.0], intercepts=[0.25], targets=1, **ml), "price")


@case()
def chosen_boxes(g):
    """What torchvision.ops.nms and an index behind it become. As many rows as there can be, so that sizes are the same."""
    x = g.input("input", [1, 3, 8, 8], low=0)
    rows = g.node("Sigmoid", g.node("Reshape", g.conv(x, 3, 5, 3, stride=4), g.ints(5, 4)))
    sides, scores = g.node("Split", rows, g.ints(4, 1), outputs=2, axis=0)
    starts = g.const(np.array([[0, 0], [3, 0], [0, 3], [3, 3]], np.float32))
    sides = g.node("Transpose", sides, perm=[1, 0])
    low, high = g.node("Split", sides, g.ints(2, 2), outputs=2, axis=1)
    boxes = g.node("Concat", g.node("Add", low, starts), g.node("Add", g.node("Add", high, starts), g.const(np.float32(1))), axis=1)
    chosen = g.node("NonMaxSuppression", g.node("Unsqueeze", boxes, g.ints(0)), g.node("Unsqueeze", scores, g.ints(0)), g.ints(100), g.const(np.array([0.5], np.float32)))
    which = g.node("Reshape", g.node("Gather", chosen, g.ints(2), axis=1), g.ints(-1))
    g.output(g.node("Gather", boxes, which, axis=0))


@case()
def quantized_conv_of_bytes(g):
    """ONNX Runtime's uint8 weights, whose zero point is where the data want it."""
    x = g.input("input", [1, 3, 8, 8])

    def through(value, scale, zero):
        pair = [g.const(np.float32(scale)), g.const(np.uint8(zero))]
        return g.node("DequantizeLinear", g.node("QuantizeLinear", value, *pair), *pair)
    pair = [g.const(np.float32(0.004)), g.const(np.uint8(97))]
    weights = g.node("DequantizeLinear", g.const(g.rng.randint(0, 256, (4, 3, 3, 3)).astype(np.uint8)), *pair)
    y = through(g.node("Conv", through(x, 1 / 127.5, 128), weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 0.03, 120)
    rows = g.node("DequantizeLinear", g.const(g.rng.randint(0, 256, (5, 256)).astype(np.uint8)), *pair)
    g.output(through(g.node("Gemm", through(g.node("Flatten", y), 0.03, 120), rows, transB=1), 0.1, 128))


@case()
def local_response_norms(g):
    """AlexNet's normalization over channels, with numbers that show a channel left out of a window."""
    x = g.input("input", [1, 8, 6, 6], low=-3, high=3)
    x = g.node("LRN", x, size=5, alpha=0.5, beta=0.75, bias=1.0)
    x = g.node("LRN", g.conv(x, 8, 5, 3), size=1, alpha=0.2, beta=0.5, bias=2.0)
    g.output(g.node("LRN", x, size=3, alpha=0.3, beta=0.75, bias=1.0))


@case()
def windows_beyond_the_end(g):
    """ceil_mode: the last window may reach beyond the input, even where it is larger than all of it."""
    x = g.input("input", [1, 4, 7, 2])
    y = g.node("MaxPool", x, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)
    g.output(y, "largest")
    g.output(g.node("AveragePool", x, kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1), "means")


def build(name):
    make, transposes, opset, _ = CASES[name]
    g = Graph(name)
    make(g)
    graph = helper.make_graph(g.nodes, name, g.inputs, g.outputs, g.constants)
    domains = {node.domain for node in g.nodes} - {"", *(f.domain for f in g.functions)}
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in sorted(domains)] + [helper.make_opsetid(f.domain, 1) for f in g.functions]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="pytorch", functions=g.functions)
    model.ir_version = 8 if opset < 20 else 9
    return model, g


def runtime_outputs(model, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def write(name, root):
    model, g = build(name)
    outputs = runtime_outputs(model, g.feeds)
    folder = root / f"test_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "transposes").write_text(f"{CASES[name][1]}\n")
    if name in TOLERANCES:
        (folder / "tolerance").write_text(f"{TOLERANCES[name]}\n")
    for i, info in enumerate(model.graph.input):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(g.feeds[info.name], info.name).SerializeToString())
    for i, (info, array) in enumerate(zip(model.graph.output, outputs)):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(array, info.name).SerializeToString())


def check(name, reef, work):
    """LiteRT against ONNX Runtime, channels-last as Reef makes it by default."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    model, g = build(name)
    wanted = dict(zip((o.name for o in model.graph.output), runtime_outputs(model, g.feeds)))
    (work / "m.onnx").write_bytes(model.SerializeToString())
    shapes = [f"--input-shape={n}:{','.join(map(str, a.shape))}" for n, a in g.feeds.items()]
    done = subprocess.run([reef, "convert", str(work / "m.onnx"), "-o", str(work / "m.tflite"), "--io", "float32", *shapes], capture_output=True, text=True)
    if done.returncode != 0:
        return f"refused: {done.stderr.strip()}"
    lite = Interpreter(model_path=str(work / "m.tflite"), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    lite.allocate_tensors()
    for _ in range(2):
        for detail in lite.get_input_details():
            array = g.feeds[detail["name"]]
            lite.set_tensor(detail["index"], np.ascontiguousarray(array if list(array.shape) == list(detail["shape"]) else np.moveaxis(array, 1, -1)))
        lite.invoke()
    kinds = [op["type"] for op in json.loads(subprocess.run([reef, "inspect", "--json", str(work / "m.tflite")], capture_output=True, text=True).stdout)["subgraphs"][0]["operators"]]
    worst = 0.0
    for detail in lite.get_output_details():
        if detail["name"] not in wanted:
            continue
        got, array = lite.get_tensor(detail["index"]), wanted[detail["name"]]
        if list(got.shape) != list(array.shape):
            array = np.moveaxis(array, 1, -1)
        if list(got.shape) != list(array.shape):
            return f"{detail['name']}: shape {list(got.shape)} instead of {list(array.shape)}"
        worst = max(worst, float(np.abs(got.astype(np.float64) - array).max() / max(1e-12, np.abs(array).max())))
    counts = ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds)))
    verdict = "" if worst <= TOLERANCES.get(name, 0.02 if "quantized" in name else 1e-4) and kinds.count("TRANSPOSE") <= CASES[name][1] else "FAIL "
    return f"{verdict}difference {worst:.1e}, TRANSPOSE {kinds.count('TRANSPOSE')} of {CASES[name][1]}: {counts}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "onnx_exports"))
    parser.add_argument("--check")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.names or CASES:
            if args.check:
                text = check(name, args.check, pathlib.Path(temporary))
                failed += text.startswith(("FAIL", "refused")) or "instead of" in text
                print(f"{name}: {text}", flush=True)
            else:
                write(name, pathlib.Path(args.out))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
