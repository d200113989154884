# SPDX-License-Identifier: Apache-2.0
"""Convnets, detectors and pictures, as exporters write them."""
import numpy as np
from onnx import TensorProto as T, numpy_helper

from onnx_export_graph import CASES, case


@case()
def dynamic_batch_cnn(g):
    x = g.input("input", [1, 3, 16, 16], ["batch", 3, 16, 16])
    x = g.node("Relu", g.norm(g.conv(x, 3, 8, 3, bias=False), 8))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 0, 0], ceil_mode=1)
    x = g.node("Relu", g.conv(x, 8, 8, 3, stride=2, groups=8))
    flat = g.node("Reshape", x, g.shape_of(g.size(x, 0), -1))
    g.output(g.node("Gemm", flat, g.weights(5, 8 * 4 * 4), g.weights(5), transB=1))


@case()
def mobilenet_v3_block(g):
    x = g.input("input", [1, 8, 12, 12])
    y = g.node("HardSwish", g.norm(g.conv(x, 8, 16, 1, bias=False), 16), domain="")
    y = g.node("HardSwish", g.norm(g.conv(y, 16, 16, 5, groups=16, bias=False), 16))
    s = g.node("Relu", g.conv(g.node("GlobalAveragePool", y), 16, 4, 1))
    s = g.node("HardSigmoid", g.conv(s, 4, 16, 1), alpha=1 / 6, beta=0.5)
    y = g.norm(g.conv(g.node("Mul", s, y), 16, 8, 1, bias=False), 8)
    g.output(g.node("Add", x, y))


@case(transposes=2)
def shuffle_net_block(g):
    x = g.input("input", [1, 8, 6, 10], ["batch", 8, 6, 10])
    a, b = g.node("Split", x, g.ints(4, 4), outputs=2, axis=1)
    b = g.node("Relu", g.conv(g.conv(b, 4, 4, 1), 4, 4, 3, groups=4))
    y = g.node("Concat", a, b, axis=1)
    n, h, w = g.size(y, 0), g.size(y, 2), g.size(y, 3)
    per = g.node("Div", g.size(y, 1), g.const(np.int64(2)))
    y = g.node("Reshape", y, g.shape_of(n, 2, g.node("Cast", per, to=T.INT64), h, w))
    y = g.node("Transpose", y, perm=[0, 2, 1, 3, 4])
    y = g.node("Reshape", y, g.shape_of(n, -1, h, w))
    g.output(g.conv(y, 8, 8, 3))


