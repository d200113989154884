#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of quantized ONNX models (QDQ) in ONNX Runtime and, converted by `reef convert`, in LiteRT.

  check_onnx_int8.py REEF ZOO [name...] [--samples N]

ZOO has onnx_int8_peer/*.onnx and data/*.npz. Prints per model: the metric (top-1, PSNR in dB, or for detection the mean
difference of outputs), both values, and how many operators of the converted model are integer and float. Ends with 1 if
a top-1 is more than 0.3 points lower, or a PSNR more than 0.05 dB.
"""
import argparse, glob, os, subprocess, sys, tempfile
import numpy as np
import onnxruntime as ort
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def load(zoo, name):
    """Inputs as ONNX takes them, and targets."""
    kind = name.split("_")[0]
    if "denoise" in name:
        z = np.load(os.path.join(zoo, "data/denoise_eval.npz"))
        return (z["noisy"].astype(np.float32) / 127.5 - 1).transpose(0, 3, 1, 2), z["clean"]
    if kind == "text":
        z = np.load(os.path.join(zoo, "data/text_eval.npz"))
        return z["ids"].astype(np.int64), z["labels"]
    z = np.load(os.path.join(zoo, "data/%s_eval.npz" % {"cifar": "cifar10"}.get(kind, kind)))
    return ((z["images"].astype(np.float32) - 127.5) / 127.5).transpose(0, 3, 1, 2), z.get("labels")


class Lite:
    def __init__(self, path):
        self.run_ = Interpreter(model_path=path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        self.run_.allocate_tensors()
        self.i, self.o = self.run_.get_input_details()[0], self.run_.get_output_details()[0]

    def __call__(self, x):
        if x.ndim == 4 and list(x.shape) != list(self.i["shape"]):
            x = x.transpose(0, 2, 3, 1)
        elif x.ndim == 4 and x.shape[1] != x.shape[3] and self.i["shape"][3] in (1, 3):
            x = x.transpose(0, 2, 3, 1)
        scale, zero = self.i["quantization"]
        if self.i["dtype"] in (np.int8, np.uint8) and scale > 0:
            info = np.iinfo(self.i["dtype"])
            x = np.clip(np.round(x / scale) + zero, info.min, info.max)
        self.run_.set_tensor(self.i["index"], np.ascontiguousarray(x.astype(self.i["dtype"])))
        self.run_.invoke()
        y = self.run_.get_tensor(self.o["index"])
        scale, zero = self.o["quantization"]
        return (y.astype(np.float32) - zero) * scale if scale > 0 and y.dtype != np.float32 else y


def metric(name, outputs, targets):
    if "denoise" in name:
        pictures = np.clip((np.stack(outputs) + 1) * 127.5, 0, 255)
        mse = ((pictures - targets[: len(outputs)].astype(np.float64)) ** 2).reshape(len(outputs), -1).mean(1)
        return float((10 * np.log10(255**2 / mse)).mean())
    if targets is None:
        return 0.0
    return float(np.mean([int(np.argmax(y)) == int(t) for y, t in zip(outputs, targets)])) * 100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reef")
    parser.add_argument("zoo")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=2000)
    args = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(glob.glob(os.path.join(args.zoo, "onnx_int8_peer/*.onnx"))):
            name = os.path.basename(path)
            if args.names and not any(n in name for n in args.names):
                continue
            target = os.path.join(folder, name + ".tflite")
            done = subprocess.run([args.reef, "convert", path, "-o", target], capture_output=True, text=True)
            if done.returncode != 0:
                print("FAIL %s: %s" % (name, done.stderr.strip()), flush=True)
                failed += 1
                continue
            floats = done.stdout.count("stays float")
            options = ort.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            session, lite = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]), Lite(target)
            inputs, targets = load(args.zoo, name)
            inputs = inputs[: args.samples]
            ours, theirs, worst = [], [], []
            for k in range(len(inputs)):
                x = inputs[k : k + 1]
                a = session.run(None, {session.get_inputs()[0].name: x})[0]
                c = lite(x)
                if a.ndim == 4 and a.shape != c.shape:
                    a = a.transpose(0, 2, 3, 1)
                theirs.append(a[0])
                ours.append(c[0])
                worst.append(float(np.abs(a[0] - c[0]).mean()))
            m_theirs, m_ours = metric(name, theirs, targets), metric(name, ours, targets)
            bad = m_ours < m_theirs - (0.05 if "denoise" in name else 0.3)
            failed += bad
            print("%-4s %-36s ORT %.3f  Reef in LiteRT %.3f  mean difference of outputs %.5f  float ops %d" % ("FAIL" if bad else "ok", name, m_theirs, m_ours, np.mean(worst), floats), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
