# SPDX-License-Identifier: Apache-2.0
"""Runs models that `reef learn` wrote in a real TFLite runtime and compares every output byte with Reef's.

Usage: check_learned.py REEF MODEL.tflite PICTURE...
Only models without Edge TPU ops. Needs ai-edge-litert, numpy and pillow.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image


def main():
    reef, path, pictures = sys.argv[1], sys.argv[2], sys.argv[3:]
    runtime = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    runtime.allocate_tensors()
    given, result = runtime.get_input_details()[0], runtime.get_output_details()[0]
    height, width = given['shape'][1:3]
    different = 0
    for picture in pictures:
        pixels = np.asarray(Image.open(picture).convert('RGB').resize((int(width), int(height))), np.uint8)[None]
        if given['dtype'] == np.int8:
            pixels = (pixels.astype(np.int16) - 128).astype(np.int8)
        elif given['dtype'] == np.float32:
            pixels = pixels.astype(np.float32) / 255
        runtime.set_tensor(given['index'], pixels)
        runtime.invoke()
        expected = runtime.get_tensor(result['index'])
        with tempfile.TemporaryDirectory() as folder:
            pixels.tofile(os.path.join(folder, 'in.bin'))
            subprocess.run([reef, 'run', path, '--in', os.path.join(folder, 'in.bin'), '--out', folder,
                            '--tflite', 'current'],
                           check=True, stdout=subprocess.DEVNULL)
            found = np.fromfile(os.path.join(folder, 'out0.bin'), expected.dtype).reshape(expected.shape)
        if expected.dtype == np.float32:
            different += int((np.abs(found - expected) > 1e-5).sum())
        else:
            different += int((found != expected).sum())
    print(f'{path}: {len(pictures)} pictures, {different} output values differ from LiteRT\'s')
    return 1 if different else 0


if __name__ == '__main__':
    sys.exit(main())
