# SPDX-License-Identifier: Apache-2.0
"""Segments of one model, each on a device of its own, all at work at once. Usage: python pipeline.py"""

import tempfile
import threading

import reef
from reef.coral.pipeline.pipelined_model_runner import PipelinedModelRunner
from reef.coral.utils.dataset import read_label_file

from _shared import MODELS


def main():
    labels = read_label_file(MODELS / "reef_creatures_labels.txt")
    pictures = sorted((MODELS / "images").glob("*_1.*"))
    with tempfile.TemporaryDirectory() as folder:
        files = reef.compile(MODELS / "reef_creatures_int8.tflite", folder, num_segments=3).files
        segments = [reef.Interpreter(file, device=f":{i}") for i, file in enumerate(files)]
        for segment in segments:
            segment.allocate_tensors()
        runner = PipelinedModelRunner(segments)
    name = runner.interpreters()[0].get_input_details()[0]["name"]

    def feed():  # a camera would be here
        for picture in pictures:
            runner.push({name: reef.load_image(picture, (96, 96))[None]})
        runner.push({})

    thread = threading.Thread(target=feed)
    thread.start()
    for picture in pictures:
        scores = next(iter(runner.pop().values()))
        print(f"{picture.name:16} {labels[int(scores.argmax())]}")
    thread.join()
    for i, stats in enumerate(runner.segment_stats()):
        print(f"segment {i}: {stats.runs} runs, {stats.total_ms / stats.runs:.1f} ms each (measured, virtual device)")


if __name__ == "__main__":
    main()
