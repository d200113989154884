# SPDX-License-Identifier: Apache-2.0
"""As pycoral.pipeline.pipelined_model_runner: reef.pipeline's, with PyCoral's checks and errors."""

from __future__ import annotations

from typing import Dict, Optional, Sequence

import numpy as np

from reef import pipeline
from reef.interpreter import Interpreter


def _names(details) -> set:
    return {each["name"] for each in details}


class PipelinedModelRunner(pipeline.PipelinedModelRunner):
    """push({input name: array}) and pop() -> {output name: array}; push({}) ends it, and pop() then gives None."""

    def __init__(self, interpreters: Sequence[Interpreter]):
        if not interpreters:
            raise ValueError("At least one interpreter expected")
        known = _names(interpreters[0].get_input_details())
        for index, interpreter in enumerate(interpreters):
            if not _names(interpreter.get_input_details()) <= known:
                raise ValueError(f"Interpreter {index} can not get its input tensors")
            known |= _names(interpreter.get_output_details())
        super().__init__(interpreters)
        self._types = {each["name"]: each["dtype"] for each in interpreters[0].get_input_details()}
        self._is_closed = False

    def push(self, input_tensors: Dict[str, np.ndarray]) -> None:
        """Waits while the queue is full. ValueError: not the inputs of the first segment, or of another type."""
        if input_tensors and len(input_tensors) != len(self._types):
            raise ValueError(f"Expected input of length {len(self._types)}, but got {len(input_tensors)}")
        if not isinstance(input_tensors, dict):  # in the order of the first segment's inputs
            input_tensors = dict(zip(self._types, input_tensors))
        for name, tensor in input_tensors.items():
            wanted = self._types[name]
            if not isinstance(tensor, np.ndarray) or tensor.dtype != wanted:
                raise ValueError(f"Input should be a list of numpy array of type {wanted}")
        if self._is_closed:
            raise RuntimeError("Pipeline was turned off before.")
        super().push(input_tensors)
        self._is_closed = not input_tensors

    def pop(self) -> Optional[Dict[str, np.ndarray]]:
        return super().pop()


__all__ = ["PipelinedModelRunner"]
