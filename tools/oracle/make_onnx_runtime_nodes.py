#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes of ONNX Runtime's own domain (com.microsoft), with random weights, and what ONNX Runtime computes for them.

Options and folders are those of make_onnx_exports.py: files that its optimizer and its quantizers leave behind hold
these nodes.
"""
import numpy as np
from onnx import TensorProto as T

import make_onnx_exports as exports
from onnx_export_graph import case

MS = "com.microsoft"
exports.CASES.clear()  # only those below


@case()
def fused_convs(g):
    x = g.input("input", [1, 3, 9, 9])
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    y = g.node("FusedConv", x, g.weights(4, 3, 3, 3), g.weights(4), domain=MS, activation="Relu", **window)
    z = g.node("FusedConv", y, g.weights(4, 4, 3, 3), g.weights(4), y, domain=MS, activation="Relu", **window)
    z = g.node("FusedConv", z, g.weights(4, 1, 3, 3), g.weights(4), domain=MS, activation="LeakyRelu", activation_params=[0.2], group=4, **window)
    g.output(g.node("FusedConv", z, g.weights(5, 4, 3, 3), domain=MS, activation="Clip", activation_params=[-0.1, 0.3], strides=[2, 2], **window))


@case()
def fused_products(g):
    x = g.input("input", [3, 6])
    y = g.node("FusedGemm", x, g.weights(5, 6), g.weights(5), domain=MS, transB=1, alpha=0.5, activation="LeakyRelu", activation_alpha=0.1)
    y = g.node("FusedGemm", y, g.weights(5, 4), domain=MS, activation="HardSigmoid", activation_alpha=0.3, activation_beta=0.4)
    g.output(g.node("FusedMatMul", y, g.weights(2, 4), domain=MS, transB=1, alpha=2.0))


@case(transposes=1)
def transposed_products(g):
    a, b = g.input("a", [2, 5, 3, 4]), g.input("b", [2, 5, 6, 4])
    g.output(g.node("FusedMatMul", a, b, domain=MS, transB=1, alpha=0.7))
    moved, other = g.input("moved", [5, 2, 4]), g.input("other", [2, 4, 3])
    g.output(g.node("FusedMatMul", moved, other, domain=MS, transBatchA=1), "second")


@case()
def gelus(g):
    x = g.input("input", [2, 8], low=-3, high=3)
    y = g.node("BiasGelu", x, g.weights(8), domain=MS)
    y = g.node("FastGelu", y, g.weights(8), domain=MS)
    g.output(g.node("QuickGelu", g.node("FastGelu", y, domain=MS), domain=MS))


@case()
def skip_layer_norms(g):
    x, skip = g.input("input", [2, 3, 8]), g.input("skip", [2, 3, 8])
    y, _, _, total = g.node("SkipLayerNormalization", x, skip, g.weights(8), g.weights(8), g.weights(8), outputs=4, domain=MS, epsilon=1e-5)
    y = g.node("SkipLayerNormalization", y, total, g.weights(8), domain=MS, epsilon=1e-5)
    z, _, _, second = g.node("SkipSimplifiedLayerNormalization", y, x, g.weights(8), g.weights(8), outputs=4, domain=MS, epsilon=1e-5)
    g.output(g.node("SimplifiedLayerNormalization", z, g.weights(8), axis=-1, epsilon=1e-6))
    g.output(second, "sum")


@case()
def embed_layer_norm(g):
    ids = g.input("ids", [2, 5], dtype=np.int32, low=0, high=20)
    segments = g.input("segments", [2, 5], dtype=np.int32, low=0, high=2)
    mask = g.input("mask", [2, 5], dtype=np.int32, low=0, high=2)
    y, count = g.node("EmbedLayerNormalization", ids, segments, g.weights(20, 8), g.weights(7, 8), g.weights(2, 8), g.weights(8), g.weights(8), mask, outputs=2, domain=MS, epsilon=1e-6)
    g.output(y)
    g.output(count, "count", T.INT32)


def projections(g, inputs, width):
    return g.weights(inputs, 3 * width), g.weights(3 * width)


@case(transposes=24)
def runtime_attention(g):
    x = g.input("input", [2, 5, 8])
    raw = g.input("mask", [2, 5], dtype=np.int32, low=0, high=2)
    lengths = g.input("lengths", [2], dtype=np.int32, low=2, high=5)
    y = g.node("Attention", x, *projections(g, 8, 8), raw, domain=MS, num_heads=2)
    y = g.node("Attention", y, *projections(g, 8, 8), lengths, domain=MS, num_heads=4)
    g.output(g.node("Attention", y, *projections(g, 8, 8), domain=MS, num_heads=2, unidirectional=1))


@case(transposes=12)
def runtime_attention_with_past(g):
    x, past = g.input("input", [1, 3, 8]), g.input("past", [2, 1, 2, 4, 4])
    y, present = g.node("Attention", x, *projections(g, 8, 8), "", past, outputs=2, domain=MS, num_heads=2, unidirectional=1)
    g.output(y)
    g.output(present, "present")


@case(transposes=8, tolerance=0.03)
def attention_in_bytes(g):
    x = g.input("input", [1, 4, 8])
    scale, zero = g.const(np.float32(1 / 127)), g.const(np.uint8(127))
    rounded = g.node("QuantizeLinear", x, scale, zero)
    weights = g.const(g.rng.randint(-127, 128, (8, 24)).astype(np.int8))
    g.output(g.node("QAttention", rounded, weights, g.weights(24), scale, g.const(np.float32(0.003)), "", zero, g.const(np.int8(0)), domain=MS, num_heads=2))


@case(transposes=16)
def multi_head_attention(g):
    q, k, v = g.input("q", [2, 3, 8]), g.input("k", [2, 5, 8]), g.input("v", [2, 5, 12])
    mask = g.input("mask", [2, 5], dtype=np.int32, low=0, high=2)
    y = g.node("MultiHeadAttention", q, k, v, g.weights(28), mask, domain=MS, num_heads=2)
    g.output(y)
    bias = g.input("bias", [1, 2, 3, 5])
    g.output(g.node("MultiHeadAttention", q, k, k, "", "", bias, domain=MS, num_heads=2, scale=0.3), "biased")


@case(transposes=4)
def runtime_rotary(g):
    x = g.input("input", [1, 4, 16])
    angles = g.rng.uniform(-3, 3, (10, 4))
    first = g.const(np.array([2], np.int64))
    g.output(g.node("RotaryEmbedding", x, first, g.const(np.cos(angles)), g.const(np.sin(angles)), domain=MS, num_heads=2))


@case()
def packed_weights(g):
    x = g.input("input", [3, 48])

    def packed(bits, rows, blocks, with_zeros):
        inputs = [g.const(g.rng.randint(0, 256, (rows, blocks, 16 * bits // 8)).astype(np.uint8)), g.const(g.rng.uniform(0.01, 0.05, rows * blocks).astype(np.float32))]
        return inputs + ([g.const(g.rng.randint(0, 256, (rows * ((blocks * bits + 7) // 8))).astype(np.uint8))] if with_zeros else [])
    attributes = {"domain": MS, "K": 48, "block_size": 16}
    y = g.node("MatMulNBits", x, *packed(4, 7, 3, True), N=7, bits=4, **attributes)
    z = g.node("MatMulNBits", x, *packed(4, 7, 3, False), N=7, bits=4, **attributes)
    g.output(g.node("Add", g.node("Tanh", y), z))


@case(tolerance=0.03)
def rounded_while_running(g):
    x = g.input("input", [4, 16])
    weights = g.const(g.rng.randint(-127, 128, (16, 8)).astype(np.int8))
    y = g.node("DynamicQuantizeMatMul", x, weights, g.const(g.rng.uniform(0.001, 0.003, 8)), g.const(np.zeros(8, np.int8)), g.weights(8), domain=MS)
    scale, zero = g.const(np.float32(0.01)), g.const(np.uint8(128))
    rounded = g.node("QuantizeLinear", y, scale, zero)
    second = g.const(g.rng.randint(0, 256, (8, 6)).astype(np.uint8))
    g.output(g.node("MatMulIntegerToFloat", rounded, second, scale, g.const(np.float32(0.002)), zero, g.const(np.uint8(120)), g.weights(6), domain=MS))


def dynamic_product(g, kind, x, weights, scale, **attributes):
    """As quantize_dynamic writes it."""
    rounded, step, zero = g.node("DynamicQuantizeLinear", x, outputs=3)
    product = g.node(kind, rounded, weights, zero, g.const(np.zeros(scale[1], np.int8)), **attributes)
    real = g.node("Cast", product, to=T.FLOAT)
    return g.node("Mul", real, g.node("Mul", step, scale[0]))


@case(tolerance=0.03)
def dynamic_convnet(g):
    x = g.input("input", [1, 3, 12, 12])
    weights = g.const(g.rng.randint(-127, 128, (8, 3, 3, 3)).astype(np.int8))
    y = dynamic_product(g, "ConvInteger", x, weights, (g.const(np.float32(0.003)), ()), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = g.node("Relu", g.node("Add", y, g.const(g.rng.uniform(-0.2, 0.2, (1, 8, 1, 1)))))
    y = g.node("Flatten", g.node("GlobalAveragePool", y))
    dense = g.const(g.rng.randint(-127, 128, (8, 5)).astype(np.int8))
    y = dynamic_product(g, "MatMulInteger", y, dense, (g.const(g.rng.uniform(0.002, 0.004, 5)), 5))
    g.output(g.node("Add", y, g.weights(5)))


@case(transposes=8, tolerance=0.05)
def dynamic_lstm(g):
    x = g.input("input", [6, 1, 8])
    w, r = (g.const(g.rng.randint(-127, 128, (2, rows, 40)).astype(np.int8)) for rows in (8, 10))
    bias, zero = g.weights(2, 80), g.const(np.zeros(2, np.int8))
    scale = g.const(np.array([0.003, 0.004], np.float32))
    y, state, cell = g.node("DynamicQuantizeLSTM", x, w, r, bias, "", "", "", "", scale, zero, scale, zero, outputs=3, domain=MS, hidden_size=10, direction="bidirectional")
    g.output(y)
    g.output(state, "state")


@case(transposes=2)
def quantized_pools_channels_last(g):
    x = g.input("input", [1, 3, 8, 8])
    scale, zero = g.const(np.float32(1 / 127.5)), g.const(np.uint8(128))
    y = g.node("QuantizeLinear", x, scale, zero)
    weights = [g.const(g.rng.randint(-127, 128, (4, 3, 3, 3)).astype(np.int8)), g.const(np.full(4, 0.004, np.float32)), g.const(np.zeros(4, np.int8))]
    wide, middle = g.const(np.float32(0.02)), g.const(np.uint8(100))
    y = g.node("Transpose", y, perm=[0, 2, 3, 1])
    y = g.node("QLinearConv", y, scale, zero, *weights, wide, middle, domain=MS, channels_last=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = g.node("NhwcMaxPool", y, domain=MS, kernel_shape=[2, 2], strides=[2, 2])
    y = g.node("QLinearAveragePool", y, wide, middle, wide, middle, domain=MS, channels_last=1, kernel_shape=[2, 2], strides=[2, 2])
    y = g.node("Transpose", y, perm=[0, 3, 1, 2])
    g.output(g.node("DequantizeLinear", y, wide, middle))


@case(transposes=1)
def quantized_movement(g):
    """Standard nodes on bytes between quantized ones, as ONNX Runtime's QOperator format has them."""
    x = g.input("input", [1, 3, 16, 16])
    scale, zero = g.const(np.float32(1 / 127.5)), g.const(np.uint8(128))
    wide, middle = g.const(np.float32(0.02)), g.const(np.uint8(100))
    weights = [g.const(g.rng.randint(-127, 128, (4, 3, 3, 3)).astype(np.int8)), g.const(np.full(4, 0.004, np.float32)), g.const(np.zeros(4, np.int8))]
    y = g.node("QLinearConv", g.node("QuantizeLinear", x, scale, zero), scale, zero, *weights, wide, middle, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    y = g.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = g.node("Resize", g.node("Pad", y, g.ints(0, 0, 1, 1, 0, 0, 1, 1), middle), "", g.const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    y = g.node("QLinearAveragePool", y, wide, middle, wide, middle, domain=MS, kernel_shape=[2, 2], strides=[2, 2])
    left, right = g.node("Split", y, axis=1, outputs=2)
    y = g.node("QLinearAdd", left, wide, middle, right, wide, middle, wide, middle, domain=MS)
    y = g.node("Flatten", g.node("Slice", y, g.ints(0, 0), g.ints(9, 9), g.ints(2, 3)))
    g.output(g.node("DequantizeLinear", y, wide, middle))


@case()
def bytes_looked_up(g):
    """A table of bytes whose scale is named behind the Gather and the Transpose that move its rows."""
    x = g.input("input", [1, 7], dtype=np.int64, low=0, high=9)
    table = g.const(g.rng.randint(0, 256, (10, 6)).astype(np.uint8))
    fine, middle, wide = g.const(np.float32(0.01)), g.const(np.uint8(133)), g.const(np.float32(0.02))
    weights = [g.const(g.rng.randint(-127, 128, (4, 6, 3)).astype(np.int8)), g.const(np.full(4, 0.004, np.float32)), g.const(np.zeros(4, np.int8))]
    y = g.node("QLinearConv", g.node("Transpose", g.node("Gather", table, x), perm=[0, 2, 1]), fine, middle, *weights, wide, middle, kernel_shape=[3])
    g.output(g.node("DequantizeLinear", y, wide, middle))


@case()
def quantized_pieces(g):
    """Pieces of one tensor that get scales of their own."""
    x = g.input("input", [1, 6, 4, 4])
    scale, zero = g.const(np.float32(1 / 127.5)), g.const(np.uint8(128))
    fine, coarse, middle = g.const(np.float32(0.004)), g.const(np.float32(0.011)), g.const(np.uint8(100))
    y = g.node("DequantizeLinear", g.node("QuantizeLinear", x, scale, zero), scale, zero)
    left, right = g.node("Split", y, axis=1, outputs=2)
    left, right = g.node("QuantizeLinear", left, fine, zero), g.node("QuantizeLinear", right, coarse, middle)
    y = g.node("QLinearMul", left, fine, zero, right, coarse, middle, scale, zero, domain=MS)
    y = g.node("QLinearAdd", y, scale, zero, left, fine, zero, coarse, zero, domain=MS)
    g.output(g.node("DequantizeLinear", y, coarse, zero))


@case(tolerance=0.02)
def softmax_in_bytes(g):
    x = g.input("input", [2, 10], low=-3, high=3)
    scale, zero = g.const(np.float32(6 / 255)), g.const(np.uint8(128))
    fine, none = g.const(np.float32(1 / 256)), g.const(np.uint8(0))
    y = g.node("QLinearSoftmax", g.node("QuantizeLinear", x, scale, zero), scale, zero, fine, none, domain=MS, axis=-1, opset=13)
    chosen = g.node("Greater", x, g.const(np.float32(0.1)))
    other = g.const(g.rng.randint(0, 256, (2, 10)).astype(np.uint8))
    z = g.node("QLinearWhere", chosen, y, fine, none, other, fine, none, fine, none, domain=MS)
    g.output(g.node("DequantizeLinear", z, fine, none))


if __name__ == "__main__":
    exports.main()
