#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether what `reef quantize` chooses by itself ever ends below plain min-max ranges, over models and random samples.

    bench/random_splits.py build/reef ZOO [--wheels DIR --pictures DIR] [--models PART,...] [--sizes 16,48,128] [--splits 2]
                           [--held-out 256] [--json FILE]

Networks of ZOO/onnx, and with --wheels pretrained files as bench/pretrained.py takes them. For each number of samples in --sizes,
as often as --splits says: so many samples are drawn at random to calibrate with and others to measure with; both
`reef quantize --calibration minmax --held-back 0` and `reef quantize` run, and their outputs in LiteRT are compared with ONNX
Runtime's (LiteRT's, for a .tflite). In the table: dB of each output (power around the mean over power of the error), by how much
automatic is above min-max, and the standard error of that, sample by sample; likewise the share of classes (or what else the task is)
that stay. At the end: how many are below by more than one standard error.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from breadth import in_layout_of, split_like
from pretrained import arranged, files_of, fixed_onnx, run_litert, run_onnx
from pretrained_models import MODELS
from pretrained_pictures import Pictures
from quantized_accuracy import MODELS as EVALUATED, normalized
from ways import matched

EMBEDDINGS = ("cifar_embedding", "cifar_embedding_l2")
TRAINED = EVALUATED | dict.fromkeys(EMBEDDINGS, ("cifar10_eval", "images"))
NO_CLASSES = {"cifar_unet_denoise", "shapes_yolo", *EMBEDDINGS}
NOTICED_DB = 0.02


def same_class(a, b):
    return float(a[0].argmax() == b[0].argmax()), 1


def of_zoo(zoo, name):
    """(path, samples, task)"""
    data, key, *_ = TRAINED[name]
    arrays = np.load(zoo / "data" / f"{data}.npz")
    values = np.concatenate([arrays["calib"], arrays[key]])
    values = normalized(values).transpose(0, 3, 1, 2) if values.dtype == np.uint8 else values.astype(np.int64)
    return zoo / "onnx" / f"{name}.onnx", [[v] for v in values], None if name in NO_CLASSES else same_class


def of_wheel(name, path, count, arguments, work):
    shapes, make, task, _ = next(MODELS[part] for part in MODELS if part in name)
    pictures = Pictures(arguments.pictures, arguments.wheels)
    if path.suffix == ".onnx":
        path = fixed_onnx(path, shapes, work / "fixed.onnx")
    return path, [make(np.random.default_rng(i), pictures, i) for i in range(count)], task


def errors_of(reference, outputs):
    """Power of the error, [output][sample], and dB of each output."""
    outputs = [matched(r, o) if len(r) == len(o) else o for r, o in zip(reference, outputs)]
    split = split_like(reference, [o.shape for o in outputs[0]])
    powers, db = [], []
    for o in range(len(outputs[0])):
        a = [row[o].astype(np.float64) for row in split]
        powers.append(np.array([np.sum((x - in_layout_of(x, row[o])) ** 2) for x, row in zip(a, outputs)]))
        whole = np.stack(a)
        signal = np.sum((whole - whole.mean()) ** 2)
        db.append(float(10 * np.log10(max(signal, 1e-30) / max(powers[-1].sum(), 1e-30))))
    return powers, db, outputs


def gain(before, after):
    """dB by which the second error is smaller, and the standard error of that from how much each sample moves it."""
    if before.sum() <= 0 or after.sum() <= 0:
        return 0.0, 0.0
    moved = before / before.sum() - after / after.sum()
    return float(10 * np.log10(before.sum() / after.sum())), float(10 / np.log(10) * np.sqrt(np.sum(moved**2)))


def share_of(task, reference, outputs):
    """[sample]: (how many stay, of how many)"""
    pairs = [task(r, o) for r, o in zip(reference, outputs)]
    return np.array([(share * asked, asked) for share, asked in pairs])


def share_gain(before, after):
    shares = [x[:, 0].sum() / max(x[:, 1].sum(), 1e-9) for x in (before, after)]
    moved = [(x[:, 0] - share * x[:, 1]) / max(x[:, 1].sum(), 1e-9) for x, share in zip((before, after), shares)]
    return float(shares[1] - shares[0]), float(np.sqrt(np.sum((moved[1] - moved[0]) ** 2)))


