#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX files as no exporter of PyTorch writes them: every attribute, form of padding and opset that the standard allows.

    bench/onnx_by_hand.py FOLDER [--count N] [--seed S] [--only NODE,...]

Each file is a small network: a convolution, one to three nodes drawn from CONSTRUCTS with attributes drawn at random (opsets 7 to
23), and a convolution behind them where the shape allows one. Files that ONNX's checker or ONNX Runtime refuses are left out, so what
stays is legal. NAME.samples.npz has samples; bench/ways.py takes the folder through Reef:

    bench/onnx_by_hand.py FOLDER && bench/ways.py build/reef FOLDER --json FILE
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SAMPLES = 12
CONSTRUCTS = {}


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


@construct((3, 4, 5))
def conv(n):
    kernel, stride, pads = windows(n)
    c = n.shape[1]
    group = n.pick(1, 1, c, 2 if c % 2 == 0 else 1)
    out = group * n.between(1, 2) if group == c else group * n.between(2, 4)
    w = n.weights(out, c // group, *kernel)
    dilations = [n.between(1, 2) if k > 1 and s == 1 else 1 for k, s in zip(kernel, stride)]
    if "auto_pad" in pads and pads["auto_pad"] != "VALID":
        dilations = None
    bias = [n.weights(out)] if n.flip() else []
    n.go_on(n.node("Conv", [n.at, w, *bias], strides=stride if n.flip(0.8) or max(stride) > 1 else None, group=group,
                   dilations=dilations, kernel_shape=kernel if n.flip() else None, **pads))


@construct((3, 4, 5))
def conv_transpose(n):
    kernel = [n.between(1, 4) for _ in spatial(n)]
    stride = [n.between(1, 3) for _ in kernel]
    c = n.shape[1]
    group = n.pick(1, 1, 2 if c % 2 == 0 else 1, c)
    w = n.weights(c, n.between(1, 3), *kernel)
    way = n.between(0, 3)
    attributes = {}
    if way == 0:
        attributes["pads"] = [n.between(0, k // 2) for k in kernel * 2]
        attributes["output_padding"] = [n.between(0, s - 1) for s in stride]
    elif way == 1:
        attributes["auto_pad"] = n.pick("SAME_UPPER", "SAME_LOWER")
    elif way == 2:
        attributes["output_shape"] = [size * s + n.between(0, 1) for size, s in zip(spatial(n), stride)]
    bias = [n.weights(w_out(n, w) * group)] if n.flip() else []
    dilations = [n.between(1, 2) for _ in kernel] if way == 3 else None
    n.go_on(n.node("ConvTranspose", [n.at, w, *bias], strides=stride, group=group, dilations=dilations, **attributes))


def w_out(n, name):
    return next(t for t in n.constants if t.name == name).dims[1]


@construct((3, 4))
def pool(n):
    kernel, stride, pads = windows(n, 4)
    kind = n.pick("MaxPool", "AveragePool", "LpPool")
    attributes = dict(kernel_shape=kernel, strides=stride, **pads)
    if kind != "LpPool" and n.opset >= 10 and "pads" in pads:
        attributes["ceil_mode"] = n.between(0, 1)
    if kind == "MaxPool" and n.opset >= 10 and "pads" in pads and n.flip(0.3):
        attributes["dilations"] = [n.between(1, 2) for _ in kernel]
    if kind == "AveragePool":
        attributes["count_include_pad"] = n.between(0, 1)
    if kind == "LpPool":
        attributes["p"] = n.between(1, 2)
    n.go_on(n.node(kind, [n.at], **attributes))


@construct((3, 4, 5))
def global_pool(n):
    n.go_on(n.node(n.pick("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), [n.at]))


@construct((4,), 10)
def resize(n):
    mode = n.pick("nearest", "linear", "linear", "cubic" if n.opset >= 11 else "nearest")
    factors = [1.0, 1.0, *(n.pick(0.5, 1.5, 2.0, 2.0, 3.0, 0.7) for _ in spatial(n))]
    if n.opset == 10:
        return n.go_on(n.node("Resize", [n.at, n.constant(factors)], mode=mode))
    ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + (["half_pixel_symmetric"] if n.opset >= 19 else [])
    attributes = dict(mode=mode, coordinate_transformation_mode=n.pick(*ways))
    if mode == "nearest":
        attributes["nearest_mode"] = n.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attributes |= dict(cubic_coeff_a=n.pick(-0.5, -0.75), exclude_outside=n.between(0, 1))
    if n.opset >= 18 and mode != "nearest" and n.flip(0.3):
        attributes["antialias"] = 1
    no_roi = n.constant([]) if n.opset < 13 else ""
    sizes = [int(round(s * f)) for s, f in zip(n.shape, factors)]
    if n.opset >= 18 and n.flip(0.3):
        attributes["axes"], factors, sizes = [2, 3], factors[2:], sizes[2:]
    if n.flip():
        return n.go_on(n.node("Resize", [n.at, no_roi, n.constant(factors)], **attributes))
    no_scales = n.constant([]) if n.opset < 13 else ""
    n.go_on(n.node("Resize", [n.at, no_roi, no_scales, n.constant(sizes, np.int64)], **attributes))


@construct((4,))
def upsample(n):
    if n.opset > 9:
        return resize(n)
    factors = [1.0, 1.0, 2.0, n.pick(2.0, 3.0)]
    mode = n.pick("nearest", "linear")
    if n.opset < 9:
        return n.go_on(n.node("Upsample", [n.at], mode=mode, scales=factors))
    n.go_on(n.node("Upsample", [n.at, n.constant(factors)], mode=mode))


@construct((2, 3, 4, 5))
def pad(n):
    mode = n.pick("constant", "reflect", "edge", "wrap" if n.opset >= 19 else "edge")
    ends = lambda size: n.between(-1 if mode == "constant" else 0, min(2, size - 1))  # noqa: E731
    sizes = [0 if i < 1 else ends(size) for _ in range(2) for i, size in enumerate(n.shape)]
    value = n.pick(0.0, 0.5, -1.0) if mode == "constant" else None
    if n.opset < 11:
        return n.go_on(n.node("Pad", [n.at], mode=mode, pads=sizes, value=value))
    inputs = [n.at, n.constant(sizes, np.int64)] + ([n.constant(value)] if value is not None and n.flip() else [])
    if n.opset >= 18 and n.flip(0.3):
        inputs = [n.at, n.constant([1, 0, 2, 1], np.int64), "", n.constant([-1, -2], np.int64)]
    n.go_on(n.node("Pad", inputs, mode=mode))


@construct((2, 3, 4, 5))
def batch_norm(n):
    c = n.shape[1]
    r = n.random
    values = [n.constant(v) for v in (r.uniform(0.5, 1.5, c), r.normal(0, 0.5, c), r.normal(0, 0.5, c), r.uniform(0.3, 2, c))]
    n.go_on(n.node("BatchNormalization", [n.at, *values], epsilon=n.pick(None, 1e-3)))


@construct((3, 4, 5))
def instance_norm(n):
    c = n.shape[1]
    n.go_on(n.node("InstanceNormalization", [n.at, n.constant(n.random.uniform(0.5, 1.5, c)), n.weights(c)], epsilon=1e-4))


@construct((3, 4), 18)
def group_norm(n):
    c = n.shape[1]
    groups = n.pick(*(g for g in range(1, c + 1) if c % g == 0))
    size = c if n.opset >= 21 else groups
    n.go_on(n.node("GroupNormalization", [n.at, n.constant(n.random.uniform(0.5, 1.5, size)), n.weights(size)], num_groups=groups))


@construct((2, 3, 4), 17)
def layer_norm(n):
    axis = n.between(1, len(n.shape) - 1)
    shape = n.shape[axis:]
    bias = [n.constant(n.random.normal(0, 0.3, shape))] if n.flip() else []
    axis = axis - len(n.shape) if n.flip() else axis
    n.go_on(n.node("LayerNormalization", [n.at, n.constant(n.random.uniform(0.5, 1.5, shape)), *bias], axis=axis))


@construct((3, 4))
def other_norm(n):
    if len(n.shape) == 4 and n.flip(0.4):
        return n.go_on(n.node("LRN", [n.at], size=n.pick(3, 5), alpha=0.01, beta=0.6, bias=1.5))
    if n.opset >= 9 and n.flip():
        axes = sorted(set(n.pick([1], [2], [0, 2], [1, 2])))
        return n.go_on(n.node("MeanVarianceNormalization", [n.at], axes=axes))
    n.go_on(n.node("LpNormalization", [n.at], axis=n.pick(1, -1), p=n.between(1, 2)))


@construct((4,))
def depth_space(n):
    c, h, w = n.shape[1:]
    if c % 4 == 0 and n.flip():
        return n.go_on(n.node("DepthToSpace", [n.at], blocksize=2, mode=n.pick("DCR", "CRD") if n.opset >= 11 else None))
    if h % 2 == 0 and w % 2 == 0:
        n.go_on(n.node("SpaceToDepth", [n.at], blocksize=2))


@construct((2, 3, 4, 5))
def transpose(n):
    order = [0, *(1 + n.random.permutation(len(n.shape) - 1)).tolist()]
    n.go_on(n.node("Transpose", [n.at], perm=order))


@construct((3, 4, 5))
def reshape(n):
    if n.flip(0.3):
        return n.go_on(n.node("Flatten", [n.at], axis=n.pick(1, -1) if n.opset >= 11 else 1))
    sizes = [0, -1, *n.shape[3:]] if n.flip() and len(n.shape) > 3 else [1, n.shape[-1], -1]
    n.go_on(n.node("Reshape", [n.at, n.constant(sizes, np.int64)]))


@construct((2, 3, 4))
def squeeze(n):
    place = n.between(1, len(n.shape))
    inputs, attributes = n.axes_of(axes=([place], 13))
    n.go_on(n.node("Unsqueeze", [n.at, *inputs], **attributes))
    if len(n.shape) > 4 or n.flip():
        inputs, attributes = n.axes_of(axes=([place - len(n.shape)] if n.opset >= 11 else [place], 13))
        n.go_on(n.node("Squeeze", [n.at, *inputs], **attributes))


@construct((2, 3, 4), 10)
def slices(n):
    rank = len(n.shape)
    axes, starts, ends, steps = [], [], [], []
    for axis in range(1, rank):
        if n.flip(0.4):
            continue
        step = n.pick(1, 1, 2, -1, -2)
        axes.append(axis - rank if n.flip() else axis)
        starts.append(n.pick(0, 1, -n.shape[axis]) if step > 0 else n.pick(-1, 10**6))
        ends.append(n.pick(n.shape[axis], 2**31 - 1, -1) if step > 0 else -(2**31))
        steps.append(step)
    if axes:
        n.go_on(n.node("Slice", [n.at, *(n.constant(v, np.int64) for v in (starts, ends, axes, steps))]))


@construct((2, 3, 4))
def split_and_join(n):
    axis = n.between(1, len(n.shape) - 1)
    size = n.shape[axis]
    if size < 3:
        return
    parts = [1, size - 1] if n.flip() else [size // 3, size // 3, size - 2 * (size // 3)]
    if n.opset >= 18 and n.flip(0.4):
        pieces = n.node("Split", [n.at], 2, axis=axis, num_outputs=2)
    elif n.opset >= 13:
        pieces = n.node("Split", [n.at, n.constant(parts, np.int64)], len(parts), axis=axis - len(n.shape))
    else:
        pieces = n.node("Split", [n.at], len(parts), axis=axis, split=parts)
    order = n.random.permutation(len(pieces))
    joined = [pieces[i] for i in order] + ([n.node("Relu", [pieces[0]])] if n.flip() else [])
    n.go_on(n.node("Concat", joined, axis=axis - len(n.shape) if n.opset >= 11 else axis))


@construct((2, 3, 4), 13)
def gather(n):
    axis = n.between(1, len(n.shape) - 1)
    size = n.shape[axis]
    kind = n.between(0, 3)
    if kind == 0:
        places = n.random.integers(-size, size, n.pick((3,), (2, 2), (size,)))
        n.go_on(n.node("Gather", [n.at, n.constant(places, np.int64)], axis=axis))
    elif kind == 1:
        places = n.random.integers(0, size, n.shape)
        n.go_on(n.node("GatherElements", [n.at, n.constant(places, np.int64)], axis=axis))
    elif kind == 2:
        places = np.stack([np.zeros(5, np.int64), n.random.integers(0, n.shape[1], 5)], -1)
        n.go_on(n.node("GatherND", [n.at, n.constant(places, np.int64)]))
    else:
        places = n.random.permutation(n.shape[1])[: max(1, n.shape[1] // 2)]
        places = np.stack([np.zeros_like(places), places], -1)
        updates = n.constant(n.random.normal(0, 1, (len(places), *n.shape[2:])))
        reduction = n.pick("add", "mul", "max", None) if n.opset >= 18 else None
        n.go_on(n.node("ScatterND", [n.at, n.constant(places, np.int64), updates], reduction=reduction))


@construct((2, 3, 4, 5))
def activation(n):
    kinds = {
        "Elu": dict(alpha=n.pick(1.0, 0.5)), "Selu": {}, "HardSigmoid": dict(alpha=n.pick(0.2, 1 / 6), beta=0.5), "Softplus": {},
        "Softsign": {}, "LeakyRelu": dict(alpha=n.pick(0.01, 0.3)), "Sigmoid": {}, "Tanh": {}, "Relu": {}, "Abs": {}, "Neg": {},
    }
    if n.opset >= 10:
        kinds |= {"ThresholdedRelu": dict(alpha=n.pick(0.3, 1.0)), "Erf": {}, "Sin": {}, "Cos": {}, "Atan": {}, "Sinh": {}}
        kinds |= {"Shrink": dict(lambd=0.4, bias=n.pick(0.0, 0.4))}
    if n.opset >= 12:
        kinds |= {"Celu": dict(alpha=n.pick(1.0, 0.7))}
    if n.opset >= 14:
        kinds |= {"HardSwish": {}}
    if n.opset >= 18:
        kinds |= {"Mish": {}}
    if n.opset >= 20:
        kinds |= {"Gelu": dict(approximate=n.pick("none", "tanh"))}
    kind = n.pick(*kinds)
    n.go_on(n.node(kind, [n.at], **kinds[kind]))


@construct((2, 3, 4))
def clip(n):
    low, high = n.pick((-0.5, 0.7), (None, 0.5), (0.1, None), (-1.0, 1.0), (0.0, 6.0))
    if n.opset < 11:
        return n.go_on(n.node("Clip", [n.at], min=low, max=high))
    inputs = [n.at, n.constant(low) if low is not None else "", n.constant(high) if high is not None else ""]
    n.go_on(n.node("Clip", inputs if inputs[2] else inputs[:2]))


@construct((2, 3, 4))
def prelu(n):
    c = n.shape[1]
    rest = len(n.shape) - 2
    shape = n.pick([1], [c] + [1] * rest, n.shape[1:], [1, c] + [1] * rest)
    n.go_on(n.node("PRelu", [n.at, n.constant(n.random.uniform(-0.2, 0.5, shape))]))


@construct((2, 3, 4, 5), 8)
def arithmetic(n):
    kind = n.pick("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sum", "Mean")
    c = n.shape[1]
    shape = n.pick([], [1], [n.shape[-1]], n.shape[1:], [1, c] + [1] * (len(n.shape) - 2))
    value = n.constant(n.random.uniform(0.4, 2, shape))
    if kind == "Pow":
        return n.go_on(n.node("Pow", [n.node("Abs", [n.at]), n.constant(n.pick(2.0, 0.5, 3.0, 1.5))]))
    inputs = [n.at, value] if n.flip(0.7) or kind in ("Div",) else [value, n.at]
    if kind in ("Sum", "Mean", "Max", "Min") and n.flip():
        inputs.append(n.node("Neg", [n.at]))
    n.go_on(n.node(kind, inputs))


@construct((2, 3, 4), 9)
def where(n):
    mask = n.random.random(n.pick(n.shape, n.shape[-1:], [1, n.shape[1]] + [1] * (len(n.shape) - 2))) < 0.6
    if n.flip(0.4):
        condition = n.node("Less", [n.at, n.constant(0.3)])
    else:
        condition = n.constant(mask, bool)
    other = n.pick(n.constant(0.0), n.constant(-1.0), n.node("Neg", [n.at]))
    n.go_on(n.node("Where", [condition, n.at, other] if n.flip() else [condition, other, n.at]))


@construct((2, 3, 4))
def reduce(n):
    rank = len(n.shape)
    kind = n.pick("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")
    axes = sorted({n.between(1, rank - 1) for _ in range(n.between(1, 2))})
    if n.opset >= 11 and n.flip():
        axes = [a - rank for a in axes]
    inputs, attributes = n.axes_of(axes=(axes, 13 if kind == "ReduceSum" else 18))
    n.go_on(n.node(kind, [n.at, *inputs], keepdims=n.pick(0, 1, 1, None), **attributes))


@construct((2, 3, 4))
def softmax(n):
    rank = len(n.shape)
    axis = n.pick(None, *range(1, rank), *([-1, -2] if n.opset >= 11 and rank > 2 else []))
    n.go_on(n.node(n.pick("Softmax", "Softmax", "LogSoftmax"), [n.at], axis=axis))


@construct((2, 3, 4))
def matrix(n):
    k = n.shape[-1]
    if len(n.shape) == 2 and n.flip():
        turned = n.between(0, 1)
        w = n.weights(5, k) if turned else n.constant(n.random.normal(0, 1 / np.sqrt(k), (k, 5)))
        c = n.pick(n.weights(5), n.constant(0.3), n.constant(n.random.normal(0, 0.3, (1, 1))))
        return n.go_on(n.node("Gemm", [n.at, w, c], transB=turned, alpha=n.pick(1.0, 0.5), beta=n.pick(1.0, 2.0)))
    rank = len(n.shape)
    if rank > 2 and n.flip(0.3):
        rows = n.shape[-2]
        return n.go_on(n.node("MatMul", [n.constant(n.random.normal(0, 1 / np.sqrt(rows), (4, rows))), n.at]))
    shape = n.pick((k, 6), (k,) if rank > 2 else (k, 3), (*([1] * (rank - 2)), k, 4))
    n.go_on(n.node("MatMul", [n.at, n.constant(n.random.normal(0, 1 / np.sqrt(k), shape))]))


@construct((3, 4), 12)
def einsum(n):
    if len(n.shape) == 3:
        a, b, c = n.shape
        equation, shape = n.pick(("abc,cd->abd", (c, 5)), ("abc,bd->adc", (b, 4)), ("abc,cb->ab", (c, b)), ("abc,abd->acd", (a, b, 3)))
    else:
        a, b, c, d = n.shape
        equation, shape = n.pick(("nchw,ck->nkhw", (b, 5)), ("nchw,wk->nchk", (d, 4)), ("...hw,wk->...hk", (d, 3)),
                                 ("nchw,chwk->nk", (b, c, d, 4)), ("nchw,cw->nch", (b, d)))
    weights = n.constant(n.random.normal(0, 1 / np.sqrt(np.prod(shape[:-1])), shape))
    n.go_on(n.node("Einsum", [n.at, weights], equation=equation))


@construct((3, 4), 11)
def recurrent(n):
    if len(n.shape) == 4:
        n.go_on(n.node("Reshape", [n.at, n.constant([1, -1, n.shape[-1]], np.int64)]))
    if n.shape[1] > 24:
        n.go_on(n.node("Slice", [n.at, *(n.constant(v, np.int64) for v in ([0], [10], [1]))]))
    n.go_on(n.node("Transpose", [n.at], perm=[1, 0, 2]))
    steps, _, size = n.shape
    kind, gates = n.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    direction = n.pick("forward", "reverse", "bidirectional")
    ways, hidden = 2 if direction == "bidirectional" else 1, n.between(3, 8)
    w, r = (n.constant(n.random.normal(0, 0.4, (ways, gates * hidden, k))) for k in (size, hidden))
    b = n.constant(n.random.normal(0, 0.2, (ways, 2 * gates * hidden))) if n.flip(0.7) else ""
    inputs = [n.at, w, r, b]
    attributes = dict(hidden_size=hidden, direction=direction)
    if n.flip(0.3):
        inputs += [n.constant([max(1, steps - 2)], np.int32)]
    elif n.flip(0.4):
        inputs += ["", n.constant(n.random.normal(0, 0.5, (ways, 1, hidden)))]
    if kind == "GRU":
        attributes["linear_before_reset"] = n.between(0, 1)
    if kind == "RNN" and n.flip():
        attributes["activations"] = ["Relu"] * ways
    if kind == "LSTM" and n.flip(0.2):
        inputs += [""] * (7 - len(inputs)) + [n.constant(n.random.normal(0, 0.3, (ways, 3 * hidden)))]
    if n.flip(0.2):
        attributes["clip"] = 0.8
    whole, last = n.node(kind, inputs, 2, **attributes)
    n.go_on(whole if n.flip() else last)
    if len(n.shape) == 4:
        n.go_on(n.node("Transpose", [n.at], perm=[2, 1, 0, 3]))


@construct((2, 3, 4), 11)
def choice(n):
    """If and Loop whose course is known."""
    body_output = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    if n.flip():
        branches = [helper.make_graph([helper.make_node(k, [n.at], ["inner"])], k, [], [body_output]) for k in ("Relu", "Tanh")]
        return n.go_on(n.node("If", [n.constant(n.flip(), bool)], then_branch=branches[0], else_branch=branches[1]))
    value = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)  # noqa: E731
    half = numpy_helper.from_array(np.float32(0.5), "half")
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Mul", ["state", "half"], ["scaled"]),
         helper.make_node("Sin", ["scaled"], ["bent"]), helper.make_node("Add", ["bent", n.at], ["inner"])],
        "body", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("state", TensorProto.FLOAT, None)],
        [value("go_on", TensorProto.BOOL, []), body_output], [half])
    n.go_on(n.node("Loop", [n.constant(n.between(1, 3), np.int64), "", n.at], body=body))


@construct((2, 3, 4), 11)
def order(n):
    axis = n.between(1, len(n.shape) - 1)
    kind = n.between(0, 4)
    if kind == 0:
        k = min(3, n.shape[axis])
        n.go_on(n.node("TopK", [n.at, n.constant([k], np.int64)], 2, axis=axis, largest=n.between(0, 1))[0])
    elif kind == 1:
        n.go_on(n.node("CumSum", [n.at, n.constant(axis, np.int64)], exclusive=n.between(0, 1), reverse=n.between(0, 1)))
    elif kind == 2 and n.opset >= 14 and len(n.shape) > 2:
        n.go_on(n.node("Trilu", [n.at, n.constant(n.between(-1, 1), np.int64)], upper=n.between(0, 1)))
    elif kind == 3:
        n.go_on(n.node("Tile", [n.at, n.constant([1] + [n.between(1, 2) for _ in n.shape[1:]], np.int64)]))
    else:
        shape = n.node("Shape", [n.at])
        n.go_on(n.node("Expand", [n.node("ReduceMax", [n.at], axes=[axis]) if n.opset < 18 else
                                  n.node("ReduceMax", [n.at, n.constant([axis], np.int64)]), shape]))


@construct((4,), 16)
def sampling(n):
    size = [n.between(4, 9), n.between(4, 9)]
    grid = n.constant(n.random.uniform(-1.2, 1.2, (1, *size, 2)))
    mode = n.pick("linear", "nearest", "cubic") if n.opset >= 20 else n.pick("bilinear", "nearest", "bicubic")
    n.go_on(n.node("GridSample", [n.at, grid], mode=mode, padding_mode=n.pick("zeros", "border", "reflection"),
                   align_corners=n.between(0, 1)))


@construct((4,), 19)
def rare(n):
    c, h, w = n.shape[1:]
    kind = n.between(0, 2)
    if kind == 0:
        return n.go_on(n.node("CenterCropPad", [n.at, n.constant([h + 3, max(1, w - 2)], np.int64)], axes=[2, 3]))
    if kind == 1 and h >= 3 and w >= 3:
        offsets = n.constant(n.random.normal(0, 0.6, (1, 18, h - 2, w - 2)))
        return n.go_on(n.node("DeformConv", [n.at, n.weights(4, c, 3, 3), offsets], kernel_shape=[3, 3], pads=[0, 0, 0, 0]))
    pooled, places = n.node("MaxPool", [n.at], 2, kernel_shape=[2, 2], strides=[2, 2])
    n.go_on(n.node("MaxUnpool", [pooled, places], kernel_shape=[2, 2], strides=[2, 2]))


@construct((2, 3, 4))
def half(n):
    """float16 in the middle."""
    there = n.node("Cast", [n.at], to=TensorProto.FLOAT16)
    there = n.node("Mul", [there, n.constant(n.random.uniform(0.5, 1.5, [n.shape[-1]]), np.float16)])
    n.go_on(n.node("Cast", [there], to=TensorProto.FLOAT))


def make(number, seed, only):
    random = np.random.default_rng([seed, number])
    opset = int(random.choice([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]))
    rank = int(random.choice([4, 4, 4, 4, 3, 5, 2]))
    shape = {2: (30,), 3: (6, 24), 4: (3, int(random.integers(9, 20)), int(random.integers(9, 20))), 5: (3, 5, 9, 8)}[rank]
    n = Network(random, opset, shape)
    if rank == 2:
        n.go_on(n.node("Gemm", [n.at, n.weights(16, 30), n.weights(16)], transB=1))
    else:
        n.go_on(n.node("Conv", [n.at, n.weights(8, shape[0], *([3] * (rank - 2)))]))
    if n.flip(0.6):
        n.go_on(n.node("Relu", [n.at]))
    drawn = []
    for _ in range(n.between(1, 3)):
        fitting = [name for name, (ranks, since, _) in CONSTRUCTS.items() if len(n.shape) in ranks and opset >= since]
        wanted = [name for name in fitting if name in only] if not drawn and only else fitting
        if not wanted or np.prod(n.shape) > 40_000:
            break
        drawn.append(n.pick(*wanted))
        CONSTRUCTS[drawn[-1]][2](n)
    if only and not set(drawn) & set(only):
        return None
    if len(n.shape) in (3, 4, 5) and n.shape[1] <= 64 and n.flip(0.7):
        n.go_on(n.node("Conv", [n.at, n.weights(4, n.shape[1], *([1] * (len(n.shape) - 2)))]))
    return n, "_".join([f"{seed}_{number:03d}", *drawn, f"opset{opset}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names of CONSTRUCTS, separated by commas: each file has one of them")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    left_out = 0
    for number in range(arguments.count):
        try:
            made = make(number, arguments.seed, [name for name in arguments.only.split(",") if name])
            if made is None:
                continue
            network, name = made
            model = network.model(network.at)
            model.graph.output[0].CopyFrom(helper.make_tensor_value_info(network.at, TensorProto.FLOAT, network.shape))
            onnx.checker.check_model(model, full_check=True)
            shape = [d.dim_value for d in network.graph_input.type.tensor_type.shape.dim]
            samples = np.stack([waves(1000 * arguments.seed + k, shape) for k in range(SAMPLES)])
            results = [network.run(network.at, sample) for sample in samples[:2]]
            if not all(np.isfinite(r).all() for r in results) or np.ptp(results[0]) == 0:
                continue
        except Exception as error:  # not legal, or not in ONNX Runtime
            left_out += 1
            print(f"{number}: left out: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}")
            continue
        onnx.save(model, arguments.folder / f"h{name}.onnx")
        np.savez(arguments.folder / f"h{name}.samples.npz", input_0=samples)
    print(f"{left_out} of {arguments.count} left out")


if __name__ == "__main__":
    main()
