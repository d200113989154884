# SPDX-License-Identifier: Apache-2.0
"""Random models with state, with subgraphs, and with graphs that are hard to plan (random_micro.py has single operators)."""

import numpy as np

from random_micro import ACTIVATIONS, Draw, broadcast
from random_micro_layers import bias, convolution, dense, pool, result, same_quantization, scale_of, weights

# ---- State ----


def memory_layer(draw):
    """SVDF, which keeps the last time steps."""
    dtype = draw.one_of(("float32", "int8", "int8"))
    rank, units, steps, depth, batch = draw.integer(1, 2), draw.integer(1, 6), draw.integer(1, 8), draw.integer(1, 10), draw.integer(1, 2)
    filters = rank * units
    plain = dtype == "float32"
    state = "float32" if plain else draw.one_of(("int8", "int16", "int16"))
    scales = {} if plain else {"scale": 0.01, "zero_point": 0}
    x = draw.input(dtype, [batch, depth])
    feature = draw.const(dtype, [filters, depth], **scales)
    time = draw.const("float32" if plain else state, [filters, steps], **scales)
    row = None if draw.chance(0.2) else draw.const("float32", [units]) if plain else \
        draw.model.const(draw.name(), draw.rng.randint(-500, 500, [units]), "int32", [units], scale=0.0002, zero_point=0)
    kept = draw.model.variable(draw.name(), "float32" if plain else state, [batch, filters * steps],
                               **({} if plain else {"scale": 0.02, "zero_point": 0}))
    y = draw.output(dtype, [batch, units], **({} if plain else {"scale": 0.05, "zero_point": draw.integer(-10, 10)}))
    draw.op("SVDF", [x, feature, time, row, kept], [y], rank=rank, fused_activation_function=draw.one_of(("NONE", "RELU")))


def kept_values(draw):
    """Variables that a subgraph sets once, that the main graph reads, adds to and writes."""
    dtype = draw.one_of(("float32", "int8", "int32", "int16"))
    shape = draw.shape(1, 4)
    given = draw.quantization(dtype)
    count = draw.integer(1, 3)
    first = draw.model.subgraph("first") if draw.chance(0.7) else None
    for i in range(count if first else 0):
        handle = first.tensor(f"h{i}", "resource", [1])
        first.op("VAR_HANDLE", [], [handle], version=1, container="", shared_name=f"v{i}")
        value = first.const(f"c{i}", draw.values(dtype, shape), dtype, shape, **given)
        first.op("ASSIGN_VARIABLE", [handle, value], [], version=1)
    if first:
        draw.op("CALL_ONCE", [], [], init_subgraph_index=first.index)
    x = draw.input(dtype, shape, **given)
    for i in range(count):
        handle = draw.model.tensor(draw.name(), "resource", [1])
        draw.op("VAR_HANDLE", [], [handle], container="", shared_name=f"v{i}")
        if not first:
            draw.op("ASSIGN_VARIABLE", [handle, x], [])
        before = draw.model.tensor(draw.name(), dtype, shape, **given)
        draw.op("READ_VARIABLE", [handle], [before])
        last = i == count - 1
        y = result(draw, dtype, shape, last, given)
        draw.op("ADD" if dtype != "int16" else "MAXIMUM", [x, before], [y],
                **({"fused_activation_function": "NONE"} if dtype != "int16" else {}))
        draw.op("ASSIGN_VARIABLE", [handle, y], [])
        x = y


def ring(draw):
    """CIRCULAR_BUFFER, a custom operator of TFLite Micro's own."""
    depth, rows = draw.integer(1, 8), draw.integer(1, 5)
    x = draw.input("int8", [1, 1, 1, depth])
    draw.model.op("custom:CIRCULAR_BUFFER", [x], [draw.output("int8", [1, rows, 1, depth])], version=1,
                  custom_options={"cycles_max": draw.integer(1, 3)})


# ---- Subgraphs ----


