# SPDX-License-Identifier: Apache-2.0
"""Operators that only move elements, in pieces: joining, cutting, padding.

What can go wrong here is a shape, an index, a byte width or an edge (empty tensors, negative axes, masks), never
arithmetic; the one exception is CONCATENATION of uint8 tensors
with different scales. Each operator runs on every element type that the runtime takes, and on shapes that no two
dimensions share.
"""

import numpy as np

from cases._movement import ALL_TYPES, REFUSED, case, i32, i64, label, values
from onemodel import Model, seeded


# ---- CONCATENATION ----

def concatenation(name, dtype, shapes, axis, params=None, constant=(), options=None, **fields):
    """params: (scale, zero point) of each input, then of the output. constant: positions of constant inputs."""
    rng = seeded(f"CONCATENATION {name}")
    quantization = [{} if p is None else {"scale": p[0], "zero_point": p[1]} for p in params or [None] * (len(shapes) + 1)]
    m = Model()
    data, inputs = [], []
    for i, shape in enumerate(shapes):
        array = values(rng, dtype, shape)
        if i in constant:
            inputs.append(m.const(f"x{i}", array, dtype, **quantization[i]))
        else:
            inputs.append(m.input(f"x{i}", dtype, shape, **quantization[i]))
            data.append(array)
    m.op("CONCATENATION", inputs, [m.output("y", dtype, [1], **quantization[-1])], axis=axis, **fields)
    return ("CONCATENATION", name, m, data) if options is None else ("CONCATENATION", name, m, data, options)


def concatenation_cases():
    for dtype in ("float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool"):
        yield concatenation(dtype, dtype, [[2, 3, 2], [2, 1, 2], [2, 4, 2]], 1)
    for axis in (-4, -3, -2, -1, 0, 1, 2, 3):
        shapes = [[2, 3, 2, 3] for _ in range(2)]
        shapes[1][axis] = 1
        yield concatenation(f"axis_{label([axis])}", "int16", shapes, axis)
    yield concatenation("one_input", "float32", [[2, 3]], 0)
    yield concatenation("empty_inputs", "int32", [[2, 0, 2], [2, 3, 2], [2, 0, 2]], 1)
    yield concatenation("all_empty", "int32", [[0, 2], [0, 2]], 0)
    yield concatenation("six_dimensions", "int8", [[1, 2, 1, 2, 1, 3], [1, 2, 3, 2, 1, 3]], 2)
    yield concatenation("eight_dimensions", "int8", [[1, 2, 1, 2, 1, 1, 1, 3], [1, 2, 1, 2, 1, 1, 1, 2]], 7)
    yield concatenation("one_constant", "float32", [[2, 3], [2, 2]], 1, constant=[0])
    yield concatenation("constant_scalars", "int32", [[], [], []], 0, constant=[0, 1, 2])
    yield concatenation("constants", "int8", [[2], [3]], 0, constant=[0, 1])
    many = [[1, 2]] * 11
    yield concatenation("many_inputs", "int8", many, 0, [(0.5, 3)] * 12)
    sets = {"same": [(0.5, 3), (0.5, 3), (0.5, 3)], "finer": [(0.1, 10), (0.02, 200), (0.05, 128)],
            "coarser": [(0.1, 0), (0.3, 255), (0.9, 7)], "zero_point_only": [(0.25, 0), (0.25, 255), (0.25, 100)],
            "saturating": [(5.0, 100), (1e-3, 3), (0.01, 128)], "halves": [(0.5, 1), (1.5, 0), (1.0, 0)],
            "one_differs": [(0.02, 120), (0.0213, 131), (0.02, 120)]}
    for name, params in sets.items():
        yield concatenation(f"uint8_scales_{name}", "uint8", [[2, 3, 20], [2, 2, 20]], 1, params)
    yield concatenation("uint8_scales_random", "uint8", [[128], [128]], 0, [(0.00784, 127), (0.0235, 51), (0.0183, 97)])
    yield concatenation("int16_scales", "int16", [[4], [3]], 0, [(0.1, 0), (0.2, 0), (0.3, 0)])
    yield concatenation("refused_int16_zero_point", "int16", [[4], [3]], 0, [(0.1, 2)] * 3, options=REFUSED)
    yield concatenation("refused_activation", "float32", [[4], [3]], 0, options=REFUSED, fused_activation_function="RELU")
    yield concatenation("refused_axis", "float32", [[4], [3]], 1, options=REFUSED)
    yield concatenation("refused_shapes", "float32", [[4, 2], [3, 3]], 0, options=REFUSED)
    yield concatenation("refused_ranks", "float32", [[4, 2], [4]], 0, options=REFUSED)


