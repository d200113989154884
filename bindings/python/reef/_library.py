# SPDX-License-Identifier: Apache-2.0
"""libreef as Python sees it: where the library is, its structures and functions (include/reef/reef.h), its errors.

The binding is ctypes, so that one wheel serves every CPython: calls release the GIL, and tensors are NumPy arrays over the
library's own memory. Everything here is private to the package.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint8, c_void_p

_NAME = "libreef.so.0"


class Error(RuntimeError, ValueError):
    """What Reef could not do, in a sentence that names the op, tensor or byte and says what to do.

    Both a RuntimeError and a ValueError, as TensorFlow Lite raises one or the other for the same things.
    """


class UnsupportedError(Error):
    """The model is well formed, but Reef does not run or compile it."""


class NotFoundError(Error):
    """A file, device or name does not exist."""


class ResourceError(Error):
    """More memory or time than allowed."""


_ERRORS = {2: UnsupportedError, 3: NotFoundError, 5: ResourceError}


class Tensor(Structure):
    _fields_ = [("name", c_char_p), ("type", c_int32), ("index", c_int32), ("rank", c_int32),
                ("dims", POINTER(c_int32)), ("signature", POINTER(c_int32)), ("data", c_void_p), ("bytes", c_size_t),
                ("scale_count", c_size_t), ("scales", POINTER(c_float)), ("zero_point_count", c_size_t),
                ("zero_points", POINTER(c_int64)), ("quantized_dimension", c_int32), ("is_constant", c_int32),
                ("is_variable", c_int32), ("is_dynamic", c_int32), ("reserved", c_void_p * 4)]


class DeviceInfo(Structure):
    _fields_ = [("selector", c_char_p), ("path", c_char_p), ("is_usb", c_int32), ("is_real", c_int32),
                ("runs", c_int64), ("parameter_loads", c_int64), ("state", c_char_p), ("detail", c_char_p),
                ("reserved", c_void_p * 2)]


class Options(Structure):
    _fields_ = [("struct_size", c_size_t), ("device", c_char_p), ("threads", c_int32), ("profile", c_int32),
                ("tflite_2_9", c_int32), ("preserve_all_tensors", c_int32), ("time_limit_seconds", c_double),
                ("max_memory_bytes", c_int64), ("fused_floats", c_int32), ("reserved", c_int32 * 3),
                ("clock", c_char_p), ("firmware", c_char_p)]


class OpProfile(Structure):
    _fields_ = [("op", c_char_p), ("output", c_char_p), ("subgraph", c_int32), ("op_index", c_int32),
                ("calls", c_int64), ("total_ms", c_double), ("reserved", c_void_p * 2)]


class ChipAffine(Structure):
    _fields_ = [("scale", c_float), ("zero_point", c_int32)]


class TensorEdit(Structure):
    _fields_ = [("tensor", c_int32), ("reserved_0", c_int32), ("data", c_void_p), ("bytes", c_size_t),
                ("scales", POINTER(c_float)), ("zero_points", POINTER(c_int64)), ("scale_count", c_size_t)]


Progress = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_double)
FlowCall = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int32, c_int64, c_void_p)
LearnProgress = ctypes.CFUNCTYPE(None, c_void_p, c_int64, c_int64)


class CompileOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("out_dir", c_char_p), ("intermediate_tensors", c_char_p),
                ("link", c_char_p), ("num_segments", c_int32), ("min_runtime_version", c_int32), ("level", c_int32),
                ("several_parts", c_int32), ("search", c_int32), ("rewrites", c_int32), ("verify", c_int32),
                ("reserved_0", c_int32), ("timeout_seconds", c_double), ("progress", Progress),
                ("progress_user", c_void_p), ("convert", c_void_p), ("quantize", c_void_p)]


class ConvertOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("input_shapes", c_char_p), ("keep_nchw", c_char_p), ("simplify", c_int32),
                ("keep_qdq", c_int32), ("input_values", c_char_p), ("io", c_char_p), ("pad_nms", c_int32), ("reserved_0", c_int32)]


class QuantizeOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("data", c_char_p), ("arrays", c_char_p), ("preprocess", c_char_p),
                ("calibration", c_char_p), ("mode", c_char_p), ("io", c_char_p), ("keep_float", c_char_p),
                ("limit", c_int64), ("held_back", c_int64), ("threads", c_int32), ("full_integer", c_int32),
                ("recover", c_int32), ("reserved_0", c_int32), ("progress", Progress), ("progress_user", c_void_p)]


# Results and arguments of what can fail are a status; of the rest as they are listed.
_HANDLE = c_void_p
_OUT = POINTER(c_void_p)
_STATUS = {
    "reef_model_load": [c_char_p, _OUT],
    "reef_model_read": [c_void_p, c_size_t, _OUT],
    "reef_model_tensor": [_HANDLE, c_size_t, POINTER(Tensor)],
    "reef_model_for_training": [_HANDLE, POINTER(CompileOptions), _OUT, POINTER(c_void_p)],
    "reef_model_as_compiled": [_HANDLE, POINTER(CompileOptions), _OUT, POINTER(c_void_p)],
    "reef_model_save": [_HANDLE, POINTER(TensorEdit), c_size_t, c_char_p],
    "reef_chip_function": [_HANDLE, c_size_t, ChipAffine, ChipAffine, POINTER(c_int32)],
    "reef_chip_exponentials": [c_float, POINTER(c_int32)],
    "reef_chip_inverse_root": [c_float, POINTER(c_float), POINTER(c_float)],
    "reef_device_get": [c_size_t, POINTER(DeviceInfo)],
    "reef_device_find": [c_char_p, POINTER(c_size_t)],
    "reef_devices_set": [c_char_p],
    "reef_interpreter_create": [_HANDLE, POINTER(Options), _OUT],
    "reef_interpreter_input": [_HANDLE, c_size_t, POINTER(Tensor)],
    "reef_interpreter_output": [_HANDLE, c_size_t, POINTER(Tensor)],
    "reef_interpreter_tensor": [_HANDLE, c_size_t, POINTER(Tensor)],
    "reef_interpreter_resize_input": [_HANDLE, c_size_t, POINTER(c_int32), c_int32],
    "reef_interpreter_prepare": [_HANDLE],
    "reef_interpreter_invoke": [_HANDLE],
    "reef_interpreter_reset_variables": [_HANDLE],
    "reef_interpreter_device": [_HANDLE, POINTER(DeviceInfo)],
    "reef_interpreter_device_notes": [_HANDLE, POINTER(c_void_p)],
    "reef_interpreter_profile": [_HANDLE, c_size_t, POINTER(OpProfile)],
    "reef_interpreter_memory": [_HANDLE, POINTER(c_int64), POINTER(c_int64)],
    "reef_pipeline_create": [POINTER(c_void_p), c_size_t, c_size_t, _OUT],
    "reef_pipeline_set_queue_sizes": [_HANDLE, c_size_t, c_size_t],
    "reef_pipeline_push": [_HANDLE, POINTER(Tensor), c_size_t],
    "reef_pipeline_close": [_HANDLE],
    "reef_pipeline_pop": [_HANDLE, _OUT],
    "reef_pipeline_stats": [_HANDLE, c_size_t, POINTER(c_int64), POINTER(c_double)],
    "reef_results_tensor": [_HANDLE, c_size_t, POINTER(Tensor)],
    "reef_compile": [POINTER(c_char_p), c_size_t, POINTER(CompileOptions), POINTER(c_void_p)],
    "reef_check": [c_char_p, POINTER(CompileOptions), POINTER(c_void_p), POINTER(c_void_p)],
    "reef_learn": [c_char_p, LearnProgress, c_void_p, POINTER(c_void_p)],
    "reef_imprinting_create": [c_void_p, c_size_t, c_int32, _OUT],
    "reef_imprinting_set_class_name": [_HANDLE, c_int32, c_char_p],
    "reef_imprinting_train": [_HANDLE, POINTER(c_float), c_size_t, c_int32],
    "reef_imprinting_extractor": [_HANDLE, POINTER(c_void_p), POINTER(c_size_t)],
    "reef_imprinting_model": [_HANDLE, POINTER(c_void_p), POINTER(c_size_t)],
    "reef_softmax_train": [POINTER(c_float), POINTER(c_int32), c_size_t, c_size_t, c_int32, c_double, POINTER(c_float),
                           POINTER(c_float)],
    "reef_softmax_model": [c_void_p, c_size_t, POINTER(c_float), POINTER(c_float), c_int32, c_size_t, POINTER(c_float),
                           c_size_t, POINTER(c_void_p), POINTER(c_size_t)],
    "reef_convert": [c_char_p, c_char_p, POINTER(ConvertOptions), POINTER(c_void_p)],
    "reef_quantize": [c_char_p, c_char_p, POINTER(QuantizeOptions), POINTER(c_void_p)],
    "reef_flow_create": [c_char_p, FlowCall, c_void_p, _OUT],
    "reef_flow_order": [_HANDLE, c_int64, POINTER(c_int64)],
    "reef_flow_describe": [_HANDLE, POINTER(c_void_p)],
    "reef_flow_name": [_HANDLE, c_int64, POINTER(c_void_p)],
    "reef_flow_start": [_HANDLE, c_int64, _OUT],
    "reef_flow_run_next": [_HANDLE, _OUT],
    "reef_flow_run_counters": [_HANDLE, POINTER(c_void_p)],
    "reef_batch_samples": [_HANDLE, POINTER(Tensor)],
    "reef_batch_truth": [_HANDLE, c_size_t, POINTER(Tensor)],
    "reef_sample_get": [_HANDLE, POINTER(Tensor)],
    "reef_sample_set": [_HANDLE, POINTER(Tensor)],
    "reef_sample_set_truth": [_HANDLE, POINTER(c_double), POINTER(c_int64), c_size_t],
    "reef_vary": [c_void_p, c_int32, c_int32, c_int32, c_char_p, ctypes.c_uint64, c_int64, c_int64, POINTER(c_double),
                  POINTER(c_size_t)],
    "reef_image_load": [c_char_p, c_int32, c_int32, c_int32, _OUT],
    "reef_image_create": [c_int32, c_int32, c_int32, c_void_p, _OUT],
    "reef_image_save": [_HANDLE, c_char_p],
}
_OTHERS = {
    "reef_version": (c_char_p, []),
    "reef_error_message": (c_char_p, []),
    "reef_string_free": (None, [c_void_p]),
    "reef_model_free": (None, [_HANDLE]),
    "reef_model_tensor_count": (c_size_t, [_HANDLE]),
    "reef_model_input_count": (c_size_t, [_HANDLE]),
    "reef_model_output_count": (c_size_t, [_HANDLE]),
    "reef_model_input": (c_int32, [_HANDLE, c_size_t]),
    "reef_model_output": (c_int32, [_HANDLE, c_size_t]),
    "reef_model_op_count": (c_size_t, [_HANDLE]),
    "reef_model_op": (c_char_p, [_HANDLE, c_size_t]),
    "reef_model_op_input": (c_int32, [_HANDLE, c_size_t, c_size_t]),
    "reef_model_op_output": (c_int32, [_HANDLE, c_size_t, c_size_t]),
    "reef_model_subgraph_count": (c_size_t, [_HANDLE]),
    "reef_model_edge_tpu_op_count": (c_size_t, [_HANDLE]),
    "reef_model_signature_count": (c_size_t, [_HANDLE]),
    "reef_model_signature_key": (c_char_p, [_HANDLE, c_size_t]),
    "reef_model_signature_input": (c_char_p, [_HANDLE, c_size_t, c_size_t, POINTER(c_int32)]),
    "reef_model_signature_output": (c_char_p, [_HANDLE, c_size_t, c_size_t, POINTER(c_int32)]),
    "reef_device_count": (c_size_t, []),
    "reef_options_init": (None, [POINTER(Options)]),
    "reef_interpreter_free": (None, [_HANDLE]),
    "reef_interpreter_note": (c_char_p, [_HANDLE, c_size_t]),
    "reef_interpreter_take_profile": (c_size_t, [_HANDLE]),
    "reef_pipeline_free": (None, [_HANDLE]),
    "reef_results_count": (c_size_t, [_HANDLE]),
    "reef_results_free": (None, [_HANDLE]),
    "reef_compile_options_init": (None, [POINTER(CompileOptions)]),
    "reef_imprinting_dimension": (c_int32, [_HANDLE]),
    "reef_imprinting_class_count": (c_int32, [_HANDLE]),
    "reef_imprinting_class_name": (c_char_p, [_HANDLE, c_int32]),
    "reef_imprinting_free": (None, [_HANDLE]),
    "reef_convert_options_init": (None, [POINTER(ConvertOptions)]),
    "reef_quantize_options_init": (None, [POINTER(QuantizeOptions)]),
    "reef_flow_free": (None, [_HANDLE]),
    "reef_flow_size": (c_int64, [_HANDLE]),
    "reef_flow_run_free": (None, [_HANDLE]),
    "reef_batch_free": (None, [_HANDLE]),
    "reef_batch_count": (c_size_t, [_HANDLE]),
    "reef_batch_numbers": (POINTER(c_int64), [_HANDLE]),
    "reef_batch_mixed_with": (POINTER(c_int64), [_HANDLE, POINTER(c_double)]),
    "reef_sample_fail": (None, [_HANDLE, c_char_p]),
    "reef_image_width": (c_int32, [_HANDLE]),
    "reef_image_height": (c_int32, [_HANDLE]),
    "reef_image_channels": (c_int32, [_HANDLE]),
    "reef_image_samples": (POINTER(c_uint8), [_HANDLE]),
    "reef_image_free": (None, [_HANDLE]),
}


def folder() -> pathlib.Path:
    """Where the libraries are: in the package (a wheel), else where the loader found libreef (a system's package)."""
    inside = pathlib.Path(__file__).resolve().parent / "_lib"
    if inside.exists():
        return inside
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if "/libreef.so" in line:
                return pathlib.Path(line.split(None, 5)[5].strip()).parent
    return inside


def _load() -> ctypes.CDLL:
    wanted = os.environ.get("REEF_LIBRARY")
    if wanted:
        return ctypes.CDLL(wanted)
    installed = folder() / _NAME
    try:
        return ctypes.CDLL(str(installed) if installed.exists() else _NAME)
    except OSError as error:
        raise ImportError(f"Reef's library {_NAME} is neither in {folder()} nor on the system; install the package with "
                          f"`pip install .`, or set REEF_LIBRARY to the file ({error})") from None


lib = _load()
for _name, _arguments in _STATUS.items():
    getattr(lib, _name).argtypes = _arguments
    getattr(lib, _name).restype = c_int32
for _name, (_result, _arguments) in _OTHERS.items():
    getattr(lib, _name).argtypes = _arguments
    getattr(lib, _name).restype = _result


def fail(status: int) -> None:
    """Raises the error of a status that is not 0."""
    message = lib.reef_error_message().decode("utf-8", "replace")
    raise _ERRORS.get(status, Error)(message)


def check(status: int) -> None:
    if status:
        fail(status)


def take_text(pointer: c_void_p) -> str:
    """Text that the library gave away; '' for none."""
    if not pointer:
        return ""
    text = ctypes.string_at(pointer).decode("utf-8", "replace")
    lib.reef_string_free(pointer)
    return text


def take_bytes(pointer: c_void_p, size: c_size_t) -> bytes:
    """Bytes that the library gave away."""
    content = ctypes.string_at(pointer.value, size.value)
    lib.reef_string_free(pointer)
    return content


class Handle:
    """An object of the library, freed with this one. `kept`: what must live at least as long."""

    __slots__ = ("value", "_free", "kept", "__weakref__")

    def __init__(self, value: c_void_p, free, kept=None):
        self.value, self._free, self.kept = value, free, kept

    def __del__(self):
        if self.value:
            self._free(self.value)
            self.value = None
