# SPDX-License-Identifier: Apache-2.0
"""As pycoral.pipeline.pipelined_model_runner: reef.pipeline's, with PyCoral's checks and errors."""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence

import numpy as np

from reef import pipeline
from reef.interpreter import Interpreter


def _names(details) -> set:
    return {each["name"] for each in details}


def _index_of_unprepared(interpreters: Sequence[Interpreter]) -> Optional[int]:
    return next((i for i, each in enumerate(interpreters) if not each._is_allocated), None)


class PipelinedModelRunner:
    """push({input name: array}) and pop() -> {output name: array}; push({}) ends it, and pop() then gives None.

    As in PyCoral, a segment without allocate_tensors() is reported by the first pop(), and by everything after it.
    """

    def __init__(self, interpreters: Sequence[Interpreter]):
        if not interpreters:
            raise ValueError("At least one interpreter expected")
        known = _names(interpreters[0].get_input_details())
        for index, interpreter in enumerate(interpreters):
            if not _names(interpreter.get_input_details()) <= known:
                raise ValueError(f"Interpreter {index} can not get its input tensors")
            known |= _names(interpreter.get_output_details())
        self._interpreters = list(interpreters)
        self._types = {each["name"]: each["dtype"] for each in interpreters[0].get_input_details()}
        self._is_closed = False
        self._error: Optional[str] = None  # what stopped the pipeline
        self._is_pushed = False
        unprepared = _index_of_unprepared(interpreters)
        self._future_error = (None if unprepared is None else
                              f"Segment {unprepared} runner error: Invoke called on model that is not ready.")
        self._runner = None
        if unprepared is None:
            # As in PyCoral: one set waits between two segments, any number before the first and behind the last.
            self._runner = pipeline.PipelinedModelRunner(interpreters, queue_size=1)
            self._runner.set_input_queue_size(0)
            self._runner.set_output_queue_size(0)

    def interpreters(self) -> List[Interpreter]:
        return self._interpreters

    def segment_stats(self) -> List[pipeline.SegmentStats]:
        """How often each segment ran, and for how long (not in PyCoral)."""
        return self._runner.segment_stats() if self._runner else []

    def set_input_queue_size(self, size: int) -> None:
        """How many inputs may wait: push() waits beyond that. 0: any number."""
        if self._runner:
            self._runner.set_input_queue_size(size)

    def set_output_queue_size(self, size: int) -> None:
        """How many results may wait to be popped: the pipeline waits beyond that. 0: any number."""
        if self._runner:
            self._runner.set_output_queue_size(size)

    def push(self, input_tensors: Dict[str, np.ndarray]) -> None:
        """Waits while the queue is full. ValueError: not the inputs of the first segment, or of another type."""
        if input_tensors and len(input_tensors) != len(self._types):
            raise ValueError(f"Expected input of length {len(self._types)}, but got {len(input_tensors)}")
        if not isinstance(input_tensors, dict):  # in the order of the first segment's inputs
            input_tensors = dict(zip(self._types, input_tensors))
        for name, tensor in input_tensors.items():
            if name not in self._types:
                raise ValueError(f"Input '{name}' is unknown; the first segment has {', '.join(self._types)}")
            wanted = self._types[name]
            if not isinstance(tensor, np.ndarray) or tensor.dtype != wanted:
                raise ValueError(f"Input should be a list of numpy array of type {wanted}")
        if self._error:
            raise RuntimeError(self._error)
        if self._is_closed:
            raise RuntimeError("Pipeline was turned off before.")
        if self._runner:
            self._runner.push(input_tensors)
        self._is_pushed = self._is_pushed or bool(input_tensors)
        self._is_closed = not input_tensors

    def pop(self) -> Optional[Dict[str, np.ndarray]]:
        """The next result; None when the pipeline is closed and empty. RuntimeError: a segment failed."""
        if self._runner:
            return self._runner.pop()
        if self._is_closed and not self._is_pushed:
            return None
        self._error = self._future_error
        raise RuntimeError(self._error)


__all__ = ["PipelinedModelRunner"]