def body(draw, graph, dtype, shape, given):
    """A few operators of one operand in a subgraph; its result."""
    x = graph.input("x", dtype, shape, **given)
    for i in range(draw.integer(1, 3)):
        y = graph.tensor(f"b{i}", dtype, shape, **given)
        name = draw.one_of(("MAXIMUM", "MINIMUM", "ADD"))
        other = graph.const(f"k{i}", draw.values(dtype, shape), dtype, shape, **given) if draw.chance(0.6) else x
        graph.op(name, [x, other], [y], version=1, **({"fused_activation_function": "NONE"} if name == "ADD" else {}))
        x = y
    graph.output(x)


def branches(draw):
    dtype = draw.one_of(("float32", "int8", "int32"))
    shape, given = draw.shape(1, 4), draw.quantization(dtype)
    then, other = draw.model.subgraph("then"), draw.model.subgraph("else")
    body(draw, then, dtype, shape, given)
    body(draw, other, dtype, shape, given)
    where = draw.input("bool", [1] if draw.chance(0.8) else [])
    x = draw.input(dtype, shape, **given)
    y = result(draw, dtype, shape, False, given)
    draw.op("IF", [where, x], [y], then_subgraph_index=then.index, else_subgraph_index=other.index)
    draw.op("MAXIMUM", [x, y], [draw.output(dtype, shape, **given)])


def loop(draw):
    dtype = draw.one_of(("float32", "int8", "int32"))
    shape, given = draw.shape(1, 3), draw.quantization(dtype)
    condition, step = draw.model.subgraph("condition"), draw.model.subgraph("step")
    n = condition.input("n", "int32", [1])
    condition.input("v", dtype, shape, **given)
    most = condition.const("most", np.array([draw.integer(1, 5)]), "int32", [1])
    less = condition.output("less", "bool", [1])
    condition.op("LESS", [n, most], [less], version=1)
    n, v = step.input("n", "int32", [1]), step.input("v", dtype, shape, **given)
    one = step.const("one", np.array([1]), "int32", [1])
    more = step.output("more", "int32", [1])
    step.op("ADD", [n, one], [more], version=1, fused_activation_function="NONE")
    new = step.output("new", dtype, shape, **given)
    step.op(draw.one_of(("MAXIMUM", "MINIMUM")), [v, step.const("k", draw.values(dtype, shape), dtype, shape, **given)], [new], version=1)
    start, x = draw.numbers([0]), draw.input(dtype, shape, **given)
    count, y = draw.model.output("count", "int32", [1]), draw.output(dtype, shape, **given)
    draw.op("WHILE", [start, x], [count, y], cond_subgraph_index=condition.index, body_subgraph_index=step.index)


# ---- Slices, pieces, conversions ----


def sliced(draw):
    """STRIDED_SLICE in all its forms."""
    dtype = draw.one_of(("float32", "int8", "int16", "int32", "bool"))
    shape, given = draw.shape(1, 5, 6), draw.quantization(dtype)
    x = draw.input(dtype, shape, **given)
    begin, end, strides, left = [], [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "shrink_axis_mask"), 0)
    for i, size in enumerate(shape):
        stride = draw.one_of((1, 1, 2, 3, -1, -2))
        places = list(range(size))[::1] if stride > 0 else list(range(size))[::-1]
        if draw.chance(0.15):
            at = draw.integer(0, size - 1)
            masks["shrink_axis_mask"] |= 1 << i
            begin.append(at - size if draw.chance(0.3) else at)
            end.append(at + 1)
            strides.append(1)
            continue
        first = draw.integer(0, size - 1)
        taken = places[first:][::abs(stride)]
        if draw.chance(0.3):
            masks["begin_mask"] |= 1 << i
            taken = places[::abs(stride)]
        if draw.chance(0.5):
            masks["end_mask"] |= 1 << i
            end.append(0)
        else:
            end.append(size if stride > 0 else -size - 1)
        begin.append(places[first] - size if draw.chance(0.3) else places[first])
        strides.append(stride)
        left.append(len(taken))
    fewer = len(shape) > 1 and draw.chance(0.1) and not masks["shrink_axis_mask"] >> (len(shape) - 1)
    if fewer:
        begin, end, strides, left[-1] = begin[:-1], end[:-1], strides[:-1], shape[-1]
    draw.op("STRIDED_SLICE", [x, draw.numbers(begin), draw.numbers(end), draw.numbers(strides)], [draw.output(dtype, left, **given)],
            ellipsis_mask=0, new_axis_mask=0, **masks)