# ---- PAD, PADV2 ----

def pad(operator, name, dtype, shape, paddings, value=None, quantization=None, paddings_type="int32", dynamic=False,
        value_quantization=None, options=None):
    rng = seeded(f"{operator} {name}")
    as_params = lambda q: {} if q is None else {"scale": q[0], "zero_point": q[1]}
    m = Model()
    x = m.input("x", dtype, shape, **as_params(quantization))
    data, inputs = [values(rng, dtype, shape)], [x]
    table = np.array(paddings, paddings_type).reshape(len(shape) if np.size(paddings) else 0, 2)
    if dynamic:
        inputs.append(m.input("paddings", paddings_type, table.shape))
        data.append(table)
    else:
        inputs.append(m.const("paddings", table))
    if value is not None:
        inputs.append(m.const("value", np.array(value, dtype), **as_params(value_quantization or quantization)))
    m.op(operator, inputs, [m.output("y", dtype, [1], **as_params(quantization))])
    return (operator, name, m, data) if options is None else (operator, name, m, data, options)


PADDINGS = {"image": ([1, 2, 3, 2], [[0, 0], [1, 2], [2, 1], [0, 0]]), "all_sides": ([2, 1, 2], [[1, 0], [0, 2], [1, 1]]),
            "vector": ([3], [[2, 3]]), "nothing": ([2, 3], [[0, 0], [0, 0]]), "empty_input": ([0, 2], [[2, 1], [0, 1]]),
            "batch_and_channels": ([1, 2, 2, 3], [[1, 0], [0, 0], [0, 0], [2, 1]]),
            "five": ([1, 2, 1, 2, 2], [[1, 0], [0, 0], [0, 1], [1, 1], [0, 2]])}


def pad_cases():
    types = ["float32", "int8", "uint8", "int16", "int32", "int64", "bool"]
    for dtype in types:
        quantization = (0.5, {"int8": -7, "uint8": 200}.get(dtype, 0)) if dtype in ("int8", "uint8", "int16") else None
        for name, (shape, paddings) in PADDINGS.items():
            if dtype in ("float32", "int8") or name in ("image", "all_sides"):
                yield pad("PAD", f"{dtype}_{name}", dtype, shape, paddings, quantization=quantization)
        if dtype in ("float32", "int8") or dtype not in ("bool",):
            value = {"float32": -2.5, "uint8": 17}.get(dtype, -3)
            for name in ("image", "all_sides") if dtype != "float32" else PADDINGS:
                yield pad("PADV2", f"{dtype}_{name}", dtype, *PADDINGS[name], value, quantization=quantization)
    for dtype in ("int8", "uint8", "int16"):
        yield pad("PAD", f"{dtype}_unquantized", dtype, [2, 2], [[1, 0], [0, 1]])
        yield pad("PADV2", f"{dtype}_unquantized", dtype, [2, 2], [[1, 0], [0, 1]], 9)
    for zero_point in (-128, 127):
        yield pad("PAD", f"int8_zero_point_{label([zero_point])}", "int8", [2, 2], [[1, 0], [0, 1]], quantization=(0.1, zero_point))
    for operator, value in (("PAD", None), ("PADV2", 4)):
        yield pad(operator, "int64_paddings", "int32", [2, 2], [[1, 0], [2, 1]], value, paddings_type="int64")
        yield pad(operator, "computed_paddings", "int32", [2, 2], [[1, 0], [2, 1]], value, dynamic=True)
        yield pad(operator, "computed_int64_paddings", "int32", [2, 2], [[1, 0], [2, 1]], value, paddings_type="int64", dynamic=True)
        yield pad(operator, "refused_negative", "int32", [2, 2], [[-1, 0], [2, 1]], value, options=REFUSED)
        yield pad(operator, "refused_computed_negative", "int32", [2, 2], [[1, 0], [2, -1]], value, dynamic=True, options=REFUSED)
    yield pad("PAD", "with_a_value", "float32", [2, 2], [[1, 0], [2, 1]], 1.5)
    yield pad("PADV2", "without_a_value", "float32", [2, 2], [[1, 0], [2, 1]])
    yield pad("PADV2", "refused_value_scale", "int8", [2, 2], [[1, 0], [2, 1]], 3, quantization=(0.5, 1),
              value_quantization=(0.25, 1), options=REFUSED)


