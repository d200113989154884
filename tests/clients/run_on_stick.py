# SPDX-License-Identifier: Apache-2.0
"""Programs that use `usb:0` or `pci:0`, run unchanged with virtual sticks and a virtual card plugged in.

    run_on_stick.py BUILD

A program in C, one in Python (the reef package) and one for LiteRT with the delegate run a compiled model; what they
compute is compared with the virtual device. Then one is killed in the middle, and the next must not notice. Parts whose
Python packages are missing are left out, and said so.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PYTHON_CLIENT = """
import sys, numpy, reef
interpreter = reef.Interpreter(sys.argv[1], device=sys.argv[2])
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    count = int(numpy.prod(detail["shape"]))
    data = (numpy.arange(count) % 256).astype(numpy.uint8).view(detail["dtype"]).reshape(detail["shape"])
    interpreter.set_tensor(detail["index"], data)
interpreter.invoke()
total = 0
for detail in interpreter.get_output_details():
    for byte in interpreter.get_tensor(detail["index"]).tobytes():
        total = (total * 31 + byte) % 2**64
kind = "real" if reef.devices()[0].is_real else "virtual"
print(kind, interpreter.device(), total)
"""

DELEGATE_CLIENT = """
import sys, numpy
from ai_edge_litert.interpreter import Interpreter, load_delegate
delegate = load_delegate(sys.argv[3], {"device": sys.argv[2]})
interpreter = Interpreter(sys.argv[1], experimental_delegates=[delegate])
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    count = int(numpy.prod(detail["shape"]))
    data = (numpy.arange(count) % 256).astype(numpy.uint8).view(detail["dtype"]).reshape(detail["shape"])
    interpreter.set_tensor(detail["index"], data)
interpreter.invoke()
total = 0
for detail in interpreter.get_output_details():
    for byte in interpreter.get_tensor(detail["index"]).tobytes():
        total = (total * 31 + byte) % 2**64
print(total)
"""


class Programs:
    def __init__(self, build):
        self.build = build
        self.reef = os.path.join(build, "reef")
        self.environment = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "bindings/python"),
                            "REEF_LIBRARY": os.path.join(build, "libreef.so"), "PYTHONDONTWRITEBYTECODE": "1"}
        self.environment.pop("REEF_DEVICES", None)
        self.failures = 0

    def run(self, *command, plugged=()):
        before = [self.reef, "virtual-usb", *plugged, "--"] if plugged else []
        return subprocess.run([*before, *command], env=self.environment, capture_output=True, text=True, timeout=300)

    def expect(self, what, done, expected):
        text = done.stdout.strip()
        good = done.returncode == 0 and text == expected
        print(f"{what}: {'as on the virtual device' if good else f'{text!r} instead of {expected!r}'}")
        if not good:
            sys.stderr.write(done.stderr)
            self.failures += 1


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def main():
    build = os.path.abspath(sys.argv[1])
    programs = Programs(build)
    client = os.path.join(build, "tests/stick_client")
    ready = ("--ready", "--sticks", "2")
    with tempfile.TemporaryDirectory() as folder:
        compiled = programs.run(programs.reef, "compile", os.path.join(SOURCE, "models/reef_creatures_int8.tflite"), "-o", folder)
        if compiled.returncode != 0:
            sys.exit(compiled.stdout + compiled.stderr)
        model = os.path.join(folder, "reef_creatures_int8_edgetpu.tflite")
        right = programs.run(client, model, "virtual").stdout.split()[-1]
        for plugged, device in ((ready, "usb:0"), (ready, "usb:1"), (("--pcie",), "pci:0")):
            done = programs.run(client, model, device, plugged=plugged)
            programs.expect(f"C program on {device}", done, f"real {device} {right}")
        if has(sys.executable, "numpy"):
            done = programs.run(sys.executable, "-c", PYTHON_CLIENT, model, "usb:0", plugged=ready)
            programs.expect("Python program on usb:0", done, f"real usb:0 {right}")
        else:
            print("Python program: left out, NumPy is missing")
        if has(sys.executable, "ai_edge_litert"):
            delegate = os.path.join(build, "libreef_delegate.so")
            done = programs.run(sys.executable, "-c", DELEGATE_CLIENT, model, "usb:0", delegate, plugged=ready)
            programs.expect("LiteRT with the delegate on usb:0", done, right)
        else:
            print("LiteRT with the delegate: left out, ai-edge-litert is missing")
        kill = f"'{client}' '{model}' usb:0 1000000 & sleep 2; kill -9 $!; wait $! 2>/dev/null; exec '{client}' '{model}' usb:0"
        done = programs.run("sh", "-c", kill, plugged=ready)
        programs.expect("C program after one that was killed while it held the stick", done, f"real usb:0 {right}")
        held = f"'{client}' '{model}' usb:0 1000000 & holder=$!; sleep 2; '{client}' '{model}' usb:0; kill -9 $holder"
        done = programs.run("sh", "-c", held, plugged=ready)
        named = re.search(r"in use by stick_client \(process \d+\)", done.stderr)
        print(f"a stick that another program holds: {'refused, with its name' if named else 'wrong: ' + done.stdout + done.stderr}")
        programs.failures += 0 if named else 1
    sys.exit(1 if programs.failures else 0)


if __name__ == "__main__":
    main()
