# SPDX-License-Identifier: Apache-2.0
"""A YOLO as recorders with an Edge TPU decode it (Frigate's "yolo-generic", for one): nothing of Reef in it.

The model has two outputs: for each of n cells 64 numbers, the distances to the four sides of a box as distributions over 16
values, and a score for each class, before the logistic function. Which is which is told from their shapes. Cells are chosen in the
quantized numbers, and only what is left is decoded.

Usage: camera_yolo.py MODEL_edgetpu.tflite PICTURE [DEVICE]       prints rows of class, score, top, left, bottom, right as JSON
"""

import json
import math
import sys

import numpy as np
from PIL import Image

try:
    from tflite_runtime.interpreter import Interpreter, load_delegate
except ImportError:
    from ai_edge_litert.interpreter import Interpreter, load_delegate

LEAST_SCORE, MOST_OVERLAP, BINS = 0.4, 0.4, 16


class Detector:
    def __init__(self, model, device):
        delegate = load_delegate("libedgetpu.so.1.0", {"device": device} if device else {})
        self.interpreter = Interpreter(model_path=model, experimental_delegates=[delegate])
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.height, self.width = (int(n) for n in self.input["shape"][1:3])
        outputs = self.interpreter.get_output_details()
        if len(outputs) not in (2, 3) or any(len(output["shape"]) != 3 for output in outputs):
            sys.exit(f"not the outputs of such a YOLO: {[list(output['shape']) for output in outputs]}")
        self.boxes = next(output for output in outputs if output["shape"][2] == 4 * BINS)
        self.scores = next(output for output in outputs if output["shape"][2] not in (1, 4 * BINS))
        self.centres, self.strides = self.cells()

    def cells(self):
        centres, strides = [], []
        for stride in (8, 16, 32):
            y, x = np.mgrid[0:self.height // stride, 0:self.width // stride]
            centres.append(np.stack([x.ravel() + 0.5, y.ravel() + 0.5], 1))
            strides.append(np.full((x.size, 1), stride))
        return np.concatenate(centres), np.concatenate(strides)

    def detect(self, pixels):
        frame = pixels ^ 128 if self.input["dtype"] == np.int8 else pixels
        self.interpreter.set_tensor(self.input["index"], frame.view(self.input["dtype"]))
        self.interpreter.invoke()
        numbers = self.interpreter.get_tensor(self.scores["index"])[0]
        scale, zero = self.scores["quantization"]
        least = int(math.log(LEAST_SCORE / (1 - LEAST_SCORE)) / scale + zero)
        kept = numbers.max(1) >= least
        logits = (numbers[kept].astype(np.float32) - zero) * scale
        scale, zero = self.boxes["quantization"]
        bins = (self.interpreter.get_tensor(self.boxes["index"])[0][kept].astype(np.float32) - zero) * scale
        weights = np.exp(bins.reshape(-1, 4, BINS) - bins.reshape(-1, 4, BINS).max(2, keepdims=True))
        distances = (weights / weights.sum(2, keepdims=True)) @ np.arange(BINS, dtype=np.float32)
        first = (self.centres[kept] - distances[:, :2]) * self.strides[kept]
        last = (self.centres[kept] + distances[:, 2:]) * self.strides[kept]
        rows = np.column_stack([logits.argmax(1), 1 / (1 + np.exp(-logits.max(1))), first[:, 1] / self.height,
                                first[:, 0] / self.width, last[:, 1] / self.height, last[:, 0] / self.width])
        return self.without_overlaps(rows[np.argsort(-rows[:, 1], kind="stable")]) if len(rows) else []

    @staticmethod
    def without_overlaps(rows):
        left = []
        for row in rows:
            def overlap(other):
                high = min(row[4], other[4]) - max(row[2], other[2])
                wide = min(row[5], other[5]) - max(row[3], other[3])
                both = max(high, 0) * max(wide, 0)
                areas = [(r[4] - r[2]) * (r[5] - r[3]) for r in (row, other)]
                return both / max(sum(areas) - both, 1e-9)
            if all(overlap(other) <= MOST_OVERLAP for other in left):
                left.append(row)
        return [[float(n) for n in row] for row in left[:20]]


def main():
    detector = Detector(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else "")
    picture = Image.open(sys.argv[2]).convert("RGB").resize((detector.width, detector.height), Image.BILINEAR)
    print(json.dumps(detector.detect(np.asarray(picture, np.uint8)[None])))


if __name__ == "__main__":
    main()
