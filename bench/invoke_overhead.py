#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one invocation of a one-op model costs, in microseconds (measured): libreef from C, reef.Interpreter from Python, and
LiteRT from Python where it is installed. The arithmetic, four additions, is part of all of them.

Rounds are interleaved; the median and the best of all rounds are shown. Needs NumPy, and the targets libreef and
invoke_bench in build/.    bench/invoke_overhead.py [--rounds N]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings/python"))
os.environ.setdefault("REEF_LIBRARY", str(ROOT / "build/libreef.so"))
RUNS = 2000
C_LIMIT_US, PYTHON_LIMIT_US = 5, 10  # for libreef; what Python may add


def timed(call):
    start = time.perf_counter()
    for _ in range(RUNS):
        call()
    return (time.perf_counter() - start) / RUNS * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    bench = ROOT / "build/tests/invoke_bench"
    import numpy as np
    import reef
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/one_op.tflite"
        subprocess.run([bench, path], check=True)
        ours = reef.Interpreter(path)
        ours.allocate_tensors()
        value = np.ones(4, np.float32)
        calls = {"Python, invoke()": ours.invoke,
                 "Python, set_tensor() + invoke() + get_tensor()":
                     lambda: (ours.set_tensor(0, value), ours.invoke(), ours.get_tensor(2))}
        try:
            from ai_edge_litert.interpreter import Interpreter
            peer = Interpreter(path)
            peer.allocate_tensors()
            calls["LiteRT, Python, invoke()"] = peer.invoke
        except ImportError:
            print("ai-edge-litert is not installed: LiteRT is left out")
        times = {name: [] for name in ("C, reef_interpreter_invoke()", *calls)}
        for _ in range(rounds):
            median = subprocess.run([bench], check=True, capture_output=True, text=True).stdout.split()[0]
            times["C, reef_interpreter_invoke()"].append(float(median))
            for name, call in calls.items():
                times[name].append(timed(call))
    print("| one op, four floats | median us | best us |\n| --- | --- | --- |")
    for name, list_of_times in times.items():
        print(f"| {name} | {statistics.median(list_of_times):.2f} | {min(list_of_times):.2f} |")
    c, python = (statistics.median(times[name]) for name in ("C, reef_interpreter_invoke()", "Python, invoke()"))
    print(f"C under {C_LIMIT_US} us: {'met' if c < C_LIMIT_US else 'missed'}; Python adds {python - c:.2f} us, under "
          f"{PYTHON_LIMIT_US}: {'met' if python - c < PYTHON_LIMIT_US else 'missed'}")


if __name__ == "__main__":
    main()
