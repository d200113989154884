# SPDX-License-Identifier: Apache-2.0
"""Whole models from your own pictures, trained for the Edge TPU: what `reef train` runs (docs/train.md).

    from reef.train import TrainRequest, train_classifier
    report = train_classifier(TrainRequest(data="photos", output="model"))

Needs PyTorch (`pip install torch onnx`). `reef learn` is the way without training and without PyTorch.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as _error:
    raise ImportError("reef.train needs PyTorch, which is not installed: pip install torch onnx") from _error

from ._classifier import train_classifier
from ._detector import train_detector
from ._ray import train_with_ray
from ._session import TrainRequest

__all__ = ["TrainRequest", "train_classifier", "train_detector", "train_with_ray"]
