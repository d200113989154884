# SPDX-License-Identifier: Apache-2.0
"""Measures what a unit of work costs on one core, per kind of operator, with LiteRT as users run it (XNNPACK on).

Usage: cpu_rates.py [OPERATOR...]      (needs tools/oracle/requirements.txt)

Builds models of one operator at sizes as they occur in networks, times them (CPU time of one thread, best of several rounds, so
that other programs on the machine matter little) and prints the lines of src/partition/cpu_rates.def: nanoseconds per product for
operators that multiply weights, per element of the larger of input and output for all others; the geometric mean over the sizes.
What a call of an almost empty model costs is subtracted first and printed at the end.
"""
import math
import sys
import time
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))
from onemodel import Model, seeded  # noqa: E402

ROUNDS, ROUND_SECONDS = 7, 0.03
MAPS = [(1, 112, 112, 16), (1, 28, 28, 128), (1, 7, 7, 512)]
PAIRS = ["int8", "float32"]


def quantized(dtype, scale=0.05, zero_point=3):
    return {"scale": scale, "zero_point": zero_point} if dtype == "int8" else {}


def measure_seconds(data):
    interpreter = Interpreter(model_content=data, num_threads=1)
    interpreter.allocate_tensors()
    random = seeded("cpu_rates")
    for detail in interpreter.get_input_details():
        shape, dtype = detail["shape"], detail["dtype"]
        values = random.randint(-100, 100, shape) if np.issubdtype(dtype, np.integer) else random.rand(*shape)
        interpreter.set_tensor(detail["index"], values.astype(dtype))
    interpreter.invoke()
    start = time.thread_time()
    interpreter.invoke()
    count = max(1, min(2000, int(ROUND_SECONDS / max(time.thread_time() - start, 1e-7))))
    best = math.inf
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(count):
            interpreter.invoke()
        best = min(best, (time.thread_time() - start) / count)
    return best


def weights_of(model, dtype, shape, axis):
    random = seeded("weights")
    if dtype == "float32":
        return model.const("w", random.rand(*shape) - 0.5, "float32")
    return model.const("w", random.randint(-127, 128, shape), "int8", scale=[0.01] * shape[axis], axis=axis)


def bias_of(model, dtype, count):
    if dtype == "float32":
        return model.const("b", np.zeros(count), "float32")
    return model.const("b", np.zeros(count), "int32", scale=[0.0005] * count, axis=0)


def convolution(name, dtype):
    """(model, products)"""
    cases = [(56, 64, 64, 3), (28, 128, 128, 3), (28, 96, 192, 1), (14, 384, 96, 1), (7, 160, 960, 1)]
    if name == "DEPTHWISE_CONV_2D":
        cases = [(112, 32, 32, 3), (56, 96, 96, 3), (14, 384, 384, 3), (7, 960, 960, 5)]
    if name == "TRANSPOSE_CONV":
        cases = [(28, 64, 32, 3), (14, 128, 64, 2)]
    for size, inputs, outputs, kernel in cases:
        m = Model()
        x = m.input("x", dtype, [1, size, size, inputs], **quantized(dtype))
        common = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
        if name == "DEPTHWISE_CONV_2D":
            w = weights_of(m, dtype, [1, kernel, kernel, inputs], 3)
            y = m.output("y", dtype, [1, size, size, inputs], **quantized(dtype))
            m.op(name, [x, w, bias_of(m, dtype, inputs)], [y], depth_multiplier=1, **common)
            yield m.build(), size * size * inputs * kernel * kernel
            continue
        w = weights_of(m, dtype, [outputs, kernel, kernel, inputs], 0)
        if name == "TRANSPOSE_CONV":
            shape = m.const("s", [1, 2 * size, 2 * size, outputs], "int32")
            y = m.output("y", dtype, [1, 2 * size, 2 * size, outputs], **quantized(dtype))
            m.op(name, [shape, w, x], [y], padding="SAME", stride_w=2, stride_h=2)
        else:
            y = m.output("y", dtype, [1, size, size, outputs], **quantized(dtype))
            m.op(name, [x, w, bias_of(m, dtype, outputs)], [y], **common)
        yield m.build(), size * size * inputs * outputs * kernel * kernel


def fully_connected(_, dtype):
    for inputs, outputs in [(1024, 1024), (512, 256), (1280, 1001)]:
        m = Model()
        x = m.input("x", dtype, [1, inputs], **quantized(dtype))
        w = (m.const("w", seeded("w").randint(-127, 128, [outputs, inputs]), "int8", scale=0.01) if dtype == "int8"
             else weights_of(m, dtype, [outputs, inputs], 0))
        b = (m.const("b", np.zeros(outputs), "int32", scale=0.0005) if dtype == "int8" else bias_of(m, dtype, outputs))
        y = m.output("y", dtype, [1, outputs], **quantized(dtype))
        m.op("FULLY_CONNECTED", [x, w, b], [y])
        yield m.build(), inputs * outputs


