# SPDX-License-Identifier: Apache-2.0
"""Colours every pixel by what it shows. Usage: python segment.py [--picture P] [--out mask.png]"""

import numpy as np

import reef
from reef.coral.adapters import common, segment
from reef.coral.utils.dataset import read_label_file
from reef.coral.utils.edgetpu import make_interpreter

from _shared import COLOURS, arguments, for_edge_tpu


def main():
    args = arguments(__doc__, "reef_segmenter_int8.tflite", "scenes/scene_1.jpg", "mask.png")
    labels = read_label_file(args.labels)
    interpreter = make_interpreter(for_edge_tpu(args.model), device=args.device)
    interpreter.allocate_tensors()
    common.set_input(interpreter, reef.load_image(args.picture, common.input_size(interpreter)))
    interpreter.invoke()
    best = segment.get_output(interpreter).argmax(axis=2)  # 0 is water, then the labels
    picture = reef.load_image(args.picture)
    rows = np.arange(picture.shape[0]) * best.shape[0] // picture.shape[0]
    columns = np.arange(picture.shape[1]) * best.shape[1] // picture.shape[1]
    classes = best[np.ix_(rows, columns)]
    mixed = ((picture.astype(int) + 2 * COLOURS[classes]) // 3).astype(np.uint8)
    reef.save_image(args.out, np.where(classes[..., None] > 0, mixed, picture))
    for number in np.unique(classes):
        print(f"{labels[number - 1] if number else 'water':10} {np.mean(classes == number):6.1%}")


if __name__ == "__main__":
    main()
