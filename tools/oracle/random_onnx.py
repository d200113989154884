# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs for comparing converted models with ONNX Runtime.

Problem: exporters write the same network in many forms, and an importer that was tried on some of them fails on the next.
Approach: draw graphs of up to twenty nodes with branches, every node with attributes drawn from all that its definition allows:
uneven pads, ceil_mode, groups, negative axes and steps, broadcasts between any ranks, Resize in its coordinate modes, and so on.
Shapes are what ONNX's own shape inference says; a node that it does not accept is taken back. A graph depends on its number
alone. Not guaranteed: that ONNX Runtime takes a graph. check_random_onnx.py asks it first.

Values stay moderate: nodes that would overflow or divide by zero get operands that prevent it.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
MOST_ELEMENTS = 20000  # of a tensor


class GraphDraw:
    """A graph in the making: tensors with their shapes, nodes and constants."""

    def __init__(self, number):
        self.rng = np.random.RandomState(number)
        self.nodes, self.constants, self.inputs = [], [], []
        self.shapes = {}
        self.count = 0

    def integer(self, low, high):
        return int(self.rng.randint(low, high + 1))

    def one_of(self, values):
        return values[self.rng.randint(len(values))]

    def chance(self, share):
        return self.rng.uniform() < share

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def size(self, most=9):
        return self.integer(10, 40) if self.chance(0.1) else self.integer(1, most)

    def input(self, shape):
        name = self.name()
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.shapes[name] = list(shape)
        return name

    def constant(self, values):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def floats(self, shape, low=-1.0, high=1.0):
        return self.constant(self.rng.uniform(low, high, shape).astype(np.float32))

    def ints(self, values):
        return self.constant(np.asarray(values, np.int64))

    def axis(self, rank):
        axis = self.integer(0, rank - 1)
        return axis - rank if self.chance(0.4) else axis

    def node(self, kind, inputs, outputs=1, domain="", **attributes):
        """Adds a node if its operands exist and ONNX can infer what it gives; the names of its results, or None."""
        if None in inputs:
            return None
        names = [self.name() for _ in range(outputs)]
        node = helper.make_node(kind, inputs, names, domain=domain, **attributes)
        shapes = self.inferred(node, names)
        if shapes is None or any(np.prod(s) > MOST_ELEMENTS or min(s, default=1) < 1 for s in shapes):
            return None
        self.nodes.append(node)
        self.shapes.update(zip(names, shapes))
        return names[0] if outputs == 1 else names

    def inferred(self, node, names):
        given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in self.shapes.items() if n in node.input]
        used = [c for c in self.constants if c.name in node.input]
        outputs = [helper.make_empty_tensor_value_info(n) for n in names]
        model = helper.make_model(helper.make_graph([node], "one", given, outputs, used), opset_imports=[helper.make_opsetid("", OPSET)])
        try:
            graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
        except (onnx.shape_inference.InferenceError, RuntimeError):
            return None
        found = []
        for value in graph.output:
            kind = value.type.tensor_type
            if kind.elem_type != TensorProto.FLOAT or not kind.HasField("shape"):
                return None
            if any(not d.HasField("dim_value") for d in kind.shape.dim):
                return None
            found.append([d.dim_value for d in kind.shape.dim])
        return found

    def model(self):
        read = {name for node in self.nodes for name in node.input}
        ends = [n for node in self.nodes for n in node.output if n not in read]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, self.shapes[n]) for n in ends]
        graph = helper.make_graph(self.nodes, "random", self.inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def rank(draw, x):
    return len(draw.shapes[x])


# ---- Steps: each takes a tensor and returns a result, or None where it does not apply ----


def window_attributes(draw, sizes, kernel, may_dilate=True):
    """Strides, dilations and pads of a window over `sizes`, as exporters and people write them."""
    axes = len(kernel)
    strides = [draw.integer(1, 3) for _ in kernel]
    dilations = [draw.integer(1, 2) if may_dilate and draw.chance(0.3) else 1 for _ in kernel]
    given = {"strides": strides}
    if may_dilate:
        given["dilations"] = dilations
    if draw.chance(0.2):
        given["auto_pad"] = draw.one_of(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        given["pads"] = [draw.integer(0, max(0, kernel[i % axes] - 1)) for i in range(2 * axes)]
    return given


def convolution(draw, x):
    shape = draw.shapes[x]
    if len(shape) not in (3, 4):
        return None
    channels, axes = shape[1], len(shape) - 2
    groups = draw.one_of([g for g in range(1, channels + 1) if channels % g == 0]) if draw.chance(0.4) else 1
    kernel = [draw.integer(1, 5) for _ in range(axes)]
    outputs = groups * draw.integer(1, max(1, 16 // groups))
    weights = draw.floats([outputs, channels // groups, *kernel], -0.5, 0.5)
    bias = [draw.floats([outputs])] if draw.chance(0.7) else []
    return draw.node("Conv", [x, weights, *bias], group=groups, kernel_shape=kernel, **window_attributes(draw, shape[2:], kernel))


def transposed_convolution(draw, x):
    shape = draw.shapes[x]
    if len(shape) not in (3, 4):
        return None
    channels, axes = shape[1], len(shape) - 2
    groups = draw.one_of([g for g in range(1, channels + 1) if channels % g == 0]) if draw.chance(0.2) else 1
    kernel, strides = [draw.integer(1, 4) for _ in range(axes)], [draw.integer(1, 3) for _ in range(axes)]
    weights = draw.floats([channels, draw.integer(1, 5), *kernel], -0.5, 0.5)
    extra = [draw.integer(0, s - 1) for s in strides] if draw.chance(0.3) else [0] * axes
    pads = [draw.integer(0, (kernel[i % axes] - 1) // 2) for i in range(2 * axes)]
    return draw.node("ConvTranspose", [x, weights], group=groups, kernel_shape=kernel, strides=strides, output_padding=extra, pads=pads)


def pool(draw, x):
    shape = draw.shapes[x]
    if len(shape) not in (3, 4):
        return None
    kind = draw.one_of(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if kind.startswith("Global"):
        return draw.node(kind, [x])
    kernel = [draw.integer(1, 4) for _ in shape[2:]]
    given = window_attributes(draw, shape[2:], kernel, may_dilate=False)
    if kind == "AveragePool":
        given["count_include_pad"] = draw.integer(0, 1)
    ceil, axes = draw.integer(0, 1), len(kernel)
    pads = given.get("pads", [0] * 2 * axes)
    if not ceil and any(k > size + pads[i] + pads[axes + i] for i, (k, size) in enumerate(zip(kernel, shape[2:]))):
        return None  # has no result by ONNX's formula; ONNX Runtime rounds towards zero and gives one
    return draw.node(kind, [x], kernel_shape=kernel, ceil_mode=ceil, **given)


def normalization(draw, x):
    shape = draw.shapes[x]
    if len(shape) < 3 or shape[1] < 1:
        return None
    channels = shape[1]
    kind = draw.one_of(("BatchNormalization", "InstanceNormalization", "LayerNormalization"))
    if kind == "LayerNormalization":
        axis = draw.integer(1, len(shape) - 1)
        return draw.node(kind, [x, draw.floats(shape[axis:], 0.5, 1.5), draw.floats(shape[axis:])], axis=axis, epsilon=1e-3)
    if kind == "InstanceNormalization":
        return draw.node(kind, [x, draw.floats([channels], 0.5, 1.5), draw.floats([channels])], epsilon=1e-2)
    return draw.node(kind, [x, draw.floats([channels], 0.5, 1.5), draw.floats([channels]), draw.floats([channels]),
                            draw.floats([channels], 0.2, 2)])


UNARY = ("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Neg", "Abs", "Erf", "Cos", "Sin", "Mish", "Celu", "Identity", "Exp", "Sqrt", "Log", "Reciprocal")
STEPPED = ("Floor", "Ceil", "Sign", "Round")  # of inputs only: a last bit decides between two results
NEEDS_POSITIVE = ("Sqrt", "Log", "Reciprocal")


def unary(draw, x):
    is_input = x in [value.name for value in draw.inputs]
    kind = draw.one_of(UNARY + STEPPED if is_input else UNARY)
    if kind in NEEDS_POSITIVE:
        x = draw.node("Add", [draw.node("Abs", [x]), draw.floats([1], 0.4, 0.6)])
    if kind == "Exp":
        x = draw.node("Clip", [x, draw.constant(np.float32(-4)), draw.constant(np.float32(3))])
    given = {"alpha": float(draw.rng.uniform(0.05, 1.2))} if kind in ("LeakyRelu", "Elu", "Celu") and draw.chance(0.7) else {}
    return draw.node(kind, [x], **given)


def broadcast(draw, shape):
    kept = [1 if draw.chance(0.4) else d for d in shape]
    return kept[draw.integer(0, len(kept)) if draw.chance(0.5) else 0:]


def binary(draw, x, other=None):
    kind = draw.one_of(("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Pow"))
    shape = draw.shapes[x]
    if kind == "PRelu":
        return draw.node(kind, [x, draw.floats(broadcast(draw, shape))])
    if kind == "Pow":
        return draw.node(kind, [draw.node("Abs", [x]), draw.constant(np.float32(draw.one_of((0.5, 1, 2, 3))))])
    if kind == "Div":
        return draw.node(kind, [x, draw.floats(broadcast(draw, shape), 0.5, 2)])
    if other is None or draw.chance(0.3):
        other = draw.floats(broadcast(draw, shape))
    return draw.node(kind, [x, other] if draw.chance(0.6) else [other, x])


def clip(draw, x):
    return draw.node("Clip", [x, draw.constant(np.float32(draw.one_of((-1, 0, -0.5)))), draw.constant(np.float32(draw.one_of((1, 6, 2))))])


def softmax(draw, x):
    return draw.node(draw.one_of(("Softmax", "LogSoftmax")), [x], axis=draw.axis(rank(draw, x)))


def reduction(draw, x):
    kind = draw.one_of(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceLogSumExp"))
    axes = sorted({draw.integer(0, rank(draw, x) - 1) for _ in range(draw.integer(1, 2))})
    stated = [a - rank(draw, x) for a in axes] if draw.chance(0.4) else axes
    operands = [x, draw.ints(stated)] if draw.chance(0.9) else [x]
    return draw.node(kind, operands, keepdims=draw.integer(0, 1))


def matmul(draw, x):
    shape = draw.shapes[x]
    columns = draw.size(12)
    if len(shape) == 2 and draw.chance(0.4):
        across = draw.integer(0, 1)
        rows = shape[1 - across] if across == 0 else shape[0]
        down = draw.integer(0, 1)
        bias = [draw.floats(draw.one_of(([columns], [1, columns], [1])))] if draw.chance(0.7) else []
        return draw.node("Gemm", [x, draw.floats([columns, rows] if down else [rows, columns]), *bias], transA=across, transB=down,
                         alpha=float(draw.one_of((1.0, 0.5))), beta=float(draw.one_of((1.0, 2.0))))
    front = [] if draw.chance(0.6) else [1 if draw.chance(0.4) else d for d in shape[:-2]]
    if len(shape) > 1 and draw.chance(0.3):
        return draw.node("MatMul", [draw.floats([*front, columns, shape[-2]]), x])
    return draw.node("MatMul", [x, draw.floats([*front, shape[-1], columns])])


def attention(draw, x):
    """Products of two activations."""
    shape = draw.shapes[x]
    if len(shape) < 2:
        return None
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    scores = draw.node("MatMul", [x, draw.node("Transpose", [x], perm=order)])
    if scores is None:
        return None
    scores = draw.node("Mul", [scores, draw.constant(np.float32(0.2))])
    return draw.node("MatMul", [draw.node("Softmax", [scores], axis=-1), x])


def reshape(draw, x):
    shape = draw.shapes[x]
    count = int(np.prod(shape))
    a = draw.one_of([n for n in range(1, min(count, 40) + 1) if count % n == 0])
    rest = count // a
    b = draw.one_of([n for n in range(1, min(rest, 40) + 1) if rest % n == 0])
    target = draw.one_of(([count], [a, rest], [a, b, rest // b], [1, a, b, rest // b]))
    if len(shape) > 1 and draw.chance(0.2):
        target = [0, -1]
    elif draw.chance(0.5):
        target[draw.integer(0, len(target) - 1)] = -1
    return draw.node("Reshape", [x, draw.ints(target)])


def flatten(draw, x):
    return draw.node("Flatten", [x], axis=draw.integer(0, rank(draw, x)))


def transpose(draw, x):
    return draw.node("Transpose", [x], perm=[int(a) for a in draw.rng.permutation(rank(draw, x))])


def unsqueeze(draw, x):
    if rank(draw, x) > 4:
        return None
    return draw.node("Unsqueeze", [x, draw.ints([draw.integer(0, rank(draw, x))])])


def squeeze(draw, x):
    ones = [i for i, d in enumerate(draw.shapes[x]) if d == 1]
    if not ones or len(ones) == rank(draw, x):
        return None
    return draw.node("Squeeze", [x, draw.ints([draw.one_of(ones)])])


def slices(draw, x):
    axes = sorted({draw.integer(0, rank(draw, x) - 1) for _ in range(draw.integer(1, 3))})
    begin, end, steps = [], [], []
    for axis in axes:
        size = draw.shapes[x][axis]
        step = draw.one_of((1, 1, 2, 3, -1, -2))
        first = draw.integer(0, size - 1)
        last = draw.integer(first + 1, size) if step > 0 else draw.integer(-1, first - 1)
        begin.append(first - size if draw.chance(0.3) else first)
        end.append(np.iinfo(np.int64).min if last < 0 else np.iinfo(np.int64).max if last == size and draw.chance(0.5) else last)
        steps.append(step)
    return draw.node("Slice", [x, draw.ints(begin), draw.ints(end), draw.ints(axes), draw.ints(steps)])


def pad(draw, x):
    mode = draw.one_of(("constant", "constant", "reflect", "edge"))
    most = [2 if mode != "reflect" else min(2, d - 1) for d in draw.shapes[x]]
    around = [draw.integer(0, m) for m in most] + [draw.integer(0, m) for m in most]
    operands = [x, draw.ints(around)]
    if mode == "constant" and draw.chance(0.6):
        operands.append(draw.constant(np.float32(draw.one_of((0, 0, 1.5, -2)))))
    return draw.node("Pad", operands, mode=mode)


def concat(draw, x):
    axis = draw.integer(0, rank(draw, x) - 1)
    shape = draw.shapes[x]
    parts = [x, *(draw.floats([*shape[:axis], draw.integer(1, 5), *shape[axis + 1:]]) for _ in range(draw.integer(1, 2)))]
    return draw.node("Concat", [parts[i] for i in draw.rng.permutation(len(parts))], axis=axis)


def split(draw, x):
    axis = draw.axis(rank(draw, x))
    size = draw.shapes[x][axis]
    count = min(size, draw.integer(1, 4))
    sizes = [size // count] * count
    sizes[-1] += size - sum(sizes)
    found = draw.node("Split", [x, draw.ints(sizes)], outputs=max(2, count), axis=axis) if count > 1 else None
    return draw.one_of(found) if found else None


def gather(draw, x):
    axis = draw.axis(rank(draw, x))
    size = draw.shapes[x][axis]
    places = draw.rng.randint(-size, size, [draw.integer(1, 3)] * draw.integer(0, 2))
    return draw.node("Gather", [x, draw.ints(places)], axis=axis)


def resize(draw, x):
    shape = draw.shapes[x]
    if len(shape) != 4:
        return None
    mode = draw.one_of(("nearest", "nearest", "linear", "linear", "cubic"))
    given = {"coordinate_transformation_mode": draw.one_of(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))}
    if mode == "nearest":
        given["nearest_mode"] = draw.one_of(("round_prefer_floor", "floor", "ceil", "round_prefer_ceil"))
    # Scales that give whole sizes: for others ONNX Runtime departs from ONNX's own tests. Nearest pixels by scales of a power
    # of two: elsewhere a last bit decides between two pixels.
    exact = given["coordinate_transformation_mode"] == "align_corners"
    if mode == "nearest" or draw.chance(0.5):
        scales = [1, 1, *(float(draw.one_of((2, 4) if mode == "nearest" else (2, 3) if exact else (2, 3, 0.5, 1.5))) for _ in range(2))]
        if mode == "nearest":
            given["coordinate_transformation_mode"] = draw.one_of(("half_pixel", "asymmetric"))
        return draw.node("Resize", [x, "", draw.constant(np.asarray(scales, np.float32))], mode=mode, **given)
    sizes = [*shape[:2], draw.integer(1, 14), draw.integer(1, 14)]
    return draw.node("Resize", [x, "", "", draw.ints(sizes)], mode=mode, **given)


def shuffle(draw, x):
    shape = draw.shapes[x]
    if len(shape) != 4:
        return None
    if shape[1] % 4 == 0 and draw.chance(0.6):
        return draw.node("DepthToSpace", [x], blocksize=2, mode=draw.one_of(("DCR", "CRD")))
    if shape[2] % 2 == 0 and shape[3] % 2 == 0:
        return draw.node("SpaceToDepth", [x], blocksize=2)
    return None


def tile(draw, x):
    if draw.chance(0.5):
        return draw.node("Tile", [x, draw.ints([draw.integer(1, 2) for _ in draw.shapes[x]])])
    return draw.node("Expand", [x, draw.ints([draw.integer(2, 3) if d == 1 else d for d in draw.shapes[x]])])


def where(draw, x):
    mask = draw.constant(draw.rng.randint(0, 2, broadcast(draw, draw.shapes[x])).astype(bool))
    return draw.node("Where", [mask, x, draw.floats(broadcast(draw, draw.shapes[x]))])


def further(draw, x):
    kind = draw.one_of(("CumSum", "Trilu", "LRN", "GroupedMean", "Einsum"))
    shape = draw.shapes[x]
    if kind == "CumSum":
        return draw.node(kind, [x, draw.constant(np.asarray(draw.integer(0, len(shape) - 1), np.int64))], exclusive=draw.integer(0, 1), reverse=draw.integer(0, 1))
    if kind == "Trilu" and len(shape) >= 2:
        return draw.node(kind, [x], upper=draw.integer(0, 1))
    if kind == "LRN" and len(shape) == 4:
        return draw.node(kind, [x], size=draw.one_of((1, 3, 5)), alpha=0.05, beta=0.75, bias=1.0)
    if kind == "Einsum" and len(shape) == 3:
        return draw.node(kind, [x, draw.floats([shape[2], draw.integer(1, 6)])], equation=draw.one_of(("bnd,de->bne", "bnd,de->ben")))
    return None


STEPS = (convolution, convolution, convolution, transposed_convolution, pool, pool, normalization, unary, unary, unary, binary, binary, binary, clip,
         softmax, reduction, matmul, matmul, attention, reshape, flatten, transpose, transpose, unsqueeze, squeeze, slices, pad, concat, split, gather,
         resize, resize, shuffle, tile, where, further)


def random_onnx(number):
    """The ModelProto of graph `number`; None where no node could be drawn."""
    draw = GraphDraw(number)
    form = draw.integer(0, 9)
    shape = [draw.integer(1, 2), draw.size(8), draw.size(14), draw.size(14)] if form < 6 else \
        [draw.integer(1, 2), draw.size(12), draw.size(20)] if form < 8 else [draw.integer(1, 3), draw.size(30)]
    live = [draw.input(shape)]
    for _ in range(draw.integer(1, 20)):
        x = live[-1] if draw.chance(0.75) else draw.one_of(live)
        if not draw.shapes[x] or len(draw.shapes[x]) > 5:
            continue
        step = draw.one_of(STEPS)
        y = step(draw, x, draw.one_of(live)) if step is binary else step(draw, x)
        if y is not None:
            live.append(y)
    return draw.model() if draw.nodes else None
