# SPDX-License-Identifier: Apache-2.0
"""As pycoral.adapters.detect: objects that a detector with TFLite_Detection_PostProcess found."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Tuple

import numpy as np

from reef.coral.adapters import common
from reef.interpreter import Interpreter


class BBox(NamedTuple):
    """A rectangle: left, top, right and bottom edge."""
    xmin: Any
    ymin: Any
    xmax: Any
    ymax: Any

    @property
    def width(self):
        return self.xmax - self.xmin

    @property
    def height(self):
        return self.ymax - self.ymin

    @property
    def area(self):
        return self.width * self.height

    @property
    def valid(self) -> bool:
        return self.width >= 0 and self.height >= 0

    def scale(self, sx: float, sy: float) -> "BBox":
        return BBox(sx * self.xmin, sy * self.ymin, sx * self.xmax, sy * self.ymax)

    def translate(self, dx: float, dy: float) -> "BBox":
        return BBox(dx + self.xmin, dy + self.ymin, dx + self.xmax, dy + self.ymax)

    def map(self, f: Callable[[Any], Any]) -> "BBox":
        return BBox(*(f(edge) for edge in self))

    @staticmethod
    def intersect(a: "BBox", b: "BBox") -> "BBox":
        """What both cover; not valid where they do not meet."""
        return BBox(max(a.xmin, b.xmin), max(a.ymin, b.ymin), min(a.xmax, b.xmax), min(a.ymax, b.ymax))

    @staticmethod
    def union(a: "BBox", b: "BBox") -> "BBox":
        """The smallest that covers both."""
        return BBox(min(a.xmin, b.xmin), min(a.ymin, b.ymin), max(a.xmax, b.xmax), max(a.ymax, b.ymax))

    @staticmethod
    def iou(a: "BBox", b: "BBox") -> float:
        """Intersection over union."""
        both = BBox.intersect(a, b)
        if not both.valid:
            return 0.0
        return both.area / (a.area + b.area - both.area)


class Object(NamedTuple):
    """What was found: class, score, where."""
    id: int
    score: float
    bbox: BBox


def _outputs(interpreter: Interpreter) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes, classes and scores. PyCoral reads the count too, and makes no use of it."""
    signatures = interpreter._get_full_signature_list()
    if signatures:
        if len(signatures) > 1:
            raise ValueError("Only support model with one signature.")
        named = next(iter(signatures.values()))["outputs"]
        return tuple(interpreter.tensor(named[f"output_{i}"])() for i in (3, 2, 1))
    order = (0, 1, 2) if common.output_tensor(interpreter, 3).size == 1 else (1, 3, 0)
    return tuple(common.output_tensor(interpreter, i) for i in order)


def get_objects(interpreter: Interpreter, score_threshold: float = -float("inf"),
                image_scale: Tuple[float, float] = (1.0, 1.0)) -> List[Object]:
    """Objects with at least this score, boxes in pixels of the picture that set_resized_input() shrank by image_scale.

    A model with a signature names its outputs: output_0 is the count, output_1 scores, output_2 classes, output_3 boxes.
    Otherwise they are boxes, classes, scores, count; or, as newer TensorFlow orders them, scores, boxes, count, classes.
    """
    boxes, classes, scores = (tensor[0] for tensor in _outputs(interpreter))
    width, height = common.input_size(interpreter)
    sx, sy = width / image_scale[0], height / image_scale[1]

    def make(i: int) -> Object:
        ymin, xmin, ymax, xmax = (float(edge) for edge in boxes[i])
        return Object(int(classes[i]), float(scores[i]), BBox(xmin, ymin, xmax, ymax).scale(sx, sy).map(int))

    return [make(i) for i in range(len(scores)) if scores[i] >= score_threshold]
