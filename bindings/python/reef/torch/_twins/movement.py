# SPDX-License-Identifier: Apache-2.0
"""Operators that put elements elsewhere, and resizing. Codes are copied; only CONCATENATION may change their scale."""

from __future__ import annotations

import math
from typing import List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .._arithmetic import numbers_on, rescaled, rounded
from .call import Call


def reshape(call: Call) -> None:
    value = call.value(0)
    call.set(value.reshape(value.shape[0], *call.output_shape()))


def pad(call: Call) -> None:
    amounts = call.numbers(1)
    pairs = [amounts[2 * d:2 * d + 2] for d in range(len(amounts) // 2)]
    call.set(F.pad(call.value(0), [n for pair in reversed(pairs) for n in pair]))  # u is 0 at the zero point


def transpose(call: Call) -> None:
    call.set(call.value(0).permute(0, *[d + 1 for d in call.numbers(1)]))


def slice_(call: Call) -> None:
    value = call.value(0)
    for d, (begin, size) in enumerate(zip(call.numbers(1), call.output_shape())):
        value = value.narrow(d + 1, begin, size)
    call.set(value)


def strided_slice(call: Call) -> None:
    if call.attribute("ellipsis_mask") or call.attribute("new_axis_mask"):
        raise call.unsupported("an ellipsis or a new axis")
    value, shape = call.value(0), call.shape(0)
    begins, ends, strides = call.numbers(1), call.numbers(2), call.numbers(3)
    masks = [call.attribute(name) for name in ("begin_mask", "end_mask", "shrink_axis_mask")]
    for d, size in enumerate(shape):
        begin = None if masks[0] >> d & 1 else begins[d]
        end = None if masks[1] >> d & 1 else ends[d]
        chosen = list(range(size))[begin:end:strides[d]]
        if masks[2] >> d & 1:
            first = begins[d] + size if begins[d] < 0 else begins[d]
            chosen = [min(max(first, 0), size - 1)]
        if len(chosen) != size or chosen[0] != 0:
            value = (value.narrow(d + 1, chosen[0], len(chosen)) if strides[d] == 1 or len(chosen) == 1
                     else value.index_select(d + 1, numbers_on(value.device, tuple(chosen))))
    call.set(value.reshape(value.shape[0], *call.output_shape()))


def _split_along(call: Call, data: int, axis: int) -> None:
    value, before = call.value(data), 0
    axis = axis + len(call.shape(data)) if axis < 0 else axis
    for i in range(call.output_count):
        size = call.output_shape(i)[axis]
        call.set(value.narrow(axis + 1, before, size), i)
        before += size


def split(call: Call) -> None:
    _split_along(call, 1, call.numbers(0)[0])


def split_v(call: Call) -> None:
    _split_along(call, 0, call.numbers(2)[0])


def unpack(call: Call) -> None:
    axis = call.attribute("axis") % len(call.shape(0))
    for i in range(call.output_count):
        call.set(call.value(0).select(axis + 1, i), i)


def _together(call: Call) -> List[Tensor]:
    """All operands at the output's scale, with one batch."""
    out = call.output_affine()
    values = [rescaled(call.value(i), call.affine(i), out, call.activation) for i in range(call.input_count)]
    batch = max(value.shape[0] for value in values)
    return [value.expand(batch, *value.shape[1:]) for value in values]


def pack(call: Call) -> None:
    call.set(torch.stack(_together(call), call.attribute("axis") % len(call.output_shape()) + 1))


def concatenation(call: Call) -> None:
    call.set(torch.cat(_together(call), call.attribute("axis") % len(call.output_shape()) + 1))


def tile(call: Call) -> None:
    call.set(call.value(0).repeat(1, *call.numbers(1)))


def space_to_depth(call: Call) -> None:
    block, (n, height, width, channels) = call.attribute("block_size"), call.output_shape()
    value = call.value(0)
    parts = value.reshape(value.shape[0], n, height, block, width, block, -1).permute(0, 1, 2, 4, 3, 5, 6)
    call.set(parts.reshape(value.shape[0], n, height, width, channels))


def depth_to_space(call: Call) -> None:
    block, (n, height, width, _) = call.attribute("block_size"), call.shape(0)
    value = call.value(0)
    parts = value.reshape(value.shape[0], n, height, width, block, block, -1).permute(0, 1, 2, 4, 3, 5, 6)
    call.set(parts.reshape(value.shape[0], *call.output_shape()))


def _taps(size: int, out: int, align_corners: bool, half_pixels: bool) -> Tuple[int, List[Tuple[int, int, int]]]:
    """The smallest denominator of all positions along an axis, and for each of them (low pixel, high pixel, weight of high)."""
    if size == 1:
        return 1, [(0, 0, 0)] * out
    trim = 1 if align_corners and out > 1 else 0
    numerators = [(2 * i + 1) * (size - trim) - (out - trim) if half_pixels else i * (size - trim) for i in range(out)]
    unit = (2 if half_pixels else 1) * (out - trim)
    common = math.gcd(unit, *numerators)
    denominator, taps = unit // common, []
    for numerator in numerators:
        low, weight = divmod(numerator // common, denominator)
        taps.append((min(max(low, 0), size - 1), min(max(low + 1, 0), size - 1), weight))
    return denominator, taps


def _along(value: Tensor, axis: int, denominator: int, taps: List[Tuple[int, int, int]]) -> Tensor:
    """Weighted sums of two neighbours, weights that add up to the denominator."""
    low, high, weight = (numbers_on(value.device, column) for column in zip(*taps))
    sizes = [1] * value.dim()
    sizes[axis] = len(taps)
    weights = weight.to(value.dtype).reshape(sizes)
    return value.index_select(axis, low) * (denominator - weights) + value.index_select(axis, high) * weights


def resize_bilinear(call: Call) -> None:
    if call.shape(0) == call.output_shape():
        return call.set(call.value(0))
    align, half = call.attribute("align_corners", False), call.attribute("half_pixel_centers", False)
    rows = _taps(call.shape(0)[1], call.output_shape()[1], align, half)
    columns = _taps(call.shape(0)[2], call.output_shape()[2], align, half)
    total = rows[0] * columns[0]
    if total > 128:
        raise call.unsupported(f"weights in units of 1/{total}")
    zero = call.output_affine().zero
    part = torch.ones((), device=call.value(0).device) / float(total)
    sums = _along(_along(call.value(0) + float(zero), 2, *rows), 3, *columns)
    return call.set(rounded(sums * part, 0.0, 255.0) - float(zero))


def _nearest(size: int, out: int, align_corners: bool, half_pixels: bool) -> List[int]:
    """TFLite's rule, in float32 as it computes it."""
    corners = align_corners and out > 1
    scale = np.float32(size - 1 if corners else size) / np.float32(out - 1 if corners else out)
    at = [np.float32(np.float32(i) + np.float32(0.5 if half_pixels else 0.0)) * scale for i in range(out)]
    return [min(int(math.floor(x + 0.5) if align_corners else math.floor(x)), size - 1) for x in map(float, at)]


def resize_nearest_neighbor(call: Call) -> None:
    align, half, value = call.attribute("align_corners", False), call.attribute("half_pixel_centers", False), call.value(0)
    for axis in (1, 2):
        chosen = _nearest(call.shape(0)[axis], call.output_shape()[axis], align, half)
        value = value.index_select(axis + 1, numbers_on(value.device, tuple(chosen)))
    call.set(value)


TWINS = {"RESHAPE": reshape, "SQUEEZE": reshape, "EXPAND_DIMS": reshape, "PAD": pad, "TRANSPOSE": transpose, "SLICE": slice_,
         "STRIDED_SLICE": strided_slice, "SPLIT": split, "SPLIT_V": split_v, "UNPACK": unpack, "PACK": pack, "TILE": tile,
         "SPACE_TO_DEPTH": space_to_depth, "DEPTH_TO_SPACE": depth_to_space, "CONCATENATION": concatenation,
         "RESIZE_BILINEAR": resize_bilinear, "RESIZE_NEAREST_NEIGHBOR": resize_nearest_neighbor}
