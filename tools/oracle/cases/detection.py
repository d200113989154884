# SPDX-License-Identifier: Apache-2.0
"""TFLite_Detection_PostProcess, the custom operator behind SSD models, and NON_MAX_SUPPRESSION.

The custom operator's fast way leaves places behind the last detection uninitialized, so its cases have more boxes than are
asked for.
"""

import numpy as np

from onemodel import Model, seeded

OPERATOR = "custom:TFLite_Detection_PostProcess"
SCALES = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}


def detection(name, boxes=16, classes=3, background=1, *, max_detections=4, max_classes=1, regular=False, per_class=None,
              score_threshold=0.0, iou_threshold=0.5, quantized=False, ties=False, coordinates=4, options=None, changes=()):
    """Anchors on a coarse grid, so that many boxes overlap. ties: scores take few different values."""
    rng = seeded(f"detection {name}")
    anchors = np.stack([rng.randint(1, 6, boxes) / 6, rng.randint(1, 6, boxes) / 6,
                        rng.uniform(0.1, 0.4, boxes), rng.uniform(0.1, 0.4, boxes)], axis=1).astype(np.float32)
    encoded = rng.uniform(-2, 2, [1, boxes, coordinates]).astype(np.float32)
    scores = rng.uniform(0, 1, [1, boxes, classes + background]).astype(np.float32)
    if ties:
        scores = np.round(scores * 4) / 4
    m = Model()
    if quantized:
        params = [{"scale": 4 / 255, "zero_point": 131}, {"scale": 1 / 256, "zero_point": 3}, {"scale": 1 / 255, "zero_point": 0}]
        arrays = [np.clip(np.round(a / p["scale"]) + p["zero_point"], 0, 255).astype(np.uint8)
                  for a, p in zip((encoded, scores, anchors), params)]
        if ties:
            arrays[1] = arrays[1] // 64 * 64
    else:
        params, arrays = [{}] * 3, [encoded, scores, anchors]
    dtype = "uint8" if quantized else "float32"
    inputs = [m.input("boxes", dtype, arrays[0].shape, **params[0]), m.input("scores", dtype, arrays[1].shape, **params[1]),
              m.const("anchors", arrays[2], **params[2])]
    places = max_detections * max_classes
    outputs = [m.output("detected", "float32", [1, places, 4]), m.output("classes", "float32", [1, places]),
               m.output("detected_scores", "float32", [1, places]), m.output("number", "float32", [1])]
    fields = {"max_detections": max_detections, "max_classes_per_detection": max_classes, "use_regular_nms": regular,
              "nms_score_threshold": score_threshold, "nms_iou_threshold": iou_threshold, "num_classes": classes, **SCALES}
    if per_class is not None:
        fields["detections_per_class"] = per_class
    fields.update(changes)
    m.op(OPERATOR, inputs, outputs, custom_options=fields)
    return (OPERATOR, name, m, arrays[:2]) if options is None else (OPERATOR, name, m, arrays[:2], options)


def cases():
    for quantized in (False, True):
        kind = "uint8" if quantized else "float"
        for i, iou in enumerate((0.1, 0.5, 1.0)):
            yield detection(f"{kind}_fast_iou{i}", iou_threshold=iou, boxes=20, quantized=quantized, max_detections=3)
            yield detection(f"{kind}_regular_iou{i}", iou_threshold=iou, regular=True, quantized=quantized)
        for background in (0, 1):
            yield detection(f"{kind}_fast_classes_{background}", classes=5, background=background, max_classes=3, quantized=quantized)
            yield detection(f"{kind}_regular_classes_{background}", classes=5, background=background, regular=True, quantized=quantized)
        yield detection(f"{kind}_fast_threshold", boxes=24, score_threshold=0.6, quantized=quantized)
        yield detection(f"{kind}_regular_threshold", score_threshold=0.6, regular=True, max_detections=8, quantized=quantized)
        yield detection(f"{kind}_regular_nothing", score_threshold=1.5, regular=True, quantized=quantized)
        yield detection(f"{kind}_regular_per_class", per_class=2, regular=True, max_detections=9, quantized=quantized)
        yield detection(f"{kind}_regular_few_boxes", boxes=3, regular=True, max_detections=9, quantized=quantized)
        yield detection(f"{kind}_fast_ties", boxes=16, ties=True, quantized=quantized)
        yield detection(f"{kind}_regular_ties", boxes=16, ties=True, regular=True, max_detections=10, quantized=quantized)
        yield detection(f"{kind}_keypoints", coordinates=8, quantized=quantized)
        yield detection(f"{kind}_all_classes", classes=3, background=0, max_classes=3, max_detections=3, quantized=quantized)
    for name, changes in (("iou_zero", {"nms_iou_threshold": 0.0}), ("iou_beyond", {"nms_iou_threshold": 1.1}),
                          ("num_classes", {"num_classes": 1})):
        yield detection(f"refused_{name}", options={"expect_error": True}, changes=changes)
    yield from suppression_cases()


