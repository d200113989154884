#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the backbones that `reef train --checkpoint shipped` begins with (bindings/python/reef/train/weights).

    tools/train_backbones.py PICTURES.npz -o bindings/python/reef/train/weights --device cuda

PICTURES.npz holds "images" (uint8, [count, 32, 32, 3]) and "labels": CIFAR-10's training set. Of its ten classes three (--leave-out) are not
learned from, so that `reef train` can be measured on classes that the backbone has never seen. Pictures are enlarged to 48 to 80 pixels, as
different in every step, because a stem of stride 2 sees larger pictures in practice. Weights are written as float16, without the head.
"""
import argparse
import math
import pathlib
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

from reef.train._backbones import BACKBONES, Classifier

SIZES = (48, 64, 64, 80)
TESTED = 1000  # pictures, of those that are learned from otherwise, that the accuracy is told of


def varied(pixels, size, generator):
    """Mirrored, moved, enlarged, brighter or darker; [count, 3, size, size] in [-1, 1]."""
    x = (pixels.permute(0, 3, 1, 2).float() - 127.5) / 127.5
    x = torch.where((torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5).to(x.device), x.flip(-1), x)
    draw = torch.rand(len(x), 4, generator=generator).to(x.device)
    scale, moved = 0.75 + 0.35 * draw[:, 0], 0.3 * (draw[:, 1:3] - 0.5)
    zero = torch.zeros_like(scale)
    at = torch.stack([torch.stack([scale, zero, moved[:, 0]], 1), torch.stack([zero, scale, moved[:, 1]], 1)], 1)
    grid = F.affine_grid(at, [len(x), 3, size, size], align_corners=False)
    x = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
    return (x * (0.7 + 0.6 * draw[:, 3]).reshape(-1, 1, 1, 1)).clamp(-1, 1)


def trained(kind, width, images, labels, arguments):
    torch.manual_seed(0)
    generator, device = torch.Generator().manual_seed(0), arguments.device
    images, labels = torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)
    model = Classifier(kind, int(labels.max()) + 1, 64, width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), arguments.rate, weight_decay=0.02)
    steps, began = (len(images) - TESTED) // arguments.batch, time.monotonic()
    for epoch in range(arguments.epochs):
        model.train()
        order = torch.randperm(len(images) - TESTED, generator=generator).to(device)
        for step in range(steps):
            done = (epoch + step / steps) / arguments.epochs
            optimizer.param_groups[0]["lr"] = arguments.rate * min(done * 10, 0.5 * (1 + math.cos(math.pi * done)))
            chosen = order[step * arguments.batch:(step + 1) * arguments.batch]
            size = SIZES[int(torch.randint(0, len(SIZES), (), generator=generator))]
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(torch.device(device).type, torch.bfloat16, enabled=device != "cpu"):
                loss = F.cross_entropy(model(varied(images[chosen], size, generator)), labels[chosen], label_smoothing=0.1)
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4 or epoch + 1 == arguments.epochs:
            print(f"{kind}: epoch {epoch + 1}, loss {float(loss.detach()):.3f}, {accuracy(model, images, labels):.4f}, "
                  f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return model, accuracy(model, images, labels)


@torch.no_grad()
def accuracy(model, images, labels):
    model.eval()
    tested = F.interpolate((images[-TESTED:].permute(0, 3, 1, 2).float() - 127.5) / 127.5, size=(64, 64), mode="bilinear", align_corners=False)
    return float((model(tested).argmax(1) == labels[-TESTED:]).float().mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pictures", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--leave-out", default="3,5,7", help="classes, by number")
    parser.add_argument("--width", type=float, default=0.5)
    parser.add_argument("--backbones", default=",".join(BACKBONES))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    data, left = np.load(arguments.pictures), [int(n) for n in arguments.leave_out.split(",")]
    kept = np.flatnonzero(~np.isin(data["labels"], left))
    kept = np.random.default_rng(0).permutation(kept)[:arguments.most]
    numbers = np.searchsorted(np.unique(data["labels"][kept]), data["labels"][kept]).astype(np.int64)
    for kind in arguments.backbones.split(","):
        model, share = trained(kind, arguments.width, data["images"][kept], numbers, arguments)
        state = {name: value.half() if value.is_floating_point() else value for name, value in model.cpu().state_dict().items()
                 if name.startswith("backbone.")}
        torch.save({"model": state, "accuracy": share}, arguments.output / f"{kind}_{arguments.width}.pt")
        print(kind, share, flush=True)


if __name__ == "__main__":
    main()
