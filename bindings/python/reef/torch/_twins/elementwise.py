# SPDX-License-Identifier: Apache-2.0
"""Sums, products, extremes and copies between scales, element by element."""

from __future__ import annotations

import torch
from torch import Tensor

from .._arithmetic import add_unit, add_weights, clamp_limits, finished, requantized, rescaled, rounded
from .call import Call
from .tables import by_table, is_table_function


def spread(call: Call, i: int) -> Tensor:
    """An operand with as many dimensions as the output: missing ones stand behind the batch."""
    value, rank = call.value(i), len(call.output_shape())
    return value.reshape(value.shape[0], *[1] * (rank + 1 - value.dim()), *value.shape[1:])


def _is_one_constant(call: Call, i: int) -> bool:
    """A constant number, or one for each channel, beside an operand of the output's shape."""
    if not call.is_constant(i) or call.is_constant(1 - i) or call.shape(1 - i) != call.output_shape():
        return False
    elements = 1
    for size in call.shape(i):
        elements *= size
    shape = call.output_shape()
    return elements == 1 or (len(shape) > 0 and len(call.shape(i)) > 0 and elements == shape[-1] == call.shape(i)[-1])


def _filled(call: Call, y: Tensor) -> Tensor:
    return y.expand(y.shape[0], *call.output_shape()) if y.shape[1:] != call.output_shape() else y


def _add_tensors(call: Call, sign: float) -> None:
    a, b, out = call.affine(0), call.affine(1), call.output_affine()
    ua, ub = spread(call, 0), spread(call, 1)

    def exact() -> Tensor:
        weight_a, weight_b, denominator = add_weights(a.number, b.number)
        multiplier = (1.0 / out.scale) * add_unit(a, b, denominator)
        total = float(weight_a) * ua + float(sign * weight_b) * ub
        low, high = clamp_limits(out, call.activation)
        return rounded(torch.clamp(total * multiplier, low, high), -out.zero, 255 - out.zero)

    real = ua * a.scale + ub * (sign * b.scale)
    call.set(_filled(call, finished(exact, real, out, call.activation)))


def _add_constant(call: Call, variable: int, sign: float, whole_sign: float) -> None:
    """The constant is a bias in units of the input's scale (chip_constant_bias)."""
    source, other, out = call.affine(variable), call.affine(1 - variable), call.output_affine()
    constant = call.value(1 - variable).reshape(-1)
    units = (constant.double() * sign * other.scale.double()) / source.scale.double()
    bias = rounded(units, -2.0**31, 2.0**31 - 1).to(torch.float32)
    multiplier = whole_sign * ((1.0 / out.scale) * source.scale)
    call.set(requantized(call.value(variable) + bias, multiplier, out, call.activation))


def add(call: Call) -> None:
    if _is_one_constant(call, 1):
        return _add_constant(call, 0, 1.0, 1.0)
    if _is_one_constant(call, 0):
        return _add_constant(call, 1, 1.0, 1.0)
    return _add_tensors(call, 1.0)


def sub(call: Call) -> None:
    if _is_one_constant(call, 0):
        return _add_constant(call, 1, -1.0, -1.0)
    if _is_one_constant(call, 1):
        return _add_constant(call, 0, -1.0, 1.0)
    return _add_tensors(call, -1.0)


def _mul_constant(call: Call, variable: int) -> None:
    source, other, out = call.affine(variable), call.affine(1 - variable), call.output_affine()
    constant = other.scale * call.value(1 - variable).reshape(-1)
    multiplier = (1.0 / out.scale) * (source.scale * constant)
    call.set(requantized(call.value(variable), multiplier, out, call.activation))


def mul(call: Call) -> None:
    if is_table_function(call):
        return by_table(call)
    if _is_one_constant(call, 1):
        return _mul_constant(call, 0)
    if _is_one_constant(call, 0):
        return _mul_constant(call, 1)
    a, b, out = call.affine(0), call.affine(1), call.output_affine()
    multiplier = (1.0 / out.scale) * (a.scale * b.scale)
    product = spread(call, 0) * spread(call, 1)
    return call.set(_filled(call, requantized(product, multiplier, out, call.activation)))


def _extreme(call: Call, is_maximum: bool) -> None:
    """a - 2 * min(round((a - b) / 2), 0): one off where the difference is odd; exact with a constant."""
    out, a, b = call.output_affine(), spread(call, 1), spread(call, 0)
    truth = torch.maximum(a, b) if is_maximum else torch.minimum(a, b)
    if call.is_constant(0) or call.is_constant(1):
        return call.set(_filled(call, truth))

    def exact() -> Tensor:
        half = (1.0 / out.scale) * (out.scale / 2.0)
        limits = (-128.0, 0.0) if is_maximum else (0.0, 127.0)
        limited = torch.round(((a - b) * half).clamp(*limits))
        low, high = clamp_limits(out, "NONE")
        return rounded(torch.clamp(a - 2.0 * limited, low, high), -out.zero, 255 - out.zero)

    return call.set(_filled(call, finished(exact, truth * out.scale, out)))


def maximum(call: Call) -> None:
    _extreme(call, True)


def minimum(call: Call) -> None:
    _extreme(call, False)


def squared_difference(call: Call) -> None:
    """The difference as float32, which is not rounded, and its square by a table of one polynomial (chip_square)."""
    a, b, out = call.affine(0), call.affine(1), call.output_affine()
    ua, ub = spread(call, 0), spread(call, 1)

    def exact() -> Tensor:
        weight_a, weight_b, denominator = add_weights(a.number, b.number)
        difference = (float(weight_a) * ua - float(weight_b) * ub) * add_unit(a, b, denominator)
        return rounded(((1.0 / out.scale) * difference) * difference, -out.zero, 255 - out.zero)

    real = ua * a.scale - ub * b.scale
    call.set(_filled(call, finished(exact, real * real, out)))


def prelu(call: Call) -> None:
    """The positive part and the negative part times the slope, each rounded, then added."""
    source, other, out = call.affine(0), call.affine(1), call.output_affine()
    if not _is_one_constant(call, 1):
        raise call.unsupported("a slope that is neither one number nor one for each channel")
    x, slope = call.value(0), other.scale * call.value(1).reshape(-1)

    def exact() -> Tensor:
        low, high = clamp_limits(out, "NONE")
        above = torch.round(torch.clamp(x * ((1.0 / out.scale) * source.scale), torch.zeros_like(high), high))
        below = torch.clamp(x.clamp(max=0.0) * ((1.0 / out.scale) * (source.scale * slope)), low, high)
        parts = rounded(above, -out.zero, 255 - out.zero) + rounded(below, -out.zero, 255 - out.zero)
        return rounded(torch.clamp(parts, low, high), -out.zero, 255 - out.zero)

    real = x * source.scale
    call.set(finished(exact, torch.where(x > 0, real, real * slope), out))


def _copy(activation: str):
    def twin(call: Call) -> None:
        call.set(rescaled(call.value(0), call.affine(0), call.output_affine(), activation))
    return twin


TWINS = {"ADD": add, "SUB": sub, "MUL": mul, "MAXIMUM": maximum, "MINIMUM": minimum, "SQUARED_DIFFERENCE": squared_difference,
         "PRELU": prelu, "QUANTIZE": _copy("NONE"), "RELU": _copy("RELU"), "RELU6": _copy("RELU6"),
         "RELU_N1_TO_1": _copy("RELU_N1_TO_1")}
