#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole-model CPU inference: Reef against TFLite, as ratios measured in one run.

Every round runs each contender once after the other on every model, so that a busy machine slows all of them alike;
the table shows medians over rounds and, per round, the time relative to Reef (above 1: Reef is faster).
    bench/cpu_inference.py [--rounds N] [--runs N] [--threads N] [MODEL ...]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT_MODELS = ["models/reef_creatures_int8.tflite", "models/reef_creatures_float.tflite"]

try:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    Interpreter = None


def reef_median_ms(model, runs, threads):
    command = [str(ROOT / "build/reef"), "run", str(model), "--bench", str(runs), "--threads", str(threads), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["time"]["median_ms"]


class LiteRt:
    def __init__(self, model, resolver, threads):
        self.interpreter = Interpreter(str(model), experimental_op_resolver_type=resolver, num_threads=threads)
        self.interpreter.allocate_tensors()
        for detail in self.interpreter.get_input_details():
            values = np.random.RandomState(1).randint(0, 120, detail["shape"])
            self.interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
        self.interpreter.invoke()

    def median_ms(self, runs):
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            self.interpreter.invoke()
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)


def contenders(model, runs, threads):
    found = {"reef": lambda: reef_median_ms(model, runs, threads)}
    if Interpreter is None:
        return found
    for name, resolver in [("TFLite reference", OpResolverType.BUILTIN_REF),
                           ("TFLite builtin", OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES),
                           ("TFLite XNNPACK", OpResolverType.AUTO)]:
        peer = LiteRt(model, resolver, threads)
        found[name] = lambda peer=peer: peer.median_ms(runs)
    return found


def measure(model, rounds, runs, threads):
    programs = contenders(model, runs, threads)
    times = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            times[name].append(program())
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[str(ROOT / m) for m in DEFAULT_MODELS])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if Interpreter is None:
        print("ai-edge-litert is not installed: TFLite is skipped, times stand alone", file=sys.stderr)
    print(f"measured, {options.threads} thread(s), median of {options.rounds} interleaved rounds of {options.runs} runs\n")
    print("| model | contender | ms | ratio to reef (quartiles) |\n| --- | --- | --- | --- |")
    for model in options.models:
        times = measure(model, options.rounds, options.runs, options.threads)
        for name, values in times.items():
            ratios = sorted(v / r for v, r in zip(values, times["reef"]))
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            print(f"| {pathlib.Path(model).name} | {name} | {statistics.median(values):.3f} | "
                  f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}) |")


if __name__ == "__main__":
    main()
