# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays over the library's memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import _library

# By TFLite's number of the type.
DTYPES = {0: np.float32, 1: np.float16, 2: np.int32, 3: np.uint8, 4: np.int64, 5: np.bytes_, 6: np.bool_, 7: np.int16,
          8: np.complex64, 9: np.int8, 10: np.float64, 11: np.complex128, 12: np.uint64, 15: np.uint32, 16: np.uint16}
NUMBERS = {np.dtype(t): n for n, t in DTYPES.items() if t is not np.bytes_}
_STRINGS = {n: np.dtype(t).str for n, t in DTYPES.items() if t is not np.bytes_}


class Memory:
    """Memory of a tensor for np.asarray, which keeps this alive, which keeps the interpreter alive."""

    __slots__ = ("__array_interface__", "owner", "__weakref__")

    def __init__(self, address: int, typestr: str, shape: tuple, owner: Any):
        self.__array_interface__ = {"data": (address, False), "typestr": typestr, "shape": shape, "version": 3}
        self.owner = owner


def shape_of(tensor: _library.Tensor) -> tuple:
    return tuple(tensor.dims[:tensor.rank])


def memory_of(tensor: _library.Tensor, owner: Any) -> Memory:
    """The tensor's value where it is. Fails for types that NumPy has not."""
    typestr = _STRINGS.get(tensor.type)
    if typestr is None:
        raise _library.UnsupportedError(f"tensor '{tensor.name.decode()}' has elements that NumPy has no type for")
    return Memory(tensor.data or 0, typestr, shape_of(tensor), owner)


def details_of(tensor: _library.Tensor) -> dict:
    """What tflite_runtime's get_input_details() says of a tensor."""
    shape = np.array(tensor.dims[:tensor.rank], dtype=np.int32)
    scales = np.array(tensor.scales[:tensor.scale_count], dtype=np.float32)
    zero_points = np.zeros(tensor.scale_count, dtype=np.int32)
    known = min(tensor.scale_count, tensor.zero_point_count)
    zero_points[:known] = tensor.zero_points[:known]
    single = (float(scales[0]), int(zero_points[0])) if len(scales) == 1 else (0.0, 0)
    signature = np.array(tensor.signature[:tensor.rank], dtype=np.int32) if tensor.signature else shape.copy()
    return {"name": tensor.name.decode("utf-8", "replace"), "index": tensor.index, "shape": shape,
            "shape_signature": signature, "dtype": DTYPES.get(tensor.type, np.void), "quantization": single,
            "quantization_parameters": {"scales": scales, "zero_points": zero_points,
                                        "quantized_dimension": tensor.quantized_dimension, "block_size": 0},
            "sparsity_parameters": {}}


def to_tensor(name: str, value: np.ndarray) -> _library.Tensor:
    """A structure for an array, which must outlive it."""
    tensor = _library.Tensor()
    tensor.name, tensor.type, tensor.index = name.encode(), NUMBERS[value.dtype], -1
    tensor.rank = value.ndim
    tensor.dims = (ctypes.c_int32 * max(value.ndim, 1))(*value.shape)
    tensor.data, tensor.bytes = value.ctypes.data, value.nbytes
    return tensor
