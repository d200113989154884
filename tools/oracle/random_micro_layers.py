# SPDX-License-Identifier: Apache-2.0
"""Random layers with weights, and chains of a few layers with branches (random_micro.py has the rest)."""

import numpy as np

from random_micro import ACTIVATIONS, MAKERS, Draw

BIAS = {"float32": "float32", "int8": "int32", "int16": "int64"}


def scale_of(draw, tensor):
    table = draw.model.table.tensors[tensor.index].quantization
    return float(table.scale[0]) if table is not None and table.scale is not None else None


def weights(draw, dtype, shape, channels, axis, per_channel):
    """Constant weights and their scales (None for floats)."""
    if dtype == "float32":
        return draw.const("float32", shape), None
    kind = "int4" if dtype == "int8" and draw.chance(0.1) else "int8"
    scales = [float(np.float32(draw.rng.uniform(0.002, 0.02))) for _ in range(channels if per_channel else 1)]
    quantization = {"scale": scales, "zero_point": [0] * len(scales), "axis": axis if per_channel else 0}
    return draw.const(kind, shape, **quantization), scales


def bias(draw, dtype, x, scales, channels):
    if draw.chance(0.15):
        return None
    if scales is None:
        return draw.const("float32", [channels])
    scale = [scale_of(draw, x) * s for s in scales]
    values = draw.rng.randint(-2000, 2000, [channels])
    return draw.model.const(draw.name(), values, BIAS[dtype], [channels], scale=scale, zero_point=[0] * len(scale))


def window(draw, size, kernel):
    """(padding, stride, dilation, size of the result) of one dimension."""
    padding, stride = draw.one_of(("SAME", "VALID")), draw.integer(1, 2)
    dilation = 2 if stride == 1 and draw.chance(0.2) else 1
    reach = (kernel - 1) * dilation + 1
    if padding == "VALID" and reach > size:
        padding = "SAME"
    out = -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1
    return padding, stride, dilation, out


def result(draw, dtype, shape, last, same_as=None):
    """A graph output, or a tensor between layers."""
    given = same_as if same_as is not None else draw.quantization(dtype)
    make = draw.output if last else lambda *a, **k: draw.model.tensor(draw.name(), *a, **k)
    return make(dtype, shape, **(given or {}))


