#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three classes that a network never saw, learned from 1, 5, 20 and 100 pictures of each.

Draws boats, buoys and anchors (plain Python, nothing to install), lets `reef learn` build both kinds of last layer on
the shipped creature network, and leaves in FOLDER: the pictures, the learned models, and learning_curve.html, a plot of
accuracy against the number of pictures.

Usage: examples/learn_three_classes.py [--reef build/reef] [--out FOLDER] [--device virtual]
With --device virtual the extractor is compiled first and runs on a virtual Edge TPU.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys

SIZE = 48  # pixels; the network sees them enlarged to 96
TRAIN, TEST = 100, 40  # pictures of each class


def inside_boat(x, y):
    hull = 0.3 < y < 0.7 and abs(x) < 0.9 - 0.9 * (y - 0.3)
    sail = -0.9 < y < 0.2 and -0.05 < x < 0.75 * (y + 0.9) / 1.1
    mast = -0.9 < y < 0.3 and -0.1 < x < -0.03
    return 1 if hull else 2 if sail or mast else 0


def inside_buoy(x, y):
    if x * x + y * y > 0.7 * 0.7:
        return 1 if -1 < y < -0.6 and abs(x) < 0.08 else 0
    return 1 if math.floor((y + 1) * 4) % 2 else 2


def inside_anchor(x, y):
    shank = -0.7 < y < 0.75 and abs(x) < 0.09
    stock = -0.5 < y < -0.35 and abs(x) < 0.4
    ring = 0.1 < math.hypot(x, y + 0.8) < 0.2
    arms = 0.6 < math.hypot(x, y - 0.05) < 0.78 and y > 0.3
    return 1 if shank or stock or ring or arms else 0


SHAPES = {'anchor': inside_anchor, 'boat': inside_boat, 'buoy': inside_buoy}


def draw(name, seed):
    """A picture in PPM's format: the shape, turned, moved and scaled, before a noisy sea."""
    dice = random.Random(f'{name} {seed}')
    turn, size = dice.uniform(-0.5, 0.5), dice.uniform(0.55, 0.9)
    at_x, at_y = dice.uniform(-0.25, 0.25), dice.uniform(-0.25, 0.25)
    paint = [[dice.randrange(256) for _ in range(3)] for _ in range(2)]
    sea = [dice.randrange(0, 70), dice.randrange(60, 160), dice.randrange(110, 230)]
    slope, noise = dice.uniform(-40, 40), dice.uniform(4, 18)
    pixels = bytearray()
    for row in range(SIZE):
        for column in range(SIZE):
            x, y = 2 * column / SIZE - 1 - at_x, 2 * row / SIZE - 1 - at_y
            u = (math.cos(turn) * x + math.sin(turn) * y) / size
            v = (math.cos(turn) * y - math.sin(turn) * x) / size
            part = SHAPES[name](u, v)
            colour = paint[part - 1] if part else [c + slope * y for c in sea]
            shade = dice.gauss(0, noise)
            pixels += bytes(min(255, max(0, round(c + shade))) for c in colour)
    return b'P6\n%d %d\n255\n' % (SIZE, SIZE) + bytes(pixels)


def write_pictures(folder, first, count):
    for name in SHAPES:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for i in range(first, first + count):
            with open(os.path.join(folder, name, f'{i:03}.ppm'), 'wb') as file:
                file.write(draw(name, i))


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--reef', default=os.path.join(root, 'build', 'reef'))
    parser.add_argument('--out', default='three_classes')
    parser.add_argument('--device', choices=['cpu', 'virtual'], default='cpu')
    parser.add_argument('--train', type=int, default=TRAIN, help='pictures of each class to learn from')
    parser.add_argument('--test', type=int, default=TEST, help='pictures of each class to test with')
    options = parser.parse_args()
    train, test = os.path.join(options.out, 'train'), os.path.join(options.out, 'test')
    write_pictures(train, 0, options.train)
    write_pictures(test, 1000, options.test)
    accuracy = {}
    for method in ('imprint', 'softmax'):
        command = [options.reef, 'learn', method, '--model', os.path.join(root, 'models', 'reef_creatures_int8.tflite'),
                   '--data', train, '--test', test, '-o', os.path.join(options.out, f'{method}.tflite'), '--json']
        if options.device == 'virtual':
            command.append('--compile')
        if method == 'imprint':
            command += ['--plot', os.path.join(options.out, 'learning_curve.html')]
        report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        accuracy[method] = {point['images']: point['accuracy'] for point in report['curve']}
        print(f'{method}: the written model is right on {report["test"]["right"]} of {report["test"]["samples"]}')
    print('pictures  imprint  softmax')
    for images in sorted(accuracy['imprint']):
        print(f'{images:8}  {accuracy["imprint"][images]:6.1%}  {accuracy["softmax"][images]:7.1%}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
