# SPDX-License-Identifier: Apache-2.0
"""A detector for cameras, written as recorders with an Edge TPU (Frigate, for one) are: nothing of Reef in it.

A process of its own owns the Edge TPU. Cameras put frames into shared memory and their names into a queue; the process
fetches the frame, runs the detector, and leaves 20 rows of class, score and box (top, left, bottom, right, from 0 to 1) in
shared memory. The delegate is libedgetpu.so.1.0, found as the dynamic linker finds libraries, and chosen with "usb".

Usage: camera_detector.py MODEL_edgetpu.tflite PICTURE [CAMERAS]       prints the rows of each camera as JSON
"""

import json
import multiprocessing
import sys
from multiprocessing import shared_memory

import numpy as np
from PIL import Image

try:
    from tflite_runtime.interpreter import Interpreter, load_delegate
except ImportError:
    from ai_edge_litert.interpreter import Interpreter, load_delegate

ROWS, LEAST_SCORE = 20, 0.4


class Detector:
    def __init__(self, model, device="usb"):
        try:
            delegate = load_delegate("libedgetpu.so.1.0", {"device": device})
        except ValueError:
            print("no Edge TPU was found", file=sys.stderr)
            raise
        self.interpreter = Interpreter(model_path=model, experimental_delegates=[delegate])
        self.interpreter.allocate_tensors()
        self.inputs, self.outputs = self.interpreter.get_input_details(), self.interpreter.get_output_details()

    def output(self, i):
        return self.interpreter.tensor(self.outputs[i]["index"])()[0]

    def detect(self, frame):
        self.interpreter.set_tensor(self.inputs[0]["index"], frame)
        self.interpreter.invoke()
        boxes, classes, scores, count = self.output(0), self.output(1), self.output(2), int(self.output(3))
        rows = np.zeros((ROWS, 6), np.float32)
        for i in range(min(count, ROWS)):
            if scores[i] < LEAST_SCORE:
                break
            rows[i] = [classes[i], scores[i], *boxes[i]]
        return rows


def serve(model, shape, names, queue, done):
    detector = Detector(model)
    while (camera := queue.get()) is not None:
        frame, result = (shared_memory.SharedMemory(name=name) for name in names[camera])
        rows = detector.detect(np.ndarray(shape, np.uint8, buffer=frame.buf))
        np.ndarray((ROWS, 6), np.float32, buffer=result.buf)[:] = rows
        frame.close()
        result.close()
        done[camera].set()


def main():
    model, picture, cameras = sys.argv[1], Image.open(sys.argv[2]).convert("RGB"), int((sys.argv + ["2"])[3])
    size = tuple(int(n) for n in Interpreter(model_path=model).get_input_details()[0]["shape"])
    shape = (1, size[1], size[2], 3)
    context = multiprocessing.get_context("spawn")
    queue, done = context.Queue(), [context.Event() for _ in range(cameras)]
    memory = [(shared_memory.SharedMemory(create=True, size=int(np.prod(shape))),
               shared_memory.SharedMemory(create=True, size=ROWS * 6 * 4)) for _ in range(cameras)]
    names = [(frame.name, rows.name) for frame, rows in memory]
    process = context.Process(target=serve, args=(model, shape, names, queue, done))
    process.start()
    found = []
    try:
        for camera, (frame, rows) in enumerate(memory):
            pixels = picture if camera % 2 == 0 else picture.transpose(Image.FLIP_LEFT_RIGHT)
            np.ndarray(shape, np.uint8, buffer=frame.buf)[0] = np.asarray(pixels.resize((size[2], size[1])))
            queue.put(camera)
            while not done[camera].wait(timeout=1):
                if process.is_alive():
                    continue
                raise RuntimeError(f"the detector gave no answer for camera {camera}")
            found.append(np.ndarray((ROWS, 6), np.float32, buffer=rows.buf).copy().tolist())
    finally:
        queue.put(None)
        process.join(timeout=60)
        for pair in memory:
            for each in pair:
                each.close()
                each.unlink()
    print(json.dumps([[row for row in rows if row[1] > 0] for rows in found]))


if __name__ == "__main__":
    main()
