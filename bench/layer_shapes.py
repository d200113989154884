#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single layers of the shapes that public networks have: Reef beside LiteRT (XNNPACK), one thread, in one run.

Whole networks hide slow operators behind fast ones. Each layer here is a model of its own (tools/oracle/onemodel.py),
with shapes found in MobileNet v1 to v3, EfficientNet, YOLO v5 to v11, MoveNet, MediaPipe, U-Net, keyword spotters and
small transformers, as int8 and as floats, and some with int16 activations or 8-bit weights alone. Every round runs both
contenders after each other; the columns are the least of all runs, since other programs only ever add time. `kernel` is
what `reef run --profile` says of the operator.
    bench/layer_shapes.py [--reef PROGRAM] [--rounds N] [--runs N] [--only TEXT] [--worst N]
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/oracle"))
from ai_edge_litert.interpreter import Interpreter  # noqa: E402
from onemodel import Model  # noqa: E402

RANDOM = np.random.RandomState(1)
INT8, FLOAT, INT16 = "int8", "float32", "int16"


def scale_of(dtype, spread=1.0):
    """Quantization of a tensor whose values reach `spread`."""
    if dtype == FLOAT or dtype == "int32":
        return {}
    # No ratio is a power of two: such ones meet the borders between results all the time.
    spread = spread ** 1.03
    return {"scale": 0.00791 * spread, "zero_point": 3} if dtype == INT8 else {"scale": 3.1e-5 * spread, "zero_point": 0}


