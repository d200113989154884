# SPDX-License-Identifier: Apache-2.0
"""One TFLite runtime with Reef's delegate. Called by run_clients.py, inside the runtime's virtual environment.

Usage: client.py litert|tflite_runtime|FOLDER_OF_TFLITE_2.9 REEF LIBEDGETPU FOLDER  < JSON list of models
"""

import ctypes
import json
import pathlib
import subprocess
import sys
import threading

import numpy as np

which, reef, library, folder = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])


class PythonRuntime:
    """ai_edge_litert and tflite_runtime, which have one interface."""
    has_reference_kernels = True

    def __init__(self, name):
        if name == "litert":
            from ai_edge_litert import interpreter
        else:
            from tflite_runtime import interpreter
        self.module = interpreter

    def delegate(self, options):
        return self.module.load_delegate(library, options)

    def start(self, path, device):
        interpreter = self.module.Interpreter(
            model_path=str(path), experimental_delegates=[self.delegate({"device": device})],
            experimental_op_resolver_type=self.module.OpResolverType.BUILTIN_REF)
        interpreter.allocate_tensors()
        return interpreter

    def run(self, interpreter, inputs):
        for details, value in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(details["index"], np.frombuffer(value, details["dtype"]).reshape(details["shape"]))
        interpreter.invoke()
        return [interpreter.get_tensor(details["index"]).tobytes() for details in interpreter.get_output_details()]

    def input_sizes(self, interpreter):
        return [int(np.prod(d["shape"])) * np.dtype(d["dtype"]).itemsize for d in interpreter.get_input_details()]


class CLibrary:
    """TFLite 2.9 through its C interface, with the delegate loaded as an external one."""
    has_reference_kernels = False

    def __init__(self, libraries):
        self.c = ctypes.CDLL(str(pathlib.Path(libraries) / "libtensorflowlite_c.so"), ctypes.RTLD_GLOBAL)
        self.plugin = ctypes.CDLL(library)
        pointer, c = ctypes.c_void_p, self.c
        for name in ("TfLiteModelCreateFromFile", "TfLiteInterpreterOptionsCreate", "TfLiteInterpreterCreate",
                     "TfLiteInterpreterGetInputTensor", "TfLiteInterpreterGetOutputTensor", "TfLiteTensorData"):
            getattr(c, name).restype = pointer
        c.TfLiteTensorByteSize.restype = ctypes.c_size_t
        c.TfLiteModelCreateFromFile.argtypes = [ctypes.c_char_p]
        for name in ("TfLiteInterpreterOptionsDelete", "TfLiteModelDelete", "TfLiteInterpreterDelete", "TfLiteTensorData",
                     "TfLiteTensorByteSize", "TfLiteInterpreterInvoke", "TfLiteInterpreterAllocateTensors",
                     "TfLiteInterpreterGetInputTensorCount", "TfLiteInterpreterGetOutputTensorCount"):
            getattr(c, name).argtypes = [pointer]
        for name in ("TfLiteInterpreterGetInputTensor", "TfLiteInterpreterGetOutputTensor"):
            getattr(c, name).argtypes = [pointer, ctypes.c_int32]
        c.TfLiteInterpreterOptionsAddDelegate.argtypes = [pointer, pointer]
        c.TfLiteInterpreterCreate.argtypes = [pointer, pointer]
        self.plugin.tflite_plugin_create_delegate.restype = pointer
        self.plugin.tflite_plugin_create_delegate.argtypes = [pointer, pointer, ctypes.c_size_t, pointer]
        self.plugin.tflite_plugin_destroy_delegate.argtypes = [pointer]

    def delegate(self, options):
        keys = (ctypes.c_char_p * 1)(b"device")
        values = (ctypes.c_char_p * 1)(options["device"].encode())
        made = self.plugin.tflite_plugin_create_delegate(keys, values, 1, None)
        if not made:
            raise ValueError("no delegate")
        return made

    def start(self, path, device):
        c, made = self.c, self.delegate({"device": device})
        model = c.TfLiteModelCreateFromFile(str(path).encode())
        options = c.TfLiteInterpreterOptionsCreate()
        c.TfLiteInterpreterOptionsAddDelegate(options, made)
        interpreter = c.TfLiteInterpreterCreate(model, options) if model else None
        if not interpreter or c.TfLiteInterpreterAllocateTensors(interpreter) != 0:
            raise ValueError("the model is refused")
        return interpreter  # it and its delegate live as long as the process

    def tensors(self, interpreter, side):
        count = getattr(self.c, f"TfLiteInterpreterGet{side}TensorCount")(interpreter)
        return [getattr(self.c, f"TfLiteInterpreterGet{side}Tensor")(interpreter, i) for i in range(count)]

    def run(self, interpreter, inputs):
        for tensor, value in zip(self.tensors(interpreter, "Input"), inputs):
            ctypes.memmove(self.c.TfLiteTensorData(tensor), value, len(value))
        if self.c.TfLiteInterpreterInvoke(interpreter) != 0:
            raise RuntimeError("invoke failed")
        return [ctypes.string_at(self.c.TfLiteTensorData(t), self.c.TfLiteTensorByteSize(t))
                for t in self.tensors(interpreter, "Output")]

    def input_sizes(self, interpreter):
        return [self.c.TfLiteTensorByteSize(t) for t in self.tensors(interpreter, "Input")]