def quantized(reef, model, data, options, made):
    done = subprocess.run([str(reef), "quantize", str(model), "--data", str(data), "--preprocess", "none", *options, "-o", str(made)],
                          capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"reef quantize {model}: {done.stderr.strip()[-300:]}")
    return made


def measure(reef, path, samples, task, calibrate_with, held_out, work):
    """One split: dB by min-max and by default, gains with their standard errors."""
    from ai_edge_litert.interpreter import Interpreter

    model = path
    if path.suffix == ".onnx":
        model = work / "float.tflite"
        subprocess.run([str(reef), "convert", str(path), "-o", str(model)], check=True, capture_output=True)
    shapes = [detail["shape"] for detail in Interpreter(model_path=str(model)).get_input_details()]
    chosen, others = [samples[i] for i in calibrate_with], [samples[i] for i in held_out]
    data = work / "calib.npz"
    np.savez(data, **{f"input_{i}": np.concatenate([arranged(s[i], shape) for s in chosen]) for i, shape in enumerate(shapes)})
    reference = run_onnx(path, others) if path.suffix == ".onnx" else run_litert(path, others)
    rows = {}
    for name, options in (("minmax", ["--calibration", "minmax", "--held-back", "0"]), ("auto", [])):
        outputs = run_litert(quantized(reef, model, data, options, work / f"{name}.tflite"), others)
        rows[name] = errors_of(reference, outputs)
    row = {"minmax_db": rows["minmax"][1], "auto_db": rows["auto"][1],
           "gains": [gain(a, b) for a, b in zip(rows["minmax"][0], rows["auto"][0])]}
    if task is not None:
        row["share_gain"] = share_gain(*(share_of(task, reference, rows[name][2]) for name in ("minmax", "auto")))
    return row


def is_below(figure, least):
    return figure[0] < -max(figure[1], least)


def line(row):
    gains = ", ".join(f"{g:+.1f} ± {e:.1f}" for g, e in row["gains"])
    share = "-" if "share_gain" not in row else "{:+.1f} ± {:.1f}".format(*(100 * v for v in row["share_gain"]))
    db = [", ".join(f"{v:.1f}" for v in row[key]) for key in ("minmax_db", "auto_db")]
    return f"| {row['name']} | {row['samples']} | {db[0]} | {db[1]} | {gains} | {share} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--wheels", type=pathlib.Path)
    parser.add_argument("--pictures")
    parser.add_argument("--models", default="", help="parts of names, separated by commas")
    parser.add_argument("--sizes", default="16,48,128", help="how many samples to calibrate with")
    parser.add_argument("--splits", type=int, default=2, help="draws of samples for each model and size")
    parser.add_argument("--held-out", type=int, default=256, help="samples to measure with")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures; what is in it already is not measured again")
    arguments = parser.parse_args()
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    known = {(row["name"], row["samples"], row["split"]) for row in rows}
    sizes = [int(size) for size in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        subjects = dict.fromkeys(TRAINED)
        if arguments.wheels:
            subjects |= {n: p for n, p in files_of(arguments.wheels, work).items() if any(part in n for part in MODELS)}
        for name, path in subjects.items():
            if not any(part in name for part in arguments.models.split(",")):
                continue
            subject = of_wheel(name, path, max(sizes) + arguments.held_out, arguments, work) if path else of_zoo(arguments.zoo, name)
            for size, split in ((size, split) for size in sizes for split in range(arguments.splits)):
                if (name, size, split) in known:
                    continue
                order = np.random.default_rng([size, split, sum(map(ord, name))]).permutation(len(subject[1]))
                try:
                    row = measure(arguments.reef, *subject, order[:size], order[size : size + arguments.held_out], work)
                except Exception as error:  # the other models are still worth measuring
                    print(f"{name}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
                    break
                rows.append({"name": name, "samples": size, "split": split} | row)
                print(line(rows[-1]), file=sys.stderr, flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(rows, indent=1))
    print("| model | samples | min-max dB | automatic dB | gain | share kept, points |\n| --- | ---: | --- | --- | --- | --- |")
    for row in rows:
        print(line(row))
    for size in sizes:
        of_size = [row for row in rows if row["samples"] == size]
        below = sum(any(is_below(g, NOTICED_DB) for g in row["gains"]) for row in of_size)
        fewer = sum(is_below(row["share_gain"], 0) for row in of_size if "share_gain" in row)
        print(f"{size} samples: {below} of {len(of_size)} below min-max in dB by more than a standard error, {fewer} in what the task reads")


if __name__ == "__main__":
    main()
