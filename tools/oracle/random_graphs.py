# SPDX-License-Identifier: Apache-2.0
"""Random TFLite graphs for comparing Reef's CPU runtime with TFLite's reference kernels.

Problem: recorded vectors (tests/vectors) show that an operator is right where somebody thought of a case. Approach: draw
graphs at random: single operators of all families (those of random_micro.py and the wider ones here) and networks of up to
twenty operators with branches, in int8, uint8, int16 and float. Sizes are odd and sometimes large enough for vector
code; strides, dilations and windows differ between the two axes; scales reach from saturating to flat. A graph depends on its
number alone. Not guaranteed: that the runtime takes a graph. check_random_graphs.py asks it first.

Networks are of one kind of numbers: where floats become integers inside of a graph, the last bit of an exponential
would decide between two codes, and nothing could be demanded of the result.
"""

import numpy as np

from onemodel import HIGHEST_KNOWN_VERSION, schema
from random_micro import ACTIVATIONS, FIXED_RESULTS, MAKERS, Draw, broadcast
from random_micro_layers import added, bias, dense, pool, product, sequence, transposed, weights

INTEGERS = ("int8", "int8", "uint8", "int16")
NUMBERS = INTEGERS + ("float32", "float32")

_versions = {}  # lowest version of each operator that the runtime has, found when it is first used


class GraphDraw(Draw):
    """A model in the making whose operators have the lowest version that the runtime knows."""

    def op(self, name, inputs, outputs, **fields):
        self.model.op(name, inputs, outputs, version=_versions.get(name), **fields)

    def build(self):
        data = self.model.build()
        for code in self.model._codes:
            for name, number in vars(schema.BuiltinOperator).items():
                if number == code.builtinCode and isinstance(number, int) and code.version < HIGHEST_KNOWN_VERSION:
                    _versions.setdefault(name, code.version)
        return data

    def size(self, most=9):
        """A size along one axis: mostly small, sometimes large enough for several vectors."""
        return self.integer(10, 70) if self.chance(0.1) else self.integer(1, most)

    def quantization_of(self, tensor):
        table = self.model.table.tensors[tensor.index].quantization
        return {} if table is None or table.scale is None else {"scale": table.scale[0], "zero_point": table.zeroPoint[0]}

    def tensor(self, dtype, shape, **quantization):
        return self.model.tensor(self.name(), dtype, [int(d) for d in shape], **(quantization or self.quantization(dtype)))

    def activation(self):
        return self.one_of(ACTIVATIONS)


def kind(tensor):
    return tensor.dtype.lower()


# ---- Steps of a network: each takes a tensor and returns a result, or None where it does not apply ----

# By kind of numbers, those that the reference kernels of LiteRT 2.3 take.
_RECTIFIERS = ("RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "LOGISTIC", "TANH", "SOFTMAX", "HARD_SWISH")
_TABLES = ("GELU", "LOG_SOFTMAX", "L2_NORMALIZATION")
UNARY = {"float32": _RECTIFIERS + _TABLES + ("ABS", "NEG", "SQUARE", "SQRT", "RSQRT", "EXP", "LOG", "COS", "SIN", "FLOOR", "SIGN"),
         "int8": _RECTIFIERS + _TABLES + ("ABS", "RSQRT", "EXP", "LOG"), "uint8": _RECTIFIERS + _TABLES,
         "int16": ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "SOFTMAX", "ABS", "EXP")}
BINARY = {"float32": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "DIV", "PRELU"),
          "int8": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "PRELU"),
          "uint8": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "DIV", "PRELU"), "int16": ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")}
TABLE_ALSO = {"uint8": {"LOGISTIC": (1 / 256, 0), "TANH": (1 / 128, 128), "SOFTMAX": (1 / 256, 0), "LOG_SOFTMAX": (16 / 256, 255),
                        "L2_NORMALIZATION": (1 / 128, 128)}}


