# SPDX-License-Identifier: Apache-2.0
"""Classification with tflite_runtime and Coral's library, as programs for a real Edge TPU are written: nothing of Reef.

With --library libedgetpu.so.1 it uses an Edge TPU in the machine. Only the path of that library has to be another for
Reef's virtual one:

    python coral_classify.py --library build/coral/libedgetpu.so.1 --model model_edgetpu.tflite --labels L --input picture.jpg

or, without touching the command: LD_LIBRARY_PATH=build/coral python coral_classify.py --model ...
"""

import argparse
import time

import numpy as np
from PIL import Image

try:
    from tflite_runtime.interpreter import Interpreter, load_delegate
except ImportError:
    from ai_edge_litert.interpreter import Interpreter, load_delegate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-i", "--input", required=True)
    parser.add_argument("-l", "--labels", required=True)
    parser.add_argument("-k", "--top_k", type=int, default=1)
    parser.add_argument("-c", "--count", type=int, default=3)
    parser.add_argument("--library", default="libedgetpu.so.1")
    args = parser.parse_args()

    with open(args.labels, encoding="utf-8") as file:
        labels = [line.strip() for line in file]
    interpreter = Interpreter(model_path=args.model, experimental_delegates=[load_delegate(args.library, {})])
    interpreter.allocate_tensors()
    details, output = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    _, height, width, _ = details["shape"]
    image = Image.open(args.input).convert("RGB").resize((width, height), Image.BILINEAR)
    interpreter.set_tensor(details["index"], np.asarray(image, dtype=np.uint8)[None])
    for _ in range(args.count):
        start = time.perf_counter()
        interpreter.invoke()
        print(f"{(time.perf_counter() - start) * 1000:.1f}ms")
    scale, zero_point = output["quantization"]
    scores = scale * (interpreter.get_tensor(output["index"])[0].astype(np.int64) - zero_point)
    for i in np.argsort(-scores)[:args.top_k]:
        print(f"{labels[i]}: {scores[i]:.5f}")


if __name__ == "__main__":
    main()
