# SPDX-License-Identifier: Apache-2.0
"""Makes Reef's detector and segmenter: draws scenes of several creatures, trains one network with two heads, quantizes.

Problem: examples of detection and segmentation, and their tests, need real int8 models with no foreign material.
Approach, in order (main() reads as the list):
  1. draw scenes of one to three creatures with creature_art.py; where each was painted gives its box and its mask;
  2. train one backbone with a head for boxes (one anchor box size per half of the anchors, on an 8 x 8 grid) and a head
     for masks (a class for every pixel of a 32 x 32 grid), both at once;
  3. convert two full-int8 .tflite files with uint8 input: the detector ends in TFLite_Detection_PostProcess, as those
     of Coral's collection do, the segmenter in one score per class and pixel;
  4. measure both files on held-back scenes with TFLite's reference kernels, and write sample pictures.

Boxes are trained by the usual rules: an anchor that overlaps a creature by half answers for it, the best anchor of a
creature always does, the rest answer "nothing". What the numbers say: how well these drawings were learned, and
nothing about photographs.

Requires (pip names): tensorflow-cpu, ai-edge-litert, flatbuffers, pillow, numpy. Every random choice is seeded.
Usage: python make_reef_scenes.py [--out DIR]
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import time

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from flatbuffers import flexbuffers
from PIL import Image

from creature_art import LABELS, SUPERSAMPLE, add_creature, bubbles, camera, water, weed

SIDE, GRID, MASK = 128, 8, 32  # pixels of the input, cells of the boxes' grid, of the masks'
ANCHOR_SIZES = (0.34, 0.56)    # of the picture's side
TRAIN, HELD_BACK, CALIBRATION = 4000, 400, 200
EPOCHS, BATCH, PEAK_LEARNING_RATE = 14, 32, 3e-3
SEED = 21
BOX_SCALES = (10.0, 10.0, 5.0, 5.0)  # y, x, h, w: as TensorFlow's detectors have them
CLASSES = len(LABELS)
SAMPLES = 4


def draw(seed, width, height):
    """A picture, the boxes in it (ymin, xmin, ymax, xmax of 1) with their labels, and labels + 1 by pixel (0: water)."""
    rng = np.random.default_rng(seed)
    w, h = width * SUPERSAMPLE, height * SUPERSAMPLE
    scene = water(rng, w, h)
    for _ in range(int(rng.integers(0, 2))):
        weed(scene, rng, rng.uniform(0, w), rng.uniform(0.15, 0.5) * h)
    bubbles(scene, rng, 5)
    covered = np.zeros((h, w), dtype=bool)
    mask = np.zeros((h, w), dtype=np.uint8)
    boxes, labels = [], []
    for _ in range(int(rng.choice([1, 2, 2, 3]))):
        for _ in range(4):  # tries to find a free place
            label = int(rng.integers(CLASSES))
            before = scene.copy()
            alpha = np.asarray(add_creature(scene, rng, LABELS[label], sizes=(0.15, 0.3))) > 128
            if not alpha.any() or (alpha & covered).sum() > 0.12 * alpha.sum():
                scene = before
                continue
            covered |= alpha
            mask[alpha] = label + 1
            rows, columns = np.flatnonzero(alpha.any(1)), np.flatnonzero(alpha.any(0))
            boxes.append((rows[0] / h, columns[0] / w, (rows[-1] + 1) / h, (columns[-1] + 1) / w))
            labels.append(label)
            break
    bubbles(scene, rng, 3)
    picture = camera(scene.resize((width, height), Image.Resampling.BOX), rng)
    return picture, np.array(boxes, dtype=np.float32).reshape(-1, 4), np.array(labels, dtype=np.int32), mask


def anchors():
    """[n, 4] of y, x, h, w, cell by cell and size by size: the order in which the network's channels come."""
    centre = (np.arange(GRID) + 0.5) / GRID
    return np.array([(y, x, size, size) for y in centre for x in centre for size in ANCHOR_SIZES], dtype=np.float32)


