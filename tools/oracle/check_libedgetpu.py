#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs compiled files with Google's runtime on virtual devices, and compares the outputs with Reef's.

  check_libedgetpu.py REEF LIBEDGETPU DELEGATE FOLDER... [--pcie] [--invocations N]

REEF is the program, LIBEDGETPU Google's library (build_libedgetpu.sh, or Coral's package), DELEGATE libreef_delegate.so.
Each file runs in LiteRT twice, with the same random inputs: with Google's runtime in a process of its own under `reef
virtual-usb`, and with Reef's delegate on the virtual device. Prints a line for each file, and last how many are equal.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

LIMIT_S = 600


def run(library, model, out, invocations, options):
    """The other process: one model in LiteRT with a delegate; all outputs into a file."""
    from ai_edge_litert import interpreter as litert

    delegate = litert.load_delegate(library, options)
    interpreter = litert.Interpreter(model_path=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    random = np.random.RandomState(1)
    arrays = {}
    for k in range(invocations):
        for detail in interpreter.get_input_details():
            kind = detail["dtype"]
            if np.issubdtype(kind, np.integer):
                value = random.randint(np.iinfo(kind).min, np.iinfo(kind).max + 1, detail["shape"]).astype(kind)
            else:
                value = random.standard_normal(detail["shape"]).astype(kind)
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        for j, detail in enumerate(interpreter.get_output_details()):
            arrays[f"{k}_{j}"] = interpreter.get_tensor(detail["index"]).copy()
    np.savez(out, **arrays)


def outputs_of(command, library, model, invocations, folder, name):
    """(arrays, "") or (None, the last line that was said)."""
    out = pathlib.Path(folder) / f"{name}.npz"
    out.unlink(missing_ok=True)
    worker = [sys.executable, __file__, "--worker", library, model, str(out), str(invocations)]
    try:
        done = subprocess.run([*command, *worker], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None, f"no end after {LIMIT_S} s"
    if done.returncode != 0 or not out.exists():
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        return None, lines[-1][:200] if lines else f"exit code {done.returncode}"
    with np.load(out) as file:
        return {key: file[key] for key in file.files}, ""


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        run(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), {})
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("reef")
    parser.add_argument("libedgetpu")
    parser.add_argument("delegate")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--pcie", action="store_true")
    parser.add_argument("--invocations", type=int, default=2)
    arguments = parser.parse_args()
    under = [arguments.reef, "virtual-usb", *(["--pcie"] if arguments.pcie else []), "--"]
    files = sorted(str(path) for folder in arguments.folders for path in pathlib.Path(folder).rglob("*edgetpu*.tflite"))
    equal = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            name = str(pathlib.Path(*pathlib.Path(path).parts[-2:]))
            right, problem = outputs_of([], arguments.delegate, path, arguments.invocations, folder, "reef")
            if right is None:
                print(f"no reference  {name}: {problem}", flush=True)
                continue
            found, problem = outputs_of(under, arguments.libedgetpu, path, arguments.invocations, folder, "google")
            if found is None:
                print(f"fails         {name}: {problem}", flush=True)
                continue
            same = right.keys() == found.keys() and all(np.array_equal(right[key], found[key]) for key in right)
            equal += same
            print(f"{'equal' if same else 'different':13} {name}", flush=True)
    print(f"{equal} of {len(files)} files give equal outputs {'over PCIe' if arguments.pcie else 'over USB'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
