# SPDX-License-Identifier: Apache-2.0
"""As pycoral.utils.edgetpu, on virtual Edge TPUs."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

import numpy as np

from reef import __version__
from reef.devices import devices
from reef.interpreter import Delegate, Interpreter, load_delegate


def list_edge_tpus() -> List[Dict[str, str]]:
    """[{"type": "usb", "path": ...}, ...]"""
    return [{"type": device.type, "path": device.path} for device in devices()]


def load_edgetpu_delegate(options: Optional[Dict[str, Any]] = None) -> Delegate:
    return load_delegate("libedgetpu.so.1", options or {})


def make_interpreter(model_path_or_content: Union[str, "os.PathLike[str]", bytes], device: Optional[str] = None,
                     delegate: Optional[Delegate] = None) -> Interpreter:
    """An interpreter, not yet allocated. device: None (any), ":1", "usb", "usb:0", "pci", "pci:1", or "cpu"."""
    delegates = [delegate] if delegate is not None else []
    if isinstance(model_path_or_content, (bytes, bytearray)):
        return Interpreter(model_content=bytes(model_path_or_content), experimental_delegates=delegates, device=device)
    return Interpreter(model_path=model_path_or_content, experimental_delegates=delegates, device=device)


def get_runtime_version() -> str:
    return f"BuildLabel(Reef {__version__}, virtual Edge TPUs), RuntimeVersion(14)"


def set_verbosity(verbosity: int) -> bool:
    """Taken without effect: Reef's library prints nothing."""
    return True


def run_inference(interpreter: Interpreter, input_data: Any) -> bool:
    """Fills the first input with bytes or an array, and runs."""
    details = interpreter.get_input_details()[0]
    view = interpreter._array(details["index"])
    if isinstance(input_data, (bytes, bytearray, memoryview)):
        data = np.frombuffer(input_data, dtype=view.dtype)
    else:
        data = np.asarray(input_data)
    if data.size != view.size:
        raise ValueError(f"input '{details['name']}' takes {view.size} elements, but {data.size} are given")
    np.copyto(view, data.reshape(view.shape), casting="same_kind")
    interpreter.invoke()
    return True


def invoke_with_bytes(interpreter: Interpreter, input_data: bytes) -> None:
    run_inference(interpreter, input_data)
