# SPDX-License-Identifier: Apache-2.0
"""Operators that only move elements, by index: gathering, scattering, updating.

What can go wrong here is a shape, an index, a byte width or an edge (empty tensors, negative axes, masks), never
arithmetic. Each operator runs on every element type that the runtime takes, and on shapes that no two
dimensions share.
"""

import numpy as np

from cases._movement import REFUSED, case, i32, label, values
from onemodel import Model, seeded


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
    yield from gather_cases()
    yield from scatter_cases()
    yield from sparse_to_dense_cases()
    yield from other_cases()
