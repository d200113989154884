# SPDX-License-Identifier: Apache-2.0
"""TFLite_Detection_PostProcess, the custom operator behind SSD models.

The fast way leaves places behind the last detection uninitialized, so its cases have more boxes than are asked for.
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
