# SPDX-License-Identifier: Apache-2.0
"""Other nodes for bench/onnx_by_hand.py, with attributes drawn at random: movements, arithmetic, reductions, products, recurrent layers."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from onnx_network import construct


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
