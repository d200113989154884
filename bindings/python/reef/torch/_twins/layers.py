# SPDX-License-Identifier: Apache-2.0
"""Convolutions, fully connected layers, products of two tensors, pooling: exact sums, brought to the output's scale once."""

from __future__ import annotations

import math
from typing import Callable, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .._arithmetic import Affine, exact_sum, fitted, is_float, requantized
from .call import Call

_CODES = 255.0  # the largest difference of two codes


def _window(call: Call, axis: int, taps: int, suffix: str) -> Tuple[int, int, int, int]:
    """Stride, dilation, padding before and behind along a dimension of the image."""
    size, out = call.shape(0)[axis], call.output_shape()[axis]
    stride, dilation = call.attribute(f"stride_{suffix}", 1), call.attribute(f"dilation_{suffix}_factor", 1) or 1
    reach = (taps - 1) * dilation + 1
    missing = max((out - 1) * stride + reach - size, 0)
    before = missing // 2 if call.attribute("padding") == "SAME" else 0
    return stride, dilation, before, missing - before


def _images(x: Tensor) -> Tensor:
    """[batch, n, height, width, channels] as [batch * n, channels, height, width]."""
    return x.flatten(0, 1).permute(0, 3, 1, 2)


def _as_graph(y: Tensor, batch: int) -> Tensor:
    return y.permute(0, 2, 3, 1).unflatten(0, (batch, -1))


def layer_multiplier(source: Affine, weight_scales: Tensor, out: Affine) -> Tensor:
    """(1/s_out) * (s_in * s_w), as chip_layer_multiplier."""
    return (1.0 / out.scale) * (source.scale * weight_scales)


def _bound(weights: Tensor, bias: Tensor, channel: int) -> float:
    if weights.is_cuda:  # exact_sum() takes float64 there, whatever the bound is
        return math.inf
    with torch.no_grad():
        others = [d for d in range(weights.dim()) if d != channel]
        return float((weights.abs().sum(others).double() * _CODES + bias.abs()).max())


def _finish(call: Call, function: Callable[[Tensor, Tensor, Tensor], Tensor], data: Tensor, weights: Tensor, bias: Tensor,
            scales: Tensor, source: Affine, channel: int, out_channel: int) -> Tensor:
    """The layer's codes. `function` sums products of data and weights, whose dimension of the outputs is `channel`, and adds the bias; the
    sum's dimension of the outputs is `out_channel`."""
    out = call.output_affine()
    multiplier = layer_multiplier(source, scales, out)

    def along(dimension: int, rank: int) -> Tensor:
        return multiplier.reshape([-1 if d == dimension else 1 for d in range(rank)])

    if is_float():  # multiplying the weights takes less time than multiplying the sums
        real = function(data, weights * along(channel, weights.dim()), bias * multiplier)
        return fitted(real, out, call.activation)
    total = exact_sum(function, _bound(weights, bias, channel), data, weights, bias)
    return requantized(total, along(out_channel % total.dim(), total.dim()), out, call.activation)


def _convolve(call: Call, groups: int, weights: Tensor, scales: Tensor) -> None:
    """`weights` as PyTorch has them: [outputs, inputs of a group, height, width]."""
    source, x = call.affine(0), call.value(0)
    stride_y, dilation_y, top, bottom = _window(call, 1, weights.shape[2], "h")
    stride_x, dilation_x, left, right = _window(call, 2, weights.shape[3], "w")
    bias = call.bias(2, source.scale, scales, weights.shape[0])

    def convolved(data: Tensor, kernel: Tensor, offset: Tensor) -> Tensor:
        symmetric = top == bottom and left == right
        padded = data if symmetric else F.pad(data, (left, right, top, bottom))
        return F.conv2d(padded, kernel, offset.to(data.dtype), (stride_y, stride_x), (top, left) if symmetric else 0,
                        (dilation_y, dilation_x), groups)

    call.set(_as_graph(_finish(call, convolved, _images(x), weights, bias, scales, source, 0, 1), x.shape[0]))


def conv_2d(call: Call) -> None:
    weights, scales = call.weights(1)
    if weights.shape[3] != call.shape(0)[3]:
        raise call.unsupported("a grouped convolution")
    _convolve(call, 1, weights.permute(0, 3, 1, 2), scales)


def depthwise_conv_2d(call: Call) -> None:
    weights, scales = call.weights(1)  # [1, height, width, outputs]
    _convolve(call, call.shape(0)[3], weights.permute(3, 0, 1, 2), scales)