def same_size(size, stride):
    return -(-size // stride)


def weights_for(model, dtype, shape, axis, fan_in, hybrid=False):
    channels = shape[axis]
    if dtype == FLOAT and not hybrid:
        weights = RANDOM.normal(0, 1 / math.sqrt(fan_in), shape).astype(np.float32)
        return model.const("w", weights.tolist() if False else weights, FLOAT, shape), None
    scales = (RANDOM.uniform(0.5, 1.5, channels) * 3 / math.sqrt(fan_in) / 127).astype(np.float32)
    values = np.clip(RANDOM.normal(0, 42, shape), -127, 127).astype(np.int8)
    return model.const("w", values, INT8, shape, scale=scales, axis=axis), scales


def bias_for(model, dtype, channels, scales):
    if scales is None or dtype == FLOAT:
        return model.const("b", RANDOM.normal(0, 0.1, channels).astype(np.float32), FLOAT, [channels])
    input_scale = scale_of(dtype)["scale"]
    kind = "int64" if dtype == INT16 else "int32"
    values = (RANDOM.normal(0, 0.1, channels) / (scales * input_scale)).astype(np.int64)
    return model.const("b", values, kind, [channels], scale=(scales * input_scale).astype(np.float32), axis=0)


def conv(dtype, h, w, c, out, k=1, stride=1, dilation=1, act="NONE", hybrid=False):
    m = Model()
    x = m.input("x", dtype, [1, h, w, c], **scale_of(dtype))
    weights, scales = weights_for(m, dtype, [out, k, k, c], 0, k * k * c, hybrid)
    b = bias_for(m, dtype, out, scales)
    y = m.output("y", dtype, [1, same_size(h, stride), same_size(w, stride), out], **scale_of(dtype, 3))
    m.op("CONV_2D", [x, weights, b], [y], padding="SAME", stride_w=stride, stride_h=stride, dilation_w_factor=dilation,
         dilation_h_factor=dilation, fused_activation_function=act)
    return m.build()


def depthwise(dtype, h, w, c, k=3, stride=1, dilation=1, times=1, act="NONE", hybrid=False):
    m = Model()
    x = m.input("x", dtype, [1, h, w, c], **scale_of(dtype))
    weights, scales = weights_for(m, dtype, [1, k, k, c * times], 3, k * k, hybrid)
    b = bias_for(m, dtype, c * times, scales)
    y = m.output("y", dtype, [1, same_size(h, stride), same_size(w, stride), c * times], **scale_of(dtype, 3))
    m.op("DEPTHWISE_CONV_2D", [x, weights, b], [y], padding="SAME", stride_w=stride, stride_h=stride,
         depth_multiplier=times, dilation_w_factor=dilation, dilation_h_factor=dilation, fused_activation_function=act)
    return m.build()


def transpose_conv(dtype, h, w, c, out, k=2, stride=2):
    m = Model()
    x = m.input("x", dtype, [1, h, w, c], **scale_of(dtype))
    weights, scales = weights_for(m, dtype, [out, k, k, c], 0, k * k * c)
    shape = [1, h * stride, w * stride, out]
    size = m.const("s", np.array(shape), "int32", [4])
    y = m.output("y", dtype, shape, **scale_of(dtype, 3))
    m.op("TRANSPOSE_CONV", [size, weights, x, bias_for(m, dtype, out, scales)], [y], padding="SAME", stride_w=stride,
         stride_h=stride, version=3)
    return m.build()


def dense(dtype, rows, c, out, hybrid=False):
    m = Model()
    x = m.input("x", dtype, [rows, c], **scale_of(dtype))
    weights, scales = weights_for(m, dtype, [out, c], 0, c, hybrid)
    if dtype == INT8:  # one scale for all: what older converters write
        weights = m.const("w1", np.clip(RANDOM.normal(0, 42, [out, c]), -127, 127), INT8, [out, c], scale=0.01)
        scales = np.array([0.01], np.float32)
        b = m.const("b", RANDOM.randint(-99, 99, out), "int32", [out], scale=0.01 / 128)
    else:
        b = bias_for(m, dtype, out, scales)
    y = m.output("y", dtype, [rows, out], **scale_of(dtype, 3))
    m.op("FULLY_CONNECTED", [x, weights, b], [y], fused_activation_function="NONE")
    return m.build()


def binary(op, dtype, a, b, constant=True):
    m = Model()
    x = m.input("x", dtype, a, **scale_of(dtype))
    if constant:
        values = RANDOM.uniform(-0.9, 0.9, b) * (1 if dtype == FLOAT else 127 if dtype == INT8 else 32767)
        z = m.const("z", values.astype(np.float32), dtype, b, **scale_of(dtype))
    else:
        z = m.input("z", dtype, b, **scale_of(dtype))
    same = op in ("MAXIMUM", "MINIMUM")
    y = m.output("y", dtype, list(np.broadcast_shapes(a, b)), **scale_of(dtype, 1 if same else 2))
    fields = {} if op in ("PRELU",) + ("MAXIMUM", "MINIMUM") else {"fused_activation_function": "NONE"}
    if op == "PRELU":
        m.op(op, [x, z], [y], options=None)
    elif op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"):
        m.op(op, [x, z], [y])
    else:
        m.op(op, [x, z], [y], **fields)
    return m.build()


def unary(op, dtype, shape, **fields):
    m = Model()
    x = m.input("x", dtype, shape, **scale_of(dtype, 8 if dtype != INT16 else 1))
    out = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128), "TANH": (1 / 128, 0)}.get(op)
    if dtype == INT8 and out:
        quantization = {"scale": out[0], "zero_point": out[1]}
    elif dtype == INT16 and out:
        quantization = {"scale": 1 / 32768, "zero_point": 0}
    else:
        quantization = scale_of(dtype, 8)
    y = m.output("y", dtype, shape, **quantization)
    m.op(op, [x], [y], **fields)
    return m.build()


def moved(op, dtype, shape, out, constants=(), **fields):
    """An operator that leaves numbers as they are."""
    m = Model()
    x = m.input("x", dtype, shape, **scale_of(dtype))
    more = [m.const(f"c{i}", np.array(values), "int32", list(np.shape(values))) for i, values in enumerate(constants)]
    outs = [m.output(f"y{i}", dtype, s, **scale_of(dtype)) for i, s in enumerate(out if isinstance(out[0], list) else [out])]
    m.op(op, [*more, x] if op == "SPLIT" else [x, *more], outs, **fields)
    return m.build()


def concat(dtype, shapes, axis):
    m = Model()
    inputs = [m.input(f"x{i}", dtype, s, **scale_of(dtype)) for i, s in enumerate(shapes)]
    out = list(shapes[0])
    out[axis] = sum(s[axis] for s in shapes)
    m.op("CONCATENATION", inputs, [m.output("y", dtype, out, **scale_of(dtype))], axis=axis,
         fused_activation_function="NONE")
    return m.build()