def convolution(draw, x=None, dtype=None, last=True):
    dtype = dtype or draw.one_of(("float32", "int8", "int8", "int8", "int16"))
    if x is None:
        x = draw.input(dtype, [draw.integer(1, 2), draw.integer(1, 10), draw.integer(1, 10), draw.integer(1, 8)])
    n, h, w, c = x.shape
    depthwise = draw.chance(0.4)
    kernel = draw.integer(1, 3)
    padding, stride, dilation, side = window(draw, min(h, w), kernel)
    reach = (kernel - 1) * dilation + 1
    sizes = [-(-d // stride) if padding == "SAME" else (d - reach) // stride + 1 for d in (h, w)]
    multiplier = draw.integer(1, 2)
    channels = c * multiplier if depthwise else draw.integer(1, 12)
    shape = [1, kernel, kernel, channels] if depthwise else [channels, kernel, kernel, c]
    per_channel = draw.chance(0.7)
    f, scales = weights(draw, dtype, shape, channels, 3 if depthwise else 0, per_channel)
    b = bias(draw, dtype, x, scales, channels)
    y = result(draw, dtype, [n, *sizes, channels], last)
    fields = {"depth_multiplier": multiplier} if depthwise else {}
    draw.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [x, f, b], [y], padding=padding, stride_w=stride, stride_h=stride,
            dilation_w_factor=dilation, dilation_h_factor=dilation, fused_activation_function=draw.one_of(ACTIVATIONS), **fields)
    return y


def transposed(draw):
    dtype = draw.one_of(("float32", "int8", "int8", "int16"))
    h, w, c, channels = draw.integer(1, 6), draw.integer(1, 6), draw.integer(1, 6), draw.integer(1, 6)
    kernel, stride, padding = draw.integer(1, 4), draw.integer(1, 3), draw.one_of(("SAME", "VALID"))
    sizes = [d * stride if padding == "SAME" else (d - 1) * stride + max(kernel, stride) for d in (h, w)]
    x = draw.input(dtype, [1, h, w, c])
    f, scales = weights(draw, dtype, [channels, kernel, kernel, c], channels, 0, draw.chance(0.7))
    b = bias(draw, dtype, x, scales, channels)
    shape = [1, *sizes, channels]
    draw.op("TRANSPOSE_CONV", [draw.numbers(shape), f, x, *([b] if b else [])], [draw.output(dtype, shape)], padding=padding,
            stride_w=stride, stride_h=stride)


def pool(draw, x=None, dtype=None, last=True):
    dtype = dtype or draw.one_of(("float32", "int8", "int8", "int16"))
    same = draw.quantization(dtype)
    if x is None:
        x = draw.input(dtype, [draw.integer(1, 2), draw.integer(1, 10), draw.integer(1, 10), draw.integer(1, 8)], **same)
    n, h, w, c = x.shape
    table = draw.model.table.tensors[x.index].quantization
    if table is not None and table.scale is not None:
        same = {"scale": table.scale[0], "zero_point": table.zeroPoint[0]}
    name = draw.one_of(("AVERAGE_POOL_2D", "MAX_POOL_2D") + (("L2_POOL_2D",) if dtype == "float32" else ()))
    kernel, stride, padding = draw.integer(1, min(3, h, w)), draw.integer(1, 2), draw.one_of(("SAME", "VALID"))
    sizes = [-(-d // stride) if padding == "SAME" else (d - kernel) // stride + 1 for d in (h, w)]
    y = result(draw, dtype, [n, *sizes, c], last, same)
    draw.op(name, [x], [y], padding=padding, stride_w=stride, stride_h=stride, filter_width=kernel, filter_height=kernel,
            fused_activation_function=draw.one_of(ACTIVATIONS))
    return y


def dense(draw, x=None, dtype=None, last=True):
    dtype = dtype or draw.one_of(("float32", "int8", "int8", "int8", "int16"))
    if x is None:
        x = draw.input(dtype, [draw.integer(1, 3) for _ in range(draw.integer(1, 3))] + [draw.integer(1, 40)])
    depth, channels = x.shape[-1], draw.integer(1, 20)
    f, scales = weights(draw, dtype, [channels, depth], channels, 0, draw.chance(0.4))
    b = bias(draw, dtype, x, scales, channels)
    keeps = len(x.shape) > 2 and draw.chance(0.6)
    rows = int(np.prod(x.shape[:-1]))
    y = result(draw, dtype, [*x.shape[:-1], channels] if keeps else [rows, channels], last)
    draw.op("FULLY_CONNECTED", [x, f, b], [y], keep_num_dims=bool(keeps), fused_activation_function=draw.one_of(ACTIVATIONS))
    return y


def product(draw):
    dtype = draw.one_of(("float32", "int8", "int8", "int16"))
    front = [draw.integer(1, 3) for _ in range(draw.integer(0, 2))]
    rows, depth, columns = (draw.integer(1, 6) for _ in range(3))
    across, down = bool(draw.chance(0.4)), bool(draw.chance(0.4))
    a = draw.input(dtype, [*front, depth, rows] if across else [*front, rows, depth])
    b = draw.operand(dtype, [*front, columns, depth] if down else [*front, depth, columns], 0.4)
    draw.op("BATCH_MATMUL", [a, b], [draw.output(dtype, [*front, rows, columns])], adj_x=across, adj_y=down)


def added(draw):
    count, dtype = draw.integer(2, 5), draw.one_of(("float32", "int8"))
    shape = draw.shape()
    given = draw.quantization(dtype)
    draw.op("ADD_N", [draw.input(dtype, shape, **given) for _ in range(count)], [draw.output(dtype, shape)])


def sequence(draw):
    """An LSTM over a few steps."""
    dtype = draw.one_of(("float32", "int8"))
    batch, steps, depth, units = draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 12), draw.integer(1, 12)
    major = bool(draw.chance(0.4))
    state = {"float32": {}, "int8": {"scale": 1 / 128, "zero_point": draw.integer(-8, 8)}}[dtype]
    x = draw.input(dtype, [steps, batch, depth] if major else [batch, steps, depth])
    matrix = lambda width: draw.const(dtype, [units, width], **({} if dtype == "float32" else {"scale": 0.004, "zero_point": 0}))
    kind = "float32" if dtype == "float32" else "int32"
    row = lambda: draw.model.const(draw.name(), draw.values("float32", [units]) if kind == "float32" else draw.rng.randint(-500, 500, [units]),
                                   kind, [units], **({} if kind == "float32" else {"scale": 0.0001, "zero_point": 0}))
    hidden = draw.model.variable(draw.name(), dtype, [batch, units], **state)
    cell = draw.model.variable(draw.name(), "float32" if dtype == "float32" else "int16", [batch, units],
                               **({} if dtype == "float32" else {"scale": 1 / 2048, "zero_point": 0}))
    empty = [] if draw.chance(0.2) else [0]  # a scalar has one element
    between = [] if dtype == "float32" else [draw.model.tensor(draw.name(), "int16", empty, scale=1 / 4096, zero_point=0) for _ in range(4)] + \
        [draw.model.tensor(draw.name(), "int8", empty, **state)]
    gates = [matrix(depth) for _ in range(4)] + [matrix(units) for _ in range(4)]
    y = draw.output(dtype, [steps, batch, units] if major else [batch, steps, units], **state)
    draw.model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *gates, None, None, None, row(), row(), row(), row(), None, None, hidden, cell, None, None,
                                                   None, None], [y], version=1, intermediates=between or None,
                  fused_activation_function="TANH", cell_clip=10.0, time_major=major)


