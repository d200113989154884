#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The virtual Edge TPU against TFLite's reference kernels: compiled file against its source, measured in one run.

One interpreter each, rounds interleaved as in cpu_inference.py. The ratio is the device's time relative to TFLite's
(above 1: the device is slower). Needs the model collection (REEF_ZOO, or shared/zoo beside the repository); without it,
or without ai-edge-litert, it says so and measures what it can.
    bench/device_inference.py [--rounds N] [--runs N] [--threads N] [PAIR/FILE ...]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import cpu_inference

ZOO = pathlib.Path(os.environ.get("REEF_ZOO", cpu_inference.ROOT / "../shared/zoo"))
# File, and at most how many times as slow as TFLite's reference kernels it is to be.
DEFAULT_FILES = {
    "mobilenet_v1_0.25_128_quant/v2_edgetpu.tflite": 2.0,
    "mobilenet_v1_0.25_128_quant/v15_edgetpu.tflite": 2.0,
    "mobilenet_v2_1.0_224_quant/v2_edgetpu.tflite": 1.0,
}


def source_of(compiled):
    """Files of the compilers before v15 were made from an older source where there are two."""
    generation = int("".join(c for c in compiled.name[1:3] if c.isdigit()))
    old = compiled.parent / "source_old.tflite"
    return old if generation < 15 and old.exists() else compiled.parent / "source.tflite"


def device_median_ms(compiled, runs, threads):
    command = [str(cpu_inference.ROOT / "build/reef"), "run", str(compiled), "--device", "virtual", "--bench", str(runs),
               "--threads", str(threads), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["time"]["median_ms"]


def measure(compiled, rounds, runs, threads):
    peer = None
    if cpu_inference.Interpreter is not None:
        peer = cpu_inference.LiteRt(source_of(compiled), cpu_inference.OpResolverType.BUILTIN_REF, threads)
    device, reference = [], []
    for _ in range(rounds):
        device.append(device_median_ms(compiled, runs, threads))
        if peer is not None:
            reference.append(peer.median_ms(runs))
    return device, reference


def row(name, target, device, reference):
    device_ms = f"{statistics.median(device):.1f}"
    if not reference:
        return f"| {name} | {device_ms} | - | - | - |"
    ratios = sorted(d / r for d, r in zip(device, reference))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    wanted = "-" if target is None else f"{target:.1f} ({'met' if statistics.median(ratios) <= target else 'missed'})"
    return (f"| {name} | {device_ms} | {statistics.median(reference):.1f} | "
            f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}) | {wanted} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=list(DEFAULT_FILES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not (ZOO / "pairs").is_dir():
        print(f"the model collection is absent ({ZOO}): set REEF_ZOO; the device bench is skipped", file=sys.stderr)
        return
    if cpu_inference.Interpreter is None:
        print("ai-edge-litert is not installed: TFLite is skipped, times stand alone", file=sys.stderr)
    print(f"measured, {options.threads} thread(s), median of {options.rounds} interleaved rounds of {options.runs} runs\n")
    print("| compiled file | virtual device, ms | TFLite reference, ms | ratio (quartiles) | at most |\n"
          "| --- | --- | --- | --- | --- |")
    for name in options.files:
        device, reference = measure(ZOO / "pairs" / name, options.rounds, options.runs, options.threads)
        print(row(name, DEFAULT_FILES.get(name), device, reference), flush=True)


if __name__ == "__main__":
    main()