def pieces(draw):
    """SPLIT or SPLIT_V whose pieces go on, one of them unused."""
    dtype = draw.one_of(("float32", "int8", "int16", "int32", "int64"))
    shape, given = draw.shape(1, 5, 4), draw.quantization(dtype)
    axis, count = draw.integer(0, len(shape) - 1), draw.integer(2, 5)
    sizes = [draw.integer(1, 3)] * count if draw.chance(0.5) else [draw.integer(1, 3) for _ in range(count)]
    shape[axis] = sum(sizes)
    x = draw.input(dtype, shape, **given)
    parts = [result(draw, dtype, [*shape[:axis], s, *shape[axis + 1:]], i > 1, given) for i, s in enumerate(sizes)]
    stated = draw.numbers(axis - (len(shape) if draw.chance(0.3) else 0))
    if len(set(sizes)) == 1 and draw.chance(0.5):
        draw.op("SPLIT", [stated, x], parts, num_splits=count)
    else:
        kind = draw.one_of(("int32", "int32", "int64"))
        sizes = [-1 if i == 0 and draw.chance(0.2) else s for i, s in enumerate(sizes)]
        draw.op("SPLIT_V", [x, draw.numbers(sizes, kind), stated], parts, num_splits=count)
    y = draw.output(dtype, parts[0].shape, **given)
    draw.op("MAXIMUM", [parts[0], parts[0]], [y])


def conversions(draw):
    """Quantized, converted to other scales and types, and back to numbers."""
    shape = draw.shape(1, 5)
    kinds = ["float32"] + [draw.one_of(("int8", "int16", "int8", "uint8", "int32")) for _ in range(draw.integer(1, 4))]
    scaled = lambda kind: draw.quantization(kind) if kind != "int32" else {"scale": 0.001, "zero_point": 0}
    x = draw.input("float32", shape) if draw.chance(0.6) else draw.input(kinds[1], shape, **scaled(kinds[1]))
    for kind in kinds[1 if x.dtype == "FLOAT32" else 2:]:
        y = draw.model.tensor(draw.name(), kind, shape, **scaled(kind))
        draw.op("QUANTIZE", [x], [y])
        x = y
    draw.op("DEQUANTIZE", [x], [draw.output("float32", shape)])


def hybrid(draw):
    """Float activations with 8-bit weights, which TFLite quantizes while it runs."""
    x = draw.input("float32", [1, draw.integer(1, 5), draw.integer(1, 5), draw.integer(1, 8)])
    channels, depth = draw.integer(1, 8), x.shape[3]
    kind = draw.one_of(("int8", "int8", "float16"))
    scales = {} if kind == "float16" else {"scale": 0.01, "zero_point": 0}
    values = lambda shape: draw.rng.uniform(-1, 1, shape) if kind == "float16" else draw.rng.randint(-127, 128, shape)
    if draw.chance(0.5):
        f = draw.model.const(draw.name(), values([channels, depth]), kind, [channels, depth], **scales)
        draw.op("FULLY_CONNECTED", [x, f, draw.const("float32", [channels])], [draw.output("float32", [*x.shape[:3], channels])],
                keep_num_dims=True, fused_activation_function="NONE")
    else:
        f = draw.model.const(draw.name(), values([channels, 1, 1, depth]), kind, [channels, 1, 1, depth], **scales)
        draw.op("CONV_2D", [x, f, draw.const("float32", [channels])], [draw.output("float32", [*x.shape[:3], channels])], padding="SAME",
                stride_w=1, stride_h=1, fused_activation_function="NONE")


