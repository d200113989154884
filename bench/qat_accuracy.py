#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of quantization-aware training beside fp32 and post-training quantization, on the networks of the collection.

    bench/qat_accuracy.py ZOO [--models NAME,...] [--epochs N] [--train N] [--rate R] [--limit SECONDS]

The collection has few pictures: 200 to calibrate with and an evaluation set. The first `--train` pictures of the evaluation set and the
calibration pictures are trained with, the others are measured with. Nobody's labels are used in training: the float network in ONNX Runtime
is the teacher, and the quantized network learns to give its outputs. All three figures of a line are of the same pictures.

Post-training quantization is prepare_qat()'s starting point (minimum and maximum, nothing recovered), and, beside it, what `reef quantize`
makes with all its means, both in the chip's arithmetic. PYTHONPATH and REEF_LIBRARY say where Reef's Python package is. Peers from PyPI: torch,
onnx, onnxruntime.
"""
import argparse
import math
import pathlib
import sys
import tempfile
import time

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F

import reef
import reef.torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from quantized_accuracy import MODELS, figure  # noqa: E402

NETWORKS = ("cifar_resnet8", "cifar_mobilenetv2", "cifar_effnet_silu", "cifar_vit_tiny", "cifar_unet_denoise", "shapes_yolo")


def normalized(pixels):
    return (pixels.astype(np.float32) - 127.5) / 127.5


def channels_first(pixels):
    return np.ascontiguousarray(normalized(pixels).transpose(0, 3, 1, 2))


def float_outputs(path, samples):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return np.concatenate([session.run(None, {name: sample[None]})[0] for sample in samples])


def joined(outputs, like):
    """Outputs in the float model's layout; an output that was split is put together again along its last dimension."""
    value = outputs if torch.is_tensor(outputs) else torch.cat(list(outputs), -1)
    return value.permute(0, 3, 1, 2) if value.dim() == 4 and value.shape[1:] != like.shape[1:] else value


@torch.no_grad()
def outputs_of(model, samples, like):
    model.eval()
    return np.concatenate([joined(model(torch.from_numpy(part)), like).numpy() for part in np.array_split(samples, max(len(samples) // 32, 1))])


def distilled(student, teacher, metric):
    """How far the student's outputs are from the teacher's."""
    if metric == "top1":
        return F.kl_div(F.log_softmax(student, 1), F.softmax(teacher, 1), reduction="batchmean")
    return F.mse_loss(student, teacher) * 100


def score(metric, outputs, truths):
    rows = outputs.transpose(0, 2, 3, 1) if outputs.ndim == 4 else outputs
    return figure(metric, list(rows), truths)


def train(qat, samples, wanted, metric, arguments):
    weights = [p for n, p in qat.named_parameters() if p.requires_grad and "steps" not in n]
    steps = [p for n, p in qat.named_parameters() if p.requires_grad and "steps" in n]
    optimizer = torch.optim.Adam([{"params": weights, "lr": arguments.rate}, {"params": steps, "lr": arguments.rate}])
    total = arguments.epochs * (len(samples) // arguments.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(total, 1))
    generator, began = torch.Generator().manual_seed(0), time.monotonic()
    for epoch in range(arguments.epochs):
        qat.train()
        order, losses = torch.randperm(len(samples), generator=generator), []
        for chosen in order.split(arguments.batch)[:len(samples) // arguments.batch]:
            optimizer.zero_grad()
            loss = distilled(joined(qat(torch.from_numpy(samples[chosen.numpy()])), wanted), torch.from_numpy(wanted[chosen.numpy()]), metric)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(float(loss.detach()))
        print(f"  epoch {epoch + 1}: loss {np.mean(losses):.5f}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        if time.monotonic() - began > arguments.limit:
            return epoch + 1
    return arguments.epochs


def measure(name, zoo, arguments):
    file, inputs, answers, metric = MODELS[name]
    data, path = np.load(zoo / "data" / f"{file}.npz"), zoo / "onnx" / f"{name}.onnx"
    count = min(arguments.train, len(data[inputs]) // 2)
    calibration = channels_first(data["calib"])
    learned = np.concatenate([calibration, channels_first(data[inputs][:count])])
    tested, truths = channels_first(data[inputs][count:]), data[answers][count:]
    wanted = float_outputs(path, learned)
    fp32 = score(metric, float_outputs(path, tested), truths)
    example = torch.zeros(1, *learned.shape[1:])
    qat = reef.torch.prepare_qat(path, example, calibration)
    plain = score(metric, outputs_of(qat, tested, wanted), truths)
    with tempfile.TemporaryDirectory() as folder:
        best = pathlib.Path(folder) / "best.tflite"
        reef.quantize(path, best, np.ascontiguousarray(calibration.transpose(0, 2, 3, 1)))
        recovered = reef.torch.from_quantized(best)
        recovered.layout = qat.layout
        post = score(metric, outputs_of(recovered, tested, wanted), truths)
        epochs = train(qat, learned, wanted, metric, arguments)
        after = score(metric, outputs_of(qat, tested, wanted), truths)
        reef.torch.convert(qat, pathlib.Path(folder) / "trained.tflite", verify=4)  # raises if a code differs from the virtual chip's
    return metric, len(tested), len(learned), epochs, fp32, plain, post, after


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds after which the epoch at work is the last")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| network | metric | pictures | trained with | epochs | fp32 | plain min-max | `reef quantize` | after QAT |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for name in arguments.models.split(","):
        metric, tested, learned, epochs, *figures = measure(name, arguments.zoo, arguments)
        unit = 1 if metric == "psnr" else 100
        cells = " | ".join(f"{value * unit:.2f}" for value, _ in figures)
        print(f"| {name} | {metric} | {tested} | {learned} | {epochs} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
