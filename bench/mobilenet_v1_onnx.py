# SPDX-License-Identifier: Apache-2.0
"""A MobileNet v1 (1.0, 224) in ONNX's integer operators with random weights, as a peer for ONNX Runtime: uint8
activations and int8 weights with one scale per channel, which it runs fastest. What it computes is of no interest; how long that takes is."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# (output channels, stride) of each depthwise convolution followed by a 1x1 convolution.
BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]


class Builder:
    def __init__(self):
        self.nodes, self.constants, self.random = [], [], np.random.RandomState(1)
        self.scale, self.zero = self.constant("scale", np.float32(0.02)), self.constant("zero", np.uint8(0))

    def constant(self, name, value):
        name = f"{name}_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def conv(self, x, inputs, outputs, window, stride, groups=1):
        weights = self.random.randint(-127, 128, (outputs, inputs // groups, window, window)).astype(np.int8)
        factor = 0.3 / (window * np.sqrt(inputs // groups) * 74 * 0.02 / 0.02)
        y = f"y_{len(self.nodes)}"
        self.nodes.append(helper.make_node(
            "QLinearConv",
            [x, self.scale, self.zero, self.constant("w", weights),
             self.constant("w_scale", np.full(outputs, factor, np.float32)),
             self.constant("w_zero", np.zeros(outputs, np.int8)), self.scale, self.zero,
             self.constant("bias", self.random.randint(-1000, 1000, outputs).astype(np.int32))],
            [y], kernel_shape=[window, window], strides=[stride, stride], group=groups,
            pads=[window // 2, window // 2, (window - 1) // 2, (window - 1) // 2]))
        return y


def mobilenet_v1():
    b = Builder()
    x, channels = b.conv("input", 3, 32, 3, 2), 32
    for outputs, stride in BLOCKS:
        x = b.conv(b.conv(x, channels, channels, 3, stride, groups=channels), channels, outputs, 1, 1)
        channels = outputs
    b.nodes.append(helper.make_node("QLinearGlobalAveragePool", [x, b.scale, b.zero, b.scale, b.zero], ["pooled"],
                                    domain="com.microsoft", channels_last=0))
    b.conv("pooled", channels, 1001, 1, 1)
    graph = helper.make_graph(
        b.nodes, "mobilenet_v1", [helper.make_tensor_value_info("input", TensorProto.UINT8, [1, 3, 224, 224])],
        [helper.make_tensor_value_info(b.nodes[-1].output[0], TensorProto.UINT8, [1, 1001, 1, 1])], b.constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