def overlaps(a, b):
    """Intersection over union of all boxes a with all boxes b."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.prod(np.clip(high - low, 0, None), axis=2)
    area = lambda boxes: np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    return both / (area(a)[:, None] + area(b)[None] - both)


def targets(boxes, labels):
    """What every anchor should answer: [n, classes + 4 + 2], the last two saying whether it answers for classes and for
    a box (anchors that overlap a creature, but not enough, answer for nothing)."""
    rows = np.zeros((GRID * GRID * len(ANCHOR_SIZES), CLASSES + 6), dtype=np.float32)
    rows[:, -2] = 1
    if len(boxes) == 0:
        return rows
    anchor = anchors()
    corners = np.concatenate([anchor[:, :2] - anchor[:, 2:] / 2, anchor[:, :2] + anchor[:, 2:] / 2], axis=1)
    iou = overlaps(corners, boxes)
    best = iou.argmax(1)
    chosen = iou.max(1) >= 0.5
    rows[(iou.max(1) >= 0.35) & ~chosen, -2] = 0
    for k in range(len(boxes)):
        best[iou[:, k].argmax()], chosen[iou[:, k].argmax()] = k, True
    a, b = anchor[chosen], boxes[best[chosen]]
    centre, size = (b[:, :2] + b[:, 2:]) / 2, b[:, 2:] - b[:, :2]
    rows[chosen, CLASSES:CLASSES + 2] = (centre - a[:, :2]) / a[:, 2:] * BOX_SCALES[:2]
    rows[chosen, CLASSES + 2:CLASSES + 4] = np.log(size / a[:, 2:]) * BOX_SCALES[2:]
    rows[chosen, labels[best[chosen]]] = 1
    rows[chosen, -2:] = 1
    return rows


def example(seed):
    picture, boxes, labels, mask = draw(seed, SIDE, SIDE)
    small = np.asarray(Image.fromarray(mask).resize((MASK, MASK), Image.Resampling.NEAREST))
    return np.asarray(picture), targets(boxes, labels), small, boxes, labels


def draw_split(split, count):
    with multiprocessing.get_context("spawn").Pool() as pool:
        return list(zip(*pool.map(example, [[SEED, split, i] for i in range(count)], chunksize=32)))


def build_network(keras, batch=None):
    layers = keras.layers

    def normed(x, activate=True):
        x = layers.BatchNormalization(momentum=0.9)(x)
        return layers.ReLU(6.0)(x) if activate else x

    def pointwise(x, channels, activate=True):
        return normed(layers.Conv2D(channels, 1, use_bias=False)(x), activate)

    def block(x, channels, stride):
        inner = pointwise(x, 3 * x.shape[-1])
        inner = normed(layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(inner))
        inner = pointwise(inner, channels, activate=False)
        return layers.Add()([x, inner]) if stride == 1 and x.shape[-1] == channels else inner

    x = inputs = keras.Input((SIDE, SIDE, 3), batch_size=batch, name="picture")
    x = normed(layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(x))
    fine = block(block(x, 24, 2), 24, 1)         # 32 x 32
    middle = block(block(fine, 40, 2), 40, 1)    # 16 x 16
    coarse = block(block(block(middle, 80, 2), 80, 1), 80, 1)  # 8 x 8

    deep = block(coarse, 80, 1)
    count = GRID * GRID * len(ANCHOR_SIZES)
    boxes = layers.Reshape((count, 4), name="box_encodings")(layers.Conv2D(4 * len(ANCHOR_SIZES), 3, padding="same")(deep))
    few = keras.initializers.Constant(-4.0)  # almost every anchor answers "nothing"
    scores = layers.Conv2D(CLASSES * len(ANCHOR_SIZES), 3, padding="same", bias_initializer=few)(deep)
    scores = layers.Activation("sigmoid", name="class_predictions")(layers.Reshape((count, CLASSES))(scores))

    up = layers.UpSampling2D(2, interpolation="bilinear")(pointwise(coarse, 40))
    up = block(layers.Add()([up, middle]), 40, 1)
    up = layers.UpSampling2D(2, interpolation="bilinear")(pointwise(up, 24))
    up = block(layers.Add()([up, fine]), 24, 1)
    mask = layers.Conv2D(CLASSES + 1, 3, padding="same", name="mask")(up)
    return keras.Model(inputs, [boxes, scores, mask], name="reef_scenes")


def train(tf, pictures, rows, masks):
    model = build_network(tf.keras)
    steps = -(-len(pictures) // BATCH)
    schedule = tf.keras.optimizers.schedules.CosineDecay(
        PEAK_LEARNING_RATE / 10, EPOCHS * steps - steps, warmup_target=PEAK_LEARNING_RATE, warmup_steps=steps)
    optimizer = tf.keras.optimizers.Adam(schedule)

    @tf.function
    def step(picture, row, mask):
        with tf.GradientTape() as tape:
            boxes, scores, pixels = model(tf.cast(picture, tf.float32) / 255.0, training=True)
            wanted, box, counts, has_box = row[..., :CLASSES], row[..., CLASSES:-2], row[..., -2], row[..., -1]
            found = tf.reduce_sum(has_box) + 1.0
            right = wanted * scores + (1 - wanted) * (1 - scores)
            focal = -(1 - right) ** 2 * tf.math.log(right + 1e-7) * (0.25 + 0.5 * wanted)
            class_loss = tf.reduce_sum(focal * counts[..., None]) / found
            error = tf.abs(boxes - box)
            huber = tf.where(error < 1, 0.5 * error ** 2, error - 0.5)
            box_loss = tf.reduce_sum(huber * has_box[..., None]) / found
            weight = tf.where(mask > 0, 2.0, 1.0)
            mask_loss = tf.reduce_mean(weight * tf.nn.sparse_softmax_cross_entropy_with_logits(mask, pixels))
            loss = 2 * class_loss + box_loss + 2 * mask_loss
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return class_loss, box_loss, mask_loss

    data = tf.data.Dataset.from_tensor_slices((pictures, rows, masks.astype(np.int32)))
    data = data.shuffle(len(pictures), seed=SEED).batch(BATCH, drop_remainder=True).prefetch(2)
    for epoch in range(EPOCHS):
        losses = np.mean([[float(x) for x in step(*batch)] for batch in data], axis=0)
        print(f"epoch {epoch + 1} of {EPOCHS}: classes {losses[0]:.3f}, boxes {losses[1]:.3f}, masks {losses[2]:.3f}",
              flush=True)
    return model


def convert(tf, model, calibration):
    single = build_network(tf.keras, batch=1)
    single.set_weights(model.get_weights())
    files = {}
    for name, outputs, end in (("detector", single.outputs[:2], tf.float32), ("segmenter", single.outputs[2:], tf.uint8)):
        converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(single.inputs, outputs))
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([p[None].astype(np.float32) / 255.0] for p in calibration)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type, converter.inference_output_type = tf.uint8, end
        files[name] = converter.convert()
    files["detector"] = with_postprocess(files["detector"])
    return files


def with_postprocess(content):
    """The detector with the op behind it that makes detections of encodings and scores, as Coral's models have it."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content))
    graph = model.subgraphs[0]

    def tensor(name, shape, data=None):
        added = schema.TensorT()
        added.name, added.shape, added.type, added.buffer = name, shape, schema.TensorType.FLOAT32, 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), dtype=np.uint8)
            model.buffers.append(buffer)
            added.buffer = len(model.buffers) - 1
        graph.tensors.append(added)
        return len(graph.tensors) - 1

    by_width = {int(graph.tensors[t].shape[-1]): int(t) for t in graph.outputs}
    most = 10
    code = schema.OperatorCodeT()
    code.builtinCode, code.deprecatedBuiltinCode, code.version = schema.BuiltinOperator.CUSTOM, schema.BuiltinOperator.CUSTOM, 1
    code.customCode = b"TFLite_Detection_PostProcess"
    model.operatorCodes.append(code)
    op = schema.OperatorT()
    op.opcodeIndex = len(model.operatorCodes) - 1
    op.inputs = [by_width[4], by_width[CLASSES], tensor(b"anchors", [GRID * GRID * len(ANCHOR_SIZES), 4], anchors())]
    op.outputs = [tensor(b"TFLite_Detection_PostProcess", [1, most, 4]), tensor(b"TFLite_Detection_PostProcess:1", [1, most]),
                  tensor(b"TFLite_Detection_PostProcess:2", [1, most]), tensor(b"TFLite_Detection_PostProcess:3", [1])]
    op.customOptions = np.frombuffer(bytes(flexbuffers.Dumps({
        "max_detections": most, "max_classes_per_detection": 1, "detections_per_class": most, "use_regular_nms": False,
        "nms_score_threshold": 0.25, "nms_iou_threshold": 0.5, "num_classes": CLASSES,
        **dict(zip(("y_scale", "x_scale", "h_scale", "w_scale"), BOX_SCALES))})), dtype=np.uint8)
    graph.operators.append(op)
    graph.outputs = op.outputs
    model.signatureDefs = []
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def runner(content):
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    index = interpreter.get_input_details()[0]["index"]

    def run(pixels):
        interpreter.set_tensor(index, pixels[None])
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return run


