# SPDX-License-Identifier: Apache-2.0
"""As pycoral.utils.edgetpu, on real and virtual Edge TPUs."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, List, Optional, Union

import numpy as np

from reef import __version__
from reef.devices import devices
from reef.interpreter import Delegate, Error, Interpreter, load_delegate


def list_edge_tpus() -> List[Dict[str, str]]:
    """[{"type": "usb", "path": ...}, ...]"""
    return [{"type": device.type, "path": device.path} for device in devices()]


_LIBRARY = "libedgetpu.so.1"


def load_edgetpu_delegate(options: Optional[Dict[str, Any]] = None) -> Delegate:
    """The choice of a device. ValueError where there is none such."""
    try:
        return load_delegate(_LIBRARY, options or {})
    except Error as error:
        raise ValueError(f"Failed to load delegate from {_LIBRARY}: {error}") from error


def make_interpreter(model_path_or_content: Union[str, "os.PathLike[str]", bytes], device: Optional[str] = None,
                     delegate: Optional[Delegate] = None) -> Interpreter:
    """An interpreter, not yet allocated. device: None (any), ":1", "usb", "usb:0", "pci", "pci:1", or "cpu"."""
    if delegate is not None:
        device = None  # the delegate has chosen
    elif device and device != "cpu":
        delegate, device = load_edgetpu_delegate({"device": device}), None
    delegates = [delegate] if delegate is not None else []
    if isinstance(model_path_or_content, (bytes, bytearray)):
        return Interpreter(model_content=bytes(model_path_or_content), experimental_delegates=delegates, device=device)
    return Interpreter(model_path=model_path_or_content, experimental_delegates=delegates, device=device)


def get_runtime_version() -> str:
    return f"BuildLabel(Reef {__version__}), RuntimeVersion(14)"


def set_verbosity(verbosity: int) -> bool:
    """Taken without effect: Reef's library prints nothing."""
    return True


def run_inference(interpreter: Interpreter, input_data: Any) -> None:
    """Fills the first input and runs. input_data: bytes, an array, (ctypes.c_void_p, bytes), or a Gst.Buffer.

    More than the input takes is allowed, less is a ValueError, as in PyCoral.
    """
    if isinstance(input_data, (bytes, bytearray, memoryview)):
        invoke_with_bytes(interpreter, input_data)
    elif isinstance(input_data, np.ndarray):
        _fill(interpreter, np.ascontiguousarray(input_data))
        interpreter.invoke()
    elif isinstance(input_data, tuple) and len(input_data) == 2 and isinstance(input_data[0], ctypes.c_void_p):
        invoke_with_membuffer(interpreter, input_data[0].value, input_data[1])
    elif hasattr(input_data, "extract_dup") and hasattr(input_data, "get_size"):  # GStreamer's Gst.Buffer
        invoke_with_bytes(interpreter, input_data.extract_dup(0, input_data.get_size()))
    else:
        raise TypeError("input data type is not supported.")


def _require_ready(interpreter: Interpreter) -> None:
    if not interpreter._is_allocated:
        raise RuntimeError("Invoke called on model that is not ready. Call allocate_tensors() first.")


def invoke_with_bytes(interpreter: Interpreter, input_data: bytes) -> None:
    """Runs with the first input's bytes as they lie in memory."""
    _require_ready(interpreter)
    _fill(interpreter, np.frombuffer(input_data, np.uint8))
    interpreter.invoke()


def invoke_with_membuffer(interpreter: Interpreter, buffer: int, size: int) -> None:
    """The same from `size` bytes at the address `buffer`."""
    _require_ready(interpreter)
    _fill(interpreter, np.frombuffer((ctypes.c_uint8 * size).from_address(buffer), np.uint8))
    interpreter.invoke()


def supports_dmabuf(interpreter: Interpreter) -> bool:
    """No: tensors are copied."""
    return False


def invoke_with_dmabuffer(interpreter: Interpreter, dma_fd: int, size: int) -> None:
    """Refused, as by every device for which supports_dmabuf() says no."""
    _require_ready(interpreter)
    raise RuntimeError("DMA buffers cannot be used; use run_inference()")


def _fill(interpreter: Interpreter, data: np.ndarray) -> None:
    """An array of the input's type gives elements, other bytes give bytes."""
    target = interpreter._array(interpreter.get_input_details()[0]["index"])
    flat = data.reshape(-1)
    if flat.dtype != target.dtype:
        flat = flat.view(np.uint8)
        flat = flat[:target.nbytes].view(target.dtype) if flat.size >= target.nbytes else flat
    if flat.size < target.size:
        raise ValueError(f"input size={flat.size}, expected={target.size}.")
    np.copyto(target, flat[:target.size].reshape(target.shape))
