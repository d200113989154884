# SPDX-License-Identifier: Apache-2.0
"""Pictures as arrays, without another library."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref
from typing import Optional, Tuple, Union

import numpy as np

from . import _library, _tensors
from ._library import check, lib

Path = Union[str, "os.PathLike[str]"]


def load_image(path: Path, size: Optional[Tuple[int, int]] = None, channels: int = 3) -> np.ndarray:
    """A JPEG, PNG or BMP file as uint8 [height, width, channels], resized to (width, height) if given (bilinear)."""
    width, height = size if size is not None else (0, 0)
    value = ctypes.c_void_p()
    check(lib.reef_image_load(os.fsencode(path), channels, width, height, byref(value)))
    owner = _library.Handle(value, lib.reef_image_free)
    shape = (lib.reef_image_height(value), lib.reef_image_width(value), lib.reef_image_channels(value))
    address = ctypes.addressof(lib.reef_image_samples(value).contents)
    return np.asarray(_tensors.Memory(address, "|u1", shape, owner))


def save_image(path: Path, pixels: np.ndarray) -> None:
    """Writes uint8 [height, width] or [height, width, 1, 3 or 4] as PNG."""
    pixels = np.ascontiguousarray(pixels)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise ValueError(f"a picture is uint8 of 2 or 3 dimensions, not {pixels.dtype} of {pixels.ndim}")
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    value = ctypes.c_void_p()
    check(lib.reef_image_create(pixels.shape[1], pixels.shape[0], channels, pixels.ctypes.data, byref(value)))
    owner = _library.Handle(value, lib.reef_image_free)
    check(lib.reef_image_save(owner.value, os.fsencode(path)))
