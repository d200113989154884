# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and DEPTHWISE_CONV_2D in every type combination that TFLite's reference kernels know.

A Geometry says what is convolved, a flavour (FLAVOURS) with which types and quantization. Shapes are drawn at random
from seeds that are the cases' names, so adding a case leaves the others as they are.
"""

import dataclasses

import numpy as np

from cases._scales import fit, limits, random_quantized
from onemodel import Model, seeded

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]


@dataclasses.dataclass
class Geometry:
    """Sizes as (height, width). groups > 1 is a grouped CONV_2D; depth_multiplier is for depthwise only."""
    batch: int = 1
    size: tuple = (6, 5)
    channels_in: int = 3
    channels_out: int = 4
    kernel: tuple = (3, 3)
    stride: tuple = (1, 1)
    dilation: tuple = (1, 1)
    padding: str = "SAME"
    groups: int = 1
    depth_multiplier: int = 1
    bias: bool = True
    activation: str = "NONE"

    def output_size(self):
        if self.padding == "SAME":
            return [-(-n // s) for n, s in zip(self.size, self.stride)]
        span = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation)]
        return [(n - k) // s + 1 for n, k, s in zip(self.size, span, self.stride)]


@dataclasses.dataclass
class Flavour:
    """Element types, and how weights are quantized: None, "per_tensor" or "per_channel"."""
    activations: str
    weights: str
    bias: str
    weight_quantization: str = None
    weight_zero_point: bool = False  # asymmetric weights, as uint8 models have


FLAVOURS = {
    "float": Flavour("float32", "float32", "float32"),
    "int8_per_channel": Flavour("int8", "int8", "int32", "per_channel"),
    "int8_per_tensor": Flavour("int8", "int8", "int32", "per_tensor"),
    "uint8": Flavour("uint8", "uint8", "int32", "per_tensor", weight_zero_point=True),
    "int16x8_bias64": Flavour("int16", "int8", "int64", "per_channel"),
    "int16x8_bias32": Flavour("int16", "int8", "int32", "per_channel"),
    "hybrid_per_tensor": Flavour("float32", "int8", "float32", "per_tensor"),
    "hybrid_per_channel": Flavour("float32", "int8", "float32", "per_channel"),
    "int8_weights4": Flavour("int8", "int4", "int32", "per_channel"),
}

# int16 depthwise takes 64-bit biases only. With hybrid weights of a single scale the runtime reads one scale per
# channel regardless, past the end of the array, so that its result means nothing.
NOT_FOR_DEPTHWISE = ("int16x8_bias32", "hybrid_per_tensor")


def accumulate(x, w, geometry, depthwise):
    """Plain sums of products in numpy. Only used to choose biases and scales, never as an expectation."""
    g = geometry
    out_h, out_w = g.output_size()
    before = [0, 0]
    if g.padding == "SAME":
        before = [max((o - 1) * s + (k - 1) * d + 1 - n, 0) // 2
                  for o, s, k, d, n in zip((out_h, out_w), g.stride, g.kernel, g.dilation, g.size)]
    reach = [g.stride[i] * (out_h, out_w)[i] + g.dilation[i] * g.kernel[i] for i in range(2)]
    x = np.pad(x, [(0, 0), (before[0], reach[0]), (before[1], reach[1]), (0, 0)])
    total = 0
    for ky in range(g.kernel[0]):
        for kx in range(g.kernel[1]):
            top, left = ky * g.dilation[0], kx * g.dilation[1]
            patch = x[:, top:top + out_h * g.stride[0]:g.stride[0], left:left + out_w * g.stride[1]:g.stride[1]]
            if depthwise:
                total = total + np.repeat(patch, g.depth_multiplier, axis=3) * w[0, ky, kx]
                continue
            parts = zip(np.split(patch, g.groups, axis=3), np.split(w[:, ky, kx], g.groups))
            total = total + np.concatenate([p @ q.T for p, q in parts], axis=3)
    return total


def random_weights(rng, flavour, shape, limit=None):
    if flavour.weights == "float32":
        return rng.uniform(-1, 1, shape).astype(np.float32)
    low, high = {"int8": (-127, 127), "uint8": (0, 255), "int4": (-7, 7)}[flavour.weights]
    if limit:
        low, high = -limit, limit
    return rng.randint(low, high + 1, shape)


def build(operator, geometry, flavour, rng, zero_points=None, **choices):
    """Model and inputs of one convolution. zero_points: (input, weights, output), random or fitted where None."""
    g = geometry
    depthwise = operator == "DEPTHWISE_CONV_2D"
    channels_out = g.channels_in * g.depth_multiplier if depthwise else g.channels_out
    weight_shape = [1, *g.kernel, channels_out] if depthwise else [channels_out, *g.kernel, g.channels_in // g.groups]
    input_shape = [g.batch, *g.size, g.channels_in]
    make = build_float if flavour.activations == "float32" else build_quantized
    m = Model()
    x, w, b, y, values = make(m, g, flavour, rng, depthwise, input_shape, weight_shape, channels_out, zero_points, **choices)
    fields = {"depth_multiplier": g.depth_multiplier} if depthwise else {}
    if flavour.activations == "int16" and flavour.bias == "int32":
        fields["quantized_bias_type"] = "int32"  # without it the runtime reads the bias as 64-bit
    m.op(operator, [x, w] if b is None else [x, w, b], [m.output(y)], padding=g.padding, stride_h=g.stride[0],
         stride_w=g.stride[1], dilation_h_factor=g.dilation[0], dilation_w_factor=g.dilation[1],
         fused_activation_function=g.activation, **fields)
    return m, [values]


def build_float(m, g, flavour, rng, depthwise, input_shape, weight_shape, channels_out, _):
    """Float activations, with float weights or with int8 weights (which the runtime calls hybrid)."""
    params = {}
    if flavour.weight_quantization:
        per_channel = flavour.weight_quantization == "per_channel"
        params = {"scale": rng.uniform(0.001, 0.02, channels_out if per_channel else 1),
                  "axis": 3 if depthwise and per_channel else 0}
    x = m.input("x", "float32", input_shape)
    w = m.const("w", random_weights(rng, flavour, weight_shape), flavour.weights, **params)
    b = m.const("b", rng.uniform(-1, 1, channels_out).astype(np.float32)) if g.bias else None
    y = m.tensor("y", "float32", [g.batch, *g.output_size(), channels_out])
    return x, w, b, y, rng.uniform(-2, 2, input_shape).astype(np.float32)


def build_quantized(m, g, flavour, rng, depthwise, input_shape, weight_shape, channels_out, zero_points,
                    weight_limit=None, bias_limit=None, output_ratio=None):
    """weight_limit, bias_limit: largest magnitudes; output_ratio: output scale over (input scale * mean weight scale)."""
    dtype = flavour.activations
    pick_zero = lambda: 0 if dtype == "int16" else int(rng.randint(limits(dtype)[0], limits(dtype)[1] + 1))
    zero_in, zero_weights, zero_out = zero_points or (pick_zero(), pick_zero(), None)
    if not flavour.weight_zero_point:
        zero_weights = 0
    values, weights = random_quantized(rng, dtype, input_shape), random_weights(rng, flavour, weight_shape, weight_limit)
    if weight_limit:
        weights = weights + zero_weights
    sums = accumulate(values.astype(np.int64) - zero_in, weights.astype(np.int64) - zero_weights, g, depthwise)
    bias = np.zeros(channels_out, np.int64)
    if g.bias:  # undo a channel's mean, which zero points far off the centre make large, and add some of its spread
        spread = int(sums.std()) + 1
        bias = -sums.mean(axis=(0, 1, 2)).astype(np.int64) + rng.randint(-spread, spread + 1, channels_out)
    if bias_limit:
        bias = (rng.uniform(-1, 1, channels_out) * bias_limit).astype(np.int64)
    sums = sums + bias

    # Scales such that the results are a few units wide, where RELU6 and its kind matter.
    input_scale = float(rng.uniform(0.005, 0.1))
    per_channel = flavour.weight_quantization == "per_channel"
    weight_scales = rng.uniform(0.3, 1.0, channels_out if per_channel else 1)
    width = np.sqrt(((sums * input_scale * weight_scales) ** 2).mean())
    weight_scales *= 3.0 / max(width, input_scale)
    scale, fitted_zero = fit(sums * input_scale * weight_scales, dtype)
    if output_ratio:
        scale = float(input_scale * weight_scales.mean() * output_ratio)
    if dtype == "int16":  # multipliers of 2^7 and more are beyond what the runtime's 64-bit scaling defines
        scale = max(scale, float(input_scale * weight_scales.max() / 100))
    x = m.input("x", dtype, input_shape, scale=input_scale, zero_point=zero_in)
    w = m.const("w", weights, flavour.weights, scale=weight_scales, zero_point=zero_weights,
                axis=3 if depthwise and per_channel else 0)
    b = m.const("b", bias, flavour.bias, scale=input_scale * weight_scales) if g.bias else None
    y = m.tensor("y", dtype, [g.batch, *g.output_size(), channels_out], scale=scale,
                 zero_point=fitted_zero if zero_out is None else zero_out)
    return x, w, b, y, values


def random_geometry(rng, depthwise):
    """A small convolution whose window fits the input also when padding is VALID."""
    pick = lambda options: options[rng.randint(len(options))]
    kernel = (pick([1, 2, 3, 5]), pick([1, 2, 3, 4]))
    dilation = pick([(1, 1)] * 4 + [(2, 1), (1, 3), (2, 2)])
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    stride = (1, 1) if dilation != (1, 1) and rng.randint(2) else pick([(1, 1), (1, 1), (2, 2), (2, 1), (1, 3)])
    channels_in = pick([1, 2, 3, 5, 8])
    return Geometry(
        batch=pick([1, 1, 1, 2]), size=(max(span[0], rng.randint(1, 8)), max(span[1], rng.randint(1, 8))),
        channels_in=channels_in, channels_out=pick([1, 2, 3, 5, 8]), kernel=kernel, stride=stride, dilation=dilation,
        padding=pick(["SAME", "VALID"]), depth_multiplier=pick([1, 1, 2, 3]) if depthwise else 1,
        bias=not depthwise or bool(rng.randint(4)), activation=pick(ACTIVATIONS))


NAMED_GEOMETRIES = {
    "one_by_one": Geometry(kernel=(1, 1)),
    "whole_input": Geometry(size=(4, 4), kernel=(4, 4), padding="VALID"),
    "kernel_beyond_input": Geometry(size=(2, 3), kernel=(5, 5)),
    "single_pixel": Geometry(size=(1, 1), kernel=(3, 3)),
    "stride_beyond_kernel": Geometry(size=(7, 7), kernel=(2, 2), stride=(3, 3)),
    "even_kernel_same": Geometry(size=(5, 6), kernel=(2, 4), stride=(2, 2)),
    "dilation_3_same": Geometry(size=(7, 7), dilation=(3, 3)),
    "dilation_2_valid": Geometry(size=(7, 8), dilation=(2, 3), padding="VALID"),
    "dilation_and_stride": Geometry(size=(8, 8), dilation=(2, 2), stride=(2, 2)),
    "odd_channels": Geometry(channels_in=7, channels_out=5, size=(3, 4)),
}


def named_cases(operator, flavour_name):
    flavour = FLAVOURS[flavour_name]
    geometries = dict(NAMED_GEOMETRIES)
    for activation in ACTIVATIONS[1:]:
        geometries[activation.lower()] = Geometry(activation=activation)
    if operator == "DEPTHWISE_CONV_2D":
        geometries["no_bias"] = Geometry(bias=False)
        geometries["multiplier_2"] = Geometry(depth_multiplier=2)
        geometries["multiplier_5_from_one"] = Geometry(channels_in=1, depth_multiplier=5, stride=(2, 2))
    elif flavour_name != "hybrid_per_tensor":  # which refuses groups
        geometries["grouped_2"] = Geometry(channels_in=4, channels_out=6, groups=2)
        geometries["grouped_like_depthwise"] = Geometry(channels_in=3, channels_out=6, groups=3, kernel=(2, 2))
    for label, geometry in geometries.items():
        name = f"{flavour_name}_{label}"
        yield operator, name, *build(operator, geometry, flavour, seeded(f"{operator} {name}"))


def random_cases(operator, flavour_name, count):
    for i in range(count):
        name = f"{flavour_name}_random{i:02d}"
        rng = seeded(f"{operator} {name}")
        geometry = random_geometry(rng, operator == "DEPTHWISE_CONV_2D")
        yield operator, name, *build(operator, geometry, FLAVOURS[flavour_name], rng)


def extreme_cases(operator, flavour_name):
    """Zero points at both ends of the range, multipliers above one, sums near the accumulator's limit."""
    flavour = FLAVOURS[flavour_name]
    if flavour.activations in ("int8", "uint8"):
        low, high = limits(flavour.activations)
        for ends in ((low,) * 3, (high,) * 3, (low, high, low), (high, low, high)):
            name = f"{flavour_name}_zero_points_" + "_".join(map(str, ends))
            # With the output's zero point at the top, RELU6 would leave a single value.
            geometry = Geometry(activation="RELU6" if ends[2] == low else "NONE")
            yield operator, name, *build(operator, geometry, flavour, seeded(f"{operator} {name}"), ends)
    extremes = {
        "multiplier_above_one": dict(weight_limit=2, output_ratio=0.6),
        "multiplier_far_above_one": dict(weight_limit=1, output_ratio=0.01),
        "bias_near_the_limit": dict(bias_limit=2 ** 40 if flavour.bias == "int64" else 2 ** 31 - 2 ** 24),
    }
    for label, choices in extremes.items():
        geometry = Geometry(kernel=(1, 1), channels_in=2)
        name = f"{flavour_name}_{label}"
        yield operator, name, *build(operator, geometry, flavour, seeded(f"{operator} {name}"), **choices)


