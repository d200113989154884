#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's operator tests, converted by `reef convert`, in LiteRT: what onnx_node_report does with Reef's own runtime.

  check_onnx_nodes.py REEF [--data DIR] [NAME...]

Prints the tests that convert but that LiteRT refuses or computes differently (relative 1e-3, absolute 1e-7, as ONNX's
runner), and a summary. Tests that do not convert without fixing an input are counted, not run.
"""
import argparse, glob, os, pathlib, subprocess, sys, tempfile

import numpy as np
import onnx
from onnx import numpy_helper

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from ai_edge_litert.interpreter import Interpreter, OpResolverType

WORKER = "--worker"


def tensors(folder, role):
    files = sorted(glob.glob(f"{folder}/{role}_*.pb"), key=lambda f: int(f.rsplit("_", 1)[1][:-3]))
    return [numpy_helper.to_array(onnx.load_tensor(f)) for f in files]


def convert(reef, folder, model, inputs, target):
    command = [reef, "convert", f"{folder}/model.onnx", "-o", target, "--keep-qdq"]
    for info, array in zip(model.graph.input, inputs):
        command += ["--input-shape", f"{info.name}:{','.join(map(str, array.shape))}", "--keep-nchw", info.name]
    for info in model.graph.output:
        command += ["--keep-nchw", info.name]
    return subprocess.run(command, capture_output=True, text=True)


def run_one(reef, folder):
    """'' passed, 'refused', 'aside', or what went wrong."""
    model = onnx.load(f"{folder}/model.onnx")
    try:
        inputs, outputs = tensors(f"{folder}/test_data_set_0", "input"), tensors(f"{folder}/test_data_set_0", "output")
    except Exception:
        return "aside"
    if len(inputs) != len(model.graph.input) or len(outputs) != len(model.graph.output):
        return "aside"
    with tempfile.TemporaryDirectory() as temporary:
        target = os.path.join(temporary, "model.tflite")
        done = convert(reef, folder, model, inputs, target)
        if done.returncode != 0:
            return "refused " + done.stderr.strip()
        try:
            lite = Interpreter(model_path=target, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
            lite.allocate_tensors()
            feeds = {info.name: array for info, array in zip(model.graph.input, inputs)}
            for detail in lite.get_input_details():
                lite.set_tensor(detail["index"], feeds[detail["name"]].astype(detail["dtype"]))
            lite.invoke()
            names = {d["name"]: d["index"] for d in lite.get_output_details()}
            for info, wanted in zip(model.graph.output, outputs):
                got = lite.get_tensor(names[info.name])
                if list(got.shape) != list(wanted.shape):
                    return f"{info.name}: shape {list(got.shape)} instead of {list(wanted.shape)}"
                if wanted.dtype.kind in "fiub" and not np.allclose(got.astype(np.float64), wanted.astype(np.float64), 1e-3, 1e-7, equal_nan=True):
                    return f"{info.name}: other values"
        except Exception as error:
            return "LiteRT: " + str(error).strip().split("\n")[0][:160]
    return ""


def main():
    if len(sys.argv) > 1 and sys.argv[1] == WORKER:  # a process for some tests: a runtime that crashes costs one of them
        for folder in sys.argv[3:]:
            print("begin", folder, flush=True)
            print("end", run_one(sys.argv[2], folder), flush=True)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reef")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", default="/usr/share/libonnx-testdata/data")
    parser.add_argument("--refused", action="store_true", help="print what does not convert, too")
    args = parser.parse_args()
    folders = sorted(str(p.parent) for p in pathlib.Path(args.data).glob("*/*/model.onnx") if p.parts[-3] in ("node", "simple", "pytorch-operator", "pytorch-converted"))
    if args.names:
        folders = [f for f in folders if any(n in f for n in args.names)]
    counts = {}
    while folders:
        done = subprocess.run([sys.executable, __file__, WORKER, args.reef] + folders[:100], capture_output=True, text=True)
        seen = [line[6:] for line in done.stdout.split("\n") if line.startswith("begin")]
        results = [line[4:] for line in done.stdout.split("\n") if line.startswith("end")]
        if len(results) < len(seen):
            results.append("crash")
        for folder, result in zip(seen, results):
            kind = result.split(" ")[0] if result.split(" ")[0] in ("", "refused", "aside") else "differs"
            counts[kind] = counts.get(kind, 0) + 1
            if kind == "differs" or (kind == "refused" and args.refused):
                print(os.path.basename(folder), result, flush=True)
        folders = folders[max(1, len(seen)):]
    print("equal %d, differ %d, not converted without fixing inputs %d, aside %d" % tuple(counts.get(k, 0) for k in ("", "differs", "refused", "aside")))


if __name__ == "__main__":
    main()