def fully_connected(call: Call) -> None:
    weights, scales = call.weights(1)
    source, x = call.affine(0), call.value(0)
    bias = call.bias(2, source.scale, scales, weights.shape[0])

    def product(data: Tensor, kernel: Tensor, offset: Tensor) -> Tensor:
        return F.linear(data, kernel, offset.to(data.dtype))

    y = _finish(call, product, x.reshape(x.shape[0], -1, weights.shape[1]), weights, bias, scales, source, 0, -1)
    call.set(y.reshape(x.shape[0], *call.output_shape()))


def transpose_conv(call: Call) -> None:
    weights, scales = call.weights(1)  # [outputs, height, width, inputs]
    source, x = call.affine(2), call.value(2)
    bias = call.bias(3, source.scale, scales, weights.shape[0])
    stride = (call.attribute("stride_h"), call.attribute("stride_w"))
    sizes, kernel = call.output_shape()[1:3], weights.shape[1:3]
    before = []
    for d in (0, 1):
        same = call.attribute("padding") == "SAME"
        forward = (sizes[d] + stride[d] - 1) // stride[d] if same else (sizes[d] + stride[d] - kernel[d]) // stride[d]
        before.append(max((forward - 1) * stride[d] + kernel[d] - sizes[d], 0) // 2)

    def spread(data: Tensor, taps: Tensor, offset: Tensor) -> Tensor:
        whole = F.conv_transpose2d(data, taps, None, stride)
        right = max(before[1] + sizes[1] - whole.shape[3], 0)
        below = max(before[0] + sizes[0] - whole.shape[2], 0)
        whole = F.pad(whole, (0, right, 0, below))
        cut = whole[:, :, before[0]:before[0] + sizes[0], before[1]:before[1] + sizes[1]]
        return cut + offset.to(data.dtype).reshape(1, -1, 1, 1)

    taps = weights.permute(3, 0, 1, 2)
    call.set(_as_graph(_finish(call, spread, _images(x), taps, bias, scales, source, 1, 1), x.shape[0]))


def batch_matmul(call: Call) -> None:
    a, b, out = call.affine(0), call.affine(1), call.output_affine()
    x, y = call.value(0), call.value(1)
    x = x.transpose(-1, -2) if call.attribute("adj_x", False) else x
    y = y.transpose(-1, -2) if call.attribute("adj_y", False) else y
    rank = max(x.dim(), y.dim())  # the batch stays in front
    x = x.reshape(x.shape[0], *[1] * (rank - x.dim()), *x.shape[1:])
    y = y.reshape(y.shape[0], *[1] * (rank - y.dim()), *y.shape[1:])
    total = exact_sum(torch.matmul, _CODES * _CODES * x.shape[-1], x, y)
    call.set(requantized(total, (1.0 / out.scale) * (a.scale * b.scale), out))


def _pool_padding(call: Call) -> Tuple[Tuple[int, int], Tuple[int, int], Tuple[int, int, int, int]]:
    taps = (call.attribute("filter_height"), call.attribute("filter_width"))
    stride_y, _, top, bottom = _window(call, 1, taps[0], "h")
    stride_x, _, left, right = _window(call, 2, taps[1], "w")
    return taps, (stride_y, stride_x), (left, right, top, bottom)


def average_pool_2d(call: Call) -> None:
    source, out, x = call.affine(0), call.output_affine(), call.value(0)
    taps, stride, padding = _pool_padding(call)
    images = _images(x)
    sums = F.avg_pool2d(F.pad(images, padding), taps, stride, divisor_override=1)
    inside = F.pad(torch.ones(1, 1, *images.shape[2:], device=x.device), padding)
    counts = F.avg_pool2d(inside, taps, stride, divisor_override=1).clamp(min=1.0)
    part = 1.0 / counts
    is_whole = tuple(call.output_shape()[1:3]) == (1, 1) and taps == tuple(call.shape(0)[1:3])
    inverse = 1.0 / out.scale
    multiplier = inverse * (source.scale * part) if is_whole else part * (source.scale * inverse)
    call.set(_as_graph(requantized(sums, multiplier, out, call.activation), x.shape[0]))


def max_pool_2d(call: Call) -> None:
    out, x = call.output_affine(), call.value(0)
    taps, stride, padding = _pool_padding(call)
    largest = F.max_pool2d(F.pad(_images(x), padding, value=float("-inf")), taps, stride)
    one = torch.ones((), device=x.device)
    call.set(_as_graph(requantized(largest, one, out, call.activation), x.shape[0]))


TWINS = {"CONV_2D": conv_2d, "DEPTHWISE_CONV_2D": depthwise_conv_2d, "FULLY_CONNECTED": fully_connected,
         "TRANSPOSE_CONV": transpose_conv, "BATCH_MATMUL": batch_matmul, "AVERAGE_POOL_2D": average_pool_2d,
         "MAX_POOL_2D": max_pool_2d}
