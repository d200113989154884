# SPDX-License-Identifier: Apache-2.0
"""Segments of one model at work like an assembly line, each on an Edge TPU of its own."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _library, _tensors
from ._library import check, lib
from .interpreter import Interpreter


class SegmentStats(NamedTuple):
    runs: int
    total_ms: float  # measured


class PipelinedModelRunner:
    """Runs the segments that `reef compile --num_segments` made, in order: while one computes with a set of inputs, those
    before it are busy with later ones. push() and pop() may be called from different threads. As in PyCoral, any number of
    inputs and results may wait; queue_size limits both from the start.

        runner = PipelinedModelRunner([Interpreter(f, device=f":{i}") for i, f in enumerate(files)])
        runner.push({"input": array}); ...; runner.push({})       # an empty set: no more
        while (result := runner.pop()) is not None: ...           # {output name: array}, in the order of the inputs
    """

    def __init__(self, interpreters: Sequence[Interpreter], queue_size: int = 0):
        self._interpreters = list(interpreters)
        if not self._interpreters:
            raise ValueError("At least one interpreter expected")
        for interpreter in self._interpreters:
            if not interpreter._is_allocated:
                interpreter.allocate_tensors()
        handles = (ctypes.c_void_p * max(len(self._interpreters), 1))(*[i._value.value for i in self._interpreters])
        value = ctypes.c_void_p()
        check(lib.reef_pipeline_create(handles, len(self._interpreters), queue_size, byref(value)))
        self._handle = _library.Handle(value, lib.reef_pipeline_free, kept=[i._handle for i in self._interpreters])
        self._value = value
        self._limits = [queue_size, queue_size]
        check(lib.reef_pipeline_set_queue_sizes(value, *self._limits))

    def set_input_queue_size(self, size: int) -> None:
        """How many inputs may wait: push() waits beyond that. 0: any number."""
        self._set_limit(0, size)

    def set_output_queue_size(self, size: int) -> None:
        """How many results may wait to be popped: the pipeline waits beyond that. 0: any number."""
        self._set_limit(1, size)

    def _set_limit(self, which: int, size: int) -> None:
        if size < 0:
            raise ValueError(f"a queue cannot have {size} places")
        self._limits[which] = size
        check(lib.reef_pipeline_set_queue_sizes(self._value, *self._limits))

    def interpreters(self) -> List[Interpreter]:
        return self._interpreters

    def push(self, input_tensors: Union[Dict[str, np.ndarray], Sequence[np.ndarray]]) -> bool:
        """Copies a set of inputs in, by name or in the order of the first segment's. {} closes the pipeline.

        Waits while it is full. Raises RuntimeError where it is closed.
        """
        if not input_tensors:
            check(lib.reef_pipeline_close(self._value))
            return True
        details = self._interpreters[0].get_input_details()
        if len(input_tensors) != len(details):
            raise ValueError(f"Expected input of length {len(details)}, but got {len(input_tensors)}")
        if not isinstance(input_tensors, dict):
            input_tensors = {each["name"]: value for each, value in zip(details, input_tensors)}
        arrays = {name: np.ascontiguousarray(value) for name, value in input_tensors.items()}
        tensors = (_library.Tensor * len(arrays))(*[_tensors.to_tensor(name, a) for name, a in arrays.items()])
        check(lib.reef_pipeline_push(self._value, tensors, len(arrays)))
        return True

    def pop(self) -> Optional[Dict[str, np.ndarray]]:
        """The next result, by output name; None when the pipeline is closed and empty. Waits for it."""
        value = ctypes.c_void_p()
        check(lib.reef_pipeline_pop(self._value, byref(value)))
        if not value:
            return None
        owner = _library.Handle(value, lib.reef_results_free)
        results, tensor = {}, _library.Tensor()
        for i in range(lib.reef_results_count(value)):
            check(lib.reef_results_tensor(value, i, byref(tensor)))
            results[tensor.name.decode("utf-8", "replace")] = np.asarray(_tensors.memory_of(tensor, owner))
        return results

    def segment_stats(self) -> List[SegmentStats]:
        runs, total = ctypes.c_int64(), ctypes.c_double()
        stats = []
        for i in range(len(self._interpreters)):
            check(lib.reef_pipeline_stats(self._value, i, byref(runs), byref(total)))
            stats.append(SegmentStats(runs.value, total.value))
        return stats