def operators_on_cpu(path):
    text = subprocess.run([reef, "inspect", path, "--json"], capture_output=True, text=True, check=True).stdout
    operators = json.loads(text)["subgraphs"][0]["operators"]
    return [op["type"] for op in operators if op["type"] != "edgetpu-custom-op"]


def expected(path, inputs):
    """What `reef run --device virtual` gives."""
    arguments = []
    for i, value in enumerate(inputs):
        (folder / f"in{i}.bin").write_bytes(value)
        arguments += ["--in", folder / f"in{i}.bin"]
    out = folder / "out"
    subprocess.run([reef, "run", path, "--device", "virtual", "--tflite", "current", "--out", out, *arguments], check=True,
                   capture_output=True)
    count = len(json.loads(subprocess.run([reef, "inspect", path, "--json"], capture_output=True, text=True,
                                          check=True).stdout)["subgraphs"][0]["outputs"])
    return [(out / f"out{i}.bin").read_bytes() for i in range(count)]


def check_models(runtime, models):
    skipped, wrong = [], []
    for path in models:
        on_cpu = operators_on_cpu(path)
        if on_cpu and not runtime.has_reference_kernels:
            skipped.append(f"{path}: {len(on_cpu)} operators on the CPU")
            continue
        try:
            interpreter = runtime.start(path, "usb:1")
        except (ValueError, RuntimeError) as error:
            if "custom op" in str(error).lower() and "edgetpu" not in str(error):
                skipped.append(f"{path}: {str(error).splitlines()[0]}")
                continue
            raise
        random = np.random.default_rng(1)
        inputs = [random.integers(0, 256, size, dtype=np.uint8).tobytes() for size in runtime.input_sizes(interpreter)]
        if runtime.run(interpreter, inputs) != expected(path, inputs):
            wrong.append(path)
        del interpreter
    print(f"  {len(models) - len(skipped) - len(wrong)} models equal, {len(wrong)} different, {len(skipped)} skipped")
    for line in wrong:
        print("  different:", line)
    for line in skipped:
        print("  skipped:", line)
    return not wrong


def check_threads(runtime, path):
    """Eight interpreters at once, two on each device."""
    random = np.random.default_rng(2)
    first = runtime.start(path, ":0")
    inputs = [random.integers(0, 256, size, dtype=np.uint8).tobytes() for size in runtime.input_sizes(first)]
    right, found = runtime.run(first, inputs), []

    def work(number):
        interpreter = runtime.start(path, f":{number % 4}")
        for _ in range(3):
            found.append(runtime.run(interpreter, inputs) == right)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"  8 threads: {sum(found)} of 24 runs equal")
    return len(found) == 24 and all(found)


def check_errors(runtime):
    """Wrong devices and wrong models are refused."""
    refused = 0
    try:
        runtime.delegate({"device": "usb:9"})
    except ValueError:
        refused += 1
    broken = folder / "broken_edgetpu.tflite"
    data = bytearray(pathlib.Path(models[0]).read_bytes())
    at = data.find(b"DWN1")
    data[at:at + 4] = b"XXXX"
    broken.write_bytes(data)
    try:
        runtime.start(broken, "")
    except (ValueError, RuntimeError) as error:
        refused += 1
        print("  refused:", str(error).strip().splitlines()[0][:160])
    return refused == 2


models = json.load(sys.stdin)
runtime = CLibrary(which) if "/" in which else PythonRuntime(which)
passed = [check_models(runtime, models), check_threads(runtime, models[0]), check_errors(runtime)]
sys.exit(0 if all(passed) else 1)