def unary(draw, x):
    dtype = kind(x)
    name = draw.one_of(UNARY[dtype])
    fixed = FIXED_RESULTS.get((name, dtype)) or TABLE_ALSO.get(dtype, {}).get(name)
    same = name in ("ABS", "NEG", "RELU", "RELU6") and draw.chance(0.5)
    given = {"scale": fixed[0], "zero_point": fixed[1]} if fixed else draw.quantization_of(x) if same else {}
    fields = {"alpha": float(draw.one_of((0.01, 0.2, 0.3, 1.5)))} if name == "LEAKY_RELU" else \
        {"beta": float(draw.one_of((1.0, 1.0, 0.5, 2.0)))} if name == "SOFTMAX" else \
        {"approximate": bool(draw.chance(0.5))} if name == "GELU" else {}
    y = draw.tensor(dtype, x.shape, **given)
    draw.op(name, [x], [y], **fields)
    return y


def binary(draw, x, other=None):
    dtype = kind(x)
    name = draw.one_of(BINARY[dtype] if x.shape else ("ADD",))
    together = name in ("MAXIMUM", "MINIMUM")
    given = draw.quantization_of(x) if together else {}
    if name == "PRELU":
        other = draw.const(dtype, [1] * (len(x.shape) - 2) + [x.shape[-1]] if len(x.shape) > 1 else [x.shape[-1]])
    elif other is None or together or other.shape != x.shape:
        other = draw.const(dtype, broadcast(draw, list(x.shape)) if x.shape else [], **given)
    operands = [x, other] if name == "PRELU" or draw.chance(0.7) else [other, x]
    fields = {"fused_activation_function": draw.activation()} if name in ("ADD", "SUB", "MUL", "DIV") else {}
    if name in ("ADD", "SUB"):
        fields["pot_scale_int16"] = False
    y = draw.tensor(dtype, x.shape, **given)
    draw.op(name, operands, [y], **fields)
    return y


def window(draw, size, kernel, padding):
    """(stride, dilation, size of the result) of one axis; None where the window does not fit."""
    stride = draw.integer(1, 3)
    dilation = draw.integer(2, 3) if stride == 1 and draw.chance(0.2) else 1
    reach = (kernel - 1) * dilation + 1
    if padding == "VALID" and reach > size:
        return None
    return stride, dilation, -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1


