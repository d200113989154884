# SPDX-License-Identifier: Apache-2.0
"""TFLite-Micro as a third oracle, for its own operators, with the part of LiteRT's Python interface that record.py uses.

Needs the package `tflite-micro`. Shapes are fixed in this runtime: inputs cannot be resized.
"""

import importlib.metadata

import numpy as np
from tflite_micro import runtime

from onemodel import NUMPY_TYPES, enum_name, schema

ARENA_BYTES = 1 << 20


def name():
    return f"tflite-micro {importlib.metadata.version('tflite-micro')}"


class Interpreter:
    def __init__(self, model):
        self._interpreter = runtime.Interpreter.from_bytes(model, arena_size=ARENA_BYTES)
        graph = schema.ModelT.InitFromPackedBuf(model).subgraphs[0]
        self._inputs, self._outputs = ([graph.tensors[i] for i in indices] for indices in (graph.inputs, graph.outputs))

    @staticmethod
    def _details(tensors):
        return [{"index": i, "shape": [int(d) for d in (t.shape if t.shape is not None else [])],
                 "dtype": NUMPY_TYPES[enum_name(schema.TensorType, t.type)]} for i, t in enumerate(tensors)]

    def get_input_details(self):
        return self._details(self._inputs)

    def get_output_details(self):
        return self._details(self._outputs)

    def resize_tensor_input(self, index, shape):
        raise ValueError("TFLite-Micro cannot resize inputs")

    def allocate_tensors(self):
        pass  # done when the model was loaded

    def set_tensor(self, index, value):
        self._interpreter.set_input(np.array(value, order="C"), index)  # scalars stay scalars

    def invoke(self):
        self._interpreter.invoke()

    def get_tensor(self, index):
        return np.array(self._interpreter.get_output(index)).reshape(self.get_output_details()[index]["shape"])
