# SPDX-License-Identifier: Apache-2.0
"""Layers for bench/onnx_by_hand.py, with attributes drawn at random: convolutions, pools, resizing, padding, normalizations."""

import numpy as np

from onnx_network import construct, spatial, windows


@construct((3, 4, 5))
def conv(n):
    kernel, stride, pads = windows(n)
    c = n.shape[1]
    group = n.pick(1, 1, c, 2 if c % 2 == 0 else 1)
    out = group * n.between(1, 2) if group == c else group * n.between(2, 4)
    w = n.weights(out, c // group, *kernel)
    dilations = [n.between(1, 2) if k > 1 and s == 1 else 1 for k, s in zip(kernel, stride)]
    if "auto_pad" in pads and pads["auto_pad"] != "VALID":
        dilations = None
    bias = [n.weights(out)] if n.flip() else []
    n.go_on(n.node("Conv", [n.at, w, *bias], strides=stride if n.flip(0.8) or max(stride) > 1 else None, group=group,
                   dilations=dilations, kernel_shape=kernel if n.flip() else None, **pads))


@construct((3, 4, 5))
def conv_transpose(n):
    kernel = [n.between(1, 4) for _ in spatial(n)]
    stride = [n.between(1, 3) for _ in kernel]
    c = n.shape[1]
    group = n.pick(1, 1, 2 if c % 2 == 0 else 1, c)
    w = n.weights(c, n.between(1, 3), *kernel)
    way = n.between(0, 3)
    attributes = {}
    if way == 0:
        attributes["pads"] = [n.between(0, k // 2) for k in kernel * 2]
        attributes["output_padding"] = [n.between(0, s - 1) for s in stride]
    elif way == 1:
        attributes["auto_pad"] = n.pick("SAME_UPPER", "SAME_LOWER")
    elif way == 2:
        attributes["output_shape"] = [size * s + n.between(0, 1) for size, s in zip(spatial(n), stride)]
    bias = [n.weights(w_out(n, w) * group)] if n.flip() else []
    dilations = [n.between(1, 2) for _ in kernel] if way == 3 else None
    n.go_on(n.node("ConvTranspose", [n.at, w, *bias], strides=stride, group=group, dilations=dilations, **attributes))


def w_out(n, name):
    return next(t for t in n.constants if t.name == name).dims[1]


@construct((3, 4))
def pool(n):
    kernel, stride, pads = windows(n, 4)
    kind = n.pick("MaxPool", "AveragePool", "LpPool")
    attributes = dict(kernel_shape=kernel, strides=stride, **pads)
    if kind != "LpPool" and n.opset >= 10 and "pads" in pads:
        attributes["ceil_mode"] = n.between(0, 1)
    if kind == "MaxPool" and n.opset >= 10 and "pads" in pads and n.flip(0.3):
        attributes["dilations"] = [n.between(1, 2) for _ in kernel]
    if kind == "AveragePool":
        attributes["count_include_pad"] = n.between(0, 1)
    if kind == "LpPool":
        attributes["p"] = n.between(1, 2)
    n.go_on(n.node(kind, [n.at], **attributes))


@construct((3, 4, 5))
def global_pool(n):
    n.go_on(n.node(n.pick("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), [n.at]))


@construct((4,), 10)
def resize(n):
    mode = n.pick("nearest", "linear", "linear", "cubic" if n.opset >= 11 else "nearest")
    factors = [1.0, 1.0, *(n.pick(0.5, 1.5, 2.0, 2.0, 3.0, 0.7) for _ in spatial(n))]
    if n.opset == 10:
        return n.go_on(n.node("Resize", [n.at, n.constant(factors)], mode=mode))
    ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] + (["half_pixel_symmetric"] if n.opset >= 19 else [])
    attributes = dict(mode=mode, coordinate_transformation_mode=n.pick(*ways))
    if mode == "nearest":
        attributes["nearest_mode"] = n.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attributes |= dict(cubic_coeff_a=n.pick(-0.5, -0.75), exclude_outside=n.between(0, 1))
    if n.opset >= 18 and mode != "nearest" and n.flip(0.3):
        attributes["antialias"] = 1
    no_roi = n.constant([]) if n.opset < 13 else ""
    sizes = [int(round(s * f)) for s, f in zip(n.shape, factors)]
    if n.opset >= 18 and n.flip(0.3):
        attributes["axes"], factors, sizes = [2, 3], factors[2:], sizes[2:]
    if n.flip():
        return n.go_on(n.node("Resize", [n.at, no_roi, n.constant(factors)], **attributes))
    no_scales = n.constant([]) if n.opset < 13 else ""
    n.go_on(n.node("Resize", [n.at, no_roi, no_scales, n.constant(sizes, np.int64)], **attributes))


@construct((4,))
def upsample(n):
    if n.opset > 9:
        return resize(n)
    factors = [1.0, 1.0, 2.0, n.pick(2.0, 3.0)]
    mode = n.pick("nearest", "linear")
    if n.opset < 9:
        return n.go_on(n.node("Upsample", [n.at], mode=mode, scales=factors))
    n.go_on(n.node("Upsample", [n.at, n.constant(factors)], mode=mode))


@construct((2, 3, 4, 5))
def pad(n):
    mode = n.pick("constant", "reflect", "edge", "wrap" if n.opset >= 19 else "edge")
    ends = lambda size: n.between(-1 if mode == "constant" else 0, min(2, size - 1))  # noqa: E731
    sizes = [0 if i < 1 else ends(size) for _ in range(2) for i, size in enumerate(n.shape)]
    value = n.pick(0.0, 0.5, -1.0) if mode == "constant" else None
    if n.opset < 11:
        return n.go_on(n.node("Pad", [n.at], mode=mode, pads=sizes, value=value))
    inputs = [n.at, n.constant(sizes, np.int64)] + ([n.constant(value)] if value is not None and n.flip() else [])
    if n.opset >= 18 and n.flip(0.3):
        inputs = [n.at, n.constant([1, 0, 2, 1], np.int64), "", n.constant([-1, -2], np.int64)]
    n.go_on(n.node("Pad", inputs, mode=mode))


@construct((2, 3, 4, 5))
def batch_norm(n):
    c = n.shape[1]
    r = n.random
    values = [n.constant(v) for v in (r.uniform(0.5, 1.5, c), r.normal(0, 0.5, c), r.normal(0, 0.5, c), r.uniform(0.3, 2, c))]
    n.go_on(n.node("BatchNormalization", [n.at, *values], epsilon=n.pick(None, 1e-3)))


@construct((3, 4, 5))
def instance_norm(n):
    c = n.shape[1]
    n.go_on(n.node("InstanceNormalization", [n.at, n.constant(n.random.uniform(0.5, 1.5, c)), n.weights(c)], epsilon=1e-4))


@construct((3, 4), 18)
def group_norm(n):
    c = n.shape[1]
    groups = n.pick(*(g for g in range(1, c + 1) if c % g == 0))
    size = c if n.opset >= 21 else groups
    n.go_on(n.node("GroupNormalization", [n.at, n.constant(n.random.uniform(0.5, 1.5, size)), n.weights(size)], num_groups=groups))


@construct((2, 3, 4), 17)
def layer_norm(n):
    axis = n.between(1, len(n.shape) - 1)
    shape = n.shape[axis:]
    bias = [n.constant(n.random.normal(0, 0.3, shape))] if n.flip() else []
    axis = axis - len(n.shape) if n.flip() else axis
    n.go_on(n.node("LayerNormalization", [n.at, n.constant(n.random.uniform(0.5, 1.5, shape)), *bias], axis=axis))


@construct((3, 4))
def other_norm(n):
    if len(n.shape) == 4 and n.flip(0.4):
        return n.go_on(n.node("LRN", [n.at], size=n.pick(3, 5), alpha=0.01, beta=0.6, bias=1.5))
    if n.opset >= 9 and n.flip():
        axes = sorted(set(n.pick([1], [2], [0, 2], [1, 2])))
        return n.go_on(n.node("MeanVarianceNormalization", [n.at], axes=axes))
    n.go_on(n.node("LpNormalization", [n.at], axis=n.pick(1, -1), p=n.between(1, 2)))
