# SPDX-License-Identifier: Apache-2.0
"""Random small models for TFLite Micro: one operator each, or a chain of a few with branches.

Problem: rules and sizes in src/micro were found with the recorded models of tests/vectors, so these cannot show that they
hold for others. Approach: draw operator, types, ranks, sizes, quantization and attributes at random, also ones that
TFLite Micro does not take, and let check_micro.py compare what Reef predicts with what the runtime does. A model depends on
its number alone. Not guaranteed: that a model makes sense to TFLite; one that `reef run` refuses is not counted.
"""

import numpy as np

from onemodel import Model

ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int4": (-7, 7)}


class Draw:
    """A model in the making, and the random numbers that it is made of."""

    def __init__(self, number):
        self.rng = np.random.RandomState(number)
        self.model = Model()
        self.count = 0

    def integer(self, low, high):
        return int(self.rng.randint(low, high + 1))

    def one_of(self, values):
        return values[self.rng.randint(len(values))]

    def chance(self, share):
        return self.rng.uniform() < share

    def shape(self, low=1, high=4, largest=6):
        return [self.integer(1, largest) for _ in range(self.integer(low, high))]

    def quantization(self, dtype):
        """Of a tensor; floats and plain integers have none."""
        if dtype not in LIMITS:
            return {}
        scale = float(np.float32(np.exp(self.rng.uniform(np.log(0.004), np.log(0.2)))))
        if dtype == "int16":
            scale = float(np.float32(scale / 256))  # the same range of real numbers
        low, high = LIMITS[dtype]
        zero = 0 if dtype in ("int16", "int4") else self.integer(low // 4, high // 4)
        return {"scale": scale, "zero_point": zero}

    def name(self):
        self.count += 1
        return f"t{self.count}"

    def input(self, dtype, shape, **quantization):
        return self.model.input(self.name(), dtype, shape, **(quantization or self.quantization(dtype)))

    def output(self, dtype, shape, **quantization):
        return self.model.output(self.name(), dtype, shape, **(quantization or self.quantization(dtype)))

    def values(self, dtype, shape):
        if dtype == "float32":
            return self.rng.uniform(-1, 1, shape).astype(np.float32)
        if dtype == "bool":
            return self.rng.randint(0, 2, shape).astype(bool)
        low, high = LIMITS.get(dtype, (1, 5))
        return self.rng.randint(low, high + 1, shape)

    def const(self, dtype, shape, **quantization):
        return self.model.const(self.name(), self.values(dtype, shape), dtype, shape,
                                **(quantization or self.quantization(dtype)))

    def numbers(self, values, dtype="int32"):
        return self.model.const(self.name(), np.asarray(values), dtype)

    def operand(self, dtype, shape, share=0.4, **quantization):
        """An input or, by that share, a constant."""
        make = self.const if self.chance(share) else self.input
        return make(dtype, shape, **quantization)

    def op(self, name, inputs, outputs, **fields):
        self.model.op(name, inputs, outputs, version=1, **fields)


def like(tensor_quantization, draw, share=0.6):
    """The same quantization for a result as for its operand, mostly."""
    return tensor_quantization if draw.chance(share) else None


# ---- One operand ----

UNARY = {
    "ABS": ("float32", "int8", "int16", "int32"), "NEG": ("float32", "int8", "int32", "int64"), "SIN": ("float32",), "COS": ("float32",),
    "LOG": ("float32", "int8"), "SQRT": ("float32",), "RSQRT": ("float32", "int8"), "SQUARE": ("float32",),
    "EXP": ("float32", "int8"), "CEIL": ("float32",), "FLOOR": ("float32",), "ROUND": ("float32",),
    "RELU": ("float32", "int8", "int16"), "RELU6": ("float32", "int8", "int16"), "LOGISTIC": ("float32", "int8", "int16"),
    "TANH": ("float32", "int8", "int16"), "HARD_SWISH": ("float32", "int8"), "ELU": ("float32", "int8"),
    "LEAKY_RELU": ("float32", "int8", "int16"), "LOGICAL_NOT": ("bool",), "ZEROS_LIKE": ("float32", "int8", "int32", "int64"),
    "SOFTMAX": ("float32", "int8", "int16"), "LOG_SOFTMAX": ("float32", "int8"), "L2_NORMALIZATION": ("float32", "int8"),
}
FIXED_RESULTS = {  # scale and zero point that TFLite asks for
    ("LOGISTIC", "int8"): (1 / 256, -128), ("LOGISTIC", "int16"): (1 / 32768, 0), ("TANH", "int8"): (1 / 128, 0),
    ("TANH", "int16"): (1 / 32768, 0), ("SOFTMAX", "int8"): (1 / 256, -128), ("SOFTMAX", "int16"): (1 / 32768, 0),
    ("LOG_SOFTMAX", "int8"): (16 / 256, 127), ("L2_NORMALIZATION", "int8"): (1 / 128, 0),
}


def unary(draw):
    name = draw.one_of(sorted(UNARY))
    dtype = draw.one_of(UNARY[name])
    shape = draw.shape(1, 5)
    given = draw.quantization(dtype)
    x = draw.input(dtype, shape, **given)
    fixed = FIXED_RESULTS.get((name, dtype))
    result = {"scale": fixed[0], "zero_point": fixed[1]} if fixed else like(given, draw) or {}
    fields = {"alpha": 0.2} if name == "LEAKY_RELU" else {"beta": float(draw.one_of((1.0, 0.5)))} if name == "SOFTMAX" else {}
    draw.op(name, [x], [draw.output(dtype, shape, **result)], **fields)


def converting(draw):
    name = draw.one_of(("CAST", "QUANTIZE", "DEQUANTIZE"))
    shape = draw.shape(1, 5)
    kinds = {"CAST": ("float32", "int8", "int16", "int32", "uint8", "bool", "int64"), "QUANTIZE": ("float32", "int8", "int16", "uint8"),
             "DEQUANTIZE": ("int8", "uint8", "int16")}
    source = draw.one_of(kinds[name])
    target = {"CAST": draw.one_of(kinds["CAST"]), "QUANTIZE": draw.one_of(("int8", "int16", "uint8", "int32")),
              "DEQUANTIZE": "float32"}[name]
    plain = {"scale": None} if name == "CAST" else {}
    x = draw.input(source, shape, **plain)
    draw.op(name, [x], [draw.output(target, shape, **plain)])


# ---- Two operands ----

BINARY = {
    "ADD": ("float32", "int8", "int16", "int32"), "SUB": ("float32", "int8", "int16", "int32"),
    "MUL": ("float32", "int8", "int16", "int32"), "MAXIMUM": ("float32", "int8", "int16", "int32", "int64"),
    "MINIMUM": ("float32", "int8", "int16", "int32", "int64"), "SQUARED_DIFFERENCE": ("float32", "int8", "int32"),
    "FLOOR_DIV": ("float32", "int32"), "FLOOR_MOD": ("float32", "int32"), "EQUAL": ("float32", "int8", "int32", "int64", "bool"),
    "NOT_EQUAL": ("float32", "int8", "int32"), "LESS": ("float32", "int8", "int32"), "LESS_EQUAL": ("float32", "int8"),
    "GREATER": ("float32", "int8", "int16"), "GREATER_EQUAL": ("float32", "int8"), "LOGICAL_AND": ("bool",), "LOGICAL_OR": ("bool",),
    "DIV": ("float32", "int8"), "POW": ("float32",), "ATAN2": ("float32",),
}
COMPARING = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


def broadcast(draw, shape):
    """A shape that broadcasts to that one: some sizes 1, some leading ones left off."""
    kept = [1 if draw.chance(0.4) else d for d in shape]
    return kept[draw.integer(0, len(kept) - 1) if draw.chance(0.4) else 0:]


def binary(draw):
    name = draw.one_of(sorted(BINARY))
    dtype = draw.one_of(BINARY[name])
    shape = draw.shape(1, 6, 4)
    shapes = [shape, shape if draw.chance(0.5) else broadcast(draw, shape)]
    if draw.chance(0.3):
        shapes.reverse()
    if name == "ATAN2":
        shapes = [shape, shape]  # LiteRT compares ranks alone, and reads beyond the end of the smaller operand
    same = draw.quantization(dtype)
    together = name in ("MAXIMUM", "MINIMUM") or draw.chance(0.3)
    a = draw.operand(dtype, shapes[0], 0.2, **(same if together else {}))
    b = draw.const(dtype, shapes[1], **(same if together else {})) if name in ("DIV", "FLOOR_DIV", "FLOOR_MOD") else \
        draw.operand(dtype, shapes[1], 0.0 if not draw.model.table.inputs else 0.5, **(same if together else {}))
    fields = {}
    if name in ("ADD", "SUB", "MUL", "DIV"):
        fields["fused_activation_function"] = draw.one_of(ACTIVATIONS)
    if name in ("ADD", "SUB"):
        fields["pot_scale_int16"] = False
    kind = "bool" if name in COMPARING else dtype
    result = {} if kind == "bool" else (same if together else {})
    draw.op(name, [a, b], [draw.output(kind, shape, **result)], **fields)


# ---- Reductions ----

def reducing(draw):
    name = draw.one_of(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_PROD", "ARG_MAX", "ARG_MIN", "CUMSUM"))
    dtype = "bool" if name == "REDUCE_ALL" else draw.one_of(("float32", "int8", "int8", "int16"))
    shape = draw.shape(1, 4)
    given = draw.quantization(dtype)
    x = draw.input(dtype, shape, **given)
    rank = len(shape)
    if name.startswith("ARG"):
        axis = draw.integer(-rank, rank - 1)
        left = [d for i, d in enumerate(shape) if i != axis % rank]
        kind = draw.one_of(("int32", "int32", "int64"))
        draw.op(name, [x, draw.numbers(axis)], [draw.output(kind, left)], output_type=kind)
        return
    if name == "CUMSUM":
        draw.op(name, [x, draw.numbers(draw.integer(-rank, rank - 1))], [draw.output(dtype, shape, **given)],
                exclusive=bool(draw.chance(0.5)), reverse=bool(draw.chance(0.5)))
        return
    axes = sorted({draw.integer(0, rank - 1) for _ in range(draw.integer(1, rank))})
    keeps = bool(draw.chance(0.5))
    left = [1 if i in axes else d for i, d in enumerate(shape) if keeps or i not in axes]
    result = given if name.startswith("REDUCE") else like(given, draw) or {}
    stated = [a - rank for a in axes] if draw.chance(0.3) else axes
    draw.op(name, [x, draw.numbers(stated[0] if len(stated) == 1 and draw.chance(0.3) else stated)],
            [draw.output(dtype, left, **result)], keep_dims=keeps)


# ---- Movement ----

def moved(draw, shape=None, types=("float32", "int8", "int8", "int16", "int32", "bool")):
    """An operand, with what makes a result of its type and quantization."""
    dtype = draw.one_of(types)
    shape = draw.shape(1, 5) if shape is None else shape
    given = draw.quantization(dtype)
    return draw.input(dtype, shape, **given), shape, lambda sizes: draw.output(dtype, sizes, **given)


def reshape(draw):
    x, shape, out = moved(draw)
    target = draw.one_of(([int(np.prod(shape))], [1, *shape], [*shape, 1], shape[::-1]))
    operands = [x, draw.numbers(target)] if draw.chance(0.7) else [x]
    draw.op("RESHAPE", operands, [out(target)], new_shape=target)


def transpose(draw):
    x, shape, out = moved(draw, draw.shape(1, 6, 4))
    order = list(draw.rng.permutation(len(shape)))
    stated = [int(a) - len(shape) if draw.chance(0.05) else int(a) for a in order]
    draw.op("TRANSPOSE", [x, draw.numbers(stated)], [out([shape[a] for a in order])])


def pad(draw):
    name = draw.one_of(("PAD", "PADV2", "MIRROR_PAD"))
    x, shape, out = moved(draw, draw.shape(1, 5, 5))
    least = 0 if name != "MIRROR_PAD" else 1
    around = [[draw.integer(0, 2 if name != "MIRROR_PAD" else min(2, d - least)) for _ in range(2)] for d in shape]
    operands = [x, draw.numbers(around, draw.one_of(("int32", "int32", "int32", "int64")))]
    if name == "PADV2":
        kind = x.dtype.lower()
        table = draw.model.table.tensors[x.index].quantization
        same = {} if table is None or table.scale is None else {"scale": table.scale[0], "zero_point": table.zeroPoint[0]}
        operands.append(draw.const(kind, [] if draw.chance(0.7) else [1], **(same or {"scale": None})))
    fields = {"mode": draw.one_of(("REFLECT", "SYMMETRIC"))} if name == "MIRROR_PAD" else {}
    draw.op(name, operands, [out([a + d + b for d, (a, b) in zip(shape, around)])], **fields)


def cut(draw):
    x, shape, out = moved(draw, draw.shape(1, 6, 5))
    begin = [draw.integer(0, d - 1) for d in shape]
    size = [draw.integer(1, d - b) for d, b in zip(shape, begin)]
    if draw.chance(0.5):
        stated = [-1 if b + s == d and draw.chance(0.5) else s for b, s, d in zip(begin, size, shape)]
        kind = draw.one_of(("int32", "int32", "int64"))
        draw.op("SLICE", [x, draw.numbers(begin, kind), draw.numbers(stated, kind)], [out(size)])
        return
    strides = [draw.integer(1, 2) for _ in shape]
    ends = [b + s for b, s in zip(begin, size)]
    taken = [-(-s // t) for s, t in zip(size, strides)]
    shrink = sum(1 << i for i in range(len(shape)) if draw.chance(0.2))
    for i in range(len(shape)):
        if shrink >> i & 1:
            taken[i], ends[i], strides[i] = 1, begin[i] + 1, 1
    begin_mask = sum(1 << i for i, b in enumerate(begin) if b == 0 and draw.chance(0.5))
    left = [t for i, t in enumerate(taken) if not shrink >> i & 1]
    draw.op("STRIDED_SLICE", [x, draw.numbers(begin), draw.numbers(ends), draw.numbers(strides)], [out(left)],
            begin_mask=begin_mask, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=shrink)


def joined(draw):
    dtype = draw.one_of(("float32", "int8", "int8", "int16", "int32"))
    shape, count = draw.shape(1, 4), draw.integer(1, 12) if draw.chance(0.2) else draw.integer(2, 4)
    given = draw.quantization(dtype)
    same = draw.chance(0.75)
    if draw.chance(0.4):
        axis = draw.integer(0, len(shape))
        parts = [draw.operand(dtype, shape, 0.2 if i else 0, **given) for i in range(count)]
        draw.op("PACK", parts, [draw.output(dtype, [*shape[:axis], count, *shape[axis:]], **given)], values_count=count,
                axis=axis - (len(shape) + 1 if draw.chance(0.3) else 0))
        return
    axis = draw.integer(0, len(shape) - 1)
    sizes = [draw.integer(1, 4) for _ in range(count)]
    parts = [draw.operand(dtype, [*shape[:axis], s, *shape[axis + 1:]], 0.2 if i else 0, **(given if same else {}))
             for i, s in enumerate(sizes)]
    draw.op("CONCATENATION", parts, [draw.output(dtype, [*shape[:axis], sum(sizes), *shape[axis + 1:]], **given)],
            axis=axis - (len(shape) if draw.chance(0.3) else 0), fused_activation_function="RELU" if draw.chance(0.1) else "NONE")


def divided(draw):
    name = draw.one_of(("SPLIT", "SPLIT_V", "UNPACK"))
    x, shape, out = moved(draw, draw.shape(1, 4), ("float32", "int8", "int16", "int32"))
    axis = draw.integer(0, len(shape) - 1)
    stated = axis - (len(shape) if draw.chance(0.3) else 0)
    if name == "UNPACK":
        left = shape[:axis] + shape[axis + 1:]
        draw.op(name, [x], [out(left) for _ in range(shape[axis])], num=shape[axis], axis=stated)
        return
    count = draw.one_of([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
    sizes = [shape[axis] // count] * count
    if name == "SPLIT_V" and count > 1 and sizes[0] > 1:
        sizes[0], sizes[1] = sizes[0] - 1, sizes[1] + 1
    results = [out([*shape[:axis], s, *shape[axis + 1:]]) for s in sizes]
    if name == "SPLIT":
        draw.op(name, [draw.numbers(stated), x], results, num_splits=count)
    else:
        draw.op(name, [x, draw.numbers(sizes), draw.numbers(stated)], results, num_splits=count)


def gathered(draw):
    name = draw.one_of(("GATHER", "GATHER_ND", "REVERSE_V2", "EXPAND_DIMS", "SQUEEZE", "BROADCAST_TO", "SHAPE", "TILE"))
    x, shape, out = moved(draw, draw.shape(2, 4) if name == "GATHER_ND" else draw.shape(1, 4))
    rank = len(shape)
    axis = draw.integer(0, rank - 1)
    if name == "GATHER":
        places = [draw.integer(0, shape[axis] - 1) for _ in range(draw.integer(1, 5))]
        draw.op(name, [x, draw.numbers(places)], [out([*shape[:axis], len(places), *shape[axis + 1:]])], axis=axis, batch_dims=0)
    elif name == "GATHER_ND":
        depth = draw.integer(1, rank)
        places = [[draw.integer(0, d - 1) for d in shape[:depth]] for _ in range(draw.integer(1, 5))]
        draw.op(name, [x, draw.numbers(places)], [out([len(places), *shape[depth:]])])
    elif name == "REVERSE_V2":
        draw.op(name, [x, draw.numbers([axis])], [out(shape)])
    elif name == "EXPAND_DIMS":
        draw.op(name, [x, draw.numbers(axis)], [out([*shape[:axis], 1, *shape[axis:]])])
    elif name == "SQUEEZE":
        ones = [i for i, d in enumerate(shape) if d == 1]
        draw.op(name, [x], [out([d for d in shape if d != 1])], squeeze_dims=ones if draw.chance(0.5) else [])
    elif name == "SHAPE":
        draw.op(name, [x], [draw.output("int32", [rank])], out_type="int32")
    else:
        target = [2, *shape] if name == "BROADCAST_TO" else [2 * d for d in shape]
        draw.op(name, [x, draw.numbers(target if name == "BROADCAST_TO" else [2] * rank)], [out(target)])


def blocks(draw):
    name = draw.one_of(("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"))
    n, h, w, c = draw.integer(1, 2), draw.integer(1, 3), draw.integer(1, 3), draw.integer(1, 4)
    small, large = [n, h, w, 4 * c], [n, 2 * h, 2 * w, c]
    types = ("float32", "int8", "int8")
    if name == "SPACE_TO_DEPTH":
        x, _, out = moved(draw, large, types)
        draw.op(name, [x], [out(small)], block_size=2)
    elif name == "DEPTH_TO_SPACE":
        x, _, out = moved(draw, small, types)
        draw.op(name, [x], [out(large)], block_size=2)
    else:
        many, few = [4 * n, h, w, c], [n, 2 * h, 2 * w, c]
        around = draw.numbers([[0, 0], [0, 0]])
        x, _, out = moved(draw, many if name == "BATCH_TO_SPACE_ND" else few, types)
        draw.op(name, [x, draw.numbers([2, 2]), around], [out(few if name == "BATCH_TO_SPACE_ND" else many)])


def resized(draw):
    name = draw.one_of(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"))
    x, shape, out = moved(draw, [draw.integer(1, 2)] + [draw.integer(1, 8) for _ in range(3)], ("float32", "int8", "int8", "int16"))
    size = [draw.integer(1, 12), draw.integer(1, 12)]
    corners = bool(draw.chance(0.3))
    draw.op(name, [x, draw.numbers(size)], [out([shape[0], *size, shape[3]])], align_corners=corners,
            half_pixel_centers=not corners and bool(draw.chance(0.5)))


def chosen(draw):
    dtype = draw.one_of(("float32", "int8", "int16", "int32"))
    shape = draw.shape(1, 5, 4)
    given = draw.quantization(dtype)
    mask = draw.input("bool", broadcast(draw, shape) if draw.chance(0.3) else shape)
    a = draw.operand(dtype, shape, **given)
    b = draw.operand(dtype, broadcast(draw, shape) if draw.chance(0.4) else shape, **given)
    draw.op("SELECT_V2", [mask, a, b], [draw.output(dtype, shape, **given)])


MAKERS = (unary, unary, converting, binary, binary, binary, reducing, reducing, reshape, transpose, pad, cut, joined, divided, gathered,
          blocks, resized, chosen)