def other_operands(draw):
    """Operators that no other family has."""
    name = draw.one_of(("PRELU", "FILL", "BROADCAST_ARGS", "DYNAMIC_UPDATE_SLICE", "EMBEDDING_LOOKUP", "HARD_SWISH", "LOG_SOFTMAX", "DIV"))
    dtype = draw.one_of(("float32", "int8"))
    shape, given = draw.shape(1, 4), draw.quantization(dtype)
    if name == "FILL":
        kind = draw.one_of(("float32", "int8", "int32", "bool", "int64"))
        draw.op(name, [draw.numbers(shape, draw.one_of(("int32", "int64"))), draw.input(kind, [])], [draw.output(kind, shape)])
    elif name == "BROADCAST_ARGS":
        draw.op(name, [draw.input("int32", [3]), draw.input("int32", [draw.integer(1, 3)])], [draw.output("int32", [3])])
    elif name == "EMBEDDING_LOOKUP":
        rows, depth = draw.integer(5, 8), draw.integer(1, 6)
        table = draw.const(dtype, [rows, depth], **({} if dtype == "float32" else {"scale": 0.01, "zero_point": 0}))
        count = draw.integer(1, 4)
        draw.op(name, [draw.input("int32", [count]), table], [draw.output("float32", [count, depth])])
    elif name == "DYNAMIC_UPDATE_SLICE":
        part = [draw.integer(1, d) for d in shape]
        places = [draw.integer(0, d - p) for d, p in zip(shape, part)]
        draw.op(name, [draw.input(dtype, shape, **given), draw.input(dtype, part, **given), draw.numbers(places)],
                [draw.output(dtype, shape, **given)])
    elif name == "PRELU":
        slopes = draw.const(dtype, broadcast(draw, shape[1:]) if len(shape) > 1 else shape)
        draw.op(name, [draw.input(dtype, shape), slopes], [draw.output(dtype, shape)])
    elif name == "DIV":
        draw.op(name, [draw.input("float32", shape), draw.const("float32", shape)], [draw.output("float32", shape)],
                fused_activation_function=draw.one_of(ACTIVATIONS))
    else:
        fixed = {"scale": 16 / 256, "zero_point": 127} if name == "LOG_SOFTMAX" and dtype == "int8" else {}
        draw.op(name, [draw.input(dtype, shape)], [draw.output(dtype, shape, **fixed)])


