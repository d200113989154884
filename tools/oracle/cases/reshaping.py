# SPDX-License-Identifier: Apache-2.0
"""Operators that only move elements, the whole tensor at once: reshaping, permuting, stacking, repeating, reversing, blocks.

What can go wrong here is a shape, an index, a byte width or an edge (empty tensors, negative axes, masks), never
arithmetic. Each operator runs on every element type that the runtime takes, and on shapes that no two
dimensions share.
"""

import itertools

import numpy as np

from cases._movement import ALL_TYPES, REFUSED, case, i32, i64, label, values
from onemodel import Model, seeded


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


def cases():
    yield from reshape_cases()
    yield from transpose_cases()
    yield from shape_cases()
    yield from pack_cases()
    yield from reverse_cases()
    yield from tile_cases()
    yield from block_cases()
    yield from batch_cases()