def batch_matmul(_, dtype):
    for rows, depth, columns in [(197, 64, 197), (64, 128, 64)]:
        m = Model()
        a = m.input("a", dtype, [4, rows, depth], **quantized(dtype))
        b = m.input("b", dtype, [4, depth, columns], **quantized(dtype))
        y = m.output("y", dtype, [4, rows, columns], **quantized(dtype))
        m.op("BATCH_MATMUL", [a, b], [y], options="BatchMatMulOptions")
        yield m.build(), 4 * rows * depth * columns


def on_maps(arity=1, output=None, out_quantization=None, constants=None, **fields):
    """One computed output per map of MAPS. output: shape from shape; constants: shape -> arrays of int32."""
    def cases(name, dtype):
        for shape in MAPS:
            m = Model()
            inputs = [m.input(f"x{i}", dtype, list(shape), **quantized(dtype)) for i in range(arity)]
            inputs += [m.const(f"c{i}", c, "int32") for i, c in enumerate(constants(shape) if constants else [])]
            out = list(output(shape)) if output else list(shape)
            y = m.output("y", dtype, out, **(out_quantization if out_quantization and dtype == "int8" else quantized(dtype)))
            m.op(name, inputs, [y], **(fields.get("of")(shape) if "of" in fields else fields))
            yield m.build(), max(arity * math.prod(shape), math.prod(out))
    return cases


def reducing(name, dtype):
    return on_maps(output=lambda s: (1, s[3]), constants=lambda s: [[1, 2]])(name, dtype)


