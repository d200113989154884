# SPDX-License-Identifier: Apache-2.0
"""What the examples share: arguments, models compiled on first use, frames and colours."""

import argparse
import pathlib
import tempfile

import numpy as np

import reef

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
COLOURS = np.array([[0, 0, 0], [255, 89, 94], [255, 202, 58], [138, 201, 38], [25, 130, 196], [190, 90, 220], [255, 146, 76],
                    [46, 196, 182], [255, 255, 255]], dtype=np.uint8)


def arguments(about, model, picture, out=None):
    """--model, --labels, --picture, --device and, where a picture is the result, --out."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", default=MODELS / model, type=pathlib.Path, help="a .tflite file; compiled first if needed")
    parser.add_argument("--labels", default=MODELS / "reef_creatures_labels.txt")
    parser.add_argument("--picture", default=MODELS / picture)
    parser.add_argument("--device", help="a virtual Edge TPU: :0, usb:1, pci, ...")
    if out:
        parser.add_argument("--out", default=out, help="where the picture goes")
    return parser.parse_args()


def for_edge_tpu(model):
    """The model's bytes, compiled for the Edge TPU unless they are already."""
    if model.stem.endswith("_edgetpu"):
        return model.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        return pathlib.Path(reef.compile(model, folder).files[0]).read_bytes()


def draw_frame(pixels, left, top, right, bottom, colour, width=2):
    height, length = pixels.shape[:2]
    left, right = np.clip([left, right], 0, length)
    top, bottom = np.clip([top, bottom], 0, height)
    for part in (pixels[top:top + width, left:right], pixels[max(bottom - width, 0):bottom, left:right],
                 pixels[top:bottom, left:left + width], pixels[top:bottom, max(right - width, 0):right]):
        part[:] = colour
