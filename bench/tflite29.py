# SPDX-License-Identifier: Apache-2.0
"""TFLite 2.9.0 as a contender: its C library from the npm package tfjs-tflite-node, called with ctypes.

Fetched on first use into build/clients/npm, where the clients' tests have it too.
"""
import ctypes
import os
import subprocess

PACKAGE = "tfjs-tflite-node@0.0.2"
QS8 = 1  # XNNPACK's delegate leaves int8 operators alone unless told; with uint8 ones it refuses whole models


class XnnpackOptions(ctypes.Structure):
    """TfLiteXNNPackDelegateOptions of 2.9, with room for what later releases added."""
    _fields_ = [("num_threads", ctypes.c_int32), ("flags", ctypes.c_uint32), ("later", ctypes.c_void_p * 8)]


def load(root):
    """The library; None, with a message, where it cannot be had."""
    folder = root / "build" / "clients" / "npm"
    kind = "linux_arm64" if os.uname().machine == "aarch64" else "linux_amd64"
    library = folder / "package" / "cc_deps" / kind / "libtensorflowlite_c.so"
    try:
        if not library.exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True, timeout=300)
            subprocess.run(["tar", "xzf", *map(str, folder.glob("*.tgz"))], cwd=folder, check=True, timeout=300)
        return declare(ctypes.CDLL(str(library)))
    except (OSError, subprocess.SubprocessError) as error:
        print(f"TFLite 2.9.0 is skipped: {PACKAGE} cannot be had: {error}")
        return None


def declare(c):
    pointer = ctypes.c_void_p
    for name in ("ModelCreateFromFile", "InterpreterOptionsCreate", "InterpreterCreate", "InterpreterGetInputTensor",
                 "TensorData", "XNNPackDelegateCreate"):
        getattr(c, "TfLite" + name).restype = pointer
    c.TfLiteTensorByteSize.restype = ctypes.c_size_t
    c.TfLiteModelCreateFromFile.argtypes = [ctypes.c_char_p]
    c.TfLiteInterpreterCreate.argtypes = c.TfLiteInterpreterOptionsAddDelegate.argtypes = [pointer, pointer]
    c.TfLiteInterpreterOptionsSetNumThreads.argtypes = [pointer, ctypes.c_int32]
    c.TfLiteInterpreterGetInputTensor.argtypes = [pointer, ctypes.c_int32]
    for name in ("TensorData", "TensorByteSize", "TensorType", "InterpreterInvoke", "InterpreterAllocateTensors",
                 "InterpreterGetInputTensorCount", "InterpreterOptionsDelete"):
        getattr(c, "TfLite" + name).argtypes = [pointer]
    c.TfLiteXNNPackDelegateCreate.argtypes = [ctypes.POINTER(XnnpackOptions)]
    return c


def invoker(c, model, threads, with_xnnpack):
    """A function that runs the model once, with inputs filled; ValueError if 2.9.0 refuses the model."""
    options = c.TfLiteInterpreterOptionsCreate()
    c.TfLiteInterpreterOptionsSetNumThreads(options, threads)
    if with_xnnpack:
        c.TfLiteInterpreterOptionsAddDelegate(
            options, c.TfLiteXNNPackDelegateCreate(ctypes.byref(XnnpackOptions(threads, QS8))))
    loaded = c.TfLiteModelCreateFromFile(str(model).encode())
    interpreter = c.TfLiteInterpreterCreate(loaded, options) if loaded else None
    if not interpreter or c.TfLiteInterpreterAllocateTensors(interpreter) != 0:
        raise ValueError("the model is refused")
    for i in range(c.TfLiteInterpreterGetInputTensorCount(interpreter)):
        tensor = c.TfLiteInterpreterGetInputTensor(interpreter, i)
        size, is_float = c.TfLiteTensorByteSize(tensor), c.TfLiteTensorType(tensor) == 1
        ctypes.memset(c.TfLiteTensorData(tensor), 0, size)
        if not is_float:
            data = bytes((37 * k + k // 7) % 120 for k in range(size))
            ctypes.memmove(c.TfLiteTensorData(tensor), data, size)
    if c.TfLiteInterpreterInvoke(interpreter) != 0:
        raise ValueError("the model does not run")
    return lambda: c.TfLiteInterpreterInvoke(interpreter)  # it lives as long as the process
