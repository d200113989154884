#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often four computations of one classifier name the same class first: the virtual device on the compiled file, and
TFLite's reference, optimized and XNNPACK kernels on its source. Prints a line per two of them.
    tools/oracle/compare_top1.py COMPILED SOURCE PICTURE...
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = {"TFLite reference": OpResolverType.BUILTIN_REF,
           "TFLite optimized": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
           "TFLite XNNPACK": OpResolverType.AUTO}


def run_tflite(interpreter, pixels):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], pixels[None])
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0].astype(int)


def run_device(compiled, pixels, folder):
    pixels.tofile(folder / "in.bin")
    command = [str(ROOT / "build/reef"), "run", compiled, "--device", "virtual", "--in", str(folder / "in.bin"),
               "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return np.fromfile(folder / "out0.bin", dtype=np.uint8).astype(int)


def main(compiled, source, pictures):
    interpreters = {}
    for name, resolver in KERNELS.items():
        interpreters[name] = Interpreter(source, experimental_op_resolver_type=resolver)
        interpreters[name].allocate_tensors()
    _, height, width, _ = interpreters["TFLite reference"].get_input_details()[0]["shape"]
    outputs = {name: [] for name in ["virtual device", *KERNELS]}
    with tempfile.TemporaryDirectory() as folder:
        for picture in pictures:
            pixels = np.array(Image.open(picture).convert("RGB").resize((width, height), Image.BILINEAR))
            outputs["virtual device"].append(run_device(compiled, pixels, pathlib.Path(folder)))
            for name, interpreter in interpreters.items():
                outputs[name].append(run_tflite(interpreter, pixels))
    for a, b in itertools.combinations(outputs, 2):
        same = sum(x.argmax() == y.argmax() for x, y in zip(outputs[a], outputs[b]))
        equal = np.mean(np.stack(outputs[a]) == np.stack(outputs[b]))
        print(f"{a} / {b}: the same first class for {same} of {len(pictures)}; {100 * equal:.2f} % of values equal")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