def plain_float(operator, input_shape, weight_shape, output_shape, **fields):
    """A float convolution whose shapes and attributes are taken as given, sound or not."""
    m = Model()
    x = m.input("x", "float32", input_shape)
    w = m.const("w", np.ones(weight_shape, np.float32))
    b = m.const("b", np.ones(output_shape[-1], np.float32))
    fields = {"padding": "VALID", "stride_h": 1, "stride_w": 1, **fields}
    if operator == "DEPTHWISE_CONV_2D":
        fields.setdefault("depth_multiplier", 1)
    m.op(operator, [x, w, b], [m.output("y", "float32", output_shape)], **fields)
    return m


def refusals(operator):
    weights = [2, 1, 1, 4] if operator == "CONV_2D" else [1, 1, 1, 4]
    output = [1, 4, 4, weights[0] if operator == "CONV_2D" else 4]
    bad = {
        "input_of_rank_3": plain_float(operator, [4, 4, 4], weights, output),
        "weights_of_rank_3": plain_float(operator, [1, 4, 4, 4], weights[1:], output),
        "stride_0": plain_float(operator, [1, 4, 4, 4], weights, output, stride_h=0),
        "dilation_0": plain_float(operator, [1, 4, 4, 4], weights, output, dilation_w_factor=0),
    }
    if operator == "CONV_2D":
        without_bias, _ = build(operator, Geometry(bias=False), FLAVOURS["int8_per_channel"], seeded("no bias"))
        bad["without_bias"] = without_bias
        bad["channels_not_divisible"] = plain_float(operator, [1, 4, 4, 4], [2, 1, 1, 3], output)
    for label, model in bad.items():
        yield operator, f"refused_{label}", model, None, {"expect_error": True}


def cases():
    for operator in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        for flavour_name, flavour in FLAVOURS.items():
            if operator == "DEPTHWISE_CONV_2D" and flavour_name in NOT_FOR_DEPTHWISE:
                continue
            yield from named_cases(operator, flavour_name)
            yield from random_cases(operator, flavour_name, 30)
            if flavour.activations != "float32":
                yield from extreme_cases(operator, flavour_name)
        window_too_big = plain_float(operator, [1, 2, 2, 4], [2 if operator == "CONV_2D" else 1, 3, 3, 4],
                                     [1, 0, 0, 2 if operator == "CONV_2D" else 4])
        yield operator, "float_window_beyond_input_gives_nothing", window_too_big, None
        yield from refusals(operator)
