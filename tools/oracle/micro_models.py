# SPDX-License-Identifier: Apache-2.0
"""Models made of models: parts of one, one beside an Edge TPU operator, and what decoders of poses and boxes write."""

import flatbuffers
import numpy as np

from onemodel import schema

EDGE_TPU = b"edgetpu-custom-op"


def packed(table):
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def indices(values):
    return [int(v) for v in (values if values is not None else [])]


def has_data(table, tensor):
    data = table.buffers[tensor.buffer].data
    return data is not None and len(data) > 0


def is_computed(table, graph, index):
    """Neither stored in the file nor a state that the operator keeps."""
    return index >= 0 and not has_data(table, graph.tensors[index]) and not graph.tensors[index].isVariable


def with_operators(model, operators, keep_outputs=True):
    """A model of those operators alone: what they read and do not make comes in; what others read goes out."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    chosen = [graph.operators[i] for i in operators]
    others = [op for i, op in enumerate(graph.operators) if i not in set(operators)]
    made = [t for op in chosen for t in indices(op.outputs) if t >= 0]
    read = [t for op in chosen for t in indices(op.inputs) if is_computed(table, graph, t)]
    wanted = {t for op in others for t in indices(op.inputs)} | set(indices(graph.outputs))
    graph.operators = chosen
    graph.inputs = list(dict.fromkeys(t for t in read if t not in made))
    graph.outputs = [t for t in dict.fromkeys(made) if t in wanted or not keep_outputs]
    table.signatureDefs = None
    return packed(table) if graph.inputs and graph.outputs else None


def cpu_part(model):
    """What the CPU runs of a compiled model, before and behind the Edge TPU; None if there is nothing."""
    table = schema.ModelT.InitFromPackedBuf(model)
    code = [i for i, c in enumerate(table.operatorCodes) if c.customCode == EDGE_TPU]
    rest = [i for i, op in enumerate(table.subgraphs[0].operators) if op.opcodeIndex not in code]
    return with_operators(model, rest) if rest else None


def with_all_results(model):
    """The model, giving every tensor that it computes; with their numbers."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    graph.outputs = list(dict.fromkeys(t for op in graph.operators for t in indices(op.outputs) if t >= 0))
    return packed(table), graph.outputs


def beside_edge_tpu(model):
    """The model with an Edge TPU operator that has nothing to do with it."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    table.operatorCodes.append(schema.OperatorCodeT(builtinCode=schema.BuiltinOperator.CUSTOM, customCode=EDGE_TPU.decode(),
                                                    deprecatedBuiltinCode=schema.BuiltinOperator.CUSTOM, version=1))
    first = len(graph.tensors)
    for name in ("picture", "codes"):
        graph.tensors.append(schema.TensorT(shape=[1, 4], type=schema.TensorType.UINT8, name=name))
    graph.operators.append(schema.OperatorT(opcodeIndex=len(table.operatorCodes) - 1, inputs=[first], outputs=[first + 1]))
    graph.inputs = indices(graph.inputs) + [first]
    graph.outputs = indices(graph.outputs) + [first + 1]
    table.signatureDefs = None
    return packed(table)


COUNTED = (b"PosenetDecoderOp", b"TFLite_Detection_PostProcess")  # result 3 says how many of the others there are


def decoded(model, outputs):
    """Of decoders only what they write: behind the last person or box stands what was in memory before."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph, outputs = table.subgraphs[0], list(outputs)
    places = {t: i for i, t in enumerate(indices(graph.outputs))}
    for op in graph.operators:
        made = [places.get(t) for t in indices(op.outputs)]
        if table.operatorCodes[op.opcodeIndex].customCode not in COUNTED or None in made:
            continue
        count = int(outputs[made[3]].reshape(-1)[0])
        for place in (p for i, p in enumerate(made) if i != 3):
            shape = indices(graph.tensors[graph.outputs[place]].shape)
            if len(shape) > 1:
                outputs[place] = outputs[place].reshape(-1)[:count * int(np.prod(shape[2:]))]
    return outputs
