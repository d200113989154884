# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes over dimensions."""

from __future__ import annotations

from typing import List

import torch
from torch import Tensor

from .._arithmetic import exact_sum, requantized
from .call import Call


def _axes(call: Call) -> List[int]:
    """Dimensions of the value, batch in front, that are reduced."""
    rank = len(call.shape(0))
    return sorted({(axis + rank) % rank + 1 for axis in call.numbers(1)})


def _shaped(call: Call, y: Tensor) -> Tensor:
    return y.reshape(y.shape[0], *call.output_shape())


def _total(call: Call, is_mean: bool) -> None:
    source, out, u = call.affine(0), call.output_affine(), call.value(0)
    axes = _axes(call)
    count = 1
    for axis in axes:
        count *= u.shape[axis]
    total = exact_sum(lambda x: x.sum(axes), 255.0 * count, u) if axes else u
    inverse = 1.0 / out.scale
    part = torch.ones((), device=u.device) / float(count)
    multiplier = inverse * (source.scale * part) if is_mean else inverse * source.scale
    call.set(_shaped(call, requantized(total, multiplier, out)))


def mean(call: Call) -> None:
    _total(call, True)


def total(call: Call) -> None:
    _total(call, False)


def reduce_max(call: Call) -> None:
    axes = _axes(call)
    call.set(_shaped(call, call.value(0).amax(axes) if axes else call.value(0)))


def reduce_min(call: Call) -> None:
    axes = _axes(call)
    call.set(_shaped(call, call.value(0).amin(axes) if axes else call.value(0)))


TWINS = {"MEAN": mean, "SUM": total, "REDUCE_MAX": reduce_max, "REDUCE_MIN": reduce_min}
