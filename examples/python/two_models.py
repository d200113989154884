# SPDX-License-Identifier: Apache-2.0
"""Two models take turns on one device. Compiled together they stay on the chip side by side. Usage: python two_models.py"""

import tempfile

import reef

from _shared import MODELS

NAMES = ("reef_creatures_int8.tflite", "reef_segmenter_int8.tflite")


def turns(files, device):
    """Parameter loads of five turns each."""
    interpreters = [reef.Interpreter(file, device=device) for file in files]
    for interpreter in interpreters:
        interpreter.allocate_tensors()
    for _ in range(5):
        for interpreter in interpreters:
            interpreter.invoke()
    return next(d.parameter_loads for d in reef.devices() if d.selector == interpreters[0].device())


def main():
    with tempfile.TemporaryDirectory() as together, tempfile.TemporaryDirectory() as apart:
        shared = reef.compile([MODELS / name for name in NAMES], together).files
        single = [reef.compile(MODELS / name, apart).files[0] for name in NAMES]
        print("compiled together:", turns(shared, "usb:0"), "parameter loads in 10 runs")
        print("compiled apart:   ", turns(single, "usb:1"), "parameter loads in 10 runs")


if __name__ == "__main__":
    main()