# ---- MIRROR_PAD ----

def mirror_pad_cases():
    sizes = {"image": ([1, 3, 4, 2], [[0, 0], [2, 1], [1, 2], [0, 0]]), "vector": ([4], [[3, 3]]), "nothing": ([2, 3], [[0, 0]] * 2),
             "all": ([2, 3, 3], [[1, 1], [2, 2], [0, 1]]), "five": ([2, 2, 1, 2, 3], [[1, 0], [0, 1], [0, 0], [1, 1], [2, 2]]),
             "inner": ([2, 3], [[0, 0], [1, 2]]), "outer": ([3, 2], [[1, 2], [0, 0]])}
    for mode in ("REFLECT", "SYMMETRIC"):
        for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
            yield case("MIRROR_PAD", f"{mode.lower()}_{dtype}", dtype, [2, 3], [np.array([[1, 1], [2, 1]], np.int32)], mode=mode)
        for name, (shape, paddings) in sizes.items():
            yield case("MIRROR_PAD", f"{mode.lower()}_{name}", "int8", shape, [np.array(paddings, np.int32)], mode=mode)
        yield case("MIRROR_PAD", f"{mode.lower()}_int64_paddings", "int8", [3], [np.array([[1, 2]], np.int64)], mode=mode)
        yield case("MIRROR_PAD", f"{mode.lower()}_computed", "int8", [3], [np.array([[1, 2]], np.int32)], mode=mode, dynamic=[0])
        yield case("MIRROR_PAD", f"{mode.lower()}_refused_too_much", "int8", [3], [np.array([[1, 6]], np.int32)], mode=mode, options=REFUSED)
    yield case("MIRROR_PAD", "symmetric_full", "int8", [3], [np.array([[3, 3]], np.int32)], mode="SYMMETRIC")


# ---- SPLIT, SPLIT_V ----

def split_cases():
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        yield case("SPLIT", dtype, dtype, [2, 6, 3], [i32(1)[0]], first=False, outputs=3, num_splits=3)
    for axis in (-4, -3, -2, -1, 0, 1, 2, 3):
        yield case("SPLIT", f"axis_{label([axis])}", "int16", [4, 2, 4, 2], [i32(axis)[0]], first=False, outputs=2,
                   num_splits=2)
    yield case("SPLIT", "axis_vector", "int16", [4, 2], [i32(1)], first=False, outputs=2, num_splits=2)
    yield case("SPLIT", "one_piece", "float32", [4, 2], [i32(0)[0]], first=False, outputs=1, num_splits=1)
    yield case("SPLIT", "empty", "float32", [0, 2], [i32(1)[0]], first=False, outputs=2, num_splits=2)
    yield case("SPLIT", "empty_pieces", "float32", [0, 2], [i32(0)[0]], first=False, outputs=2, num_splits=2)
    yield case("SPLIT", "computed_axis", "int8", [4, 3], [i32(-2)], first=False, outputs=2, num_splits=2, dynamic=[0])
    yield case("SPLIT", "six_dimensions", "int8", [1, 2, 1, 4, 1, 3], [i32(3)[0]], first=False, outputs=4, num_splits=4)
    yield case("SPLIT", "refused_uneven", "int8", [4, 3], [i32(1)[0]], first=False, outputs=2, num_splits=2, options=REFUSED)
    yield case("SPLIT", "refused_axis", "int8", [4, 4], [i32(2)[0]], first=False, outputs=2, num_splits=2, options=REFUSED)
    yield case("SPLIT", "refused_count", "int8", [4, 4], [i32(1)[0]], first=False, outputs=2, num_splits=4, options=REFUSED)

    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        yield case("SPLIT_V", dtype, dtype, [2, 6, 3], [i32(1, 3, 2), i32(1)[0]], outputs=3, num_splits=3)
    for axis in (-3, -2, -1, 0, 1, 2):
        yield case("SPLIT_V", f"axis_{label([axis])}", "int16", [4, 4, 4], [i32(1, 3), i32(axis)[0]], outputs=2, num_splits=2)
    for sizes in ([2, -1, 1], [-1, 2, 2], [0, 5, 0], [5, -1, 0], [0, 0, -1]):
        yield case("SPLIT_V", f"sizes_{label(sizes)}", "int32", [2, 5], [i32(*sizes), i32(1)[0]], outputs=3, num_splits=3)
    yield case("SPLIT_V", "int64_sizes", "int32", [2, 5], [i64(4, -1), i32(1)[0]], outputs=2, num_splits=2)
    yield case("SPLIT_V", "computed", "int32", [2, 5], [i32(4, -1), i32(1)], outputs=2, num_splits=2, dynamic=[0, 1])
    yield case("SPLIT_V", "computed_axis", "int32", [5, 5], [i32(4, -1), i32(-2)], outputs=2, num_splits=2, dynamic=[1])
    for name, sizes in {"sum": [2, 2], "two_open": [-1, -1], "too_large": [6, -1]}.items():
        yield case("SPLIT_V", f"refused_{name}", "int32", [2, 5], [i32(*sizes), i32(1)[0]], outputs=2, num_splits=2, options=REFUSED)


