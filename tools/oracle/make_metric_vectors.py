#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/metrics.json: small random outputs and truths with the figures that plain NumPy code gives them, and a
picture with what Pillow makes of it. `reef eval`'s metrics and preprocessing are compared with these."""
import json
import math
import pathlib

import numpy as np
from PIL import Image

rng = np.random.default_rng(7)


def rounded(array, digits=5):
    return np.asarray(array, dtype=float).round(digits).reshape(-1).tolist()


def case(metric, outputs, truths, expected, **options):
    """`outputs`: for each sample a list of arrays."""
    return {"metric": metric, "expected": expected, "options": options,
            "output_shapes": [list(o.shape) for o in outputs[0]],
            "outputs": [[rounded(o) for o in sample] for sample in outputs],
            "truth_shape": list(np.asarray(truths[0]).shape), "truths": [rounded(t) for t in truths]}


def top_k():
    values = rng.integers(0, 6, (40, 12)) / 4  # few values: many are equal
    labels = rng.integers(0, 12, 40)
    order = np.argsort(-values, axis=1, kind="stable")
    for k in (1, 5):
        yield case(f"top{k}", [[v[None]] for v in values], labels,
                   float(np.mean([label in row[:k] for label, row in zip(labels, order)])))
    shifted = rng.integers(0, 11, 40)
    yield case("top1", [[v[None]] for v in values], shifted, float(np.mean(order[:, 0] == shifted + 1)), label_offset=1)


def psnr():
    truth = rng.integers(0, 256, (6, 4, 5, 3))
    made = np.clip(truth + rng.normal(0, 9, truth.shape), -20, 290)
    mean = np.mean((np.clip(made, 0, 255) - truth) ** 2)
    expected = 10 * math.log10(255 ** 2 / mean)
    real = (made - 127.5) / 127.5
    yield case("psnr", [[o[None]] for o in real], truth, expected, preprocess="tf", pixels=True)
    yield case("psnr", [[o.transpose(2, 0, 1)[None]] for o in real], truth, expected, preprocess="tf", pixels=True)
    floats = rng.uniform(0, 1, (3, 4, 4, 1))
    other = floats + rng.normal(0, 0.1, floats.shape)
    yield case("psnr", [[o[None]] for o in other], floats, -10 * math.log10(np.mean((floats - other).round(5) ** 2)))


def miou():
    logits = rng.normal(0, 1, (5, 6, 8, 4))
    masks = rng.integers(0, 4, (5, 6, 8))
    masks[masks == 3] = np.where(rng.random((masks == 3).sum()) < 0.5, 255, 1)
    logits[..., 0] += 2 * (masks == 0)
    shares = []
    guess = logits.round(5).argmax(-1)
    for label in range(4):
        counted = masks != 255
        both = ((guess == label) & (masks == label) & counted).sum()
        either = (((guess == label) | (masks == label)) & counted).sum()
        if either:
            shares.append(both / either)
    yield case("miou", [[o[None]] for o in logits], masks, float(np.mean(shares)))
    yield case("miou", [[o.transpose(2, 0, 1)[None]] for o in logits], masks, float(np.mean(shares)))
    yield case("miou", [[g[None].astype(float)] for g in guess], masks, float(np.mean(shares)))


def overlap(a, b):
    """Boxes as cx, cy, w, h."""
    wide = min(a[0] + a[2] / 2, b[0] + b[2] / 2) - max(a[0] - a[2] / 2, b[0] - b[2] / 2)
    high = min(a[1] + a[3] / 2, b[1] + b[3] / 2) - max(a[1] - a[3] / 2, b[1] - b[3] / 2)
    if wide <= 0 or high <= 0:
        return 0
    return wide * high / (a[2] * a[3] + b[2] * b[3] - wide * high)


def map50_of(found, truths, classes):
    """`found`: for each picture (score, class, box), after suppression; `truths`: (box, class)."""
    areas = []
    for label in range(classes):
        total = sum(k == label for truth in truths for _, k in truth)
        if not total:
            continue
        used, hits = set(), []
        rows = [(score, i, box) for i, rows in enumerate(found) for score, k, box in rows if k == label]
        for _, i, box in sorted(rows, key=lambda row: -row[0]):
            best = max(((overlap(box, b), j) for j, (b, k) in enumerate(truths[i]) if k == label and (i, j) not in used),
                       default=(0, None))
            hits.append(best[0] >= 0.5)
            if hits[-1]:
                used.add((i, best[1]))
        right = np.cumsum(hits)
        precision, recall = right / np.arange(1, len(right) + 1), right / total
        area, before = 0, 0
        for i in range(len(right)):
            area += (recall[i] - before) * precision[i:].max()
            before = recall[i]
        areas.append(area)
    return float(np.mean(areas))


def suppress(rows, limit=0.5):
    kept = []
    for row in sorted(rows, key=lambda row: -row[0]):
        if all(row[1] != k or overlap(row[2], b) <= limit for _, k, b in kept):
            kept.append(row)
    return kept


