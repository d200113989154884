#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one of MediaPipe's models in MediaPipe's own runtime and in Reef, and compares all outputs.

  check_mediapipe.py REEF FOLDER MODEL [--pictures N]

FOLDER is an unpacked wheel of mediapipe (0.10.21 was used: pip download mediapipe --no-deps, unzip); MODEL a file in it,
such as mediapipe/modules/face_landmark/face_landmark_with_attention.tflite, whose operators Landmarks2TransformMatrix,
TransformLandmarks and TransformTensorBilinear no other runtime has. Needs numpy 1, protobuf 4, absl-py. Pictures are drawn.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
from unittest.mock import MagicMock

import numpy as np


def graph_text(model, outputs):
    lines = ['input_stream: "image"', *(f'output_stream: "f{i}"' for i in range(outputs))]
    lines.append('node { calculator: "TensorConverterCalculator" input_stream: "IMAGE:image" output_stream: "TENSORS:t" '
                 'options { [mediapipe.TensorConverterCalculatorOptions.ext] { zero_center: false } } }')
    lines.append('node { calculator: "TfLiteCustomOpResolverCalculator" output_side_packet: "OP_RESOLVER:r" }')
    lines.append('node { calculator: "InferenceCalculator" input_stream: "TENSORS:t" output_stream: "TENSORS:o" '
                 'input_side_packet: "OP_RESOLVER:r" options { [mediapipe.InferenceCalculatorOptions.ext] { '
                 f'model_path: "{model}" delegate {{ tflite {{}} }} }} }} }}')
    streams = " ".join(f'output_stream: "s{i}"' for i in range(outputs))
    ranges = " ".join(f"ranges {{ begin: {i} end: {i + 1} }}" for i in range(outputs))
    lines.append(f'node {{ calculator: "SplitTensorVectorCalculator" input_stream: "o" {streams} '
                 f'options {{ [mediapipe.SplitVectorCalculatorOptions.ext] {{ {ranges} }} }} }}')
    lines += [f'node {{ calculator: "TensorsToFloatsCalculator" input_stream: "TENSORS:s{i}" output_stream: "FLOATS:f{i}" }}'
              for i in range(outputs)]
    return "\n".join(lines)


def by_mediapipe(folder, model, picture, outputs):
    from mediapipe.python import packet_creator, packet_getter
    from mediapipe.python._framework_bindings import calculator_graph, image_frame, resource_util
    resource_util.set_resource_dir(str(folder))
    graph = calculator_graph.CalculatorGraph(graph_config=graph_text(model, outputs))
    values = {}
    for i in range(outputs):
        graph.observe_output_stream(f"f{i}", lambda name, packet: values.__setitem__(
            name, np.array(packet_getter.get_float_list(packet))))
    graph.start_run()
    frame = image_frame.ImageFrame(image_format=image_frame.ImageFormat.SRGB, data=picture)
    graph.add_packet_to_input_stream("image", packet_creator.create_image_frame(frame).at(1))
    graph.close_all_packet_sources()
    graph.wait_until_done()
    return [values[f"f{i}"] for i in range(outputs)]


def by_reef(reef, model, picture, work):
    (picture.astype(np.float32) / 255).tofile(work / "in.raw")
    subprocess.run([reef, "run", str(model), "--in", str(work / "in.raw"), "--out", str(work / "out")], check=True,
                   capture_output=True)
    count = len(list((work / "out").glob("out*.bin")))
    return [np.fromfile(work / "out" / f"out{i}.bin", np.float32) for i in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("model")
    parser.add_argument("--pictures", type=int, default=3)
    parser.add_argument("--side", type=int, default=192)
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.folder))
    for name in ("matplotlib", "matplotlib.pyplot", "sounddevice", "cv2", "jax", "attr"):  # not needed for running graphs
        sys.modules.setdefault(name, MagicMock())
    worst = 0.0
    for seed in range(arguments.pictures):
        coarse = np.random.default_rng(seed).integers(0, 256, (8, 8, 3))
        rows = np.linspace(0, 7, arguments.side).astype(int)
        picture = np.ascontiguousarray(coarse[rows][:, rows].astype(np.uint8))
        with tempfile.TemporaryDirectory() as work:
            ours = by_reef(arguments.reef, arguments.folder / arguments.model, picture, pathlib.Path(work))
        theirs = by_mediapipe(arguments.folder, arguments.model, picture, len(ours))
        for i, (a, b) in enumerate(zip(theirs, ours)):
            difference = np.abs(a - b).max() / max(np.abs(a).max(), 1e-12)
            worst = max(worst, difference)
            print(f"picture {seed}, output {i}, {a.size} values: difference {difference:.1e} of the largest")
    sys.exit(0 if worst < 1e-4 else 1)


if __name__ == "__main__":
    main()
