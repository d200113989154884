# SPDX-License-Identifier: Apache-2.0
"""TRANSPOSE_CONV in every type combination that the reference kernels know."""

import dataclasses

import numpy as np

from cases._scales import fit, limits, random_quantized
from onemodel import Model, seeded

ACTIVATIONS = ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"]


@dataclasses.dataclass
class Geometry:
    """Sizes as (height, width). output: size of the output image, or None for stride * size."""
    batch: int = 1
    size: tuple = (2, 3)
    channels_in: int = 3
    channels_out: int = 2
    kernel: tuple = (3, 3)
    stride: tuple = (2, 2)
    padding: str = "SAME"
    output: tuple = None
    bias: bool = True
    activation: str = "NONE"
    constant_shape: bool = True

    def output_size(self):
        if self.output is not None:
            return list(self.output)
        if self.padding == "SAME":
            return [n * s for n, s in zip(self.size, self.stride)]
        return [(n - 1) * s + k for n, s, k in zip(self.size, self.stride, self.kernel)]


FLAVOURS = {  # activations, weights, bias, scale per channel
    "float": ("float32", "float32", "float32", False),
    "uint8": ("uint8", "uint8", "int32", False),
    "int8_per_tensor": ("int8", "int8", "int32", False),
    "int8_per_channel": ("int8", "int8", "int32", True),
    "int16_bias64": ("int16", "int8", "int64", True),
    "int16_bias32": ("int16", "int8", "int32", True),
    "hybrid_per_tensor": ("float32", "int8", "float32", False),
    "hybrid_per_channel": ("float32", "int8", "float32", True),
}

GEOMETRIES = {
    "doubled": Geometry(),
    "valid": Geometry(padding="VALID"),
    "no_bias": Geometry(bias=False),
    "stride_1": Geometry(stride=(1, 1)),
    "stride_beyond_kernel": Geometry(kernel=(2, 2), stride=(3, 3)),
    "kernel_4": Geometry(kernel=(4, 4)),
    "uneven": Geometry(kernel=(2, 5), stride=(1, 2), channels_in=5, channels_out=3),
    "odd_output": Geometry(output=(3, 5)),
    "valid_larger_output": Geometry(padding="VALID", output=(6, 8)),
    "two_images": Geometry(batch=2, size=(2, 2)),
    "one_pixel": Geometry(size=(1, 1), kernel=(5, 5), stride=(4, 4)),
    "one_by_one": Geometry(kernel=(1, 1), stride=(1, 1)),
    "shape_at_run_time": Geometry(constant_shape=False),
    "relu": Geometry(activation="RELU"),
    "relu6": Geometry(activation="RELU6"),
}


def scatter(x, w, g):
    """Sums in numpy; only used to choose scales, never as an expectation."""
    out_h, out_w = g.output_size()
    forward = [-(-n // s) for n, s in zip((out_h, out_w), g.stride)]
    pads = [max((f - 1) * s + k - n, 0) // 2 if g.padding == "SAME" else 0
            for f, s, k, n in zip(forward, g.stride, g.kernel, (out_h, out_w))]
    total = np.zeros((g.batch, out_h, out_w, g.channels_out), x.dtype)
    for y, x_, ky, kx in np.ndindex(*g.size, *g.kernel):
        row, column = y * g.stride[0] - pads[0] + ky, x_ * g.stride[1] - pads[1] + kx
        if 0 <= row < out_h and 0 <= column < out_w:
            total[:, row, column] += x[:, y, x_] @ w[:, ky, kx].T
    return total


def build(name, g, flavour):
    rng = seeded(f"TRANSPOSE_CONV {name}")
    dtype, weight_type, bias_type, per_channel = flavour
    m = Model()
    shape = np.array([g.batch, *g.output_size(), g.channels_out], np.int32)
    target = m.const("shape", shape) if g.constant_shape else m.input("shape", "int32", [4])
    inputs = [] if g.constant_shape else [shape]
    x_shape, w_shape = [g.batch, *g.size, g.channels_in], [g.channels_out, *g.kernel, g.channels_in]
    scales = rng.uniform(0.3, 1.0, g.channels_out if per_channel else 1)
    fields = {"padding": g.padding, "stride_h": g.stride[0], "stride_w": g.stride[1],
              "fused_activation_function": g.activation}
    if dtype == "float32":
        values = rng.uniform(-2, 2, x_shape).astype(np.float32)
        if weight_type == "float32":
            w = m.const("w", rng.uniform(-1, 1, w_shape).astype(np.float32))
        else:
            w = m.const("w", rng.randint(-127, 128, w_shape), weight_type, scale=scales / 50)
        x = m.input("x", dtype, x_shape)
        b = m.const("b", rng.uniform(-1, 1, g.channels_out).astype(np.float32))
        y = m.output("y", dtype, shape)
    else:
        pick_zero = lambda: 0 if dtype == "int16" else int(rng.randint(*limits(dtype)))
        zero_in, zero_w = pick_zero(), pick_zero() if weight_type == "uint8" else 0
        values, weights = random_quantized(rng, dtype, x_shape), random_quantized(rng, weight_type, w_shape)
        sums = scatter(values.astype(np.int64) - zero_in, weights.astype(np.int64) - zero_w, g)
        bias = (rng.uniform(-1, 1, g.channels_out) * (sums.std() + 1)).astype(np.int64) - sums.mean(axis=(0, 1, 2)).astype(int)
        sums = sums + (bias if g.bias else 0)
        input_scale = 0.02
        scales = scales * 3 / np.sqrt(((sums * input_scale * scales) ** 2).mean())
        scale, zero_out = fit(sums * input_scale * scales, dtype)
        x = m.input("x", dtype, x_shape, scale=input_scale, zero_point=zero_in)
        w = m.const("w", weights, weight_type, scale=scales, zero_point=zero_w)
        b = m.const("b", bias, bias_type, scale=input_scale * scales)
        y = m.output("y", dtype, shape, scale=scale, zero_point=zero_out)
        if dtype == "int16" and bias_type == "int32":
            fields["quantized_bias_type"] = "int32"
    m.op("TRANSPOSE_CONV", [target, w, x, b] if g.bias else [target, w, x], [y], **fields)
    return m, inputs + [values]


def refusals():
    bad = {"stride_0": dict(stride_h=0), "channels_differ": dict(channels=2), "batches_differ": dict(batch=2)}
    for label, change in bad.items():
        m = Model()
        target = m.const("shape", np.array([change.get("batch", 1), 4, 4, 2], np.int32))
        w = m.const("w", np.ones([2, 3, 3, change.get("channels", 3)], np.float32))
        x = m.input("x", "float32", [1, 2, 2, 3])
        m.op("TRANSPOSE_CONV", [target, w, x], [m.output("y", "float32", [change.get("batch", 1), 4, 4, 2])], padding="SAME",
             stride_h=change.get("stride_h", 2), stride_w=2)
        yield "TRANSPOSE_CONV", f"refused_{label}", m, None, {"expect_error": True}


def cases():
    everywhere = ("doubled", "valid", "no_bias", "uneven", "two_images", "odd_output", "relu6")
    for flavour_name, flavour in FLAVOURS.items():
        for label, geometry in GEOMETRIES.items():
            if flavour_name not in ("float", "int8_per_channel") and label not in everywhere:
                continue
            name = f"{flavour_name}_{label}"
            yield "TRANSPOSE_CONV", name, *build(name, geometry, flavour)
    yield from refusals()