def map50():
    classes, things, boxes, pictures, size = 3, 4, 40, 8, 64
    truths, outputs = [], []
    for _ in range(pictures):
        centre = rng.uniform(0.25, 0.75, (things, 2))
        sides = rng.uniform(0.1, 0.4, (things, 2))
        labels = rng.integers(0, classes, things)
        present = rng.random(things) < 0.8
        truth = np.concatenate([centre * size, sides * size, labels[:, None]], 1).round()
        truth[~present] = -1
        truths.append(truth)
        out = np.zeros((boxes, 5 + classes))
        which = rng.integers(0, things, boxes)
        out[:, :2] = centre[which] + rng.normal(0, 0.03, (boxes, 2))
        out[:, 2:4] = sides[which] * rng.uniform(0.7, 1.4, (boxes, 2))
        out[:, 4] = rng.uniform(0, 1, boxes)
        out[:, 5:] = rng.uniform(0, 0.7, (boxes, classes))
        out[np.arange(boxes), 5 + np.where(rng.random(boxes) < 0.7, labels[which], 0)] += 0.3
        outputs.append(out.round(5))
    wanted = [[(row[:4] / size, int(row[4])) for row in truth if row[4] >= 0] for truth in truths]

    def found(score_of):
        return [suppress([(score_of(row).max(), int(score_of(row).argmax()), row[:4]) for row in out
                          if score_of(row).max() > 0.001]) for out in outputs]

    five = found(lambda row: row[4] * row[5:])
    yield case("map50", [[o[None]] for o in outputs], truths, map50_of(five, wanted, classes), size=size)
    eight = found(lambda row: row[5:])
    yield case("map50", [[np.delete(o, 4, 1).T[None]] for o in outputs], truths, map50_of(eight, wanted, classes), size=size)
    in_pixels = [np.concatenate([o[:, :4] * size, o[:, 5:]], 1) for o in outputs]
    yield case("map50", [[o.T[None]] for o in in_pixels], truths, map50_of(eight, wanted, classes), size=size)
    ssd = []
    for rows in five:
        rows = rows[:10]
        corners = [[b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2] for _, _, b in rows]
        pad = 10 - len(rows)
        ssd.append([np.array(corners + [[0, 0, 0, 0]] * pad)[None], np.array([k for _, k, _ in rows] + [0] * pad)[None],
                    np.array([s for s, _, _ in rows] + [0] * pad)[None], np.array([len(rows)])])
    yield case("map50", ssd, truths, map50_of([rows[:10] for rows in five], wanted, classes), size=size)
    corners = [np.where(t[:, 4:] < 0, -1, np.concatenate(
        [t[:, 4:], t[:, :2] - t[:, 2:4] / 2, t[:, :2] + t[:, 2:4] / 2], 1)) for t in truths]
    yield case("map50", [[o[None]] for o in outputs], corners, map50_of(five, wanted, classes), size=size)


def pictures():
    """A picture by a formula that the test repeats, fitted by Pillow."""
    width, height = 37, 23
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    pixels = ((x * 7 + y * 11 + c * 50 + (x * y) % 13 * 5) % 256).astype(np.uint8)
    image = Image.fromarray(pixels)

    def crop(side, share):
        short = round(side / share)
        scaled = image.resize((int(short * width / height), short), Image.BILINEAR)
        left, top = round((scaled.width - side) / 2), round((scaled.height - side) / 2)
        return scaled.crop((left, top, left + side, top + side))

    def letterbox(side):
        scaled = image.resize((side, round(height * side / width)), Image.BILINEAR)
        full = Image.new("RGB", (side, side), (114, 114, 114))
        full.paste(scaled, (0, (side - scaled.height) // 2))
        return full

    def entry(text, side, made):
        made = np.asarray(made)
        return {"preprocess": text, "side": side, "channels": made.shape[2] if made.ndim == 3 else 1,
                "pixels": made.reshape(-1).tolist()}

    return [entry("none", 8, image.resize((8, 8), Image.BILINEAR)), entry("crop=0.875", 8, crop(8, 0.875)),
            entry("crop", 16, crop(16, 1)), entry("letterbox", 12, letterbox(12)),
            entry("order=bgr", 8, np.asarray(image.resize((8, 8), Image.BILINEAR))[..., ::-1]),
            entry("none", 8, image.resize((8, 8), Image.BILINEAR).convert("L"))]


if __name__ == "__main__":
    made = {"about": "written by tools/oracle/make_metric_vectors.py",
            "metrics": [*top_k(), *psnr(), *miou(), *map50()], "pictures": pictures()}
    path = pathlib.Path(__file__).parents[2] / "tests/data/metrics.json"
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")
    for row in made["metrics"]:
        print(row["metric"], row["options"], row["output_shapes"], row["expected"])