@case()
def interpolate_nearest(g):
    x = g.conv(g.input("input", [1, 4, 5, 7], ["n", 4, 5, 7]), 4, 4, 3)
    y = g.node("Resize", x, "", g.const(np.array([1, 1, 2, 2], np.float32)), coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")
    sizes = g.node("Concat", g.node("Slice", g.node("Shape", y), g.ints(0), g.ints(2), g.ints(0)), g.ints(20, 21), axis=0)
    y = g.node("Resize", g.conv(y, 4, 4, 1), "", "", sizes, coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")
    g.output(g.conv(y, 4, 2, 3))


@case()
def interpolate_by_odd_factors(g):
    """Factors that leave no whole size, whose products and quotients end elsewhere in single precision: 10 * 0.7, 7 / 0.7."""
    x = g.conv(g.input("input", [1, 4, 13, 10]), 4, 4, 1)
    factors = g.const(np.array([1, 1, 0.7, 0.7], np.float32))
    a = g.node("Resize", x, "", factors, coordinate_transformation_mode="align_corners", mode="linear")
    b = g.node("Resize", x, "", factors, coordinate_transformation_mode="asymmetric", mode="nearest", nearest_mode="floor")
    g.output(g.conv(g.node("Add", a, b), 4, 2, 3))


@case(opset=10)
def interpolate_before_opset_11(g):
    """The nearest place is the one below where an axis grows, and the one above where it shrinks."""
    x = g.conv(g.input("input", [1, 4, 10, 9]), 4, 4, 1)
    y = g.node("Resize", x, g.const(np.array([1, 1, 0.7, 2], np.float32)), mode="nearest")
    y = g.node("Resize", y, g.const(np.array([1, 1, 1.5, 0.7], np.float32)), mode="linear")
    g.output(g.conv(y, 4, 2, 3))


@case()
def interpolate_bilinear(g):
    x = g.conv(g.input("input", [1, 4, 6, 6]), 4, 4, 3)
    a = g.node("Resize", x, "", g.const(np.array([1, 1, 2, 2], np.float32)), coordinate_transformation_mode="pytorch_half_pixel", mode="linear", cubic_coeff_a=-0.75)
    b = g.node("Resize", x, "", "", g.ints(1, 4, 12, 12), coordinate_transformation_mode="align_corners", mode="linear")
    g.output(g.conv(g.node("Add", a, b), 4, 2, 3))


@case()
def interpolate_bicubic(g):
    x = g.conv(g.input("input", [1, 4, 6, 6]), 4, 4, 3)
    y = g.node("Resize", x, "", "", g.ints(1, 4, 9, 11), coordinate_transformation_mode="pytorch_half_pixel", mode="cubic", cubic_coeff_a=-0.75)
    g.output(g.conv(y, 4, 2, 3))


@case()
def interpolate_antialias(g):
    x = g.conv(g.input("input", [1, 4, 12, 12]), 4, 4, 3)
    y = g.node("Resize", x, "", "", g.ints(1, 4, 5, 7), coordinate_transformation_mode="half_pixel", mode="linear", antialias=1)
    g.output(g.conv(y, 4, 2, 3))


CASES["interpolate_antialias"] = (*CASES["interpolate_antialias"][:2], 18, ())


@case()
def group_norm(g):
    x = g.conv(g.input("input", [1, 3, 8, 8], ["batch", 3, 8, 8]), 3, 8, 3)
    y = g.node("Reshape", x, g.ints(0, 2, -1))
    y = g.node("InstanceNormalization", y, g.const(np.ones(2, np.float32)), g.const(np.zeros(2, np.float32)), epsilon=1e-5)
    y = g.node("Reshape", y, g.node("Shape", x))
    y = g.node("Add", g.node("Mul", y, g.weights(8, 1, 1)), g.weights(8, 1, 1))
    g.output(g.conv(g.node("Mul", y, g.node("Sigmoid", y)), 8, 4, 3))


@case()
def pixel_shuffle(g):
    x = g.conv(g.input("input", [1, 3, 6, 6]), 3, 12, 3)
    x = g.node("PRelu", g.node("DepthToSpace", x, blocksize=2, mode="CRD"), g.weights(3, 1, 1))
    y = g.conv(x, 3, 8, 3)  # written out, as older exporters do
    y = g.node("Reshape", y, g.ints(1, 2, 2, 2, 12, 12))
    y = g.node("Transpose", y, perm=[0, 1, 4, 2, 5, 3])
    g.output(g.conv(g.node("Reshape", y, g.ints(1, 2, 24, 24)), 2, 3, 3))


@case(transposes=1)
def pixel_unshuffle(g):
    x = g.input("input", [1, 3, 8, 8])
    y = g.node("Reshape", x, g.ints(1, 3, 4, 2, 4, 2))
    y = g.node("Reshape", g.node("Transpose", y, perm=[0, 1, 3, 5, 2, 4]), g.ints(1, 12, 4, 4))
    g.output(g.conv(y, 12, 5, 3))


@case()
def pad_reflect(g):
    x = g.input("input", [1, 3, 8, 8], ["batch", 3, 8, 8])
    # The exporter's way from F.pad's list (last axis first) to ONNX's.
    given = g.ints(1, 2, 3, 1)
    missing = g.node("Sub", g.node("Mul", g.node("Size", g.node("Shape", x)), g.const(np.int64(2))), g.node("Gather", g.node("Shape", given), g.const(np.int64(0)), axis=0))
    zeros = g.node("ConstantOfShape", g.node("Unsqueeze", missing, g.ints(0)), value=numpy_helper.from_array(np.zeros(1, np.int64)))
    pads = g.node("Reshape", g.node("Concat", given, zeros, axis=0), g.ints(-1, 2))
    pads = g.node("Slice", pads, g.ints(-1), g.ints(-(2**63) + 1), g.ints(0), g.ints(-1))
    pads = g.node("Cast", g.node("Reshape", g.node("Transpose", pads, perm=[1, 0]), g.ints(-1)), to=T.INT64)
    y = g.node("Pad", x, pads, mode="reflect")
    g.output(g.conv(y, 3, 4, 3, pad=0))


@case()
def unet_up(g):
    x = g.input("input", [1, 4, 8, 8], ["batch", 4, 8, 8])
    skip = g.node("Relu", g.conv(x, 4, 6, 3))
    y = g.node("Relu", g.conv(g.node("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 6, 8, 3))
    y = g.node("ConvTranspose", y, g.weights(8, 6, 2, 2), g.weights(6), kernel_shape=[2, 2], strides=[2, 2])
    g.output(g.conv(g.node("Concat", y, skip, axis=1), 12, 2, 1))


@case(transposes=1)
def yolo_head(g):
    x = g.node("LeakyRelu", g.conv(g.input("input", [1, 3, 16, 16], ["batch", 3, 16, 16]), 3, 8, 3, stride=2), alpha=0.1)
    y = g.conv(x, 8, 2 * 7, 1)
    y = g.node("Reshape", y, g.shape_of(g.size(y, 0), 2, 7, g.size(y, 2), g.size(y, 3)))
    y = g.node("Sigmoid", g.node("Transpose", y, perm=[0, 1, 3, 4, 2]))
    xy, wh, rest = g.node("Split", y, g.ints(2, 2, 3), outputs=3, axis=4)
    grid = g.const(np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1)[None, None].astype(np.float32) - 0.5)
    xy = g.node("Mul", g.node("Add", g.node("Mul", xy, g.const(np.float32(2))), grid), g.const(np.float32(2)))
    wh = g.node("Mul", g.node("Pow", g.node("Mul", wh, g.const(np.float32(2))), g.const(np.float32(2))), g.weights(1, 2, 1, 1, 2, scale=4))
    y = g.node("Concat", xy, wh, rest, axis=4)
    g.output(g.node("Reshape", y, g.shape_of(g.size(x, 0), -1, 7)))


@case(transposes=2)
def detection_with_nms(g):
    x = g.input("input", [1, 3, 16, 16])
    y = g.node("Sigmoid", g.conv(x, 3, 12, 3, stride=2))
    y = g.node("Transpose", g.node("Reshape", y, g.ints(1, 6, 128)), perm=[0, 2, 1])
    boxes, scores = g.node("Split", y, g.ints(4, 2), outputs=2, axis=2)
    chosen = g.node("NonMaxSuppression", boxes, g.node("Transpose", scores, perm=[0, 2, 1]), g.ints(4), g.const(np.array([0.3], np.float32)), g.const(np.array([0.2], np.float32)), center_point_box=1)
    g.output(chosen, "chosen", T.INT64)


@case(transposes=2)
def distribution_focal_loss_head(g):
    x = g.input("input", [1, 3, 16, 16])
    y = g.conv(g.node("Mul", *(lambda c: (c, g.node("Sigmoid", c)))(g.conv(x, 3, 8, 3, stride=2))), 8, 18, 1)
    y = g.node("Reshape", y, g.ints(1, 18, -1))
    boxes, classes = g.node("Split", y, g.ints(16, 2), outputs=2, axis=1)
    boxes = g.node("Softmax", g.node("Transpose", g.node("Reshape", boxes, g.ints(1, 4, 4, 64)), perm=[0, 2, 1, 3]), axis=1)
    boxes = g.node("Reshape", g.node("Conv", boxes, g.const(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)), kernel_shape=[1, 1]), g.ints(1, 4, 64))
    low, high = g.node("Slice", boxes, g.ints(0), g.ints(2), g.ints(1)), g.node("Slice", boxes, g.ints(2), g.ints(4), g.ints(1))
    grid = g.const(np.stack(np.meshgrid(np.arange(8) + 0.5, np.arange(8) + 0.5)).reshape(1, 2, 64).astype(np.float32))
    start, end = g.node("Sub", grid, low), g.node("Add", grid, high)
    center = g.node("Div", g.node("Add", start, end), g.const(np.float32(2)))
    g.output(g.node("Concat", g.node("Mul", g.node("Concat", center, g.node("Sub", end, start), axis=1), g.const(np.float32(2))), g.node("Sigmoid", classes), axis=1))


@case()
def style_transfer(g):
    x = g.input("input", [1, 3, 10, 12], ["batch", 3, 10, 12])
    y = g.node("Pad", x, g.ints(0, 0, 2, 2, 0, 0, 2, 2), mode="reflect")
    y = g.node("InstanceNormalization", g.conv(y, 3, 6, 5, pad=0), g.weights(6), g.weights(6), epsilon=1e-5)
    y = g.node("Relu", y)
    y = g.node("ConvTranspose", y, g.weights(6, 1, 4, 4), g.weights(6), kernel_shape=[4, 4], strides=[2, 2], pads=[1, 1, 1, 1], group=6)
    y = g.node("AveragePool", y, kernel_shape=[5, 6], strides=[5, 6])  # adaptive, to 4 x 4
    g.output(g.node("Tanh", g.conv(y, 6, 3, 3)))


@case(transposes=0)
def spatial_transformer(g):
    x, theta = g.input("input", [1, 3, 6, 8]), g.input("theta", [1, 2, 3])
    grid = g.node("AffineGrid", theta, g.ints(1, 3, 6, 8), align_corners=0)
    g.output(g.conv(g.node("GridSample", g.conv(x, 3, 3, 3), grid, mode="linear", padding_mode="zeros", align_corners=0), 3, 2, 3))


CASES["spatial_transformer"] = (*CASES["spatial_transformer"][:2], 20, ())


@case()
def chosen_boxes(g):
    """What torchvision.ops.nms and an index behind it become. As many rows as there can be, so that sizes are the same."""
    x = g.input("input", [1, 3, 8, 8], low=0)
    rows = g.node("Sigmoid", g.node("Reshape", g.conv(x, 3, 5, 3, stride=4), g.ints(5, 4)))
    sides, scores = g.node("Split", rows, g.ints(4, 1), outputs=2, axis=0)
    starts = g.const(np.array([[0, 0], [3, 0], [0, 3], [3, 3]], np.float32))
    sides = g.node("Transpose", sides, perm=[1, 0])
    low, high = g.node("Split", sides, g.ints(2, 2), outputs=2, axis=1)
    boxes = g.node("Concat", g.node("Add", low, starts), g.node("Add", g.node("Add", high, starts), g.const(np.float32(1))), axis=1)
    chosen = g.node("NonMaxSuppression", g.node("Unsqueeze", boxes, g.ints(0)), g.node("Unsqueeze", scores, g.ints(0)), g.ints(100), g.const(np.array([0.5], np.float32)))
    which = g.node("Reshape", g.node("Gather", chosen, g.ints(2), axis=1), g.ints(-1))
    g.output(g.node("Gather", boxes, which, axis=0))


@case()
def local_response_norms(g):
    """AlexNet's normalization over channels, with numbers that show a channel left out of a window."""
    x = g.input("input", [1, 8, 6, 6], low=-3, high=3)
    x = g.node("LRN", x, size=5, alpha=0.5, beta=0.75, bias=1.0)
    x = g.node("LRN", g.conv(x, 8, 5, 3), size=1, alpha=0.2, beta=0.5, bias=2.0)
    g.output(g.node("LRN", x, size=3, alpha=0.3, beta=0.75, bias=1.0))


@case()
def windows_beyond_the_end(g):
    """ceil_mode: the last window may reach beyond the input, even where it is larger than all of it."""
    x = g.input("input", [1, 4, 7, 2])
    y = g.node("MaxPool", x, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)
    g.output(y, "largest")
    g.output(g.node("AveragePool", x, kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1), "means")
