#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a step of training takes: in the chip's arithmetic, in float arithmetic, and as a recorded CUDA graph.

    bench/qat_speed.py ZOO [--models NAME,...] [--device cuda] [--batch 256] [--steps 12] [--out FILE.json]

Random pictures, the mean of --steps steps after one epoch of as many, wall clock. Beside each time stands the loss after the same steps, so
that a way that computes something else is seen: ways of one arithmetic differ by rounding alone.
"""
import argparse
import json
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from qat_accuracy import normalized  # noqa: E402
from quantized_accuracy import MODELS  # noqa: E402

# Way: arithmetic, float32 sums, recorded.
WAYS = {"float, recorded": ("float", True, True), "float": ("float", True, False), "chip, recorded": ("chip", True, True),
        "chip, fast sums": ("chip", True, False), "chip": ("chip", False, False)}


def measure(name, arguments):
    import reef.torch
    from reef.torch._finetune import HeldScales
    from reef.torch._training import Plan, drained, steps
    data = np.load(arguments.zoo / "data" / f"{MODELS[name][0]}.npz")
    calibration = normalized(data["calib"])
    example, device = torch.zeros(1, *calibration.shape[1:]), torch.device(arguments.device)
    torch.manual_seed(0)
    row = {"network": name, "batch": arguments.batch}
    for way, (arithmetic, fast, is_recorded) in WAYS.items():
        qat = reef.torch.prepare_qat(arguments.zoo / "onnx" / f"{name}.onnx", example, calibration).to(device)
        qat.fast_sums, qat.arithmetic = fast, arithmetic
        generator = torch.Generator().manual_seed(0)
        chosen = torch.randint(0, len(calibration), (arguments.steps, arguments.batch), generator=generator)
        batches = [(calibration[part].to(device), torch.randint(0, 10, (arguments.batch,), generator=generator).to(device)) for part in chosen]
        ends = [time.monotonic()]
        held = HeldScales(qat) if arithmetic == "chip" else None
        plan = Plan(2, 1e-4, fast=fast, is_recorded=is_recorded, renewed=50 if held else 0)
        losses = drained(lambda losses: steps(losses, qat, device, batches, lambda x, y: F.cross_entropy(qat(x), y), plan,
                                              lambda *_: ends.append(time.monotonic()), held))
        row[way] = {"ms": 1000 * (ends[2] - ends[1]) / arguments.steps, "losses": losses}
        print(f"{name}, {way}: {row[way]['ms']:.1f} ms a step, losses {losses[0]:.6f} {losses[1]:.6f}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--models", default="cifar_resnet8,cifar_vit_tiny")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models.split(","):
        rows.append(measure(name, arguments))
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
