#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of quantized models: Reef's beside its peers', on the same samples in one run.

    bench/quantized_accuracy.py build/reef ZOO [--models NAME,...] [--limit N] [--out FILE.md]

For every ONNX model of the collection that has evaluation data:
  fp32      the model in ONNX Runtime
  Reef      `reef quantize`, the result in a real TFLite runtime (LiteRT) and by `reef eval`
  ORT       ONNX Runtime's own int8 versions, from the collection (min-max), and the figures recorded for its
            percentile calibration
  TFLite    the quantizer of TensorFlow's converter (min-max over the same samples), given the float .tflite that
            `reef convert` made; skipped, saying so, where TensorFlow is not installed or refuses the model

The goal column: at least the best peer less half the standard error of its figure. Peers come from PyPI by name:
onnxruntime, ai-edge-litert, tensorflow-cpu, numpy.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np


def normalized(pixels):
    return (pixels.astype(np.float32) - 127.5) / 127.5


# model: data file, array of inputs, array of truths, metric. Arrays hold pixels (NHWC) or token ids.
MODELS = {
    "fashion_cnn": ("fashion_eval", "images", "labels", "top1"),
    "cifar_resnet8": ("cifar10_eval", "images", "labels", "top1"),
    "cifar_mobilenetv2": ("cifar10_eval", "images", "labels", "top1"),
    "cifar_effnet_silu": ("cifar10_eval", "images", "labels", "top1"),
    "cifar_vit_tiny": ("cifar10_eval", "images", "labels", "top1"),
    "cifar_unet_denoise": ("denoise_eval", "noisy", "clean", "psnr"),
    "shapes_yolo": ("shapes_eval", "images", "boxes", "map50"),
    "text_bert_tiny": ("text_eval", "ids", "labels", "top1"),
    "fashion_lstm": ("fashion_eval", "images", "labels", "top1"),
    "fashion_gru": ("fashion_eval", "images", "labels", "top1"),
}
CLASSES = 4  # of the shapes


def overlap(a, b):
    """Intersection over union of boxes (cx, cy, w, h)."""
    low = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2)
    high = np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(a[2:]) + np.prod(b[2:]) - shared + 1e-12)


def detections(output, threshold=0.01, max_overlap=0.5):
    """Rows cx, cy, w, h, objectness, class probabilities -> (score, class, box), the best of those that overlap."""
    scores = output[:, 4:5] * output[:, 5:]
    kept = []
    for kind in range(scores.shape[1]):
        chosen = []
        for row in np.argsort(-scores[:, kind], kind="stable"):
            if scores[row, kind] < threshold:
                break
            if all(overlap(output[row, :4], box) < max_overlap for _, _, box in chosen):
                chosen.append((scores[row, kind], kind, output[row, :4]))
        kept += chosen
    return kept


def map50(outputs, truths, size=128):
    precisions = []
    for kind in range(CLASSES):
        wanted = {i: [box[:4] / size for box in boxes if box[4] == kind] for i, boxes in enumerate(truths)}
        found = sorted(((score, i, box) for i, output in enumerate(outputs) for score, k, box in detections(output)
                        if k == kind), key=lambda row: -row[0])
        used, hits = set(), []
        for _, i, box in found:
            best = max(range(len(wanted[i])), key=lambda j: overlap(box, wanted[i][j]), default=None)
            hit = best is not None and overlap(box, wanted[i][best]) >= 0.5 and (i, best) not in used
            if hit:
                used.add((i, best))
            hits.append(hit)
        total = sum(len(boxes) for boxes in wanted.values())
        hits = np.cumsum(hits)
        recall, precision = hits / max(total, 1), hits / np.arange(1, len(hits) + 1)
        precision = np.maximum.accumulate(precision[::-1])[::-1] if len(hits) else precision
        precisions.append(float(np.sum(np.diff(np.concatenate([[0], recall])) * precision)))
    return float(np.mean(precisions))


def figure(metric, outputs, truths):
    """(value, its standard error)"""
    if metric == "top1":
        share = float(np.mean([o.reshape(-1).argmax() == t for o, t in zip(outputs, truths)]))
        return share, math.sqrt(share * (1 - share) / len(outputs))
    if metric == "psnr":  # of the mean square error over all samples; range -1 to 1
        errors = np.array([np.mean((o.reshape(-1) - normalized(t).reshape(-1)) ** 2) / 4
                           for o, t in zip(outputs, truths)])
        mean = errors.mean()
        spread = errors.std() / math.sqrt(len(errors))
        return -10 * math.log10(mean), 10 / math.log(10) * spread / mean
    value = map50([o.reshape(-1, 5 + CLASSES) for o in outputs], truths)
    boxes = sum(int((t[:, 4] >= 0).sum()) for t in truths)
    return value, math.sqrt(value * (1 - value) / boxes)


def run_onnx(path, samples, is_image):
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    outputs = []
    for sample in samples:
        value = normalized(sample).transpose(2, 0, 1) if is_image else sample.astype(np.int64)
        outputs.append(session.run(None, {name: value[None]})[0][0])
    return outputs


