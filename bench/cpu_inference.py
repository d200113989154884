#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole-model CPU inference: Reef against TFLite (a current one and 2.9.0, XNNPACK and builtin kernels) and ONNX Runtime,
measured in one run.

Every round runs each contender after the other on every model, so that a busy machine slows all of them alike. The table
shows medians and minima over all runs and, per round, Reef's time as a multiple of the contender's (below 1: Reef is
faster) as median and quartiles. Peers that are not installed, or cannot run a model, are left out with a message. A
custom operator at the end of a model that TFLite lacks (posenet's decoder) is cut off for all contenders.
On a machine that others load, --cpu-time measures what the CPU spends on a run instead of how long it takes: the mean of
each round's runs, of all threads together, for Reef less what a process without runs spends.
    bench/cpu_inference.py [--rounds N] [--runs N] [--threads N ...] [--reference] [--fused-floats] [--cpu-time] [MODEL ...]
Without models: the shipped ones, and of the collection in $REEF_ZOO those that docs/performance.md speaks of.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import tflite29
from cut_model import without_custom_end

ROOT = pathlib.Path(__file__).resolve().parent.parent
REEF = pathlib.Path(os.environ.get("REEF", ROOT / "build/reef"))
SHIPPED = ["models/reef_creatures_int8.tflite", "models/reef_creatures_float.tflite"]
COLLECTION = ["tflite/tf2_mobilenet_v2_1.0_224_ptq.tflite", "pairs/mobilenet_v2_1.0_224_quant/source.tflite",
              "pairs/mobilenet_v1_1.0_224_quant_embedding_extractor/source.tflite",
              "pairs/deeplabv3_mnv2_dm05_pascal_quant/source.tflite", "pairs/posenet_353_481/source.tflite",
              "pairs/keras_lstm_mnist_ptq/source.tflite", "tflite/mlperf_tiny/kws_ref_model.tflite",
              "tflite/mlperf_tiny/pretrainedResnet_quant.tflite", "tflite/mlperf_tiny/vww_96_int8.tflite",
              "tflite/mlperf_tiny/model_ToyCar_quant_fullint.tflite", "tflite/mlperf_tiny/str_ww_ref_model.tflite"]

try:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    Interpreter = None
try:
    import numpy as np
    import onnxruntime
    from mobilenet_v1_onnx import mobilenet_v1
except ImportError:
    onnxruntime = None


def name_of(model):
    path = pathlib.Path(model)
    return path.parent.name if path.stem == "source" else path.stem


CPU_TIME = False  # --cpu-time


def measure_calls(call, runs):
    if CPU_TIME:
        start = time.process_time()
        for _ in range(runs):
            call()
        mean = 1e3 * (time.process_time() - start) / runs
        return mean, mean
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times), min(times)


