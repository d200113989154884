# SPDX-License-Identifier: Apache-2.0
"""Attention, normalizations, positions and windows, as exporters write them."""
import numpy as np
from onnx import TensorProto as T

from onnx_export_graph import CASES, case


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


@case(transposes=0)
def einsum_attention(g):
    q, k, v = (g.input(n, [1, 2, 5, 4]) for n in "qkv")
    scores = g.node("Mul", g.node("Einsum", q, k, equation="bhid,bhjd->bhij"), g.const(np.float32(0.5)))
    g.output(g.node("Einsum", g.node("Softmax", scores, axis=-1), v, equation="bhij,bhjd->bhid"))


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
def diagonals_by_gather(g):
    # DeBERTa: scores by distance, picked with GatherElements and a constant index i - j + n.
    x = g.input("input", [1, 2, 6, 12])
    at = np.arange(6)
    distance = np.broadcast_to(at[:, None] - at[None] + 6, (1, 2, 6, 6))
    g.output(g.node("GatherElements", x, g.const(distance, np.int64), axis=3), "falling")
    g.output(g.node("GatherElements", x, g.const(12 - distance, np.int64), axis=3), "rising")


@case()
def box_assignment(g):
    # MViT: scores[:, :, 1:, 1:] = scores[:, :, 1:, 1:] + bias, by way of ScatterND with coordinates; then all of it.
    x = g.input("input", [1, 2, 5, 7])
    cut = g.node("Slice", x, g.ints(1, 1), g.ints(2**63 - 1, 2**63 - 1), g.ints(2, 3))
    box = np.stack(np.meshgrid(np.arange(1), np.arange(2), np.arange(1, 5), np.arange(1, 7), indexing="ij"), -1)
    y = g.node("ScatterND", x, g.const(box, np.int64), g.node("Add", cut, g.weights(1, 2, 4, 6)))
    whole = np.stack(np.meshgrid(np.arange(1), np.arange(2), np.arange(5), indexing="ij"), -1)
    g.output(g.node("ScatterND", y, g.const(whole, np.int64), g.node("Mul", y, g.const(np.float32(0.5)))), "all")
    g.output(g.node("ScatterND", y, g.const(box[:, :, ::2], np.int64), g.node("Slice", cut, g.ints(0), g.ints(2**63 - 1), g.ints(2), g.ints(2))), "every_second")


@case()
def softmax_with_one_more(g):
    # exp(x) / (1 + sum(exp(x)))
    x = g.input("input", [1, 2, 6, 8])
    e = g.node("Exp", x)
    total = g.node("ReduceSum", e, g.ints(-1), keepdims=1)
    g.output(g.node("Div", e, g.node("Add", total, g.const(np.float32(1)))))


@case(opset=18)
def activation_chains(g):
    # Softplus and Mish as nodes and written out; a quick GELU; SELU and CELU.
    x = g.input("input", [1, 6, 16], low=-4, high=4)
    soft = g.node("Softplus", x)
    written = g.node("Log", g.node("Add", g.node("Exp", x), g.const(np.float32(1))))
    g.output(g.node("Mul", x, g.node("Tanh", soft)), "mish")
    g.output(g.node("Mul", x, g.node("Tanh", written)), "mish_written_out")
    g.output(g.node("Mish", x), "mish_node")
    g.output(g.node("Mul", x, g.node("Sigmoid", g.node("Mul", x, g.const(np.float32(1.702))))), "quick_gelu")
    g.output(g.node("Selu", x), "selu")
    g.output(g.node("Celu", x, alpha=0.7), "celu")
    g.output(g.node("Neg", g.node("Softplus", g.node("Neg", x))), "log_sigmoid")
