# SPDX-License-Identifier: Apache-2.0
"""Names what a picture shows. Usage: python classify.py [--model M] [--labels L] [--picture P]"""

import reef
from reef.coral.adapters import classify, common
from reef.coral.utils.dataset import read_label_file
from reef.coral.utils.edgetpu import make_interpreter

from _shared import arguments, for_edge_tpu


def main():
    args = arguments(__doc__, "reef_creatures_int8.tflite", "images/crab_1.jpg")
    labels = read_label_file(args.labels)
    interpreter = make_interpreter(for_edge_tpu(args.model), device=args.device)
    interpreter.allocate_tensors()
    common.set_input(interpreter, reef.load_image(args.picture, common.input_size(interpreter)))
    interpreter.invoke()
    for found in classify.get_classes(interpreter, top_k=3):
        print(f"{labels.get(found.id, found.id):10} {found.score:.3f}")


if __name__ == "__main__":
    main()