def matmul(dtype, a, b, adj_y=False):
    m = Model()
    x = m.input("x", dtype, a, **scale_of(dtype))
    z = m.input("z", dtype, b, **scale_of(dtype))
    out = a[:-1] + [b[-2] if adj_y else b[-1]]
    m.op("BATCH_MATMUL", [x, z], [m.output("y", dtype, out, **scale_of(dtype, 4))], adj_x=False, adj_y=adj_y)
    return m.build()


def cast(op, frm, to, shape):
    m = Model()
    x = m.input("x", frm, shape, **scale_of(frm))
    m.op(op, [x], [m.output("y", to, shape, **scale_of(to))])
    return m.build()


def pooled(op, dtype, h, w, c, k, stride):
    m = Model()
    x = m.input("x", dtype, [1, h, w, c], **scale_of(dtype))
    y = m.output("y", dtype, [1, same_size(h, stride), same_size(w, stride), c], **scale_of(dtype))
    m.op(op, [x], [y], padding="SAME", stride_w=stride, stride_h=stride, filter_width=k, filter_height=k,
         fused_activation_function="NONE")
    return m.build()


def both(name, make, *shapes):
    """(name, function that makes it) as int8 and as floats."""
    for shape in shapes:
        for dtype in (INT8, FLOAT):
            arguments, options = (shape[:-1], shape[-1]) if isinstance(shape[-1], dict) else (shape, {})
            text = "x".join(str(v) for v in arguments) + "".join(f" {k}={v}" for k, v in options.items())
            yield f"{name} {dtype} {text}", lambda d=dtype, a=arguments, o=options: make(d, *a, **o)