def boxes(draw):
    """TFLite_Detection_PostProcess with its anchors."""
    count, classes, most = draw.integer(4, 30), draw.integer(1, 5), draw.integer(1, 6)
    dtype = draw.one_of(("float32", "float32", "int8", "uint8"))
    scales = {} if dtype == "float32" else {"scale": 0.01, "zero_point": 0}
    places = draw.input(dtype, [1, count, 4], **scales)
    background = draw.integer(0, 1)
    scores = draw.input(dtype, [1, count, classes + background], **({} if dtype == "float32" else {"scale": 1 / 256, "zero_point": 0}))
    somewhere = draw.rng.uniform(0.1, 1, [count, 4])
    anchors = draw.model.const(draw.name(), somewhere if dtype == "float32" else 100 * somewhere, dtype, [count, 4], **scales)
    shown = [draw.output("float32", s) for s in ([1, most, 4], [1, most], [1, most], [1])]
    draw.model.op("custom:TFLite_Detection_PostProcess", [places, scores, anchors], shown, version=1, custom_options={
        "max_detections": most, "max_classes_per_detection": 1, "detections_per_class": draw.integer(1, 50),
        "use_regular_nms": bool(draw.chance(0.4)), "nms_score_threshold": 0.2, "nms_iou_threshold": 0.5, "num_classes": classes,
        "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0})


# ---- Layers ----


def rectangular(draw):
    """Convolutions whose window, stride and dilation differ in height and width, with larger multipliers."""
    dtype = draw.one_of(("int8", "int8", "int16", "float32"))
    h, w, c = draw.integer(3, 12), draw.integer(3, 12), draw.integer(1, 12)
    x = draw.input(dtype, [1, h, w, c])
    kernel, stride, dilation = ([draw.integer(1, 3), draw.integer(1, 3)] for _ in range(3))
    if draw.chance(0.6):
        dilation = [1, 1]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    padding = "SAME" if reach[0] > h or reach[1] > w else draw.one_of(("SAME", "VALID"))
    sizes = [-(-d // s) if padding == "SAME" else (d - r) // s + 1 for d, s, r in zip((h, w), stride, reach)]
    depthwise = draw.chance(0.5)
    multiplier = draw.integer(1, 5)
    groups = draw.one_of([g for g in (1, 1, 2, 3) if c % g == 0])
    channels = c * multiplier if depthwise else groups * draw.integer(1, 9)
    shape = [1, *kernel, channels] if depthwise else [channels, *kernel, c // groups]
    f, scales = weights(draw, dtype, shape, channels, 3 if depthwise else 0, draw.chance(0.7))
    b = bias(draw, dtype, x, scales, channels)
    y = draw.output(dtype, [1, *sizes, channels])
    draw.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [x, f, b] if b or draw.chance(0.5) else [x, f], [y], padding=padding,
            stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation[0], dilation_w_factor=dilation[1],
            fused_activation_function=draw.one_of(ACTIVATIONS), **({"depth_multiplier": multiplier} if depthwise else {}))


def broadcast_product(draw):
    """BATCH_MATMUL whose operands have different numbers of matrices."""
    dtype = draw.one_of(("float32", "int8", "int8", "int16"))
    front = [draw.integer(1, 3) for _ in range(draw.integer(1, 3))]
    rows, depth, columns = (draw.integer(1, 8) for _ in range(3))
    down = bool(draw.chance(0.5))
    a = draw.input(dtype, [*front, rows, depth])
    other = [1 if draw.chance(0.4) else d for d in front][draw.integer(0, 1) if draw.chance(0.3) else 0:]
    b = draw.operand(dtype, [*other, columns, depth] if down else [*other, depth, columns], 0.5)
    draw.op("BATCH_MATMUL", [a, b], [draw.output(dtype, [*front, rows, columns])], adj_x=False, adj_y=down)


def wide_activations(draw):
    """A chain of layers with int16 activations."""
    x = draw.input("int16", [1, draw.integer(2, 8), draw.integer(2, 8), draw.integer(1, 6)])
    for _ in range(draw.integer(1, 3)):
        before, x = x, draw.one_of((convolution, pool, pool))(draw, x, "int16", last=False)
        name = draw.one_of(("LOGISTIC", "TANH", "ADD", "MUL", "LEAKY_RELU", ""))
        if name in ("LOGISTIC", "TANH"):
            y = draw.model.tensor(draw.name(), "int16", x.shape, scale=1 / 32768, zero_point=0)
            draw.op(name, [x], [y])
            x = y
        elif name == "LEAKY_RELU":
            y = result(draw, "int16", x.shape, False)
            draw.op(name, [x], [y], alpha=0.1)
            x = y
        elif name:
            y = result(draw, "int16", x.shape, False)
            draw.op(name, [x, before if before.shape == x.shape else x], [y], fused_activation_function=draw.one_of(ACTIVATIONS))
            x = y
    flat = result(draw, "int16", [1, int(np.prod(x.shape))], False, same_quantization(draw, x))
    draw.op("RESHAPE", [x, draw.numbers(flat.shape)], [flat], new_shape=list(flat.shape))
    dense(draw, flat, "int16")


# ---- Graphs ----

def unary_step(draw, x, dtype):
    y = result(draw, dtype, x.shape, False, same_quantization(draw, x))
    draw.op(draw.one_of(("RELU", "RELU6")), [x], [y])
    return y


def tangle(draw):
    """Tensors of many sizes that live long: several inputs and outputs, some in between, some that nothing reads."""
    dtype = draw.one_of(("float32", "int8", "int8"))
    given = draw.quantization(dtype)
    width = draw.integer(1, 8)
    live = [draw.input(dtype, [1, draw.integer(1, 20), width], **given) for _ in range(draw.integer(1, 3))]
    made = []
    for _ in range(draw.integer(3, 14)):
        a, b = draw.one_of(live), draw.one_of(live)
        kind = draw.one_of(("join", "add", "relu", "reshape", "pad", "slice"))
        if kind == "join":
            y = result(draw, dtype, [1, a.shape[1] + b.shape[1], width], False, given)
            draw.op("CONCATENATION", [a, b], [y], axis=1, fused_activation_function="NONE")
        elif kind == "add":
            b = next((t for t in live if t.shape == a.shape), a)
            y = result(draw, dtype, a.shape, False, given)
            draw.op("ADD", [a, b], [y], fused_activation_function=draw.one_of(ACTIVATIONS))
        elif kind == "pad":
            y = result(draw, dtype, [1, a.shape[1] + 3, width], False, given)
            draw.op("PAD", [a, draw.numbers([[0, 0], [1, 2], [0, 0]])], [y])
        elif kind == "slice":
            size = draw.integer(1, a.shape[1])
            y = result(draw, dtype, [1, size, width], False, given)
            draw.op("SLICE", [a, draw.numbers([0, a.shape[1] - size, 0]), draw.numbers([1, size, width])], [y])
        elif kind == "reshape":
            y = result(draw, dtype, a.shape, False, given)
            draw.op("RESHAPE", [a, draw.numbers(a.shape)], [y], new_shape=list(a.shape))
        else:
            y = unary_step(draw, a, dtype)
        live.append(y)
        made.append(y)
        if len(live) > 5:
            live.pop(draw.integer(0, len(live) - 1))
    for tensor in dict.fromkeys([made[-1], *(t for t in made if draw.chance(0.2))]):
        draw.model.output(tensor)
    if draw.chance(0.2):
        draw.model.output(draw.one_of(live))  # perhaps an input, or a result that is given twice
    for _ in range(draw.integer(0, 2)):
        draw.model.tensor(draw.name(), dtype, draw.shape(), **given)  # nothing makes it, nothing reads it


def planned_before(draw):
    """A chain that brings its own plan of memory, as compilers for other accelerators write it."""
    dtype = draw.one_of(("float32", "int8"))
    given = draw.quantization(dtype)
    x = draw.input(dtype, [1, draw.integer(4, 40)], **given)
    places, at = {x.index: 0}, 16 * -(-x.shape[1] * (4 if dtype == "float32" else 1) // 16)
    for i in range(draw.integer(1, 4)):
        y = result(draw, dtype, x.shape, False, given)
        draw.op("RELU", [x], [y])
        size = 16 * -(-x.shape[1] * (4 if dtype == "float32" else 1) // 16)
        if draw.chance(0.6):
            places[y.index] = at + 16 * draw.integer(0, 3)
            at = places[y.index] + size
        x = y
    draw.model.output(x)
    count = len(draw.model.table.tensors) - (1 if draw.chance(0.1) else 0)
    offsets = [places.get(i, -1) for i in range(count)]
    draw.model.metadata("OfflineMemoryAllocation", np.array([1, 0, count, *offsets], "<i4").tobytes())


GRAPH_MAKERS = (memory_layer, memory_layer, kept_values, kept_values, ring, branches, branches, loop, loop, sliced, sliced, pieces, pieces,
                conversions, hybrid, other_operands, other_operands, boxes, rectangular, rectangular, rectangular, broadcast_product,
                wide_activations, wide_activations, tangle, tangle, tangle, planned_before)


def random_graph(number):
    """(bytes, the kind that it is)."""
    draw = Draw(number)
    maker = draw.one_of(GRAPH_MAKERS)
    maker(draw)
    return draw.model.build(), maker.__name__
