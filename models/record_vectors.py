# SPDX-License-Identifier: Apache-2.0
"""Records vectors.json: what TensorFlow Lite's reference kernels answer for Reef's own models.

Problem: Reef claims bit-for-bit agreement with those kernels; tests need recorded truth to hold it to.
Approach: both models run under ai-edge-litert with the BUILTIN_REF registrations on inputs a test can rebuild
by itself: a linear congruential generator, windows cut from the lossless shipped pictures (both described in the
file's "about"), and the shipped pictures whole. For a whole picture only the label is recorded, since tools resize
differently; it must be the same under four resize filters and be the one its file name states, or the script fails.

Float outputs are one machine's: another build of the kernels or of exp() may differ in the last bits.

Requires (pip names): ai-edge-litert, pillow, numpy. Recorded with ai-edge-litert 2.3.0.
Usage: python record_vectors.py [--check]    (--check compares with the existing file and writes nothing)
"""

import argparse
import hashlib
import importlib.metadata
import json
import pathlib
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["reef_creatures_int8.tflite", "reef_creatures_float.tflite"]
# 12345 is the customary seed. The others are those below 1200 whose int8 scores differ most from each other: the
# model is taught to be undecided about noise, and eight equal scores would hide an error.
LCG_SEEDS = [12345, 1059, 1153, 601]
LOSSLESS = {".png", ".bmp"}  # pictures every correct decoder reads alike
FILTERS = [Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BOX, Image.Resampling.BICUBIC]
ABOUT = (
    "Outputs of TensorFlow Lite's REFERENCE kernels (ai-edge-litert {version}, BUILTIN_REF). "
    "generated: the input is filled from the generator s=lcg_seed; s=(s*1664525+1013904223) mod 2^32 per element, "
    "stepped before each use: uint8 takes s>>24, float32 takes (s>>8)/2^24. op_output_sha256 lists every operator's "
    "result in the file's order. crops: the input is the model-sized window of the picture whose top left pixel is "
    "(x, y), not resized, RGB; the float model takes float32(pixel)/float32(255). Hex and sha256 are over a tensor's "
    "raw bytes, float32 little-endian. images: the label with the highest score after resizing the whole picture to "
    "the model's input (aspect ratio not kept), the same under nearest, bilinear, box and bicubic resizing."
)


def lcg_fill(seed, count, dtype):
    """`count` values of the generator that ABOUT describes; the state is 32 bits wide."""
    state, states = seed, np.empty(count, dtype=np.uint32)
    for i in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        states[i] = state
    if dtype == np.uint8:
        return (states >> 24).astype(np.uint8)
    return (states >> 8).astype(np.float32) / np.float32(1 << 24)  # exact: 24 bits fit a float


class ReferenceModel:
    def __init__(self, path):
        self.interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
                                       experimental_preserve_all_tensors=True)
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.output = self.interpreter.get_output_details()[0]

    def run(self, value):
        self.interpreter.set_tensor(self.input["index"], value.reshape(self.input["shape"]))
        self.interpreter.invoke()
        return self.interpreter.get_tensor(self.output["index"])[0]


    def op_results(self):
        """After run(): every operator's name and first output, in execution order."""
        for op in self.interpreter._get_ops_details():
            yield op["op_name"], self.interpreter.get_tensor(op["outputs"][0])


def raw_bytes(array):
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


def sha256(array):
    return hashlib.sha256(raw_bytes(array)).hexdigest()


def recorded_run(model, value):
    scores = model.run(value)
    return {"input_sha256": sha256(value), "output_sha256": sha256(scores), "output_hex": raw_bytes(scores).hex()}


def generated_vector(model, seed):
    value = lcg_fill(seed, int(np.prod(model.input["shape"])), model.input["dtype"])
    return {
        "lcg_seed": seed,
        **recorded_run(model, value),
        "op_output_sha256": [f"{name} {sha256(result)}" for name, result in model.op_results()],
    }


def network_input(model, pixels):
    return pixels if model.input["dtype"] == np.uint8 else pixels.astype(np.float32) / np.float32(255)


def crop_vectors(model, path):
    """Exact outputs for the top left and bottom right windows of a losslessly stored picture."""
    _, height, width, _ = model.input["shape"]
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    for x, y in ((0, 0), (pixels.shape[1] - int(width), pixels.shape[0] - int(height))):
        window = np.ascontiguousarray(pixels[y : y + height, x : x + width])
        yield {"image": path.name, "x": x, "y": y, **recorded_run(model, network_input(model, window))}


def picture_label(model, path, labels):
    """The model's label for a picture; it must not depend on the filter that resizes the picture."""
    _, height, width, _ = model.input["shape"]
    answers = set()
    with Image.open(path) as image:
        for resize_filter in FILTERS:
            pixels = np.asarray(image.convert("RGB").resize((int(width), int(height)), resize_filter))
            answers.add(labels[int(np.argmax(model.run(network_input(model, pixels))))])
    drawn = path.stem.rsplit("_", 1)[0]
    if answers != {drawn}:
        sys.exit(f"{path.name}: labelled {sorted(answers)} across resize filters, must be {drawn!r}; replace it")
    return drawn


def record():
    labels = (HERE / "reef_creatures_labels.txt").read_text().split()
    document = {"about": ABOUT.format(version=importlib.metadata.version("ai-edge-litert")), "models": {}}
    for name in MODELS:
        model, pictures = ReferenceModel(HERE / name), sorted((HERE / "images").iterdir())
        document["models"][name] = {
            "model_sha256": hashlib.sha256((HERE / name).read_bytes()).hexdigest(),
            "dtype": np.dtype(model.input["dtype"]).name,
            "generated": [generated_vector(model, seed) for seed in LCG_SEEDS],
            "crops": [v for path in pictures if path.suffix in LOSSLESS for v in crop_vectors(model, path)],
            "images": {path.name: picture_label(model, path, labels) for path in pictures},
        }
    return json.dumps(document, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Record or check the reference outputs of Reef's own models.")
    parser.add_argument("--check", action="store_true", help="compare with vectors.json, write nothing")
    check, target, text = parser.parse_args().check, HERE / "vectors.json", record()
    if not check:
        target.write_text(text)
    elif target.read_text() != text:
        sys.exit("vectors.json differs from what the reference kernels answer now")


if __name__ == "__main__":
    main()