def chain(draw):
    """Layers one after another, with a sum of two of them now and then, and a dense end."""
    dtype = draw.one_of(("float32", "int8", "int8", "int8"))
    x = draw.input(dtype, [1, draw.integer(4, 16), draw.integer(4, 16), draw.integer(1, 6)])
    older = []
    for _ in range(draw.integer(2, 6)):
        maker = draw.one_of((convolution, convolution, pool))
        older.append(x)
        x = maker(draw, x, dtype, last=False)
        twin = next((t for t in older if t.shape == x.shape), None)
        if twin is not None and draw.chance(0.7):
            y = result(draw, dtype, x.shape, False)
            draw.op(draw.one_of(("ADD", "MUL")), [x, twin], [y], fused_activation_function=draw.one_of(ACTIVATIONS))
            x = y
    flat = result(draw, dtype, [1, int(np.prod(x.shape))], False, same_quantization(draw, x))
    draw.op("RESHAPE", [x, draw.numbers(flat.shape)], [flat], new_shape=list(flat.shape))
    x = dense(draw, flat, dtype, last=False)
    y = draw.output(dtype, x.shape, **({} if dtype == "float32" else {"scale": 1 / 256, "zero_point": -128}))
    draw.op("SOFTMAX", [x], [y], beta=1.0)


def same_quantization(draw, tensor):
    table = draw.model.table.tensors[tensor.index].quantization
    return {} if table is None or table.scale is None else {"scale": table.scale[0], "zero_point": table.zeroPoint[0]}


ALL_MAKERS = MAKERS + (convolution, convolution, transposed, pool, dense, dense, product, added, sequence, chain, chain, chain)


def random_model(number):
    """(bytes, the kind that it is)."""
    draw = Draw(number)
    maker = draw.one_of(ALL_MAKERS)
    maker(draw)
    return draw.model.build(), maker.__name__