def measure(files, held_back):
    """Creatures found (box overlaps by half, right class, score 0.5 or more), false alarms, and how masks overlap."""
    pictures, _, masks, boxes, labels = held_back
    detect, segment = runner(files["detector"]), runner(files["segmenter"])
    found = total = alarms = 0
    both, either = np.zeros(CLASSES + 1), np.zeros(CLASSES + 1)
    for i, pixels in enumerate(pictures):
        out_boxes, out_classes, out_scores, count = detect(pixels)
        sure = [k for k in range(int(count[0])) if out_scores[0, k] >= 0.5]
        matched = set()
        for k in sure:
            iou = overlaps(out_boxes[0, k:k + 1], boxes[i])[0]
            best = int(iou.argmax())
            if iou[best] >= 0.5 and labels[i][best] == int(out_classes[0, k]) and best not in matched:
                matched.add(best)
            else:
                alarms += 1
        found, total = found + len(matched), total + len(labels[i])
        answer = segment(pixels)[0][0].argmax(2)
        for c in range(CLASSES + 1):
            both[c] += ((answer == c) & (masks[i] == c)).sum()
            either[c] += ((answer == c) | (masks[i] == c)).sum()
    return {"creatures": total, "found": found, "false_alarms": alarms, "mean_mask_iou": round(float((both / either).mean()), 4)}


