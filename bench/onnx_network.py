# SPDX-License-Identifier: Apache-2.0
"""A small ONNX network that is drawn node by node (bench/onnx_by_hand.py), and the list of what may be drawn."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CONSTRUCTS = {}  # by name: ranks of tensors that it takes, the first opset, and the function that adds it


class Network:
    """Nodes so far, what flows behind them and its shape."""

    def __init__(self, random, opset, shape):
        self.random, self.opset = random, opset
        self.nodes, self.constants = [], []
        self.graph_input = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, *shape])
        self.at, self.shape = "input", [1, *shape]

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, *shape):
        fan_in = max(int(np.prod(shape[1:])), 1)
        return self.constant(self.random.normal(0, 1.4 / np.sqrt(fan_in), shape))

    def node(self, kind, inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"n{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def go_on(self, name):
        """`name` is what the next node takes; its shape is what ONNX infers."""
        inferred = onnx.shape_inference.infer_shapes(self.model(name), strict_mode=True, data_prop=True)
        value = inferred.graph.output[0].type.tensor_type
        sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in value.shape.dim]
        if not value.HasField("shape") or any(size <= 0 for size in sizes):
            sizes = list(self.run(name).shape)
        self.at, self.shape = name, sizes

    def model(self, output):
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "network", [self.graph_input], [out], self.constants)
        ir = 3 if self.opset < 9 else 8
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)
        if ir == 3:  # constants are inputs, too
            for tensor in self.constants:
                model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        return model

    def run(self, output, values=None):
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(
            self.model(output).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        shape = [d.dim_value for d in self.graph_input.type.tensor_type.shape.dim]
        return session.run(None, {"input": waves(0, shape) if values is None else values})[0]

    # what constructs draw
    def flip(self, share=0.5):
        return self.random.random() < share

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def between(self, low, high):
        return int(self.random.integers(low, high + 1))

    def axes_of(self, **given):
        """Axes as an attribute or, from the opset on that has them so, as an input."""
        (kind, (axes, since)) = next(iter(given.items()))
        if self.opset >= since:
            return [self.constant(axes, np.int64)], {}
        return [], {kind: axes}


def construct(ranks=(4,), since=7):
    def keep(function):
        CONSTRUCTS[function.__name__] = (ranks, since, function)
        return function

    return keep


def waves(seed, shape):
    random = np.random.default_rng(seed)
    slow = np.sin(np.linspace(0, random.uniform(1, 9), shape[-1]) + random.uniform(0, 6))
    return ((slow + random.normal(0, 0.5, shape)) * random.uniform(0.4, 1.2)).astype(np.float32)


def spatial(n):
    return n.shape[2:]


def windows(n, most=3):
    """Kernel and the ways to move and pad it, of as many axes as there are."""
    axes = len(spatial(n))
    kernel = [n.between(1, min(most, size)) for size in spatial(n)]
    stride = [n.between(1, 2) for _ in range(axes)]
    if n.flip(0.4):
        return kernel, stride, dict(auto_pad=n.pick("SAME_UPPER", "SAME_LOWER", "VALID"))
    return kernel, stride, dict(pads=[n.between(0, k - 1) for k in kernel * 2])
