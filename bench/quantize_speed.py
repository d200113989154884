#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of calibration: `reef quantize` beside ONNX Runtime's static quantizer, same samples, one run.

    bench/quantize_speed.py build/reef ZOO [--model cifar_mobilenetv2] [--samples 200] [--repeat 3]

Both choose ranges by minimum and maximum over the same pictures and write a quantized model; the whole command is
timed, the best of `--repeat` is shown. Reef reads the pictures from the .npz file; ONNX Runtime gets them from memory.
Memory is the peak of Reef's process for growing numbers of samples (the array's file is the same). onnxruntime and onnx
come from PyPI by name.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np


def onnx_runtime(model, pictures, out):
    import logging
    logging.disable(logging.WARNING)
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rest = iter(pictures)

        def get_next(self):
            picture = next(self.rest, None)
            if picture is None:
                return None
            return {"input": ((picture.astype(np.float32) - 127.5) / 127.5).transpose(2, 0, 1)[None]}

    begin = time.perf_counter()
    quantize_static(str(model), str(out), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    calibrate_method=CalibrationMethod.MinMax)
    return time.perf_counter() - begin


def reef(program, model, data, samples, out, extra):
    """(seconds of the whole command, peak memory in MiB, what it says)"""
    command = [program, "quantize", model, "--data", data, "--array", "calib", "--limit", str(samples), "--preprocess",
               "mean=127.5,std=127.5", "-o", out, "--json"] + extra
    begin = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"{command} failed")
    return seconds, usage.ru_maxrss / 1024, json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef")
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--model", default="cifar_mobilenetv2")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    model = arguments.zoo / "onnx" / f"{arguments.model}.onnx"
    data = np.load(arguments.zoo / "data" / "cifar10_eval.npz")
    pictures = data["calib"][:arguments.samples]
    plain = ["--calibration", "minmax", "--held-back", "0"]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        # One array for all counts, so that only the number of samples differs.
        np.savez(work / "many.npz", calib=np.concatenate([data["calib"], data["images"]]))
        peer = min(onnx_runtime(model, pictures, work / "peer.onnx") for _ in range(arguments.repeat))
        runs = [reef(arguments.reef, model, work / "many.npz", arguments.samples, work / "o.tflite", plain)
                for _ in range(arguments.repeat)]
        best = min(runs, key=lambda run: run[0])
        print(f"{arguments.model}, {arguments.samples} pictures, min-max, best of {arguments.repeat} (measured):")
        print(f"  ONNX Runtime quantize_static  {peer:6.2f} s")
        print(f"  reef quantize                 {best[0]:6.2f} s, of which calibration {best[2]['calibration_seconds']:.2f} s")
        print(f"  ratio                         {best[0] / peer:6.2f}")
        whole = reef(arguments.reef, model, work / "many.npz", arguments.samples, work / "o.tflite", [])
        print(f"  reef quantize, all choices    {whole[0]:6.2f} s, {len(whole[2]['steps'])} models measured")
        for count in (50, 200, 2000):
            seconds, memory, _ = reef(arguments.reef, model, work / "many.npz", count, work / "o.tflite", plain)
            print(f"  {count:5d} samples: peak memory {memory:6.1f} MiB, {seconds:.2f} s")


if __name__ == "__main__":
    main()