def layers():
    yield from both("CONV_2D", conv, (224, 224, 3, 32, 3, 2), (192, 192, 3, 16, 3, 2), (320, 320, 3, 16, 6, 2),
                    (640, 640, 3, 16, 3, 2), (112, 112, 32, 16), (56, 56, 24, 144), (28, 28, 192, 32), (14, 14, 96, 576),
                    (14, 14, 384, 64), (7, 7, 160, 960), (7, 7, 320, 1280), (1, 1, 1280, 1000), (160, 160, 32, 64, 3, 2),
                    (80, 80, 64, 64, 3), (40, 40, 128, 128, 3), (20, 20, 256, 256, 3), (80, 80, 64, 80), (40, 40, 80, 80, 3),
                    (20, 20, 512, 256), (160, 160, 16, 16, 3), (48, 48, 24, 24), (24, 24, 24, 6), (33, 33, 64, 64, 3, 1, 2),
                    (49, 10, 1, 64, 4, 2), (128, 128, 16, 1), (96, 96, 4, 8, 3), (13, 13, 255, 18), (64, 64, 64, 3, 3))
    yield from both("DEPTHWISE_CONV_2D", depthwise, (112, 112, 32), (112, 112, 96, 3, 2), (56, 56, 144), (28, 28, 192),
                    (14, 14, 384), (7, 7, 960), (56, 56, 72, 5, 2), (28, 28, 120, 5), (14, 14, 480, 5), (7, 7, 960, 5),
                    (14, 14, 672, 5, 2), (56, 56, 64, 7), (14, 14, 256, 7), (28, 28, 96, 9), (28, 28, 128, 3, 1, 2),
                    (33, 33, 96, 3, 1, 4), (48, 48, 16), (24, 24, 24), (96, 96, 8, 3, 2), (64, 64, 3, 3, 1),
                    (40, 40, 256, 3), (80, 80, 128, 3), (28, 28, 32, 3, 1, 1, 2), (96, 96, 3, 3, 2, 1, 8), (49, 40, 1, 8, 2, 1, 8),
                    (25, 5, 64), (1, 49, 64, 3), (20, 20, 512, 13))
    yield from both("TRANSPOSE_CONV", transpose_conv, (32, 32, 64, 32), (64, 64, 32, 16), (16, 16, 128, 64, 3, 2),
                    (80, 80, 64, 64), (28, 28, 32, 8, 4, 2))
    yield from both("FULLY_CONNECTED", dense, (1, 1024, 1000), (1, 640, 128), (128, 128, 512), (197, 192, 576), (1, 4000, 4))
    pairs = [("ADD", [1, 56, 56, 24], [1, 56, 56, 24], False), ("ADD", [1, 14, 14, 96], [1, 14, 14, 96], False),
             ("ADD", [1, 56, 56, 24], [24]), ("ADD", [1, 80, 80, 64], [1]), ("SUB", [1, 192, 192, 3], [1, 1, 1, 3]),
             ("SUB", [1, 192, 192, 3], [1]), ("MUL", [1, 96, 96, 16], [1, 1, 16]), ("MUL", [1, 48, 48, 32], [1, 1, 32]),
             ("MUL", [1, 28, 28, 120], [1, 1, 1, 120], False), ("MUL", [1, 56, 56, 64], [1, 56, 56, 1], False),
             ("MUL", [1, 40, 40, 128], [1, 40, 40, 128], False), ("MUL", [1, 8400, 4], [1, 8400, 1], False),
             ("MUL", [1, 16, 197, 197], [1]), ("ADD", [1, 4, 128, 128], [1, 1, 1, 128]), ("MAXIMUM", [1, 48, 48, 32], [1, 48, 48, 32], False),
             ("MINIMUM", [1, 48, 48, 32], [1]), ("PRELU", [1, 96, 96, 16], [1, 1, 16]), ("PRELU", [1, 48, 48, 32], [1, 1, 32]),
             ("PRELU", [1, 12, 12, 128], [1, 1, 128]), ("SQUARED_DIFFERENCE", [1, 197, 192], [1, 197, 1], False),
             ("SUB", [1, 197, 192], [1, 197, 1], False), ("DIV", [1, 56, 56, 24], [1])]
    for op, a, b, *constant in pairs:
        yield from both(f"{op} {'x'.join(map(str, a))} {'x'.join(map(str, b))}",
                        lambda d, op=op, a=a, b=b, k=constant: binary(op, d, a, b, *k), ({},))
    for op, fields in (("LOGISTIC", {}), ("TANH", {}), ("HARD_SWISH", {}), ("GELU", {"approximate": False}), ("RELU", {}), ("RELU6", {}),
                       ("LEAKY_RELU", {"alpha": 0.1}), ("ELU", {}), ("ABS", {}), ("RSQRT", {}), ("EXP", {}), ("NEG", {})):
        yield from both(op, lambda d, *s, op=op, f=fields: unary(op, d, list(s), **({"options": None} | f if not f else f)),
                        (1, 56, 56, 64), (1, 7, 7, 96))
    yield from both("SOFTMAX", lambda d, *s: unary("SOFTMAX", d, list(s), beta=1.0), (1, 1000), (1, 4, 197, 197), (1, 8400, 16), (1, 19206, 2),
                    (1, 128, 128, 21))
    yield from both("RESIZE_BILINEAR", lambda d, h, w, c, s, half: moved("RESIZE_BILINEAR", d, [1, h, w, c], [1, h * s, w * s, c], [[h * s, w * s]],
                                                                       align_corners=False, half_pixel_centers=half),
                    (20, 20, 128, 2, True), (33, 33, 21, 8, False), (64, 64, 32, 2, False), (16, 16, 3, 4, True), (24, 24, 24, 2, True))
    yield from both("RESIZE_NEAREST", lambda d, h, w, c, s: moved("RESIZE_NEAREST_NEIGHBOR", d, [1, h, w, c], [1, h * s, w * s, c], [[h * s, w * s]],
                                                                align_corners=False, half_pixel_centers=False),
                    (20, 20, 256, 2), (40, 40, 128, 2), (64, 64, 3, 2))
    for op in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        yield from both(op, lambda d, *s, op=op: pooled(op, d, *s), (20, 20, 128, 5, 1), (112, 112, 64, 3, 2), (48, 48, 32, 2, 2), (64, 64, 3, 2, 2),
                        (7, 7, 1280, 7, 7))
    for op in ("MEAN", "SUM", "REDUCE_MAX"):
        yield from both(op, lambda d, shape, axes, out, op=op: moved(op, d, list(shape), list(out), [list(axes)], keep_dims=True),
                        ((1, 7, 7, 1280), (1, 2), (1, 1, 1, 1280)), ((1, 56, 56, 24), (1, 2), (1, 1, 1, 24)), ((1, 197, 192), (2,), (1, 197, 1)),
                        ((1, 40, 40, 16), (3,), (1, 40, 40, 1)))
    yield from both("TRANSPOSE", lambda d, shape, perm: moved("TRANSPOSE", d, list(shape), [shape[p] for p in perm], [list(perm)]),
                    ((1, 56, 56, 24), (0, 3, 1, 2)), ((1, 197, 4, 48), (0, 2, 1, 3)), ((1, 144, 8400), (0, 2, 1)), ((1, 80, 80, 64), (0, 2, 1, 3)),
                    ((1, 8, 49, 32), (0, 1, 3, 2)))
    yield from both("CONCATENATION", lambda d, shapes, axis: concat(d, [list(s) for s in shapes], axis),
                    (((1, 80, 80, 64), (1, 80, 80, 64)), 3), (((1, 40, 40, 3), (1, 40, 40, 5)), 3), (((1, 8400, 64), (1, 8400, 80)), 2),
                    (((1, 20, 20, 128),) * 4, 3))
    yield from both("SPLIT", lambda d, shape, n: moved("SPLIT", d, list(shape), [list(shape[:-1]) + [shape[-1] // n]] * n, [3], num_splits=n),
                    ((1, 80, 80, 64), 2), ((1, 20, 20, 30), 3), ((1, 28, 28, 116), 2))
    yield from both("GATHER", lambda d, rows, width, count: moved("GATHER", d, [rows, width], [count, width], [list(range(0, count))], axis=0),
                    (8400, 4, 2000), (3000, 128, 128))
    yield from both("PAD", lambda d, h, w, c: moved("PAD", d, [1, h, w, c], [1, h + 2, w + 2, c], [[[0, 0], [1, 1], [1, 1], [0, 0]]]),
                    (112, 112, 32), (192, 192, 3))
    yield from both("STRIDED_SLICE", lambda d, h, w, c: moved("STRIDED_SLICE", d, [1, h, w, c], [1, h // 2, w // 2, c],
                                                            [[0, 0, 0, 0], [1, h, w, c], [1, 2, 2, 1]]), (320, 320, 3), (80, 80, 32))
    yield from both("BATCH_MATMUL", matmul, ([1, 4, 197, 48], [1, 4, 197, 48], {"adj_y": True}), ([1, 4, 197, 197], [1, 4, 197, 48]),
                    ([1, 2, 128, 64], [1, 2, 128, 64], {"adj_y": True}), ([1, 100, 256], [1, 256, 100]))
    for shape in ((1, 224, 224, 3), (1, 8400, 84)):
        for op, frm, to in (("QUANTIZE", FLOAT, INT8), ("DEQUANTIZE", INT8, FLOAT), ("QUANTIZE", INT8, INT8), ("QUANTIZE", FLOAT, INT16),
                            ("DEQUANTIZE", INT16, FLOAT)):
            yield f"{op} {frm} to {to} {shape}", lambda op=op, f=frm, t=to, s=shape: cast(op, f, t, list(s))
        for frm, to in (("uint8", FLOAT), (FLOAT, "int32")):
            yield f"CAST {frm} to {to} {shape}", lambda f=frm, t=to, s=shape: cast("CAST", f, t, list(s))
    for name, make in (("CONV_2D int16 28x28x32x64 1", lambda: conv(INT16, 28, 28, 32, 64)),
                       ("CONV_2D int16 28x28x32x32 3", lambda: conv(INT16, 28, 28, 32, 32, 3)),
                       ("DEPTHWISE_CONV_2D int16 28x28x96", lambda: depthwise(INT16, 28, 28, 96)),
                       ("FULLY_CONNECTED int16 128x128x512", lambda: dense(INT16, 128, 128, 512)),
                       ("ADD int16", lambda: binary("ADD", INT16, [1, 28, 28, 96], [1, 28, 28, 96], False)),
                       ("MUL int16", lambda: binary("MUL", INT16, [1, 28, 28, 96], [96])),
                       ("LOGISTIC int16", lambda: unary("LOGISTIC", INT16, [1, 28, 28, 96], options=None)),
                       ("TANH int16", lambda: unary("TANH", INT16, [1, 28, 28, 96], options=None)),
                       ("SOFTMAX int16", lambda: unary("SOFTMAX", INT16, [1, 197, 197], beta=1.0)),
                       ("CONV_2D hybrid 28x28x32x64 3", lambda: conv(FLOAT, 28, 28, 32, 64, 3, hybrid=True)),
                       ("CONV_2D hybrid 28x28x96x96 1", lambda: conv(FLOAT, 28, 28, 96, 96, hybrid=True)),
                       ("DEPTHWISE_CONV_2D hybrid 28x28x96", lambda: depthwise(FLOAT, 28, 28, 96, hybrid=True)),
                       ("FULLY_CONNECTED hybrid 1x1024x1000", lambda: dense(FLOAT, 1, 1024, 1000, hybrid=True)),
                       ("FULLY_CONNECTED hybrid 128x128x512", lambda: dense(FLOAT, 128, 128, 512, hybrid=True))):
        yield name, make


def litert_runner(path):
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        values = np.random.RandomState(1).normal(0, 1 if detail["dtype"] == np.float32 else 40, detail["shape"])
        interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))

    def run(runs):
        best = math.inf
        for _ in range(runs):
            start = time.perf_counter()
            interpreter.invoke()
            best = min(best, time.perf_counter() - start)
        return 1e3 * best
    run(2)
    return run


def reef_runner(reef, path):
    command = [reef, "run", str(path), "--threads", "1", "--json", "--profile"]

    def run(runs):
        result = json.loads(subprocess.run([*command, "--bench", str(runs)], check=True, capture_output=True, text=True).stdout)
        ops = result.get("ops", [])
        return result["time"]["min_ms"], ", ".join(sorted({op.get("kernel", "?") for op in ops if op.get("kernel", "?")}))
    return run


def compare(name, data, options, folder):
    path = pathlib.Path(folder) / "layer.tflite"
    path.write_bytes(data)
    theirs = reef_time = math.inf
    kernel = "refused"
    try:
        peer = litert_runner(path)
    except (RuntimeError, ValueError) as error:
        peer, message = None, str(error).splitlines()[0]
        print(f"{name}: LiteRT refuses: {message}", file=sys.stderr)
    ours = reef_runner(options.reef, path)
    for _ in range(options.rounds):
        try:
            least, kernel = ours(options.runs)
        except subprocess.CalledProcessError as error:
            print(f"{name}: reef refuses: {error.stderr.strip()[:200]}", file=sys.stderr)
            return None
        reef_time = min(reef_time, least)
        theirs = min(theirs, peer(options.runs)) if peer else theirs
    return reef_time, theirs, kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reef", default=str(ROOT / "build/reef"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", default="", help="layers whose name has this in it")
    parser.add_argument("--worst", type=int, default=0, help="only this many rows, the slowest first")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in layers():
            if options.only not in name:
                continue
            found = compare(name, make(), options, folder)
            if found:
                rows.append((found[0] / found[1], name, *found))
    rows.sort(key=lambda row: -row[0])
    print("| layer | kernel | Reef, ms | XNNPACK, ms | ratio |\n| --- | --- | ---: | ---: | ---: |")
    for ratio, name, ours, theirs, kernel in rows[:options.worst or None]:
        print(f"| {name} | {kernel} | {ours:.4f} | {theirs:.4f} | {ratio:.2f} |")
    known = [row[0] for row in rows if row[0] > 0]
    if known:
        print(f"\n{len(known)} layers, geometric mean {math.exp(sum(map(math.log, known)) / len(known)):.2f}, "
              f"{sum(r > 1 for r in known)} above 1.0, {sum(r > 1.1 for r in known)} above 1.1")


if __name__ == "__main__":
    main()
