#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs as PyTorch's exporters write them, with random weights, and what ONNX Runtime computes for them.

  make_onnx_exports.py [--out tests/onnx_exports] [NAME...]      writes model, inputs and outputs of each
  make_onnx_exports.py --check REEF [NAME...]                    converts them with Reef and compares LiteRT with ONNX Runtime

Written by hand from what the TorchScript and the dynamo exporter emit for the operation in the name: chains of Shape,
Gather, Unsqueeze, Concat and Reshape for sizes, Expand for states, normalizations by way of others, attention with Where.
Folders have the layout of ONNX's own tests; `transposes` holds how many TRANSPOSE the converted model may have.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from onnx import helper, numpy_helper

import onnx_exports_of_layers  # noqa: F401  (these add themselves to CASES)
import onnx_exports_of_transformers  # noqa: F401
import onnx_exports_of_vision  # noqa: F401
from onnx_export_graph import CASES, Graph, TOLERANCES


def build(name):
    make, transposes, opset, _ = CASES[name]
    g = Graph(name)
    make(g)
    graph = helper.make_graph(g.nodes, name, g.inputs, g.outputs, g.constants)
    domains = {node.domain for node in g.nodes} - {"", *(f.domain for f in g.functions)}
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in sorted(domains)] + [helper.make_opsetid(f.domain, 1) for f in g.functions]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="pytorch", functions=g.functions)
    model.ir_version = 8 if opset < 20 else 9
    return model, g


def runtime_outputs(model, feeds):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, feeds)


def write(name, root):
    model, g = build(name)
    outputs = runtime_outputs(model, g.feeds)
    folder = root / f"test_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "transposes").write_text(f"{CASES[name][1]}\n")
    if name in TOLERANCES:
        (folder / "tolerance").write_text(f"{TOLERANCES[name]}\n")
    for i, info in enumerate(model.graph.input):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(g.feeds[info.name], info.name).SerializeToString())
    for i, (info, array) in enumerate(zip(model.graph.output, outputs)):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(array, info.name).SerializeToString())


def check(name, reef, work):
    """LiteRT against ONNX Runtime, channels-last as Reef makes it by default."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    model, g = build(name)
    wanted = dict(zip((o.name for o in model.graph.output), runtime_outputs(model, g.feeds)))
    (work / "m.onnx").write_bytes(model.SerializeToString())
    shapes = [f"--input-shape={n}:{','.join(map(str, a.shape))}" for n, a in g.feeds.items()]
    done = subprocess.run([reef, "convert", str(work / "m.onnx"), "-o", str(work / "m.tflite"), "--io", "float32", *shapes], capture_output=True, text=True)
    if done.returncode != 0:
        return f"refused: {done.stderr.strip()}"
    lite = Interpreter(model_path=str(work / "m.tflite"), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    lite.allocate_tensors()
    for _ in range(2):
        for detail in lite.get_input_details():
            array = g.feeds[detail["name"]]
            lite.set_tensor(detail["index"], np.ascontiguousarray(array if list(array.shape) == list(detail["shape"]) else np.moveaxis(array, 1, -1)))
        lite.invoke()
    kinds = [op["type"] for op in json.loads(subprocess.run([reef, "inspect", "--json", str(work / "m.tflite")], capture_output=True, text=True).stdout)["subgraphs"][0]["operators"]]
    worst = 0.0
    for detail in lite.get_output_details():
        if detail["name"] not in wanted:
            continue
        got, array = lite.get_tensor(detail["index"]), wanted[detail["name"]]
        if list(got.shape) != list(array.shape):
            array = np.moveaxis(array, 1, -1)
        if list(got.shape) != list(array.shape):
            return f"{detail['name']}: shape {list(got.shape)} instead of {list(array.shape)}"
        worst = max(worst, float(np.abs(got.astype(np.float64) - array).max() / max(1e-12, np.abs(array).max())))
    counts = ", ".join(f"{kinds.count(k)} {k}" for k in sorted(set(kinds)))
    verdict = "" if worst <= TOLERANCES.get(name, 0.02 if "quantized" in name else 1e-4) and kinds.count("TRANSPOSE") <= CASES[name][1] else "FAIL "
    return f"{verdict}difference {worst:.1e}, TRANSPOSE {kinds.count('TRANSPOSE')} of {CASES[name][1]}: {counts}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "onnx_exports"))
    parser.add_argument("--check")
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.names or CASES:
            if args.check:
                text = check(name, args.check, pathlib.Path(temporary))
                failed += text.startswith(("FAIL", "refused")) or "instead of" in text
                print(f"{name}: {text}", flush=True)
            else:
                write(name, pathlib.Path(args.out))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
