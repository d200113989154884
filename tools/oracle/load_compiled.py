#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a real TFLite runtime take a model compiled for the Edge TPU?  load_compiled.py FILE_edgetpu.tflite...

TFLite 2.9 loads each file with a stand-in for `edgetpu-custom-op` (as libedgetpu's delegate registers one), allocates its
tensors and hands the op its options. Printed: the inputs and outputs as the runtime sees them, and the options' size
and SHA-256. Nothing is executed.
"""

import ctypes
import hashlib
import pathlib
import sys

import tflite29

CUSTOM_OP = b"edgetpu-custom-op"
INIT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
PREPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Registration(ctypes.Structure):
    """TfLiteRegistration of 2.9."""
    _fields_ = [("init", INIT), ("free", ctypes.c_void_p), ("prepare", PREPARE), ("invoke", PREPARE),
                ("profiling_string", ctypes.c_void_p), ("builtin_code", ctypes.c_int32), ("custom_name", ctypes.c_char_p),
                ("version", ctypes.c_int)]


class StandIn:
    """Registers itself for the Edge TPU op and keeps the options it is given."""

    def __init__(self, library):
        self.options = []
        self._registrations = [
            Registration(init, None, PREPARE(lambda *_: 0), PREPARE(lambda *_: 1), None, 32, name, 1)
            for init, name in ((INIT(self._init), CUSTOM_OP), (INIT(lambda *_: None), b"any other"))]
        self._edge_tpu, self._other = map(ctypes.addressof, self._registrations)
        usual = library._custom_registration
        # Other custom ops (Coral's pose decoder) are not what is looked at: they get an empty stand-in.
        self.find_custom = tflite29.FIND_CUSTOM(
            lambda _, name, __: self._edge_tpu if name == CUSTOM_OP else usual(name) or self._other)

    def _init(self, _, buffer, length):
        self.options.append(ctypes.string_at(buffer, length))
        return None


def load(path, library):
    stand_in = StandIn(library)
    usual, library.find_custom = library.find_custom, stand_in.find_custom
    try:
        interpreter = tflite29.Interpreter(path.read_bytes())
        interpreter.allocate_tensors()
    finally:
        library.find_custom = usual
    for options in stand_in.options:
        print(f"  options: {len(options)} bytes, sha256 {hashlib.sha256(options).hexdigest()}")
    for role, details in (("input", interpreter.get_input_details()), ("output", interpreter.get_output_details())):
        for tensor in details:
            print(f"  {role} {tensor['shape']} {tensor['dtype'].__name__}")
    if not stand_in.options:
        raise ValueError("the model has no Edge TPU op")


def main(paths):
    failures = 0
    library = tflite29.Library.get()
    for path in map(pathlib.Path, paths):
        print(path)
        try:
            load(path, library)
        except (ValueError, RuntimeError) as error:
            failures += 1
            print(f"  NOT LOADED: {error}")
    print(f"{len(paths) - failures} of {len(paths)} loaded")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