def write_samples(folder, detect):
    """The first scenes of two or three creatures in which the detector finds exactly what is there."""
    index = number = 0
    while number < SAMPLES:
        picture, boxes, labels, _ = draw([SEED, 2, index], 240, 200)
        index += 1
        if len(boxes) < 2 + number % 2:
            continue
        path = folder / f"scene_{number + 1}.jpg"
        picture.save(path, quality=90)
        with Image.open(path) as image:
            pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        out_boxes, out_classes, out_scores, count = detect(pixels)
        sure = [k for k in range(int(count[0])) if out_scores[0, k] >= 0.4]
        iou = overlaps(out_boxes[0, sure], boxes) if sure else np.zeros((0, len(boxes)))
        right = len(sure) == len(boxes) and all(
            iou[:, b].max() > 0.6 and int(out_classes[0, sure[int(iou[:, b].argmax())]]) == labels[b] for b in range(len(boxes)))
        number += 1 if right else 0


def main():
    parser = argparse.ArgumentParser(description="Draw, train, quantize and write Reef's detector and segmenter.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent)
    out = parser.parse_args().out
    start = time.monotonic()
    pictures, rows, masks, _, _ = draw_split(0, TRAIN)
    held_back = draw_split(1, HELD_BACK)
    print(f"drawn in {time.monotonic() - start:.0f} s", flush=True)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf  # after drawing: worker processes need not load it
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    model = train(tf, np.stack(pictures), np.stack(rows), np.stack(masks))
    files = convert(tf, model, pictures[:CALIBRATION])
    log = {"tensorflow": tf.__version__, "training_scenes": TRAIN, "held_back_scenes": HELD_BACK, "labels": LABELS,
           **measure(files, held_back)}
    for name, content in files.items():
        (out / f"reef_{name}_int8.tflite").write_bytes(content)
        log[f"{name}_bytes"] = len(content)
    (out / "scenes").mkdir(exist_ok=True)
    write_samples(out / "scenes", runner(files["detector"]))
    (out / "scenes_log.json").write_text(json.dumps(log) + "\n")
    print(json.dumps(log), f"in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
