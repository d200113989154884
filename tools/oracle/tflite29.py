# SPDX-License-Identifier: Apache-2.0
"""TFLite 2.9.1's reference kernels as a second oracle, with the part of LiteRT's Python interface that record.py uses.

Why: the reference kernels changed after 2.9 (see README.md), and a fixed-point FULLY_CONNECTED or MEAN can only be
proven against a runtime that still has it. No Python wheel of that version runs on current Pythons, but two npm
packages hold it: `stt` exports the C++ kernels' registrations, `tfjs-tflite-node` the C API of 2.9.0, which
takes foreign registrations through its op resolver. They are fetched on first use into a cache folder
(REEF_ORACLE_CACHE, default ~/.cache/reef-oracle) and are never part of the repository.

Linux x86-64 only. Not supported: string tensors, custom operators beyond CUSTOM_REGISTRATIONS. The resolver ignores operator
versions: an operator newer than 2.9 is refused, a newer version of a known one is attempted.
"""

import ctypes
import os
import pathlib
import subprocess
import tarfile

import numpy as np

from onemodel import enum_name, schema

NAME = "tflite 2.9.1 REF"
PACKAGES = {"stt": "1.4.0", "tfjs-tflite-node": "0.0.2"}
KERNELS = "stt-1.4.0/package/lib/binding/v1.4.0/linux-x64/libstt.so"
KERNELS_DEPENDENCY = "stt-1.4.0/package/lib/binding/v1.4.0/linux-x64/libkenlm.so"
C_API = "tfjs-tflite-node-0.0.2/package/cc_deps/linux_amd64/libtensorflowlite_c.so"

# Registration functions that are not named after the schema's operator.
REGISTRATION_NAMES = {
    "CONV_2D": "CONVOLUTION", "DEPTHWISE_CONV_2D": "DEPTHWISE_CONVOLUTION", "TRANSPOSE_CONV": "TRANSPOSECONV",
    "L2_NORMALIZATION": "L2NORM", "LOCAL_RESPONSE_NORMALIZATION": "LOCAL_RESPONSE_NORM", "MAX_POOL_2D": "MAX_POOL",
    "AVERAGE_POOL_2D": "AVERAGE_POOL", "L2_POOL_2D": "L2_POOL",
}

CUSTOM_REGISTRATIONS = {b"TFLite_Detection_PostProcess": "DETECTION_POSTPROCESS", b"Mfcc": "MFCC",
                        b"AudioSpectrogram": "AUDIO_SPECTROGRAM"}

# TfLiteType of the C API, which is not the schema's TensorType.
C_TYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 7: np.int16, 8: np.complex64, 9: np.int8,
           10: np.float16, 11: np.float64, 12: np.complex128, 13: np.uint64, 16: np.uint32, 17: np.uint16}

# TfLiteRegistration in 2.9: five function pointers, int32 builtin_code, custom_name, int version.
REGISTRATION_SIZE, BUILTIN_CODE_OFFSET, VERSION_OFFSET = 64, 40, 56

FIND_BUILTIN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
FIND_CUSTOM = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)


def fetch():
    """Folder with the unpacked packages."""
    cache = pathlib.Path(os.environ.get("REEF_ORACLE_CACHE", pathlib.Path.home() / ".cache" / "reef-oracle"))
    cache.mkdir(parents=True, exist_ok=True)
    for name, version in PACKAGES.items():
        folder = cache / f"{name}-{version}"
        if folder.exists():
            continue
        subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=cache, check=True, stdout=subprocess.DEVNULL)
        aside = cache / f".{name}-{version}.{os.getpid()}"
        with tarfile.open(cache / f"{name}-{version}.tgz") as archive:
            archive.extractall(aside, filter="data")
        aside.rename(folder)
    return cache


