#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `reef quantize` chooses by itself, beside plain min-max ranges and beside ONNX Runtime, on samples that none of them saw.

    bench/quantizer_choices.py build/reef ZOO [--trained NAME,...] [--small NAME,...] [--timm NAME,...] [--pictures DIR] [--work DIR]
                               [--json FILE]

--trained names networks of ZOO/onnx (default: its two transformers): 200 samples to calibrate with, 2,000 others to measure with.
--small names networks of bench/trained_transformers.py, or all of them, which are trained here; 200 pictures to calibrate with, 200 others
to measure with.
--timm names architectures of timm, optionally as NAME:SIDE; their weights are random, as bench/breadth.py makes them; 128 pictures
of DIR to calibrate with, 32 others to measure with.

Columns are dB: the power of the outputs around their mean over the power of what quantization did to them, of the worst output.

  min-max   reef quantize --calibration minmax --held-back 0
  default   reef quantize, with everything that it tries; in brackets: how many operators stay float
  ORT       ONNX Runtime's quantize_static (QDQ, int8, a scale for each channel): the best of min-max, entropy and percentile,
            and which that was

Reef's models run in LiteRT. Packages from PyPI: torch and timm (for --timm), onnx, onnxruntime, ai-edge-litert, numpy, pillow.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import trained_transformers
from breadth import arranged, input_shape, run_litert, run_onnx, split_like, worst_sqnr

TRAINED = {"cifar_vit_tiny": ("cifar10_eval", "images"), "text_bert_tiny": ("text_eval", "ids")}
CALIBRATION, MEASURED = 128, 32
METHODS = ("MinMax", "Entropy", "Percentile")


def of_zoo(zoo, name):
    """Path, samples to calibrate with, samples to measure with, as the ONNX model takes them."""
    data, key = TRAINED[name]
    arrays = np.load(zoo / "data" / f"{data}.npz")

    def ready(values):
        if values.dtype != np.uint8:
            return values.astype(np.int64)  # words
        return ((values.astype(np.float32) - 127.5) / 127.5).transpose(0, 3, 1, 2)

    return zoo / "onnx" / f"{name}.onnx", ready(arrays["calib"]), ready(arrays[key])


def of_timm(name, pictures, work):
    from breadth_models import export, read_samples
    name, _, side = name.partition(":")
    side = int(side or 224)
    samples = read_samples(pictures, (3, side, side), CALIBRATION + MEASURED)
    path = work / f"{name}_{side}.onnx"
    if not path.exists():
        export(name, side, samples[:6], path, False)
    return path, samples[:CALIBRATION], samples[CALIBRATION:]


def of_small(name, work):
    path = work / f"{name}.onnx"
    if not path.exists():
        print(f"{name}: {trained_transformers.export(name, path):.1%} right in float", file=sys.stderr)
    return path, trained_transformers.samples(200, 4)[0], trained_transformers.samples(200, 3)[0]


def by_onnxruntime(path, calibration, measured, reference, work):
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    import onnx
    name = onnx.load(str(path), load_external_data=False).graph.input[0].name

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rows = iter([{name: sample[None]} for sample in calibration])

        def get_next(self):
            return next(self.rows, None)

    prepared, made = work / "prepared.onnx", work / "ort.onnx"
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    found = {}
    for method in METHODS:
        try:
            quantize_static(str(prepared), str(made), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                            activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                            calibrate_method=getattr(CalibrationMethod, method))
            found[method] = worst_sqnr(reference, run_onnx(made, measured, optimizes=True))
        except Exception as error:  # the other methods are still worth something
            found[method] = -np.inf
            print(f"{path.stem}: ONNX Runtime, {method}: {error}"[:200], file=sys.stderr)
    return found


def by_reef(reef, path, data, options, measured, reference, work):
    made = work / "int8.tflite"
    done = subprocess.run([str(reef), "quantize", str(path), "--data", str(data), "--preprocess", "none", "--json", *options,
                           "-o", str(made)], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"reef quantize {path}: {done.stderr.strip()[-200:]}")
    said = json.loads(done.stdout)
    outputs = run_litert(made, measured)
    return worst_sqnr(split_like(reference, [o.shape for o in outputs[0]]), outputs), said


def measure(reef, path, calibration, measured, work):
    reference = run_onnx(path, measured)
    called = subprocess.run([str(reef), "convert", str(path), "-o", str(work / "float.tflite")], capture_output=True, text=True)
    if called.returncode != 0:
        raise RuntimeError(called.stderr.strip()[-200:])
    shape = input_shape(work / "float.tflite")
    data = work / "samples.npz"
    np.savez(data, calib=np.stack([arranged(sample, shape) for sample in calibration]))
    row = {"minmax": by_reef(reef, path, data, ["--calibration", "minmax", "--held-back", "0"], measured, reference, work)[0]}
    row["default"], said = by_reef(reef, path, data, [], measured, reference, work)
    row["kept"] = [step["what"] for step in said["steps"] if step["kept"]]
    row["float"] = len(said["float_operators"])
    row["ort"] = by_onnxruntime(path, calibration, measured, reference, work)
    return row


def line(name, row):
    best = max(row["ort"], key=row["ort"].get)
    return f"| {name} | {row['minmax']:.1f} | {row['default']:.1f} ({row['float']}) | {row['ort'][best]:.1f} ({best}) |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--trained", default=",".join(TRAINED))
    parser.add_argument("--small", default="", help="networks of bench/trained_transformers.py, or 'all'")
    parser.add_argument("--timm", default="")
    parser.add_argument("--pictures", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="where exported models stay and are found again")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures; what is in it already is not measured again")
    arguments = parser.parse_args()
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        kept = arguments.work or work
        kept.mkdir(parents=True, exist_ok=True)
        small = list(trained_transformers.NETWORKS) if arguments.small == "all" else arguments.small.split(",")
        for name in [n for n in arguments.trained.split(",") + small + arguments.timm.split(",") if n]:
            if name in rows:
                continue
            try:
                subject = of_zoo(arguments.zoo, name) if name in TRAINED else of_small(name, kept) if name in small else \
                    of_timm(name, arguments.pictures, kept)
                rows[name] = measure(arguments.reef, *subject, work)
            except Exception as error:  # the other networks are still worth measuring
                print(f"{name}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
                continue
            print(line(name, rows[name]), file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
    print("| network | min-max | default | ONNX Runtime |\n| --- | ---: | ---: | ---: |")
    for name, row in rows.items():
        print(line(name, row))


if __name__ == "__main__":
    main()
