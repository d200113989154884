# SPDX-License-Identifier: Apache-2.0
"""Operators that only move elements: reshaping, joining, cutting, padding, permuting, gathering, scattering.

What can go wrong here is a shape, an index, a byte width or an edge (empty tensors, negative axes, masks), never
arithmetic; the one exception is CONCATENATION of uint8 tensors with different scales. Each operator runs on every
element type that the runtime takes, and on shapes that no two dimensions share.
"""

import itertools

import numpy as np

from onemodel import Model, seeded

ALL_TYPES = ["float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "bool"]


def values(rng, dtype, shape):
    """Every bit pattern may occur in integers; floats are ordinary numbers."""
    if dtype.startswith("float"):
        return rng.uniform(-9, 9, shape).astype(dtype)
    if dtype == "bool":
        return rng.randint(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * info.bits // 8), dtype).reshape(shape)


def case(operator, name, dtype, shape, operands=(), *, outputs=1, first=True, dynamic=(), quantization=None,
         result_shape=(1,), options=None, **fields):
    """A model with one moved input of random values.

    operands: the other inputs, as arrays (constants) or None; those whose position is in `dynamic` are graph inputs
    instead. first: whether the moved input comes first or last.
    """
    rng = seeded(f"{operator} {name}")
    params = {} if quantization is None else {"scale": quantization[0], "zero_point": quantization[1]}
    m = Model()
    x = m.input("x", dtype, shape, **params)
    data, others = [values(rng, dtype, shape)], []
    for i, operand in enumerate(operands):
        if operand is None:
            others.append(None)
        elif i in dynamic:
            others.append(m.input(f"operand{i}", operand.dtype.name, operand.shape))
            data.append(operand)
        else:
            others.append(m.const(f"operand{i}", operand))
    results = [m.output(f"y{i}", dtype, result_shape, **params) for i in range(outputs)]
    m.op(operator, [x, *others] if first else [*others, x], results, **fields)
    return (operator, name, m, data) if options is None else (operator, name, m, data, options)


REFUSED = {"expect_error": True}


def i32(*numbers):
    return np.array(numbers, np.int32)


def i64(*numbers):
    return np.array(numbers, np.int64)


def label(numbers):
    return "_".join(str(n).replace("-", "m") for n in np.ravel(numbers)) or "none"


# ---- RESHAPE ----

def reshape_cases():
    op = "RESHAPE"
    for dtype in ALL_TYPES:
        yield case(op, f"{dtype}", dtype, [2, 3, 4], [i32(4, 6)])
    shapes = [([2, 3, 4], [-1]), ([2, 3, 4], [3, -1, 2]), ([1], []), ([], [1, 1]), ([2, 0, 3], [0, 5]), ([0, 3], [-1]),
              ([0, 3], [3, -1]), ([0, 3], [0, -1]), ([2, 3, 2, 1, 2, 1, 1], [1, 1, 1, 4, 1, 1, 6, 1])]
    for shape, new in shapes:
        yield case(op, f"tensor_{label(shape)}_to_{label(new)}", "int8", shape, [i32(*new)])
        yield case(op, f"computed_{label(shape)}_to_{label(new)}", "int8", shape, [i32(*new)], dynamic=[0])
        if 0 not in new and new:
            yield case(op, f"attribute_{label(shape)}_to_{label(new)}", "int8", shape, new_shape=new)
    yield case(op, "attribute_legacy_scalar", "float32", [1, 1], new_shape=[0])
    yield case(op, "attribute_absent_scalar", "float32", [1, 1])
    yield case(op, "tensor_beats_attribute", "float32", [2, 3], [i32(3, 2)], new_shape=[6])
    yield case(op, "matrix_tensor_is_ignored", "float32", [2, 3], [np.array([[3, 2]], np.int32)], new_shape=[6])
    for name, new in {"two_open": [-1, -1], "indivisible": [4, -1], "too_many": [7], "zero": [0], "negative": [-2, -3]}.items():
        yield case(op, f"refused_{name}", "float32", [2, 3], [i32(*new)], options=REFUSED)


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


# ---- TRANSPOSE ----

def transpose_cases():
    for dtype in ALL_TYPES:
        yield case("TRANSPOSE", dtype, dtype, [2, 3, 4], [i32(2, 0, 1)])
    for perm in itertools.permutations(range(3)):
        yield case("TRANSPOSE", f"int8_{label(perm)}", "int8", [2, 3, 4], [i32(*perm)])
    rng = seeded("TRANSPOSE permutations")
    for rank in (1, 2, 4, 4, 4, 4, 5, 5, 6, 6, 7, 8):
        perm = rng.permutation(rank)
        shape = [int(rng.randint(1, 4)) for _ in range(rank)]
        yield case("TRANSPOSE", f"rank{rank}_{label(perm)}_of_{label(shape)}", "int16", shape, [i32(*perm)])
    yield case("TRANSPOSE", "negative", "float32", [2, 3, 4], [i32(-1, 0, -2)])
    yield case("TRANSPOSE", "empty", "float32", [2, 0, 4], [i32(2, 1, 0)])
    yield case("TRANSPOSE", "wide", "uint8", [3, 50], [i32(1, 0)])
    yield case("TRANSPOSE", "computed", "int64", [2, 3], [i32(1, 0)], dynamic=[0])
    for name, perm in {"out_of_range": [0, 1, 3], "too_short": [0, 1]}.items():
        yield case("TRANSPOSE", f"refused_{name}", "float32", [2, 3, 4], [i32(*perm)], options=REFUSED)


# ---- EXPAND_DIMS, SQUEEZE ----

def shape_cases():
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64", "bool"):
        yield case("EXPAND_DIMS", dtype, dtype, [2, 3], [i32(1)[0]])
        yield case("SQUEEZE", dtype, dtype, [1, 2, 1, 3], squeeze_dims=[0, 2])
    for axis in (-4, -3, -2, -1, 0, 1, 2, 3):
        yield case("EXPAND_DIMS", f"axis_{label([axis])}", "int8", [2, 3, 2], [i32(axis)])
    yield case("EXPAND_DIMS", "scalar", "int8", [], [i32(0)[0]])
    yield case("EXPAND_DIMS", "empty", "int8", [0, 2], [i32(-1)[0]])
    yield case("EXPAND_DIMS", "int64_axis", "int8", [2, 3], [i64(-2)[0]])
    yield case("EXPAND_DIMS", "computed", "int8", [2, 3], [i32(-2)], dynamic=[0])
    for axis in (-4, 3):
        yield case("EXPAND_DIMS", f"refused_{label([axis])}", "int8", [2, 3], [i32(axis)[0]], options=REFUSED)
    for dims in ([], [0], [-1], [2], [0, -1], [-3, 0], [0, 2, 4], [0, 0]):
        yield case("SQUEEZE", f"dims_{label(dims)}", "int16", [1, 2, 1, 3, 1], squeeze_dims=dims)
    yield case("SQUEEZE", "to_scalar", "float32", [1, 1])
    yield case("SQUEEZE", "nothing", "float32", [2, 3])
    yield case("SQUEEZE", "empty", "float32", [0, 1, 2])
    yield case("SQUEEZE", "refused_not_one", "float32", [1, 2], squeeze_dims=[1], options=REFUSED)
    yield case("SQUEEZE", "refused_axis", "float32", [1, 2], squeeze_dims=[2], options=REFUSED)


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


# ---- PACK, UNPACK ----

def pack(name, dtype, shape, count, axis, params=None, options=None, values_count=None):
    rng = seeded(f"PACK {name}")
    quantization = [{} if p is None else {"scale": p[0], "zero_point": p[1]} for p in params or [None] * (count + 1)]
    m = Model()
    inputs = [m.input(f"x{i}", dtype, shape, **quantization[i]) for i in range(count)]
    m.op("PACK", inputs, [m.output("y", dtype, [1], **quantization[-1])], axis=axis,
         values_count=count if values_count is None else values_count)
    data = [values(rng, dtype, shape) for _ in range(count)]
    return ("PACK", name, m, data) if options is None else ("PACK", name, m, data, options)


def pack_cases():
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64", "uint32"):
        yield pack(dtype, dtype, [2, 3], 3, 1)
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "bool"):
        yield case("UNPACK", dtype, dtype, [2, 3, 2], outputs=3, num=3, axis=1)
    for axis in (-4, -3, -2, -1, 0, 1, 2, 3):
        yield pack(f"axis_{label([axis])}", "int16", [2, 3, 2], 2, axis)
    for axis in (-3, -2, -1, 0, 1, 2):
        yield case("UNPACK", f"axis_{label([axis])}", "int16", [3, 3, 3], outputs=3, num=3, axis=axis)
    yield pack("scalars", "int32", [], 3, 0)
    yield pack("one", "float32", [2, 3], 1, 2)
    yield pack("empty", "float32", [2, 0], 2, 1)
    yield pack("five_dimensions", "int8", [2, 1, 2, 1, 3], 2, 2)
    yield pack("quantized", "int8", [3], 2, 0, [(0.5, 3)] * 3)
    yield pack("refused_axis", "float32", [2], 2, 2, options=REFUSED)
    yield pack("refused_count", "float32", [2], 2, 0, values_count=3, options=REFUSED)
    yield case("UNPACK", "vector", "int32", [4], outputs=4, num=4, axis=0)
    yield case("UNPACK", "one", "float32", [2, 1, 3], outputs=1, num=1, axis=1)
    yield case("UNPACK", "quantized", "uint8", [2, 3], outputs=2, num=2, axis=0, quantization=(0.25, 9))
    yield case("UNPACK", "refused_axis", "float32", [2, 2], outputs=2, num=2, axis=2, options=REFUSED)
    yield case("UNPACK", "refused_count", "float32", [2, 3], outputs=2, num=2, axis=1, options=REFUSED)


# ---- REVERSE_V2, REVERSE_SEQUENCE ----

def reverse_cases():
    for dtype in ("float32", "uint8", "int8", "int16", "int32", "int64", "bool"):
        yield case("REVERSE_V2", dtype, dtype, [2, 3, 4], [i32(1)])
    for axes in ([0], [2], [-1], [-3], [0, 1], [1, 2], [0, 1, 2], [-1, -2]):
        yield case("REVERSE_V2", f"axes_{label(axes)}", "int8", [2, 3, 4], [i32(*axes)])
    yield case("REVERSE_V2", "vector", "int8", [5], [i32(0)])
    yield case("REVERSE_V2", "five", "int8", [2, 2, 3, 1, 2], [i32(2)])
    yield case("REVERSE_V2", "computed", "int8", [2, 3], [i32(1)], dynamic=[0])
    yield case("REVERSE_V2", "refused_axis", "int8", [2, 3], [i32(2)], options=REFUSED)
    for dtype in ("float32", "uint8", "int16", "int32", "int64"):
        yield case("REVERSE_SEQUENCE", dtype, dtype, [3, 4, 2], [i32(2, 4, 0)], seq_dim=1, batch_dim=0)
    for seq, batch in itertools.permutations(range(3), 2):
        yield case("REVERSE_SEQUENCE", f"seq{seq}_batch{batch}", "int32", [3, 3, 3], [i32(1, 3, 2)], seq_dim=seq, batch_dim=batch)
    yield case("REVERSE_SEQUENCE", "four", "int16", [2, 3, 2, 4], [i64(1, 4, 3)], seq_dim=3, batch_dim=1)
    yield case("REVERSE_SEQUENCE", "computed", "int32", [2, 3], [i32(3, 2)], seq_dim=1, batch_dim=0, dynamic=[0])
    for name, lengths, seq, batch in (("length", [4, 1], 1, 0), ("same", [1, 1], 0, 0),
                                      ("dim", [1, 1], 2, 0), ("count", [1, 1, 1], 1, 0)):
        yield case("REVERSE_SEQUENCE", f"refused_{name}", "int32", [2, 3], [i32(*lengths)], seq_dim=seq, batch_dim=batch, options=REFUSED)


# ---- TILE ----

def tile_cases():
    for dtype in ("float32", "int8", "uint8", "int32", "int64", "bool"):
        yield case("TILE", dtype, dtype, [2, 3], [i32(2, 3)])
    for shape, multiples in (([3], [4]), ([2, 3, 2], [1, 1, 2]), ([2, 3, 2], [3, 1, 1]), ([2, 3, 2], [1, 2, 1]),
                             ([1, 2, 1, 3], [3, 1, 2, 2]), ([2, 3], [1, 1]), ([2, 3], [0, 2]), ([0, 3], [2, 2]),
                             ([1, 2, 1, 2, 1], [2, 1, 2, 1, 3])):
        yield case("TILE", f"{label(shape)}_by_{label(multiples)}", "int8", shape, [i32(*multiples)])
    yield case("TILE", "int64_multiples", "int8", [2, 3], [i64(2, 2)])
    yield case("TILE", "computed", "int8", [2, 3], [i32(2, 2)], dynamic=[0])


# ---- GATHER, GATHER_ND ----

def gather_cases():
    for dtype in ("float32", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"):
        yield case("GATHER", dtype, dtype, [4, 3], [i32(3, 0, 0, 2)])
        if dtype != "float16":
            yield case("GATHER_ND", dtype, dtype, [3, 2, 2], [i32(2, 1, 0, 0).reshape(2, 2)])
    index_arrays = {"scalar": i32(2)[0], "vector": i32(2, 0), "matrix": i32(0, 1, 2, 2, 1, 0).reshape(2, 3), "none": i32()}
    for name, indices in index_arrays.items():
        for axis in (0, 1, -1):
            yield case("GATHER", f"{name}_axis_{label([axis])}", "int8", [3, 4, 3], [indices], axis=axis)
    for index_type in ("int16", "int64"):
        yield case("GATHER", f"{index_type}_indices", "int32", [3, 4], [np.array([2, 1], index_type)])
        yield case("GATHER_ND", f"{index_type}_indices", "int32", [3, 4], [np.array([[2, 1], [0, 3]], index_type)])
    batched = i32(1, 0, 2, 2, 0, 1).reshape(2, 3)
    for axis, batch_dims in ((1, 1), (2, 1), (1, 0), (1, -1), (2, -1)):
        yield case("GATHER", f"batch_{label([axis, batch_dims])}", "int16", [2, 3, 3], [batched], axis=axis, batch_dims=batch_dims)
    yield case("GATHER", "all_batch", "int16", [2, 3, 3, 2], [batched], axis=2, batch_dims=2)
    yield case("GATHER", "computed", "int32", [4, 2], [i32(3, 1)], dynamic=[0])
    yield case("GATHER", "five", "int8", [2, 2, 3, 2, 2], [i32(2, 0)], axis=2)
    yield case("GATHER", "empty_slices", "int8", [3, 0], [i32(2, 0)])
    for name, indices in (("negative", i32(0, -1)), ("beyond", i32(0, 4)), ("far_beyond", i32(0, 1 << 30))):
        yield case("GATHER", f"refused_{name}", "int32", [4], [indices], dynamic=[0], options=REFUSED)
    yield case("GATHER", "refused_axis", "int32", [4], [i32(1)], axis=1, options=REFUSED)
    yield case("GATHER", "refused_batch", "int32", [4, 2], [i32(1, 0)], axis=0, batch_dims=1, options=REFUSED)
    for name, shape, indices in (("points", [3, 4], [[0, 3], [2, 0], [1, 1]]), ("rows", [3, 4], [[2], [0]]),
                                 ("one_place", [3, 4], [2, 1]), ("nested", [3, 2], [[[0, 1], [2, 0]], [[1, 1], [1, 0]]]),
                                 ("whole", [2, 2], np.zeros([3, 0])), ("none", [2, 2], np.zeros([0, 2])),
                                 ("deep", [2, 1, 2, 2, 3], [[1, 0, 1, 0], [0, 0, 0, 1]])):
        yield case("GATHER_ND", name, "int8", shape, [np.array(indices, np.int32)])
    yield case("GATHER_ND", "computed", "int8", [3, 4], [i32(2, 1)], dynamic=[0])
    for name, indices in (("negative", [[0, -1]]), ("beyond", [[3, 3]])):
        yield case("GATHER_ND", f"refused_{name}", "int8", [3, 3], [np.array(indices, np.int32)], dynamic=[0], options=REFUSED)
    yield case("GATHER_ND", "refused_too_deep", "int8", [3, 3], [i32(1, 1, 1)], options=REFUSED)


# ---- SCATTER_ND, SPARSE_TO_DENSE ----

def scatter(name, dtype, indices, updates_shape, shape, dynamic=False, options=None):
    rng = seeded(f"SCATTER_ND {name}")
    indices, shape = np.array(indices, np.int32), np.array(shape, np.int32)
    m = Model()
    data = [indices, values(rng, dtype, updates_shape)]
    inputs = [m.input("indices", "int32", indices.shape), m.input("updates", dtype, updates_shape)]
    if dynamic:
        inputs.append(m.input("shape", "int32", shape.shape))
        data.append(shape)
    else:
        inputs.append(m.const("shape", shape))
    m.op("SCATTER_ND", inputs, [m.output("y", dtype, [1])])
    return ("SCATTER_ND", name, m, data) if options is None else ("SCATTER_ND", name, m, data, options)


def scatter_cases():
    for dtype in ("float32", "int8", "uint8", "int32", "int64", "bool"):
        yield scatter(dtype, dtype, [[1], [3], [1]], [3, 2], [4, 2])
    yield scatter("points", "int32", [[0, 1], [2, 2], [1, 0]], [3], [3, 3])
    yield scatter("one_place", "int32", [2], [2, 2], [3, 2, 2])
    yield scatter("nested", "float32", [[[0, 1], [2, 2]], [[1, 0], [0, 1]]], [2, 2, 2], [3, 3, 2])
    yield scatter("sums", "float32", [[0]] * 7, [7, 2], [2, 2])
    yield scatter("computed", "float32", [[1], [0]], [2, 2], [3, 2], dynamic=True)
    yield scatter("none", "float32", np.zeros([0, 1]), [0, 2], [3, 2])
    yield scatter("refused_beyond", "float32", [[3]], [1, 2], [3, 2], options=REFUSED)
    yield scatter("refused_negative", "float32", [[-1]], [1, 2], [3, 2], options=REFUSED)
    yield scatter("refused_updates", "float32", [[1]], [1, 3], [3, 2], options=REFUSED)


def sparse_to_dense(name, dtype, indices, count, shape, index_type="int32", dynamic=False, scalar=False, options=None):
    rng = seeded(f"SPARSE_TO_DENSE {name}")
    indices, shape = np.array(indices, index_type), np.array(shape, index_type)
    array = values(rng, dtype, [] if scalar else [count])
    m = Model()
    data = [indices]
    inputs = [m.input("indices", index_type, indices.shape)]
    if dynamic:
        inputs.append(m.input("shape", index_type, shape.shape))
        data.append(shape)
    else:
        inputs.append(m.const("shape", shape))
    inputs.append(m.input("values", dtype, array.shape))
    inputs.append(m.const("default", values(rng, dtype, [])))
    m.op("SPARSE_TO_DENSE", inputs, [m.output("y", dtype, [1])])
    data.append(array)
    return ("SPARSE_TO_DENSE", name, m, data) if options is None else ("SPARSE_TO_DENSE", name, m, data, options)


def sparse_to_dense_cases():
    for dtype in ("float32", "int8", "uint8", "int32", "int64"):
        yield sparse_to_dense(dtype, dtype, [[1, 2], [0, 0]], 2, [2, 3])
    yield sparse_to_dense("vector", "float32", [3, 1], 2, [5])
    yield sparse_to_dense("one_scalar", "float32", [3], 1, [5], scalar=True)
    yield sparse_to_dense("repeated", "int32", [3, 1, 3], 3, [5])
    yield sparse_to_dense("three", "int32", [[1, 0, 1], [0, 1, 2]], 2, [2, 2, 3])
    yield sparse_to_dense("four", "int8", [[1, 0, 1, 1], [0, 1, 2, 0]], 2, [2, 2, 3, 2])
    yield sparse_to_dense("int64_indices", "int8", [[1, 2], [0, 0]], 2, [2, 3], index_type="int64")
    yield sparse_to_dense("computed", "int8", [[1, 2], [0, 0]], 2, [2, 3], dynamic=True)
    yield sparse_to_dense("refused_depth", "int8", [[1, 2], [0, 0]], 2, [2, 3, 2], options=REFUSED)


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


# ---- space, depth, batch ----

def block_cases():
    for dtype in ("float32", "int8", "uint8", "int32", "int64"):
        yield case("SPACE_TO_DEPTH", dtype, dtype, [1, 4, 2, 3], block_size=2)
        yield case("DEPTH_TO_SPACE", dtype, dtype, [1, 2, 1, 12], block_size=2)
    for block, shape in ((1, [2, 3, 2, 2]), (3, [2, 3, 6, 1]), (2, [3, 2, 4, 5]), (4, [1, 4, 8, 1])):
        yield case("SPACE_TO_DEPTH", f"block{block}", "int8", shape, block_size=block)
        deep = [shape[0], shape[1] // block, shape[2] // block, shape[3] * block * block]
        yield case("DEPTH_TO_SPACE", f"block{block}", "int8", deep, block_size=block)
    yield case("SPACE_TO_DEPTH", "empty", "int8", [0, 2, 2, 1], block_size=2)
    yield case("DEPTH_TO_SPACE", "empty", "int8", [0, 2, 2, 4], block_size=2)
    yield case("SPACE_TO_DEPTH", "refused_size", "int8", [1, 3, 2, 1], block_size=2, options=REFUSED)
    yield case("DEPTH_TO_SPACE", "refused_depth", "int8", [1, 2, 2, 6], block_size=2, options=REFUSED)
    yield case("SPACE_TO_DEPTH", "refused_rank", "int8", [2, 2, 1], block_size=2, options=REFUSED)
    yield case("DEPTH_TO_SPACE", "refused_rank", "int8", [2, 2, 4], block_size=2, options=REFUSED)
    yield case("DEPTH_TO_SPACE", "refused_zero", "int8", [1, 2, 2, 4], block_size=0, options=REFUSED)


def batch_case(operator, name, dtype, shape, block, margins, index_type="int32", **extra):
    return case(operator, name, dtype, shape, [np.array(block, index_type), np.array(margins, index_type)], **extra)


def batch_cases():
    there, back = "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        quantization = (0.5, {"int8": -3, "uint8": 77}.get(dtype, 0)) if dtype in ("int8", "uint8", "int16") else None
        yield batch_case(there, dtype, dtype, [1, 3, 5, 2], [2, 3], [[1, 0], [0, 1]], quantization=quantization)
        yield batch_case(back, dtype, dtype, [6, 2, 2, 2], [2, 3], [[1, 0], [0, 1]], quantization=quantization)
    for name, shape, block, margins in (("plain", [2, 4, 4, 1], [2, 2], [[0, 0], [0, 0]]), ("block_1", [2, 3, 2, 2], [1, 1], [[0, 0], [1, 2]]),
                                        ("large_padding", [1, 1, 1, 3], [2, 2], [[3, 2], [4, 1]]), ("tall", [2, 6, 1, 2], [3, 1], [[0, 0], [0, 0]]),
                                        ("three", [2, 5, 3], [2], [[1, 2]]), ("three_plain", [1, 6, 2], [3], [[0, 0]]),
                                        ("padding_behind", [1, 3, 3, 2], [4, 4], [[0, 1], [0, 5]])):
        yield batch_case(there, name, "int8", shape, block, margins, quantization=(0.1, 5))
    for name, shape, block, crops in (("plain", [4, 2, 2, 3], [2, 2], [[0, 0], [0, 0]]), ("block_1", [2, 3, 4, 2], [1, 1], [[1, 0], [1, 1]]),
                                      ("crops", [8, 3, 2, 1], [2, 2], [[2, 1], [1, 2]]), ("wide", [6, 1, 3, 2], [1, 3], [[0, 0], [2, 3]]),
                                      ("three", [4, 3, 2], [2], [[1, 2]]), ("crop_all", [4, 1, 1, 2], [2, 2], [[1, 1], [0, 0]])):
        yield batch_case(back, name, "int8", shape, block, crops)
    for operator, shape in ((there, [1, 3, 4, 2]), (back, [4, 2, 2, 1])):
        yield batch_case(operator, "computed", "int8", shape, [2, 2], [[1, 0], [0, 0]], dynamic=[0, 1])
        yield batch_case(operator, "refused_zero_block", "int8", shape, [0, 2], [[1, 0], [0, 0]], options=REFUSED)
        yield batch_case(operator, "refused_indivisible", "int8", shape, [3, 5], [[0, 0], [0, 0]], options=REFUSED)


# ---- MATRIX_DIAG, DYNAMIC_UPDATE_SLICE ----

def update_slice(name, dtype, shape, update_shape, start, index_type="int32", options=None):
    rng = seeded(f"DYNAMIC_UPDATE_SLICE {name}")
    start = np.array(start, index_type)
    m = Model()
    inputs = [m.input("x", dtype, shape), m.input("update", dtype, update_shape), m.input("start", index_type, start.shape)]
    m.op("DYNAMIC_UPDATE_SLICE", inputs, [m.output("y", dtype, [1])])
    data = [values(rng, dtype, shape), values(rng, dtype, update_shape), start]
    return ("DYNAMIC_UPDATE_SLICE", name, m, data) if options is None else ("DYNAMIC_UPDATE_SLICE", name, m, data, options)


def other_cases():
    for dtype in ("float32", "int8", "uint8", "int16", "int32", "int64"):
        yield case("MATRIX_DIAG", dtype, dtype, [2, 3])
    for shape in ([4], [1], [2, 3, 2], [2, 0], [0, 2]):
        yield case("MATRIX_DIAG", f"shape_{label(shape)}", "int16", shape)
    for dtype in ("float32", "int8", "int32", "int64", "bool"):
        yield update_slice(dtype, dtype, [4, 3], [2, 2], [1, 1])
    for name, shape, update, start in (("clamped", [4, 3], [2, 2], [3, -5]), ("whole", [2, 3], [2, 3], [1, 1]), ("none", [2, 3], [0, 2], [1, 1]),
                                       ("vector", [6], [2], [3]), ("four", [2, 3, 2, 3], [1, 2, 2, 2], [1, 1, 0, 1])):
        yield update_slice(name, "int8", shape, update, start)
    yield update_slice("int64_start", "int8", [4, 3], [2, 2], [1 << 40, 1], index_type="int64")
    yield update_slice("refused_too_large", "int8", [4, 3], [2, 4], [0, 0], options=REFUSED)
    yield update_slice("refused_rank", "int8", [4, 3], [2], [0, 0], options=REFUSED)


def cases():
    yield from reshape_cases()
    yield from concatenation_cases()
    yield from pad_cases()
    yield from split_cases()
    yield from strided_slice_cases()
    yield from transpose_cases()
    yield from shape_cases()
    yield from slice_cases()
    yield from pack_cases()
    yield from reverse_cases()
    yield from tile_cases()
    yield from gather_cases()
    yield from scatter_cases()
    yield from sparse_to_dense_cases()
    yield from mirror_pad_cases()
    yield from block_cases()
    yield from batch_cases()
    yield from other_cases()
