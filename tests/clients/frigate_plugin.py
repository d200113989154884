# SPDX-License-Identifier: Apache-2.0
"""Frigate's own detector plugin for Edge TPUs, unchanged, out of a checkout of blakeblackshear/frigate.

Only its configuration classes, which would load the rest of Frigate, are replaced by two lines each. The plugin needs NumPy, OpenCV and pydantic.

Usage: frigate_plugin.py CHECKOUT MODEL_edgetpu.tflite PICTURE ssd|yolo-generic [DEVICE]
Prints rows of class, score, top, left, bottom, right as JSON.
"""

import enum
import json
import pathlib
import sys
import types

import cv2
import numpy as np
import pydantic


def package(name, path):
    """A package whose own __init__.py does not run."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)]
    sys.modules[name] = module


class ModelTypeEnum(str, enum.Enum):
    ssd = "ssd"
    yologeneric = "yolo-generic"


class BaseDetectorConfig(pydantic.BaseModel):
    type: str
    model: object = None


def main():
    checkout, path, picture, kind, device = pathlib.Path(sys.argv[1]), *sys.argv[2:5], sys.argv[5:]
    package("frigate", checkout / "frigate")
    package("frigate.detectors", checkout / "frigate/detectors")
    package("frigate.detectors.plugins", checkout / "frigate/detectors/plugins")
    config = types.ModuleType("frigate.detectors.detector_config")
    config.BaseDetectorConfig, config.ModelTypeEnum = BaseDetectorConfig, ModelTypeEnum
    sys.modules[config.__name__] = config
    from frigate.detectors.plugins import edgetpu_tfl

    _, height, width, _ = edgetpu_tfl.Interpreter(model_path=path).get_input_details()[0]["shape"]
    model = types.SimpleNamespace(path=path, width=int(width), height=int(height), model_type=ModelTypeEnum(kind))
    chosen = {"device": device[0]} if device else {}
    detector = edgetpu_tfl.EdgeTpuTfl(edgetpu_tfl.EdgeTpuDetectorConfig(type="edgetpu", model=model, **chosen))
    frame = cv2.cvtColor(cv2.imread(picture), cv2.COLOR_BGR2RGB)
    rows = detector.detect_raw(cv2.resize(frame, (int(width), int(height)))[None])
    print(json.dumps([[float(value) for value in row] for row in rows if row[1] > 0]))


if __name__ == "__main__":
    main()