class Library:
    """The two libraries, loaded once, and the resolver that joins them."""

    instance = None

    def __init__(self):
        folder = fetch()
        ctypes.CDLL(str(folder / KERNELS_DEPENDENCY), mode=ctypes.RTLD_GLOBAL)
        self._kernels = ctypes.CDLL(str(folder / KERNELS))
        self.api = ctypes.CDLL(str(folder / C_API))
        for function in ("ModelCreate", "InterpreterOptionsCreate", "InterpreterCreate", "InterpreterGetInputTensor"):
            getattr(self.api, "TfLite" + function).restype = ctypes.c_void_p
        self.api.TfLiteInterpreterGetOutputTensor.restype = ctypes.c_void_p
        self.api.TfLiteTensorByteSize.restype = ctypes.c_size_t
        self._registrations = {}
        self.find_builtin = FIND_BUILTIN(lambda _, code, __: self._registration(code))
        self.find_custom = FIND_CUSTOM(lambda _, name, __: self._custom_registration(name))

    @classmethod
    def get(cls):
        cls.instance = cls.instance or cls()
        return cls.instance

    def _registration(self, code):
        """Address of the operator's reference registration, or of its only one; None if there is none."""
        if code not in self._registrations:
            name = enum_name(schema.BuiltinOperator, code)
            for suffix in ("_REF", ""):
                symbol = f"Register_{REGISTRATION_NAMES.get(name, name)}{suffix}"
                function = getattr(self._kernels, f"_ZN6tflite3ops7builtin{len(symbol)}{symbol}Ev", None)
                if function is not None:
                    function.restype = ctypes.c_void_p
                    self._registrations[code] = self._with_code(function(), code)
                    break
            else:
                return None
        return ctypes.addressof(self._registrations[code])

    def _custom_registration(self, name):
        if name not in CUSTOM_REGISTRATIONS:
            return None
        symbol = f"Register_{CUSTOM_REGISTRATIONS[name]}"
        if name not in self._registrations:
            function = self._kernels[f"_ZN6tflite3ops6custom{len(symbol)}{symbol}Ev"]
            function.restype = ctypes.c_void_p
            self._registrations[name] = self._with_code(function(), schema.BuiltinOperator.CUSTOM)
        return ctypes.addressof(self._registrations[name])

    @staticmethod
    def _with_code(address, code):
        """A copy that carries the operator's code, by which the interpreter parses the options."""
        copy = ctypes.create_string_buffer(ctypes.string_at(address, REGISTRATION_SIZE), REGISTRATION_SIZE)
        ctypes.c_int32.from_buffer(copy, BUILTIN_CODE_OFFSET).value = code
        ctypes.c_int32.from_buffer(copy, VERSION_OFFSET).value = 1
        return copy


class Interpreter:
    """Details are dicts of "index" and, once tensors are allocated, "shape" and "dtype"; an index is (kind, position)."""

    def __init__(self, model_content):
        library = Library.get()
        self._api = library.api
        self._model_bytes = ctypes.create_string_buffer(model_content, len(model_content))  # must outlive the model
        model = ctypes.c_void_p(self._api.TfLiteModelCreate(self._model_bytes, ctypes.c_size_t(len(model_content))))
        if not model.value:
            raise ValueError("not a model")
        options = ctypes.c_void_p(self._api.TfLiteInterpreterOptionsCreate())
        self._api.TfLiteInterpreterOptionsSetNumThreads(options, 1)
        self._api.TfLiteInterpreterOptionsSetOpResolver(options, library.find_builtin, library.find_custom, None)
        self._interpreter = ctypes.c_void_p(self._api.TfLiteInterpreterCreate(model, options))
        self._api.TfLiteInterpreterOptionsDelete(options)
        if not self._interpreter.value:
            raise ValueError("the interpreter does not know an operator of this model")

    def _tensor(self, index):
        kind, position = index
        return ctypes.c_void_p(getattr(self._api, f"TfLiteInterpreterGet{kind}Tensor")(self._interpreter, position))

    def _details(self, kind):
        count = getattr(self._api, f"TfLiteInterpreterGet{kind}TensorCount")(self._interpreter)
        return [self._describe((kind, i)) for i in range(count)]

    def _describe(self, index):
        tensor = self._tensor(index)
        shape = [self._api.TfLiteTensorDim(tensor, i) for i in range(self._api.TfLiteTensorNumDims(tensor))]
        return {"index": index, "shape": shape, "dtype": C_TYPES.get(self._api.TfLiteTensorType(tensor))}

    def get_input_details(self):
        return self._details("Input")

    def get_output_details(self):
        return self._details("Output")

    def resize_tensor_input(self, index, shape):
        dims = (ctypes.c_int * len(shape))(*shape)
        if self._api.TfLiteInterpreterResizeInputTensor(self._interpreter, index[1], dims, len(shape)):
            raise ValueError(f"cannot resize {index} to {shape}")

    def allocate_tensors(self):
        if self._api.TfLiteInterpreterAllocateTensors(self._interpreter):
            raise RuntimeError("the tensors cannot be allocated")

    def set_tensor(self, index, value):
        raw = np.ascontiguousarray(value).tobytes()
        if self._api.TfLiteTensorCopyFromBuffer(self._tensor(index), raw, ctypes.c_size_t(len(raw))):
            raise ValueError(f"{index} does not take {len(raw)} bytes")

    def invoke(self):
        if self._api.TfLiteInterpreterInvoke(self._interpreter):
            raise RuntimeError("invocation failed")

    def get_tensor(self, index):
        described, tensor = self._describe(index), self._tensor(index)
        if described["dtype"] is None:
            raise ValueError(f"{index}: no counterpart in numpy for this element type")
        size = self._api.TfLiteTensorByteSize(tensor)
        raw = ctypes.create_string_buffer(max(size, 1))
        if size and self._api.TfLiteTensorCopyToBuffer(tensor, raw, ctypes.c_size_t(size)):
            raise RuntimeError(f"{index} cannot be read")
        return np.frombuffer(raw.raw[:size], described["dtype"]).reshape(described["shape"])
