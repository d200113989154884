#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latencies that the virtual device simulates beside those that others measured on real Edge TPUs.

Usage: simulated_latency.py REEF PAIRS    (PAIRS: folder of compiled models, <name>/v*_edgetpu.tflite)

Prints a Markdown table and the mean error. Published values are medians or means of whole inferences, rounded as they
were published; where several people measured the same network on the same kind of link, each has a row.
"""
import json
import subprocess
import sys
from pathlib import Path

CORAL = "coral.ai benchmarks"
MODELS = "coral.ai models page"
ENGINE = "Coral test data, BasicEngine"
FAQ = "Coral FAQ 2019"
IWATAKE = "iwatake2222/EdgeTPU_Analysis"
LIBREDGE = "LibrEdgeTPU (pyusb)"

MN1 = ("mobilenet_v1_0.25_128_quant", "v15_edgetpu")
EXTRACTOR = ("mobilenet_v1_1.0_224_quant_embedding_extractor", "v15_edgetpu")  # published: with the head
MN2 = ("mobilenet_v2_1.0_224_quant", "v2_edgetpu")
POSE_S = ("posenet_353_481", "v15_edgetpu")
POSE_M = ("posenet_481_641", "v15_edgetpu")
CONV = ("op_model_conv_128x128x3x32x7x10", "v1_edgetpu")


def op(kind, size):
    return (f"op_model_{kind}_{size}x3", "v1_edgetpu")


# (pair, file), link profile, published ms, source
ROWS = [
    (MN1, "usb3", 0.9, MODELS),
    (EXTRACTOR, "usb3", 2.4, CORAL), (EXTRACTOR, "usb3", 2.17, ENGINE), (EXTRACTOR, "usb3", 2.2, FAQ),
    (EXTRACTOR, "usb3-jetson", 2.41, IWATAKE), (EXTRACTOR, "usb2", 8.49, IWATAKE),
    (EXTRACTOR, "pcie", 2.4, CORAL), (EXTRACTOR, "pcie", 2.22, ENGINE), (EXTRACTOR, "usb3-rpi4", 4.2, ENGINE),
    (MN2, "usb3", 2.6, CORAL), (MN2, "usb3", 2.29, ENGINE), (MN2, "usb3", 2.3, FAQ),
    (MN2, "usb3-jetson", 2.53, IWATAKE), (MN2, "usb2", 9.97, IWATAKE),
    (MN2, "pcie", 2.6, CORAL), (MN2, "pcie", 2.56, ENGINE), (MN2, "usb3-rpi4", 4.55, ENGINE),
    (POSE_S, "usb3", 5.8, MODELS), (POSE_M, "usb3", 10.3, MODELS),
    (CONV, "usb3-jetson", 7.82, IWATAKE), (CONV, "usb2", 8.54, IWATAKE),
    (("dense_256", "v16_edgetpu"), "usb3", 0.28, LIBREDGE), (("dense_1024", "v16_edgetpu"), "usb3", 0.29, LIBREDGE),
    (op("stride", "2x2"), "usb3-jetson", 0.292, IWATAKE), (op("stride", "64x64"), "usb3-jetson", 0.318, IWATAKE),
    (op("stride", "128x64"), "usb3-jetson", 0.346, IWATAKE), (op("stride", "128x128"), "usb3-jetson", 0.412, IWATAKE),
    (op("stride", "256x256"), "usb3-jetson", 0.924, IWATAKE),
    (op("padding", "2x2"), "usb3-jetson", 0.293, IWATAKE), (op("padding", "64x64"), "usb3-jetson", 0.787, IWATAKE),
    (op("padding", "128x64"), "usb3-jetson", 1.323, IWATAKE), (op("padding", "128x128"), "usb3-jetson", 2.397, IWATAKE),
    (op("padding", "256x256"), "usb3-jetson", 8.769, IWATAKE), (op("padding", "512x256"), "usb3-jetson", 17.79, IWATAKE),
    (op("padding_stride", "2x2"), "usb3-jetson", 0.293, IWATAKE),
    (op("padding_stride", "64x64"), "usb3-jetson", 0.296, IWATAKE),
    (op("padding_stride", "128x128"), "usb3-jetson", 0.297, IWATAKE),
    (op("padding_stride", "256x256"), "usb3-jetson", 0.307, IWATAKE),
]


def simulated_ms(reef, path, link):
    command = [reef, "run", str(path), "--device", "virtual", "--link", link, "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return sum(program["ms"] for program in report["edge_tpu"] if program["program"] != "PARAMETER_CACHING")


def main():
    reef, pairs = sys.argv[1], Path(sys.argv[2])
    print("| compiled model | link | published ms | simulated ms | error | published by |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    errors, cache = [], {}
    for (pair, file), link, published, source in ROWS:
        path = pairs / pair / f"{file}.tflite"
        if not path.exists():
            print(f"{path} is not there, left out", file=sys.stderr)
            continue
        if (path, link) not in cache:
            cache[path, link] = simulated_ms(reef, path, link)
        ms = cache[path, link]
        errors.append(ms / published - 1)
        print(f"| {pair} {file.split('_')[0]} | {link} | {published} | {ms:.3f} | {100 * errors[-1]:+.1f} % | {source} |")
    if errors:
        mean = sum(abs(e) for e in errors) / len(errors)
        print(f"\nMean absolute error {100 * mean:.1f} % over {len(errors)} rows, "
              f"worst {100 * max(errors, key=abs):+.1f} %.")


if __name__ == "__main__":
    main()
