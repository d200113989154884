#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random TFLite graphs in Reef and in LiteRT's reference kernels; every difference becomes the smallest graph that has it.

    REEF_LIBRARY=build/libreef.so.0 PYTHONPATH=build/python python tools/oracle/check_random_graphs.py --count 10000 [--first 0] [--family network]
                                                                       [--failures DIR] [--threads 1]

Integers must be equal to the bit, floats within graph_trials.BOUND. A graph that LiteRT refuses must not crash Reef
and counts as "refused"; one that LiteRT runs and Reef refuses is a gap, listed by Reef's message. Each range of graphs runs in a
process of its own: a crash costs one graph, is attributed to Reef or to LiteRT, and is listed.

Two kinds of difference are not Reef's, and are counted by themselves. "shared memory": LiteRT agrees with Reef as soon as it keeps
every tensor in memory of its own (its planner lets an in-place operator write over a tensor that two RESHAPEs share and that is read
later). "amplified": floats differ, although every operator by itself, with the reference's values as inputs, is within the bound
(RSQRT of a difference that is almost zero).

Any other difference is made smaller: the first operator of the graph whose result differs is taken out, with the reference's values
as its inputs, and if it still differs by itself that one-operator model is kept (DIR/NUMBER.tflite and NUMBER.npz, which has
the inputs and both results). Exit code 1 if anything differs, is a gap, or crashed in Reef.
"""

import os
import sys

import flatbuffers
import numpy as np
import reef

import graph_trials
from graph_trials import difference
from onemodel import enum_name, schema
from random_graphs import FAMILIES, random_graph
from record import make_interpreter


# ---- Running ----


def made_inputs(interpreter, number):
    """Random values for every input: whole ranges of integers, [-4, 4) for floats."""
    rng = np.random.RandomState(number + 1)
    made = []
    for detail in interpreter.get_input_details():
        dtype, shape = np.dtype(detail["dtype"]), detail["shape"]
        if dtype == np.bool_:
            made.append(rng.randint(0, 2, shape).astype(bool))
        elif dtype.kind == "f":
            made.append(rng.uniform(-4, 4, shape).astype(dtype))
        elif dtype.itemsize > 2:
            made.append(rng.randint(-100, 100, shape).astype(dtype))
        else:
            limits = np.iinfo(dtype)
            made.append(rng.randint(limits.min, limits.max + 1, shape).astype(dtype))
    return made


def results(interpreter, inputs):
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def reference_results(model, inputs=None, number=0, keep_all=False):
    """(inputs, results) of LiteRT's reference kernels; None where it refuses the model."""
    try:
        interpreter = make_interpreter(model, keep_all=keep_all)
        interpreter.allocate_tensors()
        inputs = made_inputs(interpreter, number) if inputs is None else inputs
        return inputs, results(interpreter, inputs)
    except (ValueError, RuntimeError):
        return None


def reef_results(model, inputs, threads):
    interpreter = reef.Interpreter(model_content=model, num_threads=threads)
    interpreter.allocate_tensors()
    return results(interpreter, inputs)


# ---- Making a difference smaller ----


def operator_name(table, op):
    return enum_name(schema.BuiltinOperator, table.operatorCodes[op.opcodeIndex].builtinCode)


def with_outputs(model, tensors, operators):
    """The model with its first `operators` operators, giving out `tensors`."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    graph.operators, graph.outputs = graph.operators[:operators], list(tensors)
    table.signatureDefs = None
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def alone(model, index):
    """Operator `index` as a model whose inputs are the tensors that are computed before it; (model, those tensors)."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    op = graph.operators[index]
    given = []
    for t in op.inputs:
        if t >= 0 and graph.tensors[t].buffer == 0 and t not in given:
            given.append(int(t))
    graph.operators, graph.inputs, graph.outputs = [op], given, list(op.outputs)
    table.signatureDefs = None
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output()), given


def is_float(model, index):
    """Are all results of operator `index` floats?"""
    graph = schema.ModelT.InitFromPackedBuf(model).subgraphs[0]
    return all(graph.tensors[t].type == schema.TensorType.FLOAT32 for t in graph.operators[index].outputs)


def smallest(model, inputs, threads):
    """(model, inputs, operator, sentence) of the first operator that differs by itself. Where only results of several operators together
    differ, the first of those; its sentence begins with "amplified" if all that differs are floats."""
    table = schema.ModelT.InitFromPackedBuf(model)
    operators = table.subgraphs[0].operators
    within = None
    for index, op in enumerate(operators):
        prefix = with_outputs(model, op.outputs, index + 1)
        expected = reference_results(prefix, inputs)
        if expected is None:
            continue
        found = difference(expected[1], reef_results(prefix, inputs, threads))
        if found is None:
            continue
        single, given = alone(model, index)
        values = reference_results(with_outputs(model, given, index), inputs) if given else (None, [])
        by_itself = reference_results(single, values[1]) if values else None
        sentence = difference(by_itself[1], reef_results(single, values[1], threads)) if by_itself else None
        if sentence:
            return single, values[1], operator_name(table, op), sentence
        if within is None or not is_float(model, index):
            begin = "amplified, " if is_float(model, index) else ""
            within = within if within and not within[3].startswith("amplified") else (prefix, inputs, operator_name(table, op), begin + found + " (only within the graph)")
    return within or (model, inputs, "the whole graph", "differs only as a whole")


# ---- One graph ----


def check(number, options):
    """(outcome, detail) of one graph."""
    model, family = random_graph(number, options.family)
    options.enter("reference")
    expected = reference_results(model, number=number)
    options.enter("Reef")
    if expected is None:
        return "refused", family
    inputs, results_there = expected
    try:
        found = difference(results_there, reef_results(model, inputs, options.threads))
    except (ValueError, RuntimeError) as error:
        return "gap", str(error)
    if found is None:
        return "equal", family
    kept = reference_results(model, inputs, keep_all=True)
    if kept and difference(kept[1], reef_results(model, inputs, options.threads)) is None:
        return "shared memory", family
    model, inputs, operator, sentence = smallest(model, inputs, options.threads)
    if sentence.startswith("amplified"):
        return "amplified", f"{operator}: {sentence}"
    if options.failures:
        os.makedirs(options.failures, exist_ok=True)
        base = os.path.join(options.failures, str(number))
        with open(base + ".tflite", "wb") as file:
            file.write(model)
        np.savez(base + ".npz", *inputs)
    return "different", f"{operator}: {sentence}"


def main():
    parser = graph_trials.parser(__doc__.split("\n")[0])
    parser.add_argument("--family", choices=sorted(FAMILIES), help="kind of graphs; all of them if left out")
    parser.add_argument("--threads", type=int, default=1, help="threads of Reef")
    return graph_trials.run(check, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
