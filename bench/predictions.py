#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `reef check` predicts beside simulated time, for many networks that nobody tuned the prediction with.

    bench/predictions.py build/reef --models PATTERN,... [--most COUNT] [--work DIR] [--json FILE]

--models: patterns of names in bench/breadth_models.py, such as 'random_?,random_transformer_1?,small_*'; their weights are random. Each is
exported by PyTorch's older exporter, quantized with min-max ranges on 6 drawn samples and compiled with all rewrites. Milliseconds over USB 3:

  predicted  by `reef check --all-rewrites`, from the code of the parts
  simulated  of the compiled file on the virtual device, if all of it is on the chip
  chosen     predicted for what `reef check` would make by itself, and how many operators are then on the chip
  without    predicted without any rewrite

Figures that --json FILE has already are not measured again. Packages as bench/breadth.py needs them.
"""
import argparse
import fnmatch
import json
import pathlib
import sys
import tempfile

import numpy as np

from breadth import arranged, input_shape
from breadth_models import ARCHITECTURES, export, read_samples, shape_of
from transformer_latency import called, simulated_ms, write_zeros
from trial import in_child

SAMPLES = 6


def predicted(reef, model, *options):
    check = json.loads(called(reef, "check", model, "--json", *options)[1])
    return check["predicted_ms"], check["operators_on_edgetpu"]


def measure(reef, name, size, work):
    source, model = work / f"{name}.onnx", work / f"{name}_int8.tflite"
    samples = read_samples(None, shape_of(size), SAMPLES)
    if not source.exists():
        export(name, size, samples, source, False)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        called(reef, "convert", source, "-o", folder / "float.tflite")
        shape = input_shape(folder / "float.tflite")
        np.savez(folder / "samples.npz", calib=np.stack([arranged(sample, shape) for sample in samples]))
        called(reef, "quantize", source, "--data", folder / "samples.npz", "--preprocess", "none", "--calibration", "minmax",
               "--held-back", "0", "-o", model)
        row = {"predicted": predicted(reef, model, "--all-rewrites")[0], "chosen": predicted(reef, model),
               "without": predicted(reef, model, "--no-rewrites")[0]}
        made = json.loads(called(reef, "compile", model, "-o", folder, "--all-rewrites", "--json")[1])["files"][0]
        row["operators"] = made["operations"]
        if made["operations_on_chip"] == made["operations"]:
            write_zeros(folder / "zeros.bin", model)
            row["simulated"] = simulated_ms(reef, made["output"], "usb3", folder / "zeros.bin")
    return row


def line(name, row):
    simulated = f"{row['simulated']:.2f}" if "simulated" in row else "-"
    ms, on_chip = row["chosen"]
    return f"| {name} | {row['predicted']:.2f} | {simulated} | {ms:.2f} ({on_chip} of {row['operators']}) | {row['without']:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("--models", required=True)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "reef_predictions")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
    asked = [(name, size) for family in ARCHITECTURES.values() for name, size in family.items()
             if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models.split(","))]
    print("| network | predicted | simulated | chosen | without |\n| --- | ---: | ---: | ---: | ---: |")
    for name, size in asked[:arguments.most]:
        if name not in rows:
            row = in_child(measure, arguments.reef, name, size, arguments.work)
            if not isinstance(row, dict):
                print(f"{name}: {row}"[:200], file=sys.stderr)
                continue
            rows[name] = row
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
        print(line(name, rows[name]), flush=True)
    errors = [abs(row["predicted"] / row["simulated"] - 1) for row in rows.values() if "simulated" in row]
    if errors:
        print(f"\n{len(errors)} networks: {100 * np.mean(errors):.1f} % off on average, {100 * max(errors):.1f} % at worst")


if __name__ == "__main__":
    main()
