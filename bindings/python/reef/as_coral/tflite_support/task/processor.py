# SPDX-License-Identifier: Apache-2.0
"""As tflite_support.task.processor: options of tasks, and their results."""

from __future__ import annotations

import dataclasses
import enum
from typing import List, Optional

import numpy as np


@dataclasses.dataclass
class ClassificationOptions:
    score_threshold: Optional[float] = None
    category_allowlist: Optional[List[str]] = None
    category_denylist: Optional[List[str]] = None
    display_names_locale: Optional[str] = None
    max_results: Optional[int] = -1


@dataclasses.dataclass
class DetectionOptions(ClassificationOptions):
    pass


class OutputType(enum.Enum):
    UNSPECIFIED = 0
    CATEGORY_MASK = 1
    CONFIDENCE_MASK = 2


@dataclasses.dataclass
class SegmentationOptions:
    output_type: OutputType = OutputType.CATEGORY_MASK
    display_names_locale: Optional[str] = None


@dataclasses.dataclass
class BoundingBox:
    origin_x: int
    origin_y: int
    width: int
    height: int


@dataclasses.dataclass
class Category:
    index: int
    score: float
    display_name: str
    category_name: str


@dataclasses.dataclass
class Classifications:
    categories: List[Category]
    head_index: int = 0
    head_name: str = ""


@dataclasses.dataclass
class ClassificationResult:
    classifications: List[Classifications]


@dataclasses.dataclass
class Detection:
    bounding_box: BoundingBox
    categories: List[Category]


@dataclasses.dataclass
class DetectionResult:
    detections: List[Detection]


@dataclasses.dataclass
class ColoredLabel:
    color: tuple
    category_name: str
    display_name: str


@dataclasses.dataclass
class Segmentation:
    height: int
    width: int
    colored_labels: List[ColoredLabel]
    category_mask: Optional[np.ndarray] = None
    confidence_masks: Optional[List[np.ndarray]] = None


@dataclasses.dataclass
class SegmentationResult:
    segmentations: List[Segmentation]
