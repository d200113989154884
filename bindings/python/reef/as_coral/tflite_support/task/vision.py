# SPDX-License-Identifier: Apache-2.0
"""As tflite_support.task.vision: classifiers, detectors and segmenters of pictures.

Labels come from the archive in the model file, as the Task Library's do; a model without them gives empty names. Pictures
are stretched to the model's input, and float inputs get pixels by mean 127.5 and deviation 127.5 (the metadata's
normalization is not read).
"""

from __future__ import annotations

import dataclasses
import io
import zipfile
from typing import List

import numpy as np

from reef import Interpreter, load_image
from reef.coral.adapters import detect

from . import core, processor


class TensorImage:
    """A picture: rows of RGB pixels."""

    def __init__(self, buffer: np.ndarray):
        self.buffer = np.ascontiguousarray(buffer, np.uint8)
        self.height, self.width = self.buffer.shape[:2]

    @classmethod
    def create_from_file(cls, file_name: str) -> "TensorImage":
        return cls(load_image(file_name))

    @classmethod
    def create_from_array(cls, array: np.ndarray) -> "TensorImage":
        return cls(array)

    def resized(self, width: int, height: int) -> np.ndarray:
        """By the nearest of the triangle filter's samples: bilinear."""
        def places(size, target):
            at = np.clip((np.arange(target) + 0.5) * size / target - 0.5, 0, size - 1)
            low = np.floor(at).astype(int)
            return low, np.minimum(low + 1, size - 1), at - low
        y0, y1, dy = places(self.height, height)
        x0, x1, dx = places(self.width, width)
        pixels = self.buffer.astype(np.float32)
        rows = pixels[y0] * (1 - dy)[:, None, None] + pixels[y1] * dy[:, None, None]
        both = rows[:, x0] * (1 - dx)[None, :, None] + rows[:, x1] * dx[None, :, None]
        return np.floor(both + 0.5).astype(np.uint8)


def _labels(options: core.BaseOptions) -> List[str]:
    try:
        source = io.BytesIO(options.file_content) if options.file_content else options.file_name
        with zipfile.ZipFile(source) as archive:
            names = [name for name in archive.namelist() if name.endswith(".txt")]
            return archive.read(names[0]).decode().splitlines() if names else []
    except (zipfile.BadZipFile, OSError):
        return []


class _Task:
    """A model, ready to run."""

    def __init__(self, options):
        base = options.base_options
        threads = base.num_threads if base.num_threads and base.num_threads > 0 else 1
        if base.file_content:
            self.interpreter = Interpreter(model_content=base.file_content, num_threads=threads)
        else:
            self.interpreter = Interpreter(model_path=base.file_name, num_threads=threads)
        self.interpreter.allocate_tensors()
        self.options, self.labels = options, _labels(base)

    def run(self, image: TensorImage) -> List[np.ndarray]:
        """All outputs as real numbers."""
        details = self.interpreter.get_input_details()[0]
        _, height, width, _ = details["shape"]
        pixels = image.resized(int(width), int(height))
        if details["dtype"] == np.float32:
            pixels = (pixels.astype(np.float32) - 127.5) / 127.5
        elif details["dtype"] == np.int8:
            pixels = (pixels.astype(np.int16) - 128).astype(np.int8)
        self.interpreter.set_tensor(details["index"], pixels[None])
        self.interpreter.invoke()
        return [self.real(output) for output in self.interpreter.get_output_details()]

    def real(self, details) -> np.ndarray:
        values = self.interpreter.get_tensor(details["index"])
        scale, zero = details["quantization"]
        return (values.astype(np.float32) - zero) * scale if scale else values.astype(np.float32)

    def category(self, index: int, score: float) -> processor.Category:
        name = self.labels[index] if 0 <= index < len(self.labels) else ""
        return processor.Category(index=index, score=float(score), display_name="", category_name=name)

    @staticmethod
    def wanted(category: processor.Category, options) -> bool:
        if options.score_threshold is not None and category.score < options.score_threshold:
            return False
        if options.category_allowlist and category.category_name not in options.category_allowlist:
            return False
        return not options.category_denylist or category.category_name not in options.category_denylist

    @classmethod
    def create_from_file(cls, file_path: str):
        return cls.create_from_options(cls.Options(base_options=core.BaseOptions(file_name=file_path)))

    @classmethod
    def create_from_options(cls, options):
        return cls(options)


def _most(found: list, options) -> list:
    return found[:options.max_results] if options.max_results and options.max_results > 0 else found


@dataclasses.dataclass
class ImageClassifierOptions:
    base_options: core.BaseOptions
    classification_options: processor.ClassificationOptions = dataclasses.field(
        default_factory=processor.ClassificationOptions)


class ImageClassifier(_Task):
    Options = ImageClassifierOptions

    def classify(self, image: TensorImage, bounding_box=None) -> processor.ClassificationResult:
        if bounding_box is not None:
            box = bounding_box
            image = TensorImage(image.buffer[box.origin_y:box.origin_y + box.height, box.origin_x:box.origin_x + box.width])
        how = self.options.classification_options
        scores = self.run(image)[0].reshape(-1)
        ranked = [self.category(int(i), scores[i]) for i in np.argsort(-scores, kind="stable")]
        found = [category for category in ranked if self.wanted(category, how)]
        return processor.ClassificationResult([processor.Classifications(_most(found, how))])


@dataclasses.dataclass
class ObjectDetectorOptions:
    base_options: core.BaseOptions
    detection_options: processor.DetectionOptions = dataclasses.field(default_factory=processor.DetectionOptions)


class ObjectDetector(_Task):
    """A detector that ends in TFLite_Detection_PostProcess."""
    Options = ObjectDetectorOptions

    def detect(self, image: TensorImage) -> processor.DetectionResult:
        how = self.options.detection_options
        self.run(image)
        _, height, width, _ = self.interpreter.get_input_details()[0]["shape"]
        found = []
        # Both proportions are the picture's own: it was stretched.
        for thing in detect.get_objects(self.interpreter, image_scale=(width / image.width, height / image.height)):
            category = self.category(thing.id, thing.score)
            if not self.wanted(category, how):
                continue
            box = processor.BoundingBox(thing.bbox.xmin, thing.bbox.ymin, thing.bbox.width, thing.bbox.height)
            found.append(processor.Detection(box, [category]))
        return processor.DetectionResult(_most(found, how))


@dataclasses.dataclass
class ImageSegmenterOptions:
    base_options: core.BaseOptions
    segmentation_options: processor.SegmentationOptions = dataclasses.field(default_factory=processor.SegmentationOptions)


class ImageSegmenter(_Task):
    Options = ImageSegmenterOptions

    def segment(self, image: TensorImage) -> processor.SegmentationResult:
        output = self.run(image)[0][0]
        is_map = output.ndim == 2
        count = int(output.max()) + 1 if is_map else output.shape[2]
        labels = [processor.ColoredLabel(tuple((37 * i * k) % 256 for k in (1, 3, 7)),
                                         self.labels[i] if i < len(self.labels) else "", "") for i in range(count)]
        result = processor.Segmentation(output.shape[0], output.shape[1], labels)
        if self.options.segmentation_options.output_type == processor.OutputType.CONFIDENCE_MASK and not is_map:
            result.confidence_masks = [output[:, :, i] for i in range(count)]
        else:
            result.category_mask = (output if is_map else output.argmax(axis=2)).astype(np.uint8)
        return processor.SegmentationResult([result])