def suppression(name, boxes=24, *, most=8, iou=0.5, score=0.0, sigma=None, ties=False, flipped=False, flat=False, nan=False,
                most_is_input=False, options=None):
    """V5 where sigma is given. flipped: corners in any order; flat: some boxes have no area."""
    operator = "NON_MAX_SUPPRESSION_V4" if sigma is None else "NON_MAX_SUPPRESSION_V5"
    rng = seeded(f"{operator} {name}")
    centers, sizes = rng.randint(1, 5, [boxes, 2]) / 5, rng.uniform(0.1, 0.5, [boxes, 2])
    if flat:
        sizes[::3, 0] = 0
    corners = np.concatenate([centers - sizes / 2, centers + sizes / 2], axis=1)
    if flipped:
        corners[::2] = corners[::2][:, [2, 1, 0, 3]]
        corners[::3] = corners[::3][:, [0, 3, 2, 1]]
    scores = rng.uniform(0, 1, boxes)
    if ties:
        scores = np.round(scores * 4) / 4
    if nan:
        scores[3], corners[5, 1] = np.nan, np.nan
    m = Model()
    inputs = [m.input("boxes", "float32", [boxes, 4]), m.input("scores", "float32", [boxes])]
    arrays = [corners.astype(np.float32), scores.astype(np.float32)]
    if most_is_input:
        inputs.append(m.input("most", "int32", []))
        arrays.append(np.array(most, np.int32))
    else:
        inputs.append(m.const("most", np.array(most, np.int32), "int32"))
    for limit, value in (("iou", iou), ("score", score), ("sigma", sigma)):
        if value is not None:
            inputs.append(m.const(limit, np.array(value, np.float32), "float32"))
    room = {"shape_signature": [-1]} if most_is_input else {}
    outputs = [m.output("chosen", "int32", [1 if most_is_input else max(most, 0)], **room)]
    if sigma is not None:
        outputs.append(m.output("left", "float32", [1 if most_is_input else max(most, 0)], **room))
    outputs.append(m.output("number", "int32", []))
    m.op(operator, inputs, outputs)
    # exp differs in the last bit between C libraries.
    options = options or ({"tolerance": 1e-6} if sigma else {})
    return operator, name, m, arrays, options


def suppression_cases():
    for sigma in (None, 0.0, 0.5, 0.1):
        kind = "hard" if sigma is None else f"sigma{sigma}"
        for iou in (0.0, 0.25, 0.5, 1.0):
            yield suppression(f"{kind}_iou{iou}", iou=iou, sigma=sigma)
        yield suppression(f"{kind}_score", score=0.4, sigma=sigma, most=20)
        yield suppression(f"{kind}_nothing", score=1.5, sigma=sigma)
        yield suppression(f"{kind}_many", boxes=60, most=60, iou=0.3, sigma=sigma)
        yield suppression(f"{kind}_ties", boxes=40, most=30, ties=True, sigma=sigma)
        yield suppression(f"{kind}_flipped", flipped=True, most=20, iou=0.3, sigma=sigma)
        yield suppression(f"{kind}_flat", flat=True, most=20, sigma=sigma)
        yield suppression(f"{kind}_nan", nan=True, most=20, sigma=sigma)
        yield suppression(f"{kind}_open_size", most_is_input=True, most=5, sigma=sigma)
        yield suppression(f"{kind}_none_wanted", most=0, sigma=sigma)
        yield suppression(f"{kind}_one_box", boxes=1, sigma=sigma)
    yield suppression("refused_negative_size", most=-1, options={"expect_error": True})
    yield suppression("refused_negative_sigma", sigma=-0.5, options={"expect_error": True})
