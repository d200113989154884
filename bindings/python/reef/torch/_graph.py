# SPDX-License-Identifier: Apache-2.0
"""The quantized graph that the chip computes, as Python sees it: operators, tensors, constants. Knows no PyTorch."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from .. import _library, _tensors
from .._library import lib

Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class TensorInfo:
    """A tensor of the graph; real = scale * (code - zero point)."""
    index: int
    name: str
    shape: Tuple[int, ...]
    dtype: np.dtype
    scales: np.ndarray        # float32; empty: not quantized
    zero_points: np.ndarray   # int64
    axis: int                 # that the scales belong to, where there are several
    data: Optional[np.ndarray]  # None: computed

    @property
    def is_8_bit(self) -> bool:
        return self.dtype in (np.dtype(np.int8), np.dtype(np.uint8))

    @property
    def offset(self) -> int:
        """How much higher the chip's codes are than TFLite's."""
        return 128 if self.dtype == np.dtype(np.int8) else 0


@dataclass(frozen=True)
class OpInfo:
    index: int
    type: str
    attributes: Dict[str, Any]
    inputs: Tuple[int, ...]   # -1: left out
    outputs: Tuple[int, ...]
    on_cpu: str               # why the chip does not run it; "": it does
    is_rewritten: bool


@dataclass(frozen=True)
class Edit:
    """New content for a tensor: codes in the tensor's own type, or scales with zero points, or both."""
    tensor: int
    data: Optional[np.ndarray] = None
    scales: Optional[np.ndarray] = None
    zero_points: Optional[np.ndarray] = None


class Model:
    """A model of the library: tensors of its main subgraph."""

    def __init__(self, handle: _library.Handle):
        self.handle = handle
        self.tensors = [self._tensor(i) for i in range(lib.reef_model_tensor_count(handle.value))]
        self.inputs = [lib.reef_model_input(handle.value, i) for i in range(lib.reef_model_input_count(handle.value))]
        self.outputs = [lib.reef_model_output(handle.value, i) for i in range(lib.reef_model_output_count(handle.value))]

    @staticmethod
    def load(path: Path) -> "Model":
        handle = ctypes.c_void_p()
        _library.check(lib.reef_model_load(os.fsencode(path), byref(handle)))
        return Model(_library.Handle(handle, lib.reef_model_free))

    def _tensor(self, index: int) -> TensorInfo:
        raw = _library.Tensor()
        _library.check(lib.reef_model_tensor(self.handle.value, index, byref(raw)))
        shape, dtype = _tensors.shape_of(raw), np.dtype(_tensors.DTYPES.get(raw.type, np.void))
        data = None
        if raw.is_constant and dtype.kind in "fiub":
            data = np.frombuffer(ctypes.string_at(raw.data, raw.bytes) if raw.bytes else b"", dtype=dtype).reshape(shape)
        scales = np.array(raw.scales[:raw.scale_count], dtype=np.float32)
        zeros = np.array(raw.zero_points[:raw.zero_point_count], dtype=np.int64)
        return TensorInfo(index, raw.name.decode("utf-8", "replace"), shape, dtype, scales, zeros,
                          raw.quantized_dimension, data)

    def operands(self, function: Any, op: int) -> Tuple[int, ...]:
        found: List[int] = []
        while (tensor := function(self.handle.value, op, len(found))) != -2:
            found.append(tensor)
        return tuple(found)


class ChipGraph(Model):
    """A quantized model after the rewrites of `reef compile`: what must be repeated to get the chip's codes.

    `is_final`: no scale will change. Then operators that the compiler joins into one table are one operator here, too.
    """

    def __init__(self, quantized: Model, is_final: bool = False):
        handle, text = ctypes.c_void_p(), ctypes.c_void_p()
        describe = lib.reef_model_as_compiled if is_final else lib.reef_model_for_training
        _library.check(describe(quantized.handle.value, None, byref(handle), byref(text)))
        self.is_final = is_final
        super().__init__(_library.Handle(handle, lib.reef_model_free))
        described = json.loads(_library.take_text(text))
        self.rewrites: List[str] = described["rewrites"]
        self.ops = [OpInfo(i, op["type"], op["attributes"], self.operands(lib.reef_model_op_input, i),
                           self.operands(lib.reef_model_op_output, i), op["on_cpu"], op["is_rewritten"])
                    for i, op in enumerate(described["ops"])]

    def place(self, op: OpInfo) -> str:
        """How messages name an operator."""
        return f"op {op.index} {op.type} '{self.tensors[op.outputs[0]].name}'"

    def function_codes(self, op: int, in_scale: float, in_zero: int, out_scale: float, out_zero: int) -> np.ndarray:
        """Output codes of a function of one tensor by input code, as the chip has them by table."""
        codes = (ctypes.c_int32 * 256)()
        _library.check(lib.reef_chip_function(self.handle.value, op, _library.ChipAffine(in_scale, in_zero),
                                              _library.ChipAffine(out_scale, out_zero), codes))
        return np.array(codes, dtype=np.int64)

    def save(self, path: Path, edits: Sequence[Edit]) -> None:
        """Writes the graph as a .tflite file with some of its tensors changed."""
        if self.is_final:
            raise _library.Error("a module of a finished model cannot be written again; give from_quantized() ranges='learned' to train it")
        raw = (_library.TensorEdit * max(len(edits), 1))()
        kept: List[np.ndarray] = []  # what the structures point to
        for target, edit in zip(raw, edits):
            target.tensor = edit.tensor
            if edit.data is not None:
                kept.append(np.ascontiguousarray(edit.data))
                target.data, target.bytes = kept[-1].ctypes.data, kept[-1].nbytes
            if edit.scales is not None and edit.zero_points is not None:
                kept.append(np.ascontiguousarray(edit.scales, dtype=np.float32))
                target.scales = kept[-1].ctypes.data_as(ctypes.POINTER(ctypes.c_float))
                kept.append(np.ascontiguousarray(edit.zero_points, dtype=np.int64))
                target.zero_points = kept[-1].ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
                target.scale_count = kept[-1].size
        _library.check(lib.reef_model_save(self.handle.value, raw, len(edits), os.fsencode(path)))


def exponentials(scale: float) -> np.ndarray:
    """SOFTMAX's numerators for elements 0 to 255 steps below the largest."""
    codes = (ctypes.c_int32 * 256)()
    _library.check(lib.reef_chip_exponentials(scale, codes))
    return np.array(codes, dtype=np.int64)


def inverse_root(one: float) -> Tuple[np.ndarray, np.ndarray]:
    """The chip's table of one / sqrt(x) for [1, 4): coefficients [8, 5], constant first, and the seven breaks."""
    coefficients, breaks = (ctypes.c_float * 40)(), (ctypes.c_float * 7)()
    _library.check(lib.reef_chip_inverse_root(one, coefficients, breaks))
    return np.array(coefficients, dtype=np.float32).reshape(8, 5), np.array(breaks, dtype=np.float32)
