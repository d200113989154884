# SPDX-License-Identifier: Apache-2.0
"""Reef: an open compiler, virtual device and toolbox for the Coral Edge TPU.

    import reef
    reef.compile("model_int8.tflite")                       # -> model_int8_edgetpu.tflite
    reef.compile("model.onnx", data="photos")               # quantized first, then the same
    interpreter = reef.Interpreter("model_int8_edgetpu.tflite")   # on a virtual Edge TPU
    interpreter.allocate_tensors()

reef.Interpreter has tflite_runtime's interface; reef.coral has PyCoral's modules. No Edge TPU is needed anywhere. Errors
are reef.Error, with a sentence that names the op, tensor or byte and says what to do.
"""

from ._library import Error, NotFoundError, ResourceError, UnsupportedError, folder as _folder, lib as _lib
from . import data, learn
from .compiler import CheckResult, CompileResult, check, compile, convert, quantize
from .devices import Device, devices, set_devices
from .image import load_image, save_image
from .interpreter import Delegate, Interpreter, OpProfile, OpResolverType, SignatureRunner, load_delegate
from .pipeline import PipelinedModelRunner, SegmentStats

__version__: str = _lib.reef_version().decode()


def delegate_path() -> str:
    """The TFLite delegate of this package: for load_delegate() of tflite_runtime and ai_edge_litert."""
    return str(_folder() / "libreef_delegate.so")


def libedgetpu_path() -> str:
    """The same library under the name of Coral's: for programs that load libedgetpu.so.1."""
    return str(_folder() / "coral" / "libedgetpu.so.1")


__all__ = ["CheckResult", "CompileResult", "Delegate", "Device", "Error", "Interpreter", "NotFoundError", "OpProfile",
           "OpResolverType",
           "PipelinedModelRunner", "ResourceError", "SegmentStats", "SignatureRunner", "UnsupportedError", "check",
           "compile", "convert", "data", "delegate_path", "devices", "learn", "libedgetpu_path", "load_delegate", "load_image",
           "quantize", "save_image",
           "set_devices"]
