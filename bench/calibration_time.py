#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of quantizing a model: Reef's beside ONNX Runtime's static quantizer, interleaved in one run.

    bench/calibration_time.py build/reef MODEL.onnx DATA.npz [--rounds N]

Both read the samples of the array `calib` (pixels, normalized to -1..1), observe minima and maxima, and write an int8 model.
Reef is timed as a program, from start to exit; ONNX Runtime's quantize_static inside a running Python, without its imports.
The program also says how much memory each took with all samples and with an eighth of them. ONNX Runtime comes from PyPI
(onnxruntime, onnx); without it only Reef is timed.
"""
import argparse
import multiprocessing
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

import numpy as np


def quantize_with_reef(reef, model, data, count, out, more):
    """(seconds, peak bytes)"""
    command = [reef, "quantize", model, "--data", data, "-o", out, "--limit", str(count), "--threads", str(os.cpu_count()),
               "--preprocess", "mean=127.5,std=127.5"] + more
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(message.decode())
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def quantize_with_onnx_runtime(model, data, count, out, answer):
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    samples = ((np.load(data)["calib"][:count].astype(np.float32) - 127.5) / 127.5).transpose(0, 3, 1, 2)
    name = onnxruntime.InferenceSession(model).get_inputs()[0].name

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.feed = iter({name: sample[None]} for sample in samples)

        def get_next(self):
            return next(self.feed, None)

    begin = time.perf_counter()
    prepared = out + ".prepared.onnx"
    quant_pre_process(model, prepared, skip_symbolic_shape=True)
    quantization.quantize_static(prepared, out, Reader(), quant_format=quantization.QuantFormat.QDQ,
                                 activation_type=quantization.QuantType.QInt8,
                                 weight_type=quantization.QuantType.QInt8, per_channel=True,
                                 calibrate_method=quantization.CalibrationMethod.MinMax)
    answer.put((time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def in_a_process(function, *arguments):
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=function, args=arguments + (answer,))
    process.start()
    while process.is_alive() and answer.empty():
        time.sleep(0.05)
    if answer.empty():
        raise SystemExit(f"{function.__name__} failed; see above")
    result = answer.get()
    process.join()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef")
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    total = len(np.load(arguments.data)["calib"])
    contenders = {
        "Reef, min-max": lambda out, n: quantize_with_reef(arguments.reef, arguments.model, arguments.data, n, out,
                                                           ["--calibration", "minmax", "--held-back", "0"]),
        "Reef, automatic": lambda out, n: quantize_with_reef(arguments.reef, arguments.model, arguments.data, n, out, []),
    }
    try:
        import onnxruntime  # noqa: F401
        contenders["ONNX Runtime, min-max"] = lambda out, n: in_a_process(quantize_with_onnx_runtime, arguments.model,
                                                                         arguments.data, n, out)
    except ImportError:
        print("ONNX Runtime is not installed (pip install onnxruntime onnx): Reef alone")
    times = {name: [] for name in contenders}
    memory = {}
    with tempfile.TemporaryDirectory() as work:
        out = str(pathlib.Path(work) / "out")
        for round_ in range(arguments.rounds):
            for name, run in contenders.items():
                seconds, peak = run(out, total)
                times[name].append(seconds)
                memory[name] = peak
        few = {name: run(out, max(total // 8, 1))[1] for name, run in contenders.items()}
    base = statistics.median(times["ONNX Runtime, min-max"]) if "ONNX Runtime, min-max" in times else None
    print(f"{pathlib.Path(arguments.model).name}, {total} samples, {os.cpu_count()} threads, "
          f"{arguments.rounds} interleaved rounds (measured)")
    print("| quantizer | seconds, median (least to most) | ratio to ONNX Runtime | peak MiB | with 1/8 of the samples |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        ratio = f"{median / base:.2f}" if base else ""
        print(f"| {name} | {median:.2f} ({min(seconds):.2f} to {max(seconds):.2f}) | {ratio} | "
              f"{memory[name] / 2**20:.0f} | {few[name] / 2**20:.0f} |")


if __name__ == "__main__":
    main()
