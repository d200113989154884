# SPDX-License-Identifier: Apache-2.0
"""Instructions that TFLite Micro's kernels execute on a Cortex-M, counted in an emulator: src/micro/cpu_rates.def.

    python tools/oracle/count_micro.py --plugin instructions.so --current "qemu-arm -cpu max PROGRAM" --coral "..." > src/micro/cpu_rates.def

PROGRAM is a build for Cortex-M7 as make_micro_ops.py describes it; instructions.so is tools/arm64_counts/instructions.c, built
as a shared library. Each operator is run in two sizes: the difference of their counts, divided by the difference of their work,
is its rate, free of what a program does before and behind. Work is what ops/cpu_work.h counts: products, or else elements.
Cycles are not counted: an emulator does not know them.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from random_micro import Draw  # noqa: E402

SMALL, LARGE = 4, 8  # rows of a layer


def quantization(dtype, fixed=None):
    return {} if dtype == "float32" else fixed or {"scale": 0.05, "zero_point": 3}


def weights(draw, dtype, shape, axis):
    channels = shape[axis]
    return draw.const(dtype, shape, **({} if dtype == "float32" else {"scale": [0.01] * channels, "zero_point": [0] * channels, "axis": axis}))


def bias(draw, dtype, channels):
    kind = "float32" if dtype == "float32" else "int32"
    return draw.model.const(draw.name(), np.zeros([channels]), kind, [channels],
                            **({} if dtype == "float32" else {"scale": [0.0005] * channels, "zero_point": [0] * channels}))


def layer(name, rows, dtype):
    """(model, work) of an operator with weights."""
    draw = Draw(1)
    depth, channels, width = 16, 16, 8
    q = quantization(dtype)
    window = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    x = draw.input(dtype, [1, rows, width, depth], **q)
    shape = [1, rows, width, channels]
    if name == "FULLY_CONNECTED":
        f = draw.const(dtype, [channels, depth], **({} if dtype == "float32" else {"scale": 0.01, "zero_point": 0}))
        b = draw.model.const(draw.name(), np.zeros([channels]), "float32" if dtype == "float32" else "int32", [channels],
                             **({} if dtype == "float32" else {"scale": 0.0005, "zero_point": 0}))
        draw.op(name, [x, f, b], [draw.output(dtype, shape, **q)], keep_num_dims=True, fused_activation_function="NONE")
        return draw.model.build(), rows * width * depth * channels
    if name == "BATCH_MATMUL":
        y = draw.input(dtype, [1, rows, depth, channels], **q)
        draw.op(name, [x, y], [draw.output(dtype, shape, **q)], adj_x=False, adj_y=False)
        return draw.model.build(), rows * width * depth * channels
    if name == "TRANSPOSE_CONV":
        f = weights(draw, dtype, [channels, 3, 3, depth], 0)
        draw.op(name, [draw.numbers(shape), f, x, bias(draw, dtype, channels)], [draw.output(dtype, shape, **q)], **window)
        return draw.model.build(), rows * width * depth * channels * 9
    depthwise = name == "DEPTHWISE_CONV_2D"
    f = weights(draw, dtype, [1, 3, 3, channels] if depthwise else [channels, 3, 3, depth], 3 if depthwise else 0)
    draw.op(name, [x, f, bias(draw, dtype, channels)], [draw.output(dtype, shape, **q)], dilation_w_factor=1, dilation_h_factor=1,
            fused_activation_function="NONE", **window, **({"depth_multiplier": 1} if depthwise else {}))
    return draw.model.build(), rows * width * channels * 9 * (1 if depthwise else depth)


LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL")
FIXED = {"LOGISTIC": {"scale": 1 / 256, "zero_point": -128}, "SOFTMAX": {"scale": 1 / 256, "zero_point": -128},
         "TANH": {"scale": 1 / 128, "zero_point": 0}}
SAME_SHAPE = {  # operators of one operand, with their attributes
    "RELU": {}, "RELU6": {}, "LOGISTIC": {}, "TANH": {}, "HARD_SWISH": {}, "LEAKY_RELU": {"alpha": 0.1}, "SOFTMAX": {"beta": 1.0},
    "AVERAGE_POOL_2D": {"padding": "SAME", "stride_w": 1, "stride_h": 1, "filter_width": 3, "filter_height": 3},
    "MAX_POOL_2D": {"padding": "SAME", "stride_w": 1, "stride_h": 1, "filter_width": 3, "filter_height": 3},
}
SEVERAL = ("ADD", "MUL", "SUB", "CONCATENATION", "PAD", "MEAN", "TRANSPOSE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "QUANTIZE",
           "DEQUANTIZE", "RESHAPE")


def other(name, rows, dtype):
    """(model, work) of an operator without weights."""
    draw = Draw(1)
    shape = [1, 4 * rows, 16, 16]
    q = quantization(dtype)
    if name == "RELU6":
        q = quantization(dtype, {"scale": 0.05, "zero_point": 0})
    elements = int(np.prod(shape))
    x = draw.input(dtype, shape, **q)
    result = lambda sizes, kind=dtype, how=None: draw.output(kind, sizes, **(how or (q if kind == dtype else quantization(kind))))
    if name in SAME_SHAPE:
        draw.op(name, [x], [result(shape, dtype, quantization(dtype, FIXED.get(name)) if name in FIXED else None)], **SAME_SHAPE[name])
    elif name in ("ADD", "MUL", "SUB"):
        draw.op(name, [x, draw.input(dtype, shape, **q)], [result(shape)], fused_activation_function="NONE")
        elements *= 2
    elif name == "CONCATENATION":
        draw.op(name, [x, draw.input(dtype, shape, **q)], [result([1, 8 * rows, 16, 16])], axis=1, fused_activation_function="NONE")
        elements *= 2
    elif name == "PAD":
        draw.op(name, [x, draw.numbers([[0, 0], [0, 0], [1, 1], [0, 0]])], [result([1, 4 * rows, 18, 16])])
        elements = 4 * rows * 18 * 16
    elif name == "MEAN":
        draw.op(name, [x, draw.numbers([1, 2])], [result([1, 16])], keep_dims=False)
    elif name == "TRANSPOSE":
        draw.op(name, [x, draw.numbers([0, 2, 1, 3])], [result([1, 16, 4 * rows, 16])])
    elif name.startswith("RESIZE"):
        draw.op(name, [x, draw.numbers([8 * rows, 32])], [result([1, 8 * rows, 32, 16])], align_corners=False, half_pixel_centers=False)
        elements *= 4
    elif name == "RESHAPE":
        draw.op(name, [x, draw.numbers([1, elements])], [result([1, elements])], new_shape=[1, elements])
    elif name == "QUANTIZE":
        draw.op(name, [x], [result(shape, "int8", {"scale": 0.07, "zero_point": 1})])
    else:
        draw.op(name, [x], [result(shape, "float32")])
    return draw.model.build(), elements


class Counter:
    def __init__(self, plugin, command):
        first, *rest = command.split()
        self.command = [first, "-plugin", plugin, *rest]

    def count(self, model):
        """Instructions of one run; None if it does not run."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "model").write_bytes(model)
            (place / "in").write_bytes(bytes(1 << 20))
            done = subprocess.run([*self.command, str(place / "model"), "--run", str(place / "in"), str(place / "out")],
                                  capture_output=True, text=True, check=False)
            found = re.findall(r"^(\d+)$", done.stderr, re.MULTILINE)
            return int(found[-1]) if "RC 0" in done.stdout and found else None

    def rate(self, make, name, dtype):
        (small, less), (large, more) = make(name, SMALL, dtype), make(name, LARGE, dtype)
        counts = self.count(small), self.count(large)
        return None if None in counts else max(counts[1] - counts[0], 0) / (more - less)


