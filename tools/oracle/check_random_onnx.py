#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs in ONNX Runtime and, converted, in Reef; every difference becomes the smallest graph that has it.

    REEF_LIBRARY=build/libreef.so.0 PYTHONPATH=build/python python tools/oracle/check_random_onnx.py --count 10000 [--first 0] [--failures DIR]

ONNX Runtime runs without its graph optimizer (some of its rewrites change results: docs/breadth.md). Inputs and outputs of the
converted model stay channels-first, so that values compare as they are; inside, images are channels-last as always. A graph that
ONNX Runtime refuses is not counted; one that Reef does not convert or run is a gap.

A difference is made smaller: the first node whose result differs is taken out, with ONNX Runtime's values as its inputs; if it
agrees by itself, the nodes up to it are kept. DIR gets NUMBER.onnx and NUMBER.npz (the inputs). Exit code 1 if anything
differs or is a gap.
"""

import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import reef
from onnx import helper

import graph_trials
from graph_trials import difference
from random_onnx import random_onnx

BOUND = 5e-4  # sums of products are in another order than ONNX Runtime's


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def runtime_results(model, inputs):
    """Results by ONNX Runtime; None where it refuses the model."""
    try:
        return session(model).run(None, inputs)
    except Exception:  # its errors have no common class
        return None


def reef_results(model, inputs):
    names = [value.name for value in (*model.graph.input, *model.graph.output)]
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.tflite")
        onnx.save(model, source)
        reef.convert(source, target, keep_nchw=names)
        interpreter = reef.Interpreter(target)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], inputs[detail["name"]])
    interpreter.invoke()
    found = {d["name"]: np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()}
    return [found[value.name] for value in model.graph.output]


def up_to(model, count, names):
    """The first `count` nodes of a model, giving out `names`."""
    kinds = {v.name: v for v in onnx.shape_inference.infer_shapes(model).graph.value_info}
    kinds.update({v.name: v for v in model.graph.output})
    graph = helper.make_graph(model.graph.node[:count], "part", model.graph.input, [kinds[n] for n in names], model.graph.initializer)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def alone(model, index, values):
    """Node `index` by itself, with its computed operands as inputs."""
    node = model.graph.node[index]
    constants = [c for c in model.graph.initializer if c.name in node.input]
    names = [n for n in dict.fromkeys(node.input) if n in values]
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape) for n in names]
    outputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), values[n].shape) for n in node.output]
    graph = helper.make_graph([node], "one", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), {n: values[n] for n in names}


def smallest(model, inputs):
    """(model, inputs, node kind, sentence) of the first node whose result differs."""
    made = [n for node in model.graph.node for n in node.output]
    values = dict(zip(made, runtime_results(up_to(model, len(model.graph.node), made), inputs)), **inputs)
    for index, node in enumerate(model.graph.node):
        single, operands = alone(model, index, values)
        expected = [values[n] for n in node.output]
        sentence = difference(expected, reef_results(single, operands), BOUND)
        if sentence:
            return single, operands, node.op_type, sentence
    for index, node in enumerate(model.graph.node):
        part = up_to(model, index + 1, node.output)
        sentence = difference([values[n] for n in node.output], reef_results(part, inputs), BOUND)
        if sentence:
            return part, inputs, node.op_type, sentence + " (only within the graph)"
    return model, inputs, "the whole graph", "differs only as a whole"


def keep(folder, number, model, inputs):
    if folder:
        os.makedirs(folder, exist_ok=True)
        onnx.save(model, os.path.join(folder, f"{number}.onnx"))
        np.savez(os.path.join(folder, f"{number}.npz"), **inputs)


def check(number, options):
    model = random_onnx(number)
    rng = np.random.RandomState(number + 1)
    inputs = {} if model is None else {v.name: rng.uniform(-2, 2, [d.dim_value for d in v.type.tensor_type.shape.dim]).astype(np.float32)
                                       for v in model.graph.input}
    options.enter("reference")
    expected = None if model is None else runtime_results(model, inputs)
    options.enter("Reef")
    if expected is None:
        return "refused", ""
    try:
        sentence = difference(expected, reef_results(model, inputs), BOUND)
    except (ValueError, RuntimeError) as error:
        keep(options.failures, number, model, inputs)
        return "gap", str(error)
    if sentence is None:
        return "equal", ""
    try:
        model, inputs, kind, sentence = smallest(model, inputs)
    except (ValueError, RuntimeError) as error:
        kind, sentence = "the whole graph", f"{sentence}; could not be made smaller: {error}"
    keep(options.failures, number, model, inputs)
    return "different", f"{kind}: {sentence}"


if __name__ == "__main__":
    sys.exit(graph_trials.run(check, graph_trials.parser(__doc__.split("\n")[0]).parse_args()))
