# SPDX-License-Identifier: Apache-2.0
"""The Task Library's interface for pictures, as TensorFlow's Raspberry Pi examples use it with a Coral, by Reef.

There: tflite_support.task.vision.ImageClassifier, ObjectDetector, ImageSegmenter, TensorImage; task.core.BaseOptions;
task.processor's options and results. Not there: audio, text, and tflite_support.metadata (reef inspect shows it).
"""

import reef as _reef

__version__ = _reef.__version__