def reef_cpu_time(command):
    def spent(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "--bench", str(runs)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def run(runs):
        mean = 1e3 * (spent(runs) - spent(0)) / runs
        return mean, mean
    return run


def reef(model, threads, more):
    if CPU_TIME:
        return reef_cpu_time([str(REEF), "run", str(model), "--threads", str(threads), *more])

    def run(runs):
        command = [str(REEF), "run", str(model), "--bench", str(runs), "--threads", str(threads), "--json"]
        command += more
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["time"]
        return result["median_ms"], result["min_ms"]
    return run


def litert(model, resolver, threads):
    interpreter = Interpreter(str(model), experimental_op_resolver_type=resolver, num_threads=threads)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        values = np.random.RandomState(1).randint(0, 120, detail["shape"])
        interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
    interpreter.invoke()
    return lambda runs: measure_calls(interpreter.invoke, runs)


def onnx_mobilenet_v1(threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(mobilenet_v1(), options, providers=["CPUExecutionProvider"])
    picture = {"input": np.random.RandomState(1).randint(0, 256, (1, 3, 224, 224)).astype(np.uint8)}
    session.run(None, picture)
    return lambda runs: measure_calls(lambda: session.run(None, picture), runs)


def tflite_2_9(library, model, threads, with_xnnpack):
    invoke = tflite29.invoker(library, model, threads, with_xnnpack)
    return lambda runs: measure_calls(invoke, runs)


def contenders(model, threads, options, library):
    with_reference = options.reference
    found = {"reef": reef(model, threads, ["--fused-floats"] * options.fused_floats)}
    if Interpreter is not None:
        kinds = [("TFLite XNNPACK", OpResolverType.AUTO),
                 ("TFLite builtin", OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)]
        for name, resolver in kinds + [("TFLite reference", OpResolverType.BUILTIN_REF)] * with_reference:
            try:
                found[name] = litert(model, resolver, threads)
            except (RuntimeError, ValueError) as error:
                print(f"{name_of(model)}: {name} cannot run it: {str(error).splitlines()[0]}", file=sys.stderr)
    for name, with_xnnpack in (("TFLite 2.9.0 XNNPACK", True), ("TFLite 2.9.0 builtin", False)) * (library is not None):
        try:
            found[name] = tflite_2_9(library, model, threads, with_xnnpack)
        except ValueError as error:
            print(f"{name_of(model)}: {name} cannot run it: {error}", file=sys.stderr)
    if onnxruntime is not None and "mobilenet_v1_1.0_224" in name_of(model):
        found["ONNX Runtime int8, same shape"] = onnx_mobilenet_v1(threads)
    return found


def cut_models(models, folder):
    """The same, with those that end in an operator that TFLite lacks replaced."""
    result = []
    for model in models:
        cut = without_custom_end(pathlib.Path(model).read_bytes())
        if cut is not None:
            print(f"{name_of(model)}: without its last operator, which TFLite lacks", file=sys.stderr)
            model = pathlib.Path(folder) / f"{name_of(model)} (cut).tflite"
            model.write_bytes(cut)
        result.append(model)
    return result


def measure(programs, rounds, runs):
    medians, minima = {name: [] for name in programs}, {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            median, least = program(runs)
            medians[name].append(median)
            minima[name].append(least)
    return medians, minima


def print_rows(model, threads, medians, minima):
    for name, values in medians.items():
        ratios = sorted(ours / theirs for ours, theirs in zip(medians["reef"], values))
        low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
        ratio = "" if name == "reef" else f"{statistics.median(ratios):.2f} ({low:.2f} to {high:.2f})"
        best = "" if name == "reef" else f"{min(minima['reef']) / min(minima[name]):.2f}"
        print(f"| {name_of(model)} | {threads} | {name} | {statistics.median(values):.3f} | {min(minima[name]):.3f} | "
              f"{ratio} | {best} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--reference", action="store_true", help="also TFLite's reference kernels")
    parser.add_argument("--fused-floats", action="store_true", help="Reef adds float products with one rounding")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time instead of wall-clock time")
    options = parser.parse_args()
    global CPU_TIME
    CPU_TIME = options.cpu_time
    models = options.models or [str(ROOT / m) for m in SHIPPED]
    zoo = pathlib.Path(os.environ.get("REEF_ZOO", ROOT / "../shared/zoo"))
    if not options.models:
        models += [str(zoo / m) for m in COLLECTION if (zoo / m).exists()]
    if Interpreter is None:
        print("ai-edge-litert is not installed: TFLite is skipped", file=sys.stderr)
    if onnxruntime is None:
        print("onnxruntime or onnx is not installed: ONNX Runtime is skipped", file=sys.stderr)
    library = tflite29.load(ROOT)
    print(f"measured: {options.rounds} interleaved rounds of {options.runs} runs; load of the machine "
          f"{os.getloadavg()[0]:.1f}{'; reef run --fused-floats' * options.fused_floats}"
          f"{'; CPU time, means of rounds' * options.cpu_time}\n")
    print("| model | threads | contender | median ms | least ms | reef / contender (quartiles) | of least |\n"
          "| --- | --- | --- | ---: | ---: | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for model in cut_models(models, folder):
            for threads in options.threads:
                programs = contenders(model, threads, options, library)
                print_rows(model, threads, *measure(programs, options.rounds, options.runs))


if __name__ == "__main__":
    main()
