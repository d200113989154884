# SPDX-License-Identifier: Apache-2.0
"""Finds creatures in a picture and draws boxes around them. Usage: python detect.py [--picture P] [--out boxes.png]"""

import reef
from reef.coral.adapters import common, detect
from reef.coral.utils.dataset import read_label_file
from reef.coral.utils.edgetpu import make_interpreter

from _shared import COLOURS, arguments, draw_frame, for_edge_tpu


def main():
    args = arguments(__doc__, "reef_detector_int8.tflite", "scenes/scene_1.jpg", "boxes.png")
    labels = read_label_file(args.labels)
    interpreter = make_interpreter(for_edge_tpu(args.model), device=args.device)
    interpreter.allocate_tensors()
    picture = reef.load_image(args.picture).copy()
    size = common.input_size(interpreter)
    common.set_input(interpreter, reef.load_image(args.picture, size))
    interpreter.invoke()
    scale = (size[0] / picture.shape[1], size[1] / picture.shape[0])
    for found in detect.get_objects(interpreter, score_threshold=0.4, image_scale=scale):
        box = found.bbox
        print(f"{labels.get(found.id, found.id):10} {found.score:.2f}  left {box.xmin}, top {box.ymin}, right {box.xmax}, "
              f"bottom {box.ymax}")
        draw_frame(picture, *box, COLOURS[1 + found.id % 8])
    reef.save_image(args.out, picture)


if __name__ == "__main__":
    main()