def pool(name, dtype):
    return on_maps(filter_width=2, filter_height=2, stride_w=2, stride_h=2, padding="VALID",
                   output=lambda s: (1, s[1] // 2, s[2] // 2, s[3]))(name, dtype)


def resize(name, dtype):
    return on_maps(output=lambda s: (1, 2 * s[1], 2 * s[2], s[3]), constants=lambda s: [[2 * s[1], 2 * s[2]]])(name, dtype)


def rows(name, dtype):
    for count, classes in [(1, 1001), (8400, 80), (1, 16384)]:
        m = Model()
        x = m.input("x", dtype, [count, classes], **quantized(dtype, 0.1, 0))
        y = m.output("y", dtype, [count, classes], **quantized(dtype, 1 / 256, -128))
        m.op(name, [x], [y], **({"beta": 1.0} if name == "SOFTMAX" else {}))
        yield m.build(), count * classes


def between_types(source, target):
    def cases(name, dtype):
        for shape in MAPS:
            m = Model()
            x = m.input("x", source, list(shape), **quantized(source))
            y = m.output("y", target, list(shape), **quantized(target))
            m.op(name, [x], [y])
            yield m.build(), math.prod(shape)
    return cases


def prelu(name, dtype):
    for shape in MAPS:
        m = Model()
        x = m.input("x", dtype, list(shape), **quantized(dtype))
        slope = m.const("a", np.full([1, 1, shape[3]], 9), dtype, **quantized(dtype, 0.02, 0))
        m.op(name, [x, slope], [m.output("y", dtype, list(shape), **quantized(dtype))])
        yield m.build(), math.prod(shape)


def argument(name, dtype):
    for shape in MAPS:
        m = Model()
        x = m.input("x", dtype, list(shape), **quantized(dtype))
        m.op(name, [x, m.const("axis", [3], "int32")], [m.output("y", "int32", list(shape[:3]))], output_type="int32")
        yield m.build(), math.prod(shape)


def concatenation(name, dtype):
    return on_maps(arity=2, output=lambda s: (1, s[1], s[2], 2 * s[3]), axis=3)(name, dtype)


def split(name, dtype):
    for shape in MAPS:
        m = Model()
        axis = m.const("axis", 3, "int32")
        x = m.input("x", dtype, list(shape), **quantized(dtype))
        half = [*shape[:3], shape[3] // 2]
        outs = [m.output(f"y{i}", dtype, half, **quantized(dtype)) for i in range(2)]
        m.op(name, [axis, x], outs, num_splits=2)
        yield m.build(), math.prod(shape)


def strided_slice(name, dtype):
    return on_maps(output=lambda s: (1, s[1] // 2, s[2], s[3]), begin_mask=0,
                   constants=lambda s: [[0, 0, 0, 0], [1, s[1] // 2, s[2], s[3]], [1, 1, 1, 1]])(name, dtype)


PRODUCTS, ELEMENTS = "kProducts", "kElements"
BINARY = on_maps(arity=2)
CASES = {
    "CONV_2D": (PRODUCTS, convolution), "DEPTHWISE_CONV_2D": (PRODUCTS, convolution), "TRANSPOSE_CONV": (PRODUCTS, convolution),
    "FULLY_CONNECTED": (PRODUCTS, fully_connected), "BATCH_MATMUL": (PRODUCTS, batch_matmul),
    "ADD": (ELEMENTS, BINARY), "SUB": (ELEMENTS, BINARY), "MUL": (ELEMENTS, BINARY), "MAXIMUM": (ELEMENTS, BINARY),
    "MINIMUM": (ELEMENTS, BINARY), "SQUARED_DIFFERENCE": (ELEMENTS, BINARY), "DIV": (ELEMENTS, BINARY),
    "LOGISTIC": (ELEMENTS, on_maps(out_quantization={"scale": 1 / 256, "zero_point": -128})),
    "TANH": (ELEMENTS, on_maps(out_quantization={"scale": 1 / 128, "zero_point": 0})),
    "RELU": (ELEMENTS, on_maps()), "RELU6": (ELEMENTS, on_maps()), "HARD_SWISH": (ELEMENTS, on_maps()),
    "LEAKY_RELU": (ELEMENTS, on_maps(alpha=0.1)), "ELU": (ELEMENTS, on_maps()), "GELU": (ELEMENTS, on_maps()),
    "PRELU": (ELEMENTS, prelu), "ABS": (ELEMENTS, on_maps()), "EXP": (ELEMENTS, on_maps()), "RSQRT": (ELEMENTS, on_maps()),
    "SOFTMAX": (ELEMENTS, rows), "LOG_SOFTMAX": (ELEMENTS, rows), "L2_NORMALIZATION": (ELEMENTS, on_maps(
        out_quantization={"scale": 1 / 128, "zero_point": 0})),
    "AVERAGE_POOL_2D": (ELEMENTS, pool), "MAX_POOL_2D": (ELEMENTS, pool), "MEAN": (ELEMENTS, reducing),
    "SUM": (ELEMENTS, reducing), "REDUCE_MAX": (ELEMENTS, reducing), "ARG_MAX": (ELEMENTS, argument),
    "RESIZE_BILINEAR": (ELEMENTS, resize), "RESIZE_NEAREST_NEIGHBOR": (ELEMENTS, resize),
    "CONCATENATION": (ELEMENTS, concatenation), "SPLIT": (ELEMENTS, split), "STRIDED_SLICE": (ELEMENTS, strided_slice),
    "RESHAPE": (ELEMENTS, on_maps(output=lambda s: (s[1] * s[2], s[3]), constants=lambda s: [[s[1] * s[2], s[3]]])),
    "TRANSPOSE": (ELEMENTS, on_maps(output=lambda s: (1, s[3], s[1], s[2]), constants=lambda s: [[0, 3, 1, 2]])),
    "PAD": (ELEMENTS, on_maps(output=lambda s: (1, s[1] + 2, s[2] + 2, s[3]),
                              constants=lambda s: [[[0, 0], [1, 1], [1, 1], [0, 0]]])),
    "SPACE_TO_DEPTH": (ELEMENTS, on_maps(block_size=2, output=lambda s: (1, s[1] // 2, s[2] // 2, 4 * s[3]))),
    "DEPTH_TO_SPACE": (ELEMENTS, on_maps(block_size=2, output=lambda s: (1, 2 * s[1], 2 * s[2], s[3] // 4))),
    "QUANTIZE": (ELEMENTS, None), "DEQUANTIZE": (ELEMENTS, between_types("int8", "float32")),
}


def rate(cases, empty):
    """Geometric mean of nanoseconds per unit; None where the runtime refuses."""
    logs = []
    try:
        for data, units in cases:
            logs.append(math.log(max(measure_seconds(data) - empty, 1e-9) * 1e9 / units))
    except (RuntimeError, ValueError) as error:
        print(f"// refused: {str(error).splitlines()[-1]}", file=sys.stderr)
    return math.exp(sum(logs) / len(logs)) if logs else None


def empty_call():
    m = Model()
    x = m.input("x", "float32", [1])
    m.op("ABS", [x], [m.output("y", "float32", [1])])
    return measure_seconds(m.build())


def main():
    empty = empty_call()
    for name in sys.argv[1:] or CASES:
        counted, cases = CASES[name]
        if name == "QUANTIZE":
            rates = [rate(between_types("int8", "int8")(name, None), empty), rate(between_types("float32", "int8")(name, None), empty)]
        else:
            rates = [rate(cases(name, dtype), empty) for dtype in PAIRS]
        known = next((r for r in rates if r is not None), None)
        if known is None:
            print(f"// {name}: refused")
            continue
        texts = [f"{r if r is not None else known:.3g}" for r in rates]
        print(f'CPU_RATE("{name}", {counted}, {texts[0]}, {texts[1]})', flush=True)
    print(f"// a call of an almost empty model: {empty * 1e6:.2f} us")


if __name__ == "__main__":
    main()
