# SPDX-License-Identifier: Apache-2.0
"""Models without a custom operator at their end, so that runtimes that lack it can be compared on the rest.

The file is changed in place, without a flatbuffers library: the last operator is taken off the list, and what it read
becomes the model's output. Field numbers are those of TFLite's schema.
"""
import struct

MODEL_CODES, MODEL_SUBGRAPHS = 1, 2
CODE_CUSTOM = 1
SUBGRAPH_OUTPUTS, SUBGRAPH_OPERATORS = 2, 3
OPERATOR_CODE, OPERATOR_INPUTS = 0, 1
KNOWN_TO_TFLITE = (b"TFLite_Detection_PostProcess",)


class Flatbuffer:
    def __init__(self, data):
        self.data = bytearray(data)

    def number(self, at, kind="<I"):
        return struct.unpack_from(kind, self.data, at)[0]

    def follow(self, at):
        return at + self.number(at)

    def field(self, table, index):
        """Where a table's field lies; None if it has its default."""
        fields = table - self.number(table, "<i")
        if 4 + 2 * index >= self.number(fields, "<H"):
            return None
        offset = self.number(fields + 4 + 2 * index, "<H")
        return table + offset if offset else None

    def vector(self, table, index):
        """Where a vector's length lies; its elements follow."""
        at = self.field(table, index)
        return None if at is None else self.follow(at)

    def table_in(self, vector, index):
        return self.follow(vector + 4 + 4 * index)


def without_custom_end(data):
    """The model without its last operator if that is a custom one that TFLite lacks and one cut is enough; else None."""
    model = Flatbuffer(data)
    root = model.follow(0)
    codes, subgraphs = model.vector(root, MODEL_CODES), model.vector(root, MODEL_SUBGRAPHS)
    if codes is None or subgraphs is None or model.number(subgraphs) != 1:
        return None
    graph = model.table_in(subgraphs, 0)
    outputs, operators = model.vector(graph, SUBGRAPH_OUTPUTS), model.vector(graph, SUBGRAPH_OPERATORS)
    count = model.number(operators) if operators is not None else 0
    if outputs is None or count == 0:
        return None
    last = model.table_in(operators, count - 1)
    code_at = model.field(last, OPERATOR_CODE)
    code = model.table_in(codes, model.number(code_at) if code_at is not None else 0)
    name = model.vector(code, CODE_CUSTOM)
    inputs = model.vector(last, OPERATOR_INPUTS)
    if name is None or inputs is None:
        return None
    text = bytes(model.data[name + 4:name + 4 + model.number(name)])
    kept = model.number(inputs)
    if text in KNOWN_TO_TFLITE or kept > model.number(outputs):
        return None
    struct.pack_into("<I", model.data, operators, count - 1)
    struct.pack_into("<I", model.data, outputs, kept)
    for i in range(kept):
        struct.pack_into("<i", model.data, outputs + 4 + 4 * i, model.number(inputs + 4 + 4 * i, "<i"))
    return bytes(model.data)
