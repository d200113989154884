# SPDX-License-Identifier: Apache-2.0
"""Segments of one model at work like an assembly line, each on an Edge TPU of its own."""

from __future__ import annotations

import ctypes
from ctypes import byref
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from . import _library, _tensors
from ._library import check, lib
from .interpreter import Interpreter


class SegmentStats(NamedTuple):
    runs: int
    total_ms: float  # measured


class PipelinedModelRunner:
    """Runs the segments that `reef compile --num_segments` made, in order: while one computes with a set of inputs, those
    before it are busy with later ones. push() and pop() may be called from different threads.

        runner = PipelinedModelRunner([Interpreter(f, device=f":{i}") for i, f in enumerate(files)])
        runner.push({"input": array}); ...; runner.push({})       # an empty set: no more
        while (result := runner.pop()) is not None: ...           # {output name: array}, in the order of the inputs
    """

    def __init__(self, interpreters: Sequence[Interpreter], queue_size: int = 0):
        self._interpreters = list(interpreters)
        for interpreter in self._interpreters:
            if not interpreter._is_allocated:
                interpreter.allocate_tensors()
        handles = (ctypes.c_void_p * max(len(self._interpreters), 1))(*[i._value.value for i in self._interpreters])
        value = ctypes.c_void_p()
        check(lib.reef_pipeline_create(handles, len(self._interpreters), queue_size, byref(value)))
        self._handle = _library.Handle(value, lib.reef_pipeline_free, kept=[i._handle for i in self._interpreters])
        self._value = value

    def interpreters(self) -> List[Interpreter]:
        return self._interpreters

    def push(self, input_tensors: Dict[str, np.ndarray]) -> bool:
        """Copies a set of inputs in, and waits while the pipeline is full. {} closes it. False: it was closed."""
        if not input_tensors:
            check(lib.reef_pipeline_close(self._value))
            return True
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