def convolution(draw, x):
    if len(x.shape) != 4:
        return None
    n, h, w, c = x.shape
    dtype, depthwise = kind(x), draw.chance(0.45)
    padding, kernel = draw.one_of(("SAME", "VALID")), (draw.integer(1, 5), draw.integer(1, 5))
    rows, columns = window(draw, h, kernel[0], padding), window(draw, w, kernel[1], padding)
    if rows is None or columns is None:
        return None
    multiplier = draw.one_of((1, 1, 1, 2, 3))
    channels = c * multiplier if depthwise else draw.size(20)
    if not depthwise and c % 2 == 0 and draw.chance(0.15):  # groups
        shape, channels = [2 * (-(-channels // 2)), *kernel, c // 2], 2 * (-(-channels // 2))
    else:
        shape = [1, *kernel, channels] if depthwise else [channels, *kernel, c]
    if dtype == "uint8":
        f = draw.const("uint8", shape, scale=float(np.float32(draw.rng.uniform(0.002, 0.02))), zero_point=draw.integer(100, 156))
        scales = [draw.quantization_of(f)["scale"]]
        b = unsigned_bias(draw, x, scales[0], channels)
    else:
        f, scales = weights(draw, dtype, shape, channels, 3 if depthwise else 0, draw.chance(0.7))
        b = bias(draw, dtype, x, scales, channels)
    y = draw.tensor(dtype, [n, rows[2], columns[2], channels])
    fields = {"depth_multiplier": multiplier} if depthwise else {}
    draw.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [x, f, *([b] if b else [])], [y], padding=padding, stride_h=rows[0], stride_w=columns[0],
            dilation_h_factor=rows[1], dilation_w_factor=columns[1], fused_activation_function=draw.activation(), **fields)
    return y


def unsigned_bias(draw, x, scale, channels):
    return draw.model.const(draw.name(), draw.rng.randint(-3000, 3000, [channels]), "int32", [channels],
                            scale=draw.quantization_of(x)["scale"] * scale, zero_point=0)


def pooling(draw, x):
    return None if len(x.shape) != 4 else pool(draw, x, kind(x), last=False)


def matrix(draw, x):
    if not x.shape or kind(x) == "uint8":
        return None
    return dense(draw, x, kind(x), last=False)


def reshape(draw, x):
    count = int(np.prod(x.shape))
    a = draw.one_of([n for n in range(1, min(count, 40) + 1) if count % n == 0])
    rest = count // a
    b = draw.one_of([n for n in range(1, min(rest, 40) + 1) if rest % n == 0])
    target = draw.one_of(([count], [a, rest], [1, a, b, rest // b], [b, rest // b, a], [1, *x.shape][-5:] if len(x.shape) < 5 else [count]))
    y = draw.tensor(kind(x), target, **draw.quantization_of(x))
    stated = list(target)
    if draw.chance(0.3):
        stated[draw.integer(0, len(stated) - 1)] = -1
    draw.op("RESHAPE", [x, draw.numbers(stated)], [y], new_shape=stated)
    return y


def transpose(draw, x):
    order = [int(a) for a in draw.rng.permutation(len(x.shape))]
    y = draw.tensor(kind(x), [x.shape[a] for a in order], **draw.quantization_of(x))
    draw.op("TRANSPOSE", [x, draw.numbers(order)], [y])
    return y


def padded(draw, x):
    name = draw.one_of(("PAD", "PADV2", "MIRROR_PAD"))
    most = [2 if name != "MIRROR_PAD" else min(2, d - 1) for d in x.shape]
    around = [[draw.integer(0, m), draw.integer(0, m)] for m in most]
    operands, fields = [x, draw.numbers(around)], {}
    given = draw.quantization_of(x)
    if name == "PADV2":
        operands.append(draw.const(kind(x), [1], **(given or {"scale": None})))
    if name == "MIRROR_PAD":
        fields["mode"] = draw.one_of(("REFLECT", "SYMMETRIC"))
    y = draw.tensor(kind(x), [a + d + b for d, (a, b) in zip(x.shape, around)], **given)
    draw.op(name, operands, [y], **fields)
    return y


def sliced(draw, x):
    begin = [draw.integer(0, d - 1) for d in x.shape]
    strides = [draw.one_of((1, 1, 2, 3, -1, -2)) for _ in x.shape]
    ends = [draw.integer(b + 1, d) if s > 0 else draw.integer(-1, b - 1) for b, d, s in zip(begin, x.shape, strides)]
    taken = [len(range(b, e, s)) for b, e, s in zip(begin, ends, strides)]
    end_mask = sum(1 << i for i, e in enumerate(ends) if e < 0)
    y = draw.tensor(kind(x), taken, **draw.quantization_of(x))
    draw.op("STRIDED_SLICE", [x, draw.numbers(begin), draw.numbers([max(e, 0) for e in ends]), draw.numbers(strides)], [y],
            begin_mask=0, end_mask=end_mask, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)
    return y


def concatenated(draw, x):
    axis = draw.integer(0, len(x.shape) - 1)
    given = draw.quantization_of(x)
    parts = [x]
    for _ in range(draw.integer(1, 3)):
        shape = [*x.shape[:axis], draw.integer(1, 5), *x.shape[axis + 1:]]
        own = kind(x) == "uint8" and draw.chance(0.3)
        parts.append(draw.const(kind(x), shape, **({} if own else given)))
    parts = [parts[i] for i in draw.rng.permutation(len(parts))]
    total = sum(p.shape[axis] for p in parts)
    y = draw.tensor(kind(x), [*x.shape[:axis], total, *x.shape[axis + 1:]], **({} if kind(x) == "uint8" and draw.chance(0.2) else given))
    draw.op("CONCATENATION", parts, [y], axis=axis, fused_activation_function="NONE")
    return y


def reduced(draw, x):
    sums = ("SUM",) if kind(x) == "float32" else ()  # LiteRT 2.3 computes other sums wrongly (src/ops/sum.cpp)
    name = draw.one_of(("MEAN", "MEAN", "REDUCE_MAX", "REDUCE_MIN") + sums)
    axes = sorted({draw.integer(0, len(x.shape) - 1) for _ in range(draw.integer(1, 2))})
    keeps = bool(draw.chance(0.6))
    left = [1 if i in axes else d for i, d in enumerate(x.shape) if keeps or i not in axes]
    given = draw.quantization_of(x) if name.startswith("REDUCE") or draw.chance(0.3) else {}
    y = draw.tensor(kind(x), left, **given)
    draw.op(name, [x, draw.numbers(axes)], [y], keep_dims=keeps)
    return y


def resized(draw, x):
    if len(x.shape) != 4:
        return None
    size = [draw.integer(1, 14), draw.integer(1, 14)]
    y = draw.tensor(kind(x), [x.shape[0], *size, x.shape[3]], **draw.quantization_of(x))
    corners = bool(draw.chance(0.3))
    draw.op(draw.one_of(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")), [x, draw.numbers(size)], [y], align_corners=corners,
            half_pixel_centers=not corners and bool(draw.chance(0.5)))
    return y


def split(draw, x):
    axis = draw.integer(0, len(x.shape) - 1)
    count = draw.one_of([n for n in range(1, min(x.shape[axis], 6) + 1) if x.shape[axis] % n == 0])
    parts = [draw.tensor(kind(x), [*x.shape[:axis], x.shape[axis] // count, *x.shape[axis + 1:]], **draw.quantization_of(x))
             for _ in range(count)]
    draw.op("SPLIT", [draw.numbers(axis), x], parts, num_splits=count)
    return draw.one_of(parts)


def gathered(draw, x):
    axis = draw.integer(0, len(x.shape) - 1)
    places = [draw.integer(0, x.shape[axis] - 1) for _ in range(draw.integer(1, 6))]
    y = draw.tensor(kind(x), [*x.shape[:axis], len(places), *x.shape[axis + 1:]], **draw.quantization_of(x))
    draw.op("GATHER", [x, draw.numbers(places)], [y], axis=axis, batch_dims=0)
    return y


def requantized(draw, x):
    if kind(x) == "float32":
        return None
    y = draw.tensor(kind(x), x.shape)
    draw.op("QUANTIZE", [x], [y])
    return y


STEPS = (unary, unary, binary, binary, binary, convolution, convolution, convolution, pooling, matrix, reshape, transpose, padded, sliced,
         concatenated, reduced, resized, split, gathered, requantized)
MOST_ELEMENTS = 20000  # of a tensor


def network(draw):
    """Up to twenty operators over one or two inputs; every tensor that nothing reads is an output."""
    dtype = draw.one_of(NUMBERS)
    image = draw.chance(0.7)
    shape = [draw.integer(1, 2), draw.size(14), draw.size(14), draw.size(12)] if image else [draw.size() for _ in range(draw.integer(1, 4))]
    live = [draw.input(dtype, shape)]
    if draw.chance(0.3):
        live.append(draw.input(dtype, shape))
    for _ in range(draw.integer(1, 20)):
        x = live[-1] if draw.chance(0.75) else draw.one_of(live)
        if not x.shape:
            continue
        step = draw.one_of(STEPS)
        if step is binary:
            y = step(draw, x, next((t for t in reversed(live[:-1]) if t.shape == x.shape and t is not x), None))
        else:
            y = step(draw, x)
        if y is not None and 0 < np.prod(y.shape) <= MOST_ELEMENTS:
            live.append(y)
        elif y is not None:
            drop_last_operator(draw)
    end_with_unread(draw)


def drop_last_operator(draw):
    draw.model.table.operators.pop()


def end_with_unread(draw):
    """Marks results that no operator reads as outputs of the graph."""
    table = draw.model.table
    read = {t for op in table.operators for t in op.inputs}
    made = [t for op in table.operators for t in op.outputs]
    table.outputs = [t for t in made if t not in read] or list(table.inputs)


# ---- Single operators that random_micro.py does not have ----


def single_step(draw):
    """One step of a network by itself, on a rank and sizes of its own."""
    shape = [draw.size() for _ in range(draw.integer(1, 5))]
    x = draw.input(draw.one_of(NUMBERS), shape)
    draw.one_of(STEPS)(draw, x)
    end_with_unread(draw)


def ordered(draw):
    """TOPK_V2, REVERSE_SEQUENCE, ONE_HOT, CUMSUM, ARG_MAX on the types that TFLite has for them."""
    name = draw.one_of(("TOPK_V2", "REVERSE_SEQUENCE", "ONE_HOT", "MATRIX_DIAG", "REVERSE_V2"))
    dtype = draw.one_of(("float32", "int8", "uint8", "int32"))
    shape = [draw.size() for _ in range(draw.integer(2, 4))]
    if name == "ONE_HOT":
        depth = draw.integer(1, 8)
        x = draw.input("int32", shape)
        y = draw.output("float32", [*shape, depth])
        draw.op(name, [x, draw.numbers(depth), draw.model.const(draw.name(), np.float32(1)), draw.model.const(draw.name(), np.float32(0))], [y], axis=-1)
        return
    x = draw.input(dtype, shape)
    given = draw.quantization_of(x)
    if name == "TOPK_V2":
        k = draw.integer(1, shape[-1])
        draw.op(name, [x, draw.numbers(k)], [draw.output(dtype, [*shape[:-1], k], **given), draw.output("int32", [*shape[:-1], k])])
    elif name == "REVERSE_SEQUENCE":
        lengths = [draw.integer(1, shape[1]) for _ in range(shape[0])]
        draw.op(name, [x, draw.numbers(lengths)], [draw.output(dtype, shape, **given)], seq_dim=1, batch_dim=0)
    elif name == "REVERSE_V2":
        draw.op(name, [x, draw.numbers([draw.integer(0, len(shape) - 1)])], [draw.output(dtype, shape, **given)])
    else:
        draw.op(name, [x], [draw.output(dtype, [*shape, shape[-1]], **given)])


def scattered(draw):
    """SCATTER_ND, GATHER_ND and GATHER with batch dimensions."""
    dtype = draw.one_of(("float32", "int8", "uint8", "int32"))
    if draw.chance(0.5):
        target, depth = [draw.integer(1, 6) for _ in range(draw.integer(1, 3))], 1
        places = [[draw.integer(0, target[0] - 1)] for _ in range(draw.integer(1, 5))]
        updates = draw.input(dtype, [len(places), *target[depth:]])
        given = draw.quantization_of(updates)
        draw.op("SCATTER_ND", [draw.numbers(places), updates, draw.numbers(target)], [draw.output(dtype, target, **given)])
        return
    batch, rows, width, count = (draw.integer(1, 5) for _ in range(4))
    x = draw.input(dtype, [batch, rows, width])
    places = draw.rng.randint(0, rows, [batch, count])
    draw.op("GATHER", [x, draw.numbers(places)], [draw.output(dtype, [batch, count, width], **draw.quantization_of(x))], axis=1, batch_dims=1)


def hybrid_weights(draw, shape, channels, per_channel):
    """As quantizers make them: without -128, which LiteRT's x86 code for hybrid layers takes for +128."""
    scales = [float(np.float32(draw.rng.uniform(0.002, 0.02))) for _ in range(channels if per_channel else 1)]
    return draw.model.const(draw.name(), draw.rng.randint(-127, 128, shape), "int8", shape, scale=scales, zero_point=[0] * len(scales))


def hybrid(draw):
    """Layers with float activations and 8-bit weights, as dynamic-range quantization makes them."""
    depth, channels = draw.size(40), draw.size(20)
    if draw.chance(0.6):
        x = draw.input("float32", [draw.integer(1, 4), depth])
        f = hybrid_weights(draw, [channels, depth], channels, draw.chance(0.5))
        b = draw.const("float32", [channels]) if draw.chance(0.8) else None
        draw.op("FULLY_CONNECTED", [x, f, b], [draw.output("float32", [x.shape[0], channels])], fused_activation_function=draw.activation(),
                asymmetric_quantize_inputs=bool(draw.chance(0.5)))
        return
    h, w, c, kernel = draw.size(), draw.size(), draw.size(12), draw.integer(1, 3)
    x = draw.input("float32", [1, h, w, c])
    f = hybrid_weights(draw, [channels, kernel, kernel, c], channels, True)
    draw.op("CONV_2D", [x, f, draw.const("float32", [channels])], [draw.output("float32", [1, h, w, channels])], padding="SAME", stride_h=1,
            stride_w=1, dilation_h_factor=1, dilation_w_factor=1, fused_activation_function=draw.activation())


def volume(draw):
    """CONV_3D."""
    sizes, c, channels, kernel = [draw.integer(1, 6) for _ in range(3)], draw.integer(1, 4), draw.integer(1, 6), draw.integer(1, 3)
    x = draw.input("float32", [1, *sizes, c])
    f = draw.const("float32", [kernel, kernel, kernel, c, channels])
    draw.op("CONV_3D", [x, f, draw.const("float32", [channels])], [draw.output("float32", [1, *sizes, channels])], padding="SAME", stride_d=1,
            stride_h=1, stride_w=1, dilation_d_factor=1, dilation_h_factor=1, dilation_w_factor=1, fused_activation_function="NONE")


def normalized(draw):
    """LOCAL_RESPONSE_NORMALIZATION."""
    shape = [1, draw.integer(1, 5), draw.integer(1, 5), draw.size(16)]
    draw.op("LOCAL_RESPONSE_NORMALIZATION", [draw.input("float32", shape)], [draw.output("float32", shape)], radius=draw.integer(0, 5),
            bias=1.0, alpha=float(draw.rng.uniform(0.01, 2)), beta=float(draw.one_of((0.5, 0.75, 1.0))))


FAMILIES = {"operator": MAKERS, "layer": (transposed, product, added, sequence), "step": (single_step, single_step, single_step),
            "further": (ordered, scattered, hybrid, hybrid, volume, normalized), "network": (network, network, network)}


def is_computed_wrongly(draw):
    """Whether LiteRT's reference kernels are known to be wrong: 2.3 reads the codes of quantized SUMs as unsigned."""
    graph = draw.model.table
    return any(draw.model._codes[op.opcodeIndex].builtinCode == schema.BuiltinOperator.SUM and
               graph.tensors[op.inputs[0]].quantization is not None for op in graph.operators)


def random_graph(number, family=None):
    """(bytes, family) of graph `number`. The same number gives the same bytes."""
    seed = number
    while True:
        draw = GraphDraw(seed)
        chosen = family or draw.one_of(("operator", "layer", "step", "step", "further", "network", "network", "network"))
        draw.one_of(FAMILIES[chosen])(draw)
        if not is_computed_wrongly(draw):
            return draw.build(), chosen
        seed += 1 << 30