def main():
    parser = argparse.ArgumentParser(description="Counts instructions of TFLite Micro's kernels.")
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--current", required=True, help="runs a model in the current release")
    parser.add_argument("--coral", required=True, help="runs a model in the release of Coral's SDK")
    args = parser.parse_args()
    counters = [Counter(args.plugin, args.current), Counter(args.plugin, args.coral)]
    print("// SPDX-License-Identifier: Apache-2.0\n"
          "// Made by tools/oracle/count_micro.py: MICRO_RATE(operator, type of its operands, instructions of the current release with its\n"
          "// reference kernels, of Coral's release with CMSIS-NN) for one product, where there are weights or matrices, else for one\n"
          "// element that is read or written. Both built with -Os for a Cortex-M7. 0: it does not run there.")
    for make, names in ((layer, LAYERS), (other, (*SAME_SHAPE, *SEVERAL))):
        for name in names:
            for dtype in ("int8", "float32"):
                if (name, dtype) == ("DEQUANTIZE", "float32"):
                    continue
                rates = [c.rate(make, name, dtype) for c in counters]
                if any(rates):
                    print(f'MICRO_RATE("{name}", "{dtype}", ' + ", ".join(f"{r or 0:.3g}" for r in rates) + ")", flush=True)


if __name__ == "__main__":
    main()