# ---- STRIDED_SLICE ----

MASKS = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"]


def strided_slice(name, shape, begin, end, strides, dtype="int8", masks=(), dynamic=(), options=None, **fields):
    fields.update(zip(MASKS, masks))
    return case("STRIDED_SLICE", name, dtype, shape, [i32(*begin), i32(*end), i32(*strides)], dynamic=dynamic,
                options=options, **fields)


def random_strided_slice(i):
    """A slice with a few random masks. Under shrink_axis_mask the runtime needs a valid index and a positive stride."""
    rng = seeded(f"STRIDED_SLICE random {i}")
    rank = rng.randint(1, 5)
    shape = [int(rng.randint(1, 6)) for _ in range(rank)]
    new_axes = int(rng.randint(0, 3)) if rng.randint(3) == 0 else 0
    ellipsis = rng.randint(3) == 0
    given = int(rng.randint(0, rank) if ellipsis else rng.randint(1, rank + 1))
    kinds = ["axis"] * given + ["new"] * new_axes
    rng.shuffle(kinds)
    if ellipsis:
        kinds.insert(rng.randint(len(kinds) + 1), "ellipsis")
    begin, end, strides, masks, axis = [], [], [], [0] * 5, 0
    for bit, kind in enumerate(kinds):
        if kind == "ellipsis":
            masks[2] |= 1 << bit
            axis = rank - sum(k == "axis" for k in kinds[bit + 1:])
        elif kind == "new":
            masks[3] |= 1 << bit
        size = shape[axis] if kind == "axis" else 1
        axis += kind == "axis"
        shrinks = kind == "axis" and rng.randint(4) == 0
        strides.append(1 if shrinks else int(rng.choice([1, 1, 1, 2, 3, -1, -2])))
        begin.append(int(rng.randint(-size, size) if shrinks else rng.randint(-size - 2, size + 2)))
        end.append(int(rng.randint(-size - 2, size + 3)))
        masks[4] |= shrinks << bit
        masks[0] |= int(not shrinks and rng.randint(4) == 0) << bit
        masks[1] |= int(rng.randint(4) == 0) << bit
    return strided_slice(f"random_{i}", shape, begin, end, strides, masks=masks)


