# SPDX-License-Identifier: Apache-2.0
"""Makes Reef's own demo model: draws pictures, trains on them, quantizes, writes the files beside it.

Problem: `make demo` and the tests need a real trained int8 classifier with no foreign material in it.
Approach, in order (main() reads as the list):
  1. draw a training set and a held-back set with creature_art.py, from disjoint seeds;
  2. train a small MobileNet-like network (input 96x96x3, values pixel / 255);
  3. convert it to a float32 .tflite and, calibrated on training pictures, to a full-int8 .tflite with
     uint8 input and output, the form Coral models have;
  4. measure both files on the held-back set with TFLite's reference kernels;
  5. write labels, sample pictures, and training_log.json with the measured numbers.
record_vectors.py then records the expected outputs that tests compare against.

Every random choice is seeded and TensorFlow runs its deterministic kernels. Two reduced runs (100 pictures a class,
2 epochs) gave byte-identical .tflite files; that the full run repeats to the byte has not been checked. With other
package versions or CPUs the weights may differ; vectors.json must then be recorded again.

Requires (pip names): tensorflow-cpu, ai-edge-litert, pillow, numpy.
Made with tensorflow-cpu 2.21.0, ai-edge-litert 2.3.0, pillow 13.0.0, numpy 2.4.6 on Python 3.11, in about
7 minutes on 2 CPU cores.
Usage: python make_reef_creatures.py [--out DIR]
       python make_reef_creatures.py --measure     (only step 4, on the files already there)
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

from creature_art import LABELS, draw_scene

SIDE = 96  # network input, pixels
TRAIN_PER_CLASS, HELD_BACK_PER_CLASS, CALIBRATION_PICTURES = 1400, 150, 256
# Pictures without a creature (empty water, noise) are taught "no idea", the same score for all: a confident answer
# to noise would be wrong, and would saturate to 0 and 255 in int8 so that tests on noise inputs could miss an error.
NOTHING_PICTURES = 1120
EPOCHS, BATCH, PEAK_LEARNING_RATE = 12, 64, 3e-3
SEED = 20
TRAIN_SPLIT, HELD_BACK_SPLIT, SAMPLE_SPLIT, NOTHING_SPLIT = 0, 1, 2, 3  # second word of a picture's seed: never shared
# Users resize with whatever their tool has, so training sees every common filter.
FILTERS = [Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BOX, Image.Resampling.BICUBIC]
# The shipped pictures' formats and sizes, in turn. Odd BMP widths make row padding matter.
SAMPLE_FORMS = [("jpg", 200, 160), ("png", 160, 128), ("jpg", 180, 200), ("bmp", 131, 105), ("jpg", 240, 160)]
SAMPLES_PER_CLASS = 2
NOTHING = len(LABELS)  # label of a picture without a creature; no output of the network stands for it
SAMPLE_MIN_CONFIDENCE, SAMPLE_MAX_TRIES = 0.8, 50


def picture(job):
    """One network input of a split: drawn at a random size, squeezed to SIDE x SIDE (aspect not kept)."""
    split, label, index = job
    seed = [SEED, split, label, index]
    rng = np.random.default_rng(seed + [1])
    if label == NOTHING and index % 2:
        grain = int(rng.choice([SIDE, SIDE, SIDE // 2, SIDE // 4]))
        scene = Image.fromarray(rng.integers(0, 256, (grain, grain, 3), dtype=np.uint8))
        return np.asarray(scene.resize((SIDE, SIDE), Image.Resampling.NEAREST))
    name = None if label == NOTHING else LABELS[label]
    scene = draw_scene(name, seed, int(rng.integers(120, 221)), int(rng.integers(112, 201)))
    return np.asarray(scene.resize((SIDE, SIDE), FILTERS[rng.integers(len(FILTERS))]))


def draw_split(split, per_label, labels=range(len(LABELS))):
    """(pictures uint8 [n, SIDE, SIDE, 3], labels int32 [n]); labels take turns."""
    jobs = [(split, label, index) for index in range(per_label) for label in labels]
    with multiprocessing.get_context("spawn").Pool() as pool:
        pictures = np.stack(pool.map(picture, jobs, chunksize=64))
    return pictures, np.array([label for _, label, _ in jobs], dtype=np.int32)


def build_network(keras, batch=None):
    """A stem, then three narrowing stages with a residual each. As converted, batch norms folded into the
    convolutions: 63,240 weights, 7.3 million multiply-adds."""
    layers = keras.layers

    def normed(x, name, activate=True):
        x = layers.BatchNormalization(momentum=0.9, name=name + "_norm")(x)
        return layers.ReLU(6.0, name=name + "_relu6")(x) if activate else x

    def pointwise(x, channels, name, activate=True):
        return normed(layers.Conv2D(channels, 1, use_bias=False, name=name)(x), name, activate)

    def depthwise(x, stride, name):
        conv = layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False, name=name)
        return normed(conv(x), name)

    x = inputs = keras.Input((SIDE, SIDE, 3), batch_size=batch, name="picture")
    x = normed(layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False, name="stem")(x), "stem")
    for stage, channels in enumerate((32, 48, 96), start=1):
        x = depthwise(x, 2, f"stage{stage}_shrink")
        x = pointwise(x, channels, f"stage{stage}_widen", activate=False)
        inner = pointwise(x, 2 * channels, f"stage{stage}_expand")
        inner = depthwise(inner, 1, f"stage{stage}_mix")
        inner = pointwise(inner, channels, f"stage{stage}_project", activate=False)
        x = layers.Add(name=f"stage{stage}_residual")([x, inner])
    x = layers.ReLU(6.0, name="head_relu6")(x)
    x = layers.GlobalAveragePooling2D(name="pool")(x)
    x = layers.Dropout(0.1, seed=SEED, name="dropout")(x)
    x = layers.Dense(len(LABELS), name="logits")(x)
    return keras.Model(inputs, layers.Softmax(name="scores")(x), name="reef_creatures")


def train(tf, pictures, labels):
    certain = np.eye(len(LABELS), dtype=np.float32)
    undecided = np.full((1, len(LABELS)), 1 / len(LABELS), dtype=np.float32)
    targets = np.vstack([certain, undecided])[labels]
    model = build_network(tf.keras)
    steps = -(-len(labels) // BATCH)
    schedule = tf.keras.optimizers.schedules.CosineDecay(
        PEAK_LEARNING_RATE / 10, EPOCHS * steps - steps // 2, warmup_target=PEAK_LEARNING_RATE, warmup_steps=steps // 2)
    model.compile(optimizer=tf.keras.optimizers.Adam(schedule), loss="categorical_crossentropy", jit_compile=False)
    data = tf.data.Dataset.from_tensor_slices((pictures, targets))
    data = data.shuffle(len(labels), seed=SEED).batch(BATCH)
    data = data.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y)).prefetch(2)
    model.fit(data, epochs=EPOCHS, shuffle=False, verbose=2)  # the dataset shuffles itself
    return model


def convert(tf, model, calibration=None):
    """The model as .tflite bytes: float32, or full int8 with uint8 ends when calibration pictures are given."""
    # A fixed batch of 1: the converter then needs no shape arithmetic in the graph.
    single = build_network(tf.keras, batch=1)
    single.set_weights(model.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(single)
    if calibration is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([p[None].astype(np.float32) / 255.0] for p in calibration)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.uint8
        # Edge TPU era tools know one scale per fully connected layer, not one per output.
        converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    return converter.convert()


class Classifier:
    """A .tflite run with the reference kernels; answers scores in [0, 1] for uint8 pictures."""

    def __init__(self, content):
        reference = OpResolverType.BUILTIN_REF
        self.interpreter = Interpreter(model_content=content, experimental_op_resolver_type=reference)
        self.interpreter.allocate_tensors()
        self.input, self.output = self.interpreter.get_input_details()[0], self.interpreter.get_output_details()[0]

    def scores(self, pixels):
        value = pixels if self.input["dtype"] == np.uint8 else pixels.astype(np.float32) / np.float32(255)
        self.interpreter.set_tensor(self.input["index"], value[None])
        self.interpreter.invoke()
        raw = self.interpreter.get_tensor(self.output["index"])[0]
        scale, zero = self.output["quantization"]
        return raw if raw.dtype == np.float32 else (raw.astype(np.float32) - zero) * scale


def measure(classifier, pictures, labels):
    """Accuracy over the set, and how many of each class were called what (rows: truth)."""
    confusion = np.zeros((len(LABELS), len(LABELS)), dtype=int)
    for pixels, label in zip(pictures, labels):
        confusion[label, int(np.argmax(classifier.scores(pixels)))] += 1
    return float(np.trace(confusion) / confusion.sum()), confusion.tolist()


def write_samples(folder, classifiers):
    """Sample files per class: the first drawn ones that every classifier gets right, with confidence, from the
    written file and under every resize filter. They must be stable across tools, so they are easier than average."""
    folder.mkdir(parents=True, exist_ok=True)
    for label, name in enumerate(LABELS):
        number = 1
        for index in range(SAMPLE_MAX_TRIES):
            extension, width, height = SAMPLE_FORMS[(label * SAMPLES_PER_CLASS + number - 1) % len(SAMPLE_FORMS)]
            path = folder / f"{name}_{number}.{extension}"
            options = {"jpg": {"quality": 90}, "png": {"optimize": True}, "bmp": {}}[extension]
            draw_scene(name, [SEED, SAMPLE_SPLIT, label, index], width, height).save(path, **options)
            with Image.open(path) as image:
                inputs = [np.asarray(image.convert("RGB").resize((SIDE, SIDE), f)) for f in FILTERS]
            scores = [c.scores(pixels) for c in classifiers for pixels in inputs]
            if all(np.argmax(s) == label and s[label] >= SAMPLE_MIN_CONFIDENCE for s in scores):
                number += 1
            if number > SAMPLES_PER_CLASS:
                break
        else:
            raise SystemExit(f"{name}: no {SAMPLES_PER_CLASS} good samples in {SAMPLE_MAX_TRIES} tries; train longer")


def measure_file(path, held_back):
    """Classifier of a .tflite file, and its record for the log; prints the accuracy."""
    classifier = Classifier(path.read_bytes())
    accuracy, confusion = measure(classifier, *held_back)
    size = path.stat().st_size
    print(f"{path.name}: {size} bytes, accuracy {accuracy:.4f} on {len(held_back[1])} held-back pictures")
    return classifier, {"bytes": size, "held_back_accuracy": round(accuracy, 4), "confusion": confusion}


def make(out, held_back):
    start = time.monotonic()
    pictures, labels = draw_split(TRAIN_SPLIT, TRAIN_PER_CLASS)
    nothing_pictures, nothing_labels = draw_split(NOTHING_SPLIT, NOTHING_PICTURES, [NOTHING])
    drawn = time.monotonic()

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf  # after drawing: worker processes need not load it
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    model = train(tf, np.concatenate([pictures, nothing_pictures]), np.concatenate([labels, nothing_labels]))
    trained = time.monotonic()

    log = {"tensorflow": tf.__version__, "training_pictures": len(labels),
           "pictures_of_nothing": len(nothing_labels), "held_back_pictures": len(held_back[1]),
           "weights": model.count_params(), "labels": LABELS}  # weights: batch norms not yet folded
    classifiers = []
    for kind, calibration in (("float", None), ("int8", pictures[:CALIBRATION_PICTURES])):
        path = out / f"reef_creatures_{kind}.tflite"
        path.write_bytes(convert(tf, model, calibration))
        classifier, log[kind] = measure_file(path, held_back)
        classifiers.append(classifier)
    (out / "reef_creatures_labels.txt").write_text("".join(name + "\n" for name in LABELS))
    write_samples(out / "images", classifiers)
    (out / "training_log.json").write_text(json.dumps(log) + "\n")
    print(f"drawing {drawn - start:.0f} s, training {trained - drawn:.0f} s, rest {time.monotonic() - trained:.0f} s")


def main():
    parser = argparse.ArgumentParser(description="Draw, train, quantize and write Reef's demo model.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    parser.add_argument("--measure", action="store_true", help="only measure the .tflite files that are in --out")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    held_back = draw_split(HELD_BACK_SPLIT, HELD_BACK_PER_CLASS)
    if arguments.measure:
        for kind in ("float", "int8"):
            measure_file(arguments.out / f"reef_creatures_{kind}.tflite", held_back)
    else:
        make(arguments.out, held_back)


if __name__ == "__main__":
    main()