def run_tflite(content, samples, is_image):
    """Outputs as real numbers, channels last."""
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_content=content, num_threads=2)
    interpreter.allocate_tensors()
    into, out = interpreter.get_input_details()[0], interpreter.get_output_details()
    results = []
    for sample in samples:
        value = (normalized(sample) if is_image else sample)[None].reshape(into["shape"])
        if into["dtype"] in (np.int8, np.uint8) and is_image:
            scale, zero = into["quantization"]
            limits = np.iinfo(into["dtype"])
            # Pixels scaled to [-1, 1] lie halfway between codes: up, so that 256 stay 256 (np.round would join pairs).
            value = np.clip(np.floor(value.astype(np.float64) / scale + 0.5 + 1e-4) + zero, limits.min, limits.max)
        interpreter.set_tensor(into["index"], value.astype(into["dtype"]))
        interpreter.invoke()
        parts = []
        for detail in out:
            value = interpreter.get_tensor(detail["index"])[0]
            if detail["dtype"] in (np.int8, np.uint8):
                scale, zero = detail["quantization"]
                value = (value.astype(np.float32) - zero) * scale
            parts.append(value)
        results.append(joined(parts))
    return results


def joined(parts):
    """One output, or the parts that a mixed one was split into, in order."""
    return parts[0] if len(parts) == 1 else np.concatenate([p.reshape(p.shape[0], -1) for p in parts], axis=-1)


def quantized_by_tensorflow(float_model, samples, is_image):
    import tensorflow as tf
    from tensorflow.lite.python.optimize import calibrator

    def feed():
        for sample in samples:
            yield [normalized(sample)[None] if is_image else sample[None]]

    shape = tf.lite.Interpreter(model_content=float_model).get_input_details()[0]

    def shaped():
        for values in feed():
            yield [v.reshape(shape["shape"]).astype(shape["dtype"]) for v in values]

    return calibrator.Calibrator(float_model).calibrate_and_quantize(
        shaped, tf.float32 if is_image else tf.int32, tf.float32, False)


def shown(value, metric):
    return "" if value is None else f"{value:.2f}" if metric == "psnr" else f"{100 * value:.2f}"


def recorded_peers(zoo, name):
    for file in sorted((zoo / "onnx").glob("metrics_*.json")):
        entry = json.loads(file.read_text()).get(name)
        if entry:
            return {key: value for part, values in entry.items() if part.startswith("peer_") for key, value in
                    values.items()}
    return {}


def measure(reef, zoo, name, limit, work, extra):
    data_file, array, truth_array, metric = MODELS[name]
    data_path = zoo / "data" / f"{data_file}.npz"
    data = np.load(data_path)
    samples, truths = data[array][:limit], data[truth_array][:limit]
    is_image = samples.ndim == 4
    row = {"model": name, "metric": metric, "samples": len(samples)}
    source = zoo / "onnx" / f"{name}.onnx"

    # Outputs of the ONNX models are channels first, those of .tflite files last; the truths are channels last.
    def last(outputs):
        return [o.transpose(1, 2, 0) for o in outputs] if metric == "psnr" else outputs

    row["fp32"], row["error"] = figure(metric, last(run_onnx(source, samples, is_image)), truths)
    peer = zoo / "onnx_int8_peer" / f"{name}_ort_minmax.onnx"
    row["ort minmax"], _ = figure(metric, last(run_onnx(peer, samples, is_image)), truths)
    row["ort percentile (recorded)"] = recorded_peers(zoo, name).get("percentile")

    floats, integers = work / f"{name}.tflite", work / f"{name}_int8.tflite"
    # Unrolled: TensorFlow's quantizer does not take an LSTM that is one operator from a file.
    subprocess.run([reef, "convert", source, "-o", floats, "--unroll"], check=True, stdout=subprocess.DEVNULL)
    command = [reef, "quantize", source, "--data", data_path, "-o", integers]
    if is_image:
        command += ["--preprocess", "mean=127.5,std=127.5"]
    subprocess.run(command + extra, check=True, stdout=subprocess.DEVNULL)
    row["reef (LiteRT)"], _ = figure(metric, run_tflite(integers.read_bytes(), samples, is_image), truths)
    try:
        by_tensorflow = quantized_by_tensorflow(floats.read_bytes(), data["calib"], is_image)
        row["tflite"], _ = figure(metric, run_tflite(by_tensorflow, samples, is_image), truths)
    except Exception as problem:  # a peer that cannot is a finding, not a failure of this program
        row["tflite"] = None
        print(f"{name}: TensorFlow's quantizer: {str(problem).splitlines()[0][:160]}", file=sys.stderr)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef")
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the models made")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--quantize", default="", help="more options for reef quantize")
    arguments = parser.parse_args()
    columns = ["fp32", "reef (LiteRT)", "ort minmax", "ort percentile (recorded)", "tflite"]
    lines = ["| model | metric | samples | " + " | ".join(columns) + " | best peer - half its error | met |",
             "| --- | --- | ---: |" + " ---: |" * (len(columns) + 1) + " --- |"]
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.keep or pathlib.Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        for name in arguments.models.split(","):
            row = measure(arguments.reef, arguments.zoo, name, arguments.limit, work, arguments.quantize.split())
            peers = [row[c] for c in columns[2:] if row[c] is not None]
            goal = max(peers) - row["error"] / 2
            met = "yes" if row["reef (LiteRT)"] >= goal else "NO"
            lines.append(f"| {name} | {row['metric']} | {row['samples']} | " +
                         " | ".join(shown(row[c], row["metric"]) for c in columns) +
                         f" | {shown(goal, row['metric'])} | {met} |")
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
