# SPDX-License-Identifier: Apache-2.0
"""Recurrent, quantized, tabular and other layers, as exporters write them."""
import numpy as np
from onnx import TensorProto as T, helper

from onnx_export_graph import CASES, case


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


@case()
def model_function(g):
    x = g.input("input", [1, 4, 8, 8])
    body = [helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), helper.make_node("Sigmoid", ["c"], ["s"]), helper.make_node("Mul", ["c", "s"], ["y"])]
    g.functions.append(helper.make_function("pkg.module", "ConvSilu", ["x", "w"], ["y"], body, [helper.make_opsetid("", 18)]))
    y = g.node("ConvSilu", x, g.weights(4, 4, 3, 3), domain="pkg.module")
    g.output(g.node("ConvSilu", y, g.weights(4, 4, 3, 3), domain="pkg.module"))


CASES["model_function"] = (*CASES["model_function"][:2], 18, ())


@case()
def list_of_pieces(g):
    x = g.conv(g.input("input", [1, 3, 8, 6]), 3, 6, 3)
    pieces = g.node("SplitToSequence", x, g.const(np.int64(2)), axis=1)
    parts = [g.node("SequenceAt", pieces, g.const(np.int64(i))) for i in range(3)]
    joined = g.node("SequenceConstruct", g.node("Relu", parts[2]), parts[0], g.node("Mul", parts[1], parts[0]))
    g.output(g.conv(g.node("ConcatFromSequence", joined, axis=1, new_axis=0), 6, 2, 3))


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


@case(transposes=0)
def transposed_convolutions_in_groups(g):
    """Groups and dilations over three axes; SAME padding of a kernel that is shorter than its stride."""
    x = g.input("input", [1, 4, 3, 4, 5])
    y = g.node("ConvTranspose", x, g.weights(4, 3, 2, 2, 3), g.weights(6), strides=[2, 1, 2], dilations=[2, 2, 1], group=2,
               pads=[1, 0, 1, 0, 1, 0])
    g.output(g.node("ConvTranspose", y, g.weights(6, 1, 1, 3, 1), group=6, strides=[1, 2, 1], output_padding=[0, 1, 0]))
    z = g.input("picture", [1, 4, 5, 6])
    g.output(g.node("ConvTranspose", z, g.weights(4, 3, 2, 2), strides=[2, 3], auto_pad="SAME_UPPER"), "picture_result")


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
