#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `reef convert` makes of ONNX models: the same numbers, no stray TRANSPOSE, in little time and memory.

    bench/onnx_import.py build/reef ZOO [--models NAME,...] [--limit N]     every .onnx of ZOO/onnx on its evaluation data
    bench/onnx_import.py build/reef ZOO --int8                              those of ZOO/onnx_int8_peer (QDQ), made integer
    bench/onnx_import.py build/reef --large                                 time and memory of a model of 25.6 million parameters

Converted models run in LiteRT, the originals in ONNX Runtime, on the same samples. "Difference" is the largest one of any
element, relative to the largest element of that output; ends with 1 if it is above 1e-4, or if a figure is more than 0.3 points (0.05 dB)
below ONNX Runtime's, with its graph optimizations or without: these two differ by as much among themselves.
"""
import argparse, collections, json, os, pathlib, subprocess, sys, tempfile, time

import numpy as np

from quantized_accuracy import MODELS, figure, normalized

DATA = {"cifar": ("cifar10_eval", "images", "labels", "top1"), "fashion": ("fashion_eval", "images", "labels", "top1"),
        "shapes": ("shapes_eval", "images", "boxes", "map50"), "text": ("text_eval", "ids", "labels", "top1")}


def data_of(zoo, name, limit):
    base = name.replace("_dynamo", "").replace("_ort_minmax", "")
    file, inputs, truths, metric = MODELS.get(base, DATA[name.split("_")[0]])
    arrays = np.load(zoo / "data" / (file + ".npz"))
    return arrays[inputs][:limit], arrays[truths][:limit], "" if "embedding" in name else metric


def onnx_session(path, optimized=True):
    import onnxruntime as ort
    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def run(sample):
        value = normalized(sample).transpose(2, 0, 1) if sample.dtype == np.uint8 else sample.astype(np.int64)
        return session.run(None, {name: value[None]})
    run.names = [output.name for output in session.get_outputs()]
    return run


class Lite:
    def __init__(self, path):
        from ai_edge_litert.interpreter import Interpreter
        self.lite = Interpreter(model_path=str(path), num_threads=2)
        self.lite.allocate_tensors()
        self.into = self.lite.get_input_details()[0]
        self.ops = collections.Counter(d["op_name"] for d in self.lite._get_ops_details() if d["op_name"] != "DELEGATE")

    def __call__(self, sample):
        value = (normalized(sample) if sample.dtype == np.uint8 else sample)[None].reshape(self.into["shape"])
        scale, zero = self.into["quantization"]
        if self.into["dtype"] in (np.int8, np.uint8) and scale > 0:
            limits = np.iinfo(self.into["dtype"])
            value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
        self.lite.set_tensor(self.into["index"], np.ascontiguousarray(value.astype(self.into["dtype"])))
        self.lite.invoke()
        results = {}
        for detail in self.lite.get_output_details():
            y = self.lite.get_tensor(detail["index"])
            scale, zero = detail["quantization"]
            results[detail["name"]] = (y.astype(np.float32) - zero) * scale if scale > 0 and y.dtype != np.float32 else y
        return results


def channels_last(array, shape):
    return np.moveaxis(array, 1, -1) if array.ndim >= 3 and list(array.shape) != list(shape) else array


def convert(reef, path, target):
    began = time.perf_counter()
    done = subprocess.run([str(reef), "convert", str(path), "-o", str(target)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr.strip()}")
    return time.perf_counter() - began, done.stdout


def shown(metric, value):
    return "" if not metric else "%.3f dB" % value if metric == "psnr" else "%.2f %%" % (100 * value)


def is_below(metric, ours, theirs):
    return bool(metric) and ours < theirs - (0.05 if metric == "psnr" else 0.003)


def floats(args, work):
    print("| model | samples | largest difference | ONNX Runtime | Reef, in LiteRT | operators | TRANSPOSE |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    failed = 0
    for path in sorted((args.zoo / "onnx").glob("*.onnx")):
        if args.models and path.stem not in args.models.split(","):
            continue
        samples, truths, metric = data_of(args.zoo, path.stem, args.limit)
        convert(args.reef, path, work / "model.tflite")
        theirs, lite = onnx_session(path), Lite(work / "model.tflite")
        worst, first, second = 0.0, [], []
        for sample in samples:
            wanted, got = theirs(sample), lite(sample)
            for name, array in zip(theirs.names, wanted):
                array = channels_last(array, got[name].shape)
                worst = max(worst, float(np.abs(got[name] - array).max() / np.abs(array).max()))
            first.append(channels_last(wanted[0], got[theirs.names[0]].shape)[0])
            second.append(got[theirs.names[0]][0])
        a, b = (figure(metric, outputs, truths)[0] if metric else 0 for outputs in (first, second))
        failed += worst > 1e-4 or is_below(metric, b, a)
        # 0 TRANSPOSE in the file; LiteRT shows what it runs, without those that a delegate hides.
        print(f"| {path.stem} | {len(samples)} | {worst:.1e} | {shown(metric, a)} | {shown(metric, b)} | {operators(args.reef, work)} |", flush=True)
    return failed


def operators(reef, work):
    done = subprocess.run([str(reef), "inspect", str(work / "model.tflite"), "--json"], capture_output=True, text=True)
    kinds = [op["type"] for op in json.loads(done.stdout)["subgraphs"][0]["operators"]]
    return f"{len(kinds)} | {kinds.count('TRANSPOSE')}"


def integers(args, work):
    print("| model | samples | ONNX Runtime | without its optimizations | Reef, in LiteRT | operators left in float |")
    print("| --- | --- | --- | --- | --- | --- |")
    failed = 0
    for path in sorted((args.zoo / "onnx_int8_peer").glob("*.onnx")):
        name = path.stem.replace("_ort_minmax", "")
        if args.models and name not in args.models.split(","):
            continue
        samples, truths, metric = data_of(args.zoo, path.stem, args.limit)
        _, text = convert(args.reef, path, work / "model.tflite")
        runs = [onnx_session(path), onnx_session(path, optimized=False), Lite(work / "model.tflite")]
        values = []
        for run in runs:
            outputs = [run(sample) for sample in samples]
            outputs = [next(iter(o.values())) if isinstance(o, dict) else np.moveaxis(o[0], 1, -1) if metric == "psnr" else o[0] for o in outputs]
            values.append(figure(metric, [o[0] for o in outputs], truths)[0])
        failed += is_below(metric, values[2], min(values[:2]))
        print(f"| {name} | {len(samples)} | {' | '.join(shown(metric, v) for v in values)} | {text.count('stays float')} |", flush=True)
    return failed


def large_model(path):
    """ResNet-50's layers with random weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    random, nodes, constants = np.random.default_rng(1), [], []

    def constant(array):
        constants.append(numpy_helper.from_array(array.astype(np.float32), f"c{len(constants)}"))
        return constants[-1].name

    def node(kind, inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def conv(x, inputs, outputs, window, stride, relu=True):
        weights = random.standard_normal((outputs, inputs, window, window)) / np.sqrt(inputs * window * window)
        x = node("Conv", [x, constant(weights)], kernel_shape=[window] * 2, strides=[stride] * 2, pads=[window // 2] * 4)
        x = node("BatchNormalization", [x] + [constant(random.uniform(0.5, 1, outputs)) for _ in range(4)])
        return node("Relu", [x]) if relu else x

    x = node("MaxPool", [conv("input", 3, 64, 7, 2)], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            step = stride if i == 0 else 1
            y = conv(conv(conv(x, channels, width, 1, 1), width, width, 3, step), width, 4 * width, 1, 1, relu=False)
            if i == 0:
                x = conv(x, channels, 4 * width, 1, step, relu=False)
            channels = 4 * width
            x = node("Relu", [node("Add", [x, y])])
    x = node("Flatten", [node("GlobalAveragePool", [x])])
    x = node("Gemm", [x, constant(random.standard_normal((1000, 2048)) / 45), constant(random.standard_normal(1000))], transB=1)
    graph = helper.make_graph(nodes, "resnet50", [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 3, 224, 224])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", 1000])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return sum(int(np.prod(c.dims)) for c in constants)


def large(args, work):
    parameters = large_model(str(work / "large.onnx"))
    size = os.path.getsize(work / "large.onnx")
    # Measured by a small process: what a child inherits of its parent's memory counts as its own.
    watch = ("import os, subprocess, sys, time\nbegan = time.perf_counter()\n"
             "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)\n_, status, used = os.wait4(child.pid, 0)\n"
             "print(status, time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)")
    command = [sys.executable, "-S", "-c", watch, str(args.reef), "convert", str(work / "large.onnx"), "-o", str(work / "large.tflite")]
    rows = []
    for _ in range(5):
        status, *row = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        if status != "0":
            raise SystemExit("the conversion failed")
        rows.append([float(number) for number in row])
    seconds, busy, peak = (np.array(rows)[:, i] for i in range(3))
    print(f"{parameters / 1e6:.1f} million parameters, file {size / 1e6:.0f} MB: converted in {seconds.min():.2f} s at best, {np.median(seconds):.2f} s in the "
          f"middle of {len(rows)} ({busy.min():.2f} s of the processor), at most {peak.max() / 1e6:.0f} MB in use, {peak.max() / size:.2f} times the "
          f"file (measured, {os.cpu_count()} cores)")
    return int(seconds.min() > 2 or peak.max() > 3 * size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("zoo", type=pathlib.Path, nargs="?")
    parser.add_argument("--models")
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--large", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        sys.exit(1 if (large if args.large else integers if args.int8 else floats)(args, work) else 0)


if __name__ == "__main__":
    main()
