#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts ONNX models with `reef convert` and compares LiteRT on the result with ONNX Runtime on the model.

  check_onnx.py REEF MODEL.onnx... [--data FILE.npz --array NAME] [--samples N] [--keep DIR]

Inputs are rows of the array (scaled to -1..1 when it holds bytes), or random numbers. Inputs and outputs of rank 4 are
transposed where the converted model has channels last. Prints, per model, the largest difference relative to the largest
output, how many operators of which kind there are, and ends with 1 if a difference is above 1e-4.
"""
import argparse, collections, os, subprocess, sys, tempfile
import numpy as np
import onnxruntime as ort

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def onnx_runtime(path):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def lite_runtime(path):
    interpreter = Interpreter(model_path=path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    return interpreter


def to_layout(array, shape):
    """The array as the shape says: as it is, or with its channels last."""
    if list(array.shape) == list(shape):
        if array.ndim < 3:
            return array
    last = np.moveaxis(array, 1, -1) if array.ndim >= 3 else array
    return last if list(last.shape) == list(shape) and list(array.shape) != list(shape) else array


def samples(session, args):
    rng = np.random.default_rng(1)
    spec = session.get_inputs()[0]
    shape = [d if isinstance(d, int) else 1 for d in spec.shape]
    rows = None
    if args.data:
        rows = np.load(args.data)[args.array]
    for i in range(args.samples):
        if rows is None:
            x = rng.standard_normal(shape).astype(np.float32) if "float" in spec.type else rng.integers(0, 100, shape)
        else:
            x = rows[i : i + 1]
            if x.dtype == np.uint8 and "float" in spec.type:
                x = (x.astype(np.float32) - 127.5) / 127.5
            if x.ndim == 4 and list(x.shape) != shape:
                x = np.moveaxis(x, -1, 1)
            x = x.reshape(shape)
        yield {spec.name: x.astype(np.float32 if "float" in spec.type else np.int64)}


def compare(reef, path, args, folder):
    target = os.path.join(folder, os.path.basename(path)[:-5] + ".tflite")
    done = subprocess.run([reef, "convert", path, "-o", target], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    session, lite = onnx_runtime(path), lite_runtime(target)
    counts = collections.Counter(d["op_name"] for d in lite._get_ops_details())
    worst = 0.0
    for feed in samples(session, args):
        wanted = session.run(None, feed)
        for detail in lite.get_input_details():
            lite.set_tensor(detail["index"], np.ascontiguousarray(to_layout(feed[detail["name"]], detail["shape"])))
        lite.invoke()
        names = {d["name"]: d for d in lite.get_output_details()}
        for spec, array in zip(session.get_outputs(), wanted):
            got = lite.get_tensor(names[spec.name]["index"])
            array = to_layout(array, got.shape)
            scale = max(1e-12, float(np.abs(array).max()))
            worst = max(worst, float(np.abs(got.astype(np.float64) - array).max()) / scale)
    return worst, ", ".join("%d %s" % (n, k) for k, n in sorted(counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reef")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data")
    parser.add_argument("--array", default="x")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--keep")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for path in args.models:
            worst, text = compare(args.reef, path, args, args.keep or temporary)
            bad = worst is None or worst > 1e-4
            failed += bad
            print("%-4s %-32s %s  %s" % ("FAIL" if bad else "ok", os.path.basename(path), "-" if worst is None else "%.2e" % worst, text), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
