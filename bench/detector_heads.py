#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is left of a detector's boxes after quantization, for each family of heads.

    models/make_head_families.py HEADS            # once, on a GPU; with --weights it only exports
    bench/detector_heads.py build/reef HEADS [--samples 64] [--options "--calibration minmax"]

Every detector is quantized with Reef's default options on drawn pictures, run in LiteRT on others, decoded, and compared
with the float model in ONNX Runtime: boxes above a score of 0.25 after non-maximum suppression, of the same class,
overlapping by half or more. `on chip`: operators that `reef compile` put on the chip. `right` counts boxes that are
where a shape was drawn.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))

SIDE, CLASSES, CALIBRATION, THRESHOLD = 128, 4, 96, 0.25


def overlap(a, b):
    low = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    high = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(a[2:]) + np.prod(b[2:]) - shared + 1e-9)


def joined(family, outputs):
    """Boxes [N, 4] in pixels and scores [N, classes] of one picture, from outputs that may have been split."""
    rows = []
    for output in outputs:
        output = np.asarray(output)[0]
        rows.append(output.T if family == "v8" and output.shape[0] < output.shape[1] else output)
    whole = np.concatenate(rows, 1)
    if family == "v10":
        return whole[:, :4], whole[:, 4:5] * (whole[:, 5:] == np.arange(CLASSES))
    if family == "ssd":
        return whole[:, :4] * SIDE, whole[:, 5:]  # without the background
    if family == "detr":
        return whole[:, :4] * SIDE, whole[:, 4:]
    if family == "v8":
        return whole[:, :4], whole[:, 4:]
    return whole[:, :4], whole[:, 4:5] * whole[:, 5:]


def detections(family, outputs):
    boxes, scores = joined(family, outputs)
    best, kinds, kept = scores.max(1), scores.argmax(1), []
    for i in np.argsort(-best, kind="stable"):
        if best[i] < THRESHOLD:
            break
        if all(overlap(boxes[i], boxes[j]) < 0.45 for j in kept):
            kept.append(i)
    return [(kinds[i], boxes[i]) for i in kept]


def matched(wanted, found):
    count, used = 0, set()
    for kind, box in wanted:
        for i, (other, candidate) in enumerate(found):
            if i not in used and kind == other and overlap(box, candidate) >= 0.5:
                used.add(i)
                count += 1
                break
    return count


def run_onnx(path, pictures):
    import onnxruntime
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return [session.run(None, {"input": p.transpose(2, 0, 1)[None]}) for p in pictures]


def run_litert(path, pictures):
    """Outputs in the order of the float model's: by the number of their signature's name."""
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    taken, given = interpreter.get_input_details()[0], interpreter.get_output_details()
    results = []
    for picture in pictures:
        scale, zero = taken["quantization"]
        value = picture[None]
        if taken["dtype"] != np.float32:
            value = np.clip(np.round(value / scale) + zero, -128, 127).astype(taken["dtype"])
        interpreter.set_tensor(taken["index"], value)
        interpreter.invoke()
        row = []
        for detail in given:
            result, (scale, zero) = interpreter.get_tensor(detail["index"]), detail["quantization"]
            row.append((result.astype(np.float32) - zero) * scale if scale else result)
        results.append(row)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("heads", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--options", default="", help="for reef quantize")
    arguments = parser.parse_args()
    import torch
    from make_head_families import FAMILIES, draw
    generator = torch.Generator()
    generator.manual_seed(99)
    pictures, boxes, kinds = draw(CALIBRATION + arguments.samples, generator, "cpu")
    pictures = pictures.permute(0, 2, 3, 1).numpy()
    held_out = pictures[CALIBRATION:]
    truth = [[(int(k), b.numpy()) for k, b in zip(ks, bs) if k >= 0]
             for ks, bs in zip(kinds[CALIBRATION:], boxes[CALIBRATION:])]
    print("| family | outputs | boxes of the float model | kept | right: float | right: int8 | on chip |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        np.savez(folder / "calib.npz", calib=pictures[:CALIBRATION])
        for family in FAMILIES:
            source, made = arguments.heads / f"{family}.onnx", folder / f"{family}_int8.tflite"
            if not source.exists():
                continue
            done = subprocess.run([arguments.reef, "quantize", source, "--data", folder / "calib.npz", "--preprocess",
                                   "none", *arguments.options.split(), "-o", made], capture_output=True, text=True)
            if done.returncode not in (0, 3):
                print(f"| {family} | {done.stderr.strip().splitlines()[-1]} | | | | | |")
                continue
            compiled = subprocess.run([arguments.reef, "compile", made, "-o", folder, "--json"], capture_output=True,
                                      text=True)
            file = json.loads(compiled.stdout)["files"][0]
            before = [detections(family, row) for row in run_onnx(source, held_out)]
            outputs = run_litert(made, held_out)
            after = [detections(family, row) for row in outputs]
            kept = sum(matched(a, b) for a, b in zip(before, after))
            right = [sum(matched(t, d) for t, d in zip(truth, each)) for each in (before, after)]
            print(f"| {family} | {len(outputs[0])} | {sum(map(len, before))} | {kept} | {right[0]} | {right[1]} of "
                  f"{sum(map(len, truth))} | {file['operations_on_chip']} of {file['operations']} |", flush=True)


if __name__ == "__main__":
    main()