def strided_slice_cases():
    for dtype in ALL_TYPES:
        yield strided_slice(dtype, [2, 4, 3], [0, 3, 0], [2, 0, 3], [1, -2, 1], dtype)
    for i in range(28):
        yield random_strided_slice(i)
    yield strided_slice("empty_result", [4], [2], [1], [1])
    yield strided_slice("empty_input", [0, 3], [0, 0], [5, 2], [1, 1])
    yield strided_slice("empty_input_backwards", [0, 3], [0, 2], [5, 0], [-1, -1])
    yield strided_slice("whole_ellipsis", [2, 3, 2], [0], [0], [1], masks=[0, 0, 1])
    yield strided_slice("ellipsis_without_room", [2, 3], [1, 0, 1], [2, 0, 2], [1, 1, 1], masks=[0, 0, 2])
    yield strided_slice("only_new_axes", [2, 3], [0, 0], [0, 0], [1, 1], masks=[0, 0, 0, 3])
    yield strided_slice("shrink_all", [2, 3], [1, -1], [0, 0], [1, 1], masks=[0, 0, 0, 0, 3])
    yield strided_slice("shrink_with_end_mask", [2, 3], [1, -1], [0, 0], [1, 1], masks=[0, 3, 0, 0, 1])
    yield strided_slice("five_dimensions", [2, 2, 3, 2, 2], [0, 1, 2, 0, 1], [2, 2, 0, 2, 0], [1, 1, -1, 1, -1])
    yield strided_slice("far_indices", [5], [-2**31], [2**31 - 1], [2**31 - 1])
    yield strided_slice("far_indices_backwards", [5], [2**31 - 1], [-2**31], [-2**31 + 1])
    yield strided_slice("computed", [4, 5], [1, 4], [4, 0], [2, -1], dynamic=[0, 1, 2])
    yield strided_slice("offset", [4, 5], [1, 2], [2, 3], [1, 1], offset=True)
    yield strided_slice("offset_computed_begin", [4, 5], [1, 2], [2, 3], [1, 2], offset=True, dynamic=[0])
    yield strided_slice("offset_shrink", [4, 5], [1, 2], [2, 3], [1, 1], offset=True, masks=[0, 0, 0, 0, 1])
    yield strided_slice("refused_zero_stride", [5], [0], [3], [0], options=REFUSED)
    yield strided_slice("refused_lengths", [5], [0], [3, 2], [1], options=REFUSED)


# ---- SLICE ----

def slice_case(name, shape, begin, size, dtype="int8", index_type="int32", **extra):
    """The runtime trusts a declared output shape, so it is left open here."""
    return case("SLICE", name, dtype, shape, [np.array(begin, index_type), np.array(size, index_type)], result_shape=[], **extra)


def slice_after_reshape():
    """Input of a shape known only at run time, and other bounds in the second invocation than in the first."""
    m = Model()
    x, shape, begin, size = (m.input("x", "int8", [6]), m.input("shape", "int32", [2]), m.input("begin", "int32", [2]),
                             m.input("size", "int32", [2]))
    middle = m.tensor("middle", "int8", [])
    m.op("RESHAPE", [x, shape], [middle])
    m.op("SLICE", [middle, begin, size], [m.output("y", "int8", [])])
    data = np.arange(6, dtype=np.int8)
    inputs = [data, i32(2, 3), i32(0, 1), i32(2, 2), data, i32(2, 3), i32(1, 0), i32(1, -1), data, i32(3, 2), i32(1, 0), i32(2, 1)]
    return "SLICE", "bounds_change", m, inputs, {"invocations": 3}


def slice_cases():
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64", "bool", "uint32"):
        yield slice_case(dtype, [3, 4, 2], [1, 0, 1], [2, 3, 1], dtype)
    yield slice_case("rest", [3, 4, 2], [1, 0, 1], [-1, 2, -1])
    yield slice_case("whole", [3, 4], [0, 0], [-1, 4])
    yield slice_case("empty", [3, 4], [3, 0], [-1, 4])
    yield slice_case("empty_input", [0, 4], [0, 1], [0, 2])
    yield slice_case("vector", [7], [2], [3])
    yield slice_case("four", [2, 3, 2, 3], [1, 1, 0, 2], [1, 2, 2, 1])
    yield slice_case("five", [2, 2, 2, 2, 3], [1, 0, 1, 0, 1], [1, 2, 1, 2, 2])
    yield slice_case("int64_indices", [3, 4], [1, 2], [2, -1], index_type="int64")
    yield slice_case("computed", [3, 4], [1, 2], [2, -1], dynamic=[0, 1])
    yield slice_case("computed_begin", [3, 4], [1, 2], [2, -1], dynamic=[0])
    yield slice_after_reshape()
    for name, begin, size in (("begin", [-1, 0], [1, 1]), ("size", [0, 0], [-2, 1]), ("beyond", [2, 0], [2, 1]),
                              ("begin_beyond", [0, 5], [1, -1])):
        yield slice_case(f"refused_{name}", [3, 4], begin, size, options=REFUSED)


def cases():
    yield from concatenation_cases()
    yield from pad_cases()
    yield from mirror_pad_cases()
    yield from split_cases()
    yield from strided_slice_cases()
    yield from slice_cases()
