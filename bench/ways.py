#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder of models, however they were written, through the whole chain.

    bench/tensorflow_ways.py MODELS ; bench/onnx_ways.py MODELS
    bench/ways.py build/reef MODELS [--models PATTERN,...] [--json FILE] [--peers]

MODELS has .tflite and .onnx files, with any inputs and of any types, and NAME.samples.npz beside them (input_0, input_1, ...:
samples stacked along the first axis, each with the whole shape that the model takes). A model "x_way" uses the samples of "x". For each:

  same        float models: `reef convert`, and LiteRT's outputs beside those of ONNX Runtime or LiteRT on the file itself: the largest
              difference over the largest value. Models of integers: `reef run` beside them, in steps of the output
  dB          `reef quantize --calibration minmax --held-back 0` on 8 samples, SQNR of each output in LiteRT on the rest: the worst
  auto        the same with all that Reef tries by default
  AIEQ, ORT   with --peers: AI Edge Quantizer on the converted file, ONNX Runtime's quantizer (min-max, percentile 99.999) on ONNX files
  on chip     `reef compile --verify --all-rewrites` of the quantized model (with samples, the command's default), or of the file itself where it is one
  sound       `reef audit --strict`

A command that ends otherwise than with 0 or 3, or by a signal, is a failure; so is a file that LiteRT does not run.
"""
import argparse
import fnmatch
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

from trial import attempt, in_child, reef

CALIBRATION = 8


def samples_beside(path):
    """{input: samples} for the model, from the longest name that its own begins with."""
    names = sorted((p for p in path.parent.glob("*.samples.npz") if path.stem.startswith(p.name.removesuffix(".samples.npz"))),
                   key=lambda p: len(p.name))
    data = np.load(names[-1])
    return [data[key] for key in sorted(data.files, key=lambda key: int(key.split("_")[-1]))]


def run_onnx(path, samples):
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
             "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": bool, "tensor(double)": np.float64}
    inputs = session.get_inputs()
    return [session.run(None, {i.name: np.asarray(s[k], types[i.type]) for i, s in zip(inputs, samples)}) for k in range(len(samples[0]))]


def arranged(value, shape):
    """A sample as a converted model takes it: channels last where the importer has put them there."""
    for way in (value, np.moveaxis(value, 1, -1) if value.ndim > 2 else value):
        if len(way.shape) == len(shape) and all(a == b for a, b in zip(way.shape, shape)):
            return way
    return value


def ordered(details):
    """Inputs in the order of the function that was converted: by the number at the end of their names, if all have one."""
    def number(detail):
        name = detail["name"].split(":")[0]
        return int(name.rsplit("_", 1)[-1]) if name.rsplit("_", 1)[-1].isdigit() else -1
    numbers = [number(d) for d in details]
    return [d for _, d in sorted(zip(numbers, details), key=lambda p: p[0])] if len(set(numbers)) == len(numbers) else list(details)


def run_litert(path, samples, dequantize=True):
    """LiteRT's own kernels; those of its delegate, which refuse some models, are no reference."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(model_path=str(path), num_threads=1,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    taken = ordered(interpreter.get_input_details())
    for detail, values in zip(taken, samples):
        if (detail["shape_signature"] < 0).any() or list(detail["shape"]) != list(arranged(values[0], detail["shape"]).shape):
            interpreter.resize_tensor_input(detail["index"], arranged(values[0], detail["shape"]).shape)
    interpreter.allocate_tensors()
    outputs = []
    for k in range(len(samples[0])):
        for detail, values in zip(taken, samples):
            value, (scale, zero) = arranged(values[k], detail["shape"]), detail["quantization"]
            if detail["dtype"] != np.float32 and scale:
                limits = np.iinfo(detail["dtype"])
                value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
            interpreter.set_tensor(detail["index"], value.astype(detail["dtype"]))
        interpreter.invoke()
        row = []
        for detail in interpreter.get_output_details():
            result, (scale, zero) = interpreter.get_tensor(detail["index"]), detail["quantization"]
            row.append((result.astype(np.float32) - zero) * np.float32(scale) if scale and dequantize else result)
        outputs.append(row)
    return outputs


def matched(reference, outputs):
    """Outputs in the order and layout of the reference: converters name and order them as they like. An output that Reef gave out in
    parts is joined again where a part begins it; None where nothing has the size."""
    left, result = [i for i, output in enumerate(outputs) if output.size], []
    for value in reference:
        def ways(output):
            found = [output] + ([np.moveaxis(output, -1, 1)] if output.ndim > 2 else [])
            found = [w for w in found if w.shape == value.shape] or ([output.reshape(value.shape)] if output.size == value.size else [])
            return min(found, key=lambda w: np.abs(w.astype(np.float64) - value).sum()) if found else None
        fits = [(i, ways(outputs[i])) for i in left]
        fits = [(i, w) for i, w in fits if w is not None]
        if not fits:
            parts = [np.asarray(outputs[i], np.float64) for i in left]
            joined = next((np.concatenate(parts[:n], axis) for n in range(2, len(parts) + 1) for axis in range(value.ndim)
                           if all(p.ndim == value.ndim for p in parts[:n]) and len({tuple(np.delete(p.shape, axis)) for p in parts[:n]}) == 1
                           and sum(p.shape[axis] for p in parts[:n]) == value.shape[axis]), None)
            result.append(joined if joined is not None and joined.shape == value.shape else None)
            continue
        if len(fits) > 1 and fits[0][1].shape != value.shape:
            fits.sort(key=lambda f: np.abs(f[1].astype(np.float64) - value).sum())
        best = fits[0] if len(fits) == 1 else min(fits, key=lambda f: np.abs(f[1].astype(np.float64) - value).sum())
        left.remove(best[0])
        result.append(best[1])
    return result


def figures(reference, outputs):
    """(largest difference over largest value, worst dB over outputs), over all samples."""
    pairs = [list(zip(r, matched(r, o))) for r, o in zip(reference, outputs)]
    difference, worst = 0.0, 120.0
    for column in zip(*pairs):
        if any(b is None for _, b in column):
            return float("inf"), float("-inf")
        a = np.stack([np.asarray(x, np.float64) for x, _ in column])
        b = np.stack([np.asarray(y, np.float64) for _, y in column])
        if a.size == 0:
            continue
        good = np.isfinite(a)
        if not np.isfinite(b[good]).all():
            return float("inf"), float("-inf")
        a, b = a[good], b[good]
        difference = max(difference, float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-9)))
        noise, signal = np.sum((a - b) ** 2), np.sum((a - a.mean()) ** 2)
        worst = min(worst, 120.0 if noise == 0 else 10 * np.log10(max(signal, 1e-30) / noise))
    return difference, float(worst)


def is_float(path):
    """Whether the model computes in floating point: none of its activations carries a scale."""
    if path.suffix == ".onnx":
        import onnx
        model = onnx.load(path, load_external_data=False)
        return not any(n.op_type in ("QuantizeLinear", "DequantizeLinear") or n.op_type.startswith("QLinear") for n in model.graph.node)
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    details = interpreter.get_tensor_details()
    computed = {t for op in interpreter._get_ops_details() for t in op["outputs"]}
    return not any(d["dtype"] in (np.int8, np.uint8) and d["quantization"][0] and d["index"] in computed for d in details)


def with_signature(path, out):
    """AI Edge Quantizer takes only files with a signature; older ones get one."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    if model.signatureDefs:
        return path

    def entries(tensors):
        result = []
        for i, t in enumerate(tensors):
            entry = schema.TensorMapT()
            entry.name, entry.tensorIndex = model.subgraphs[0].tensors[t].name or f"tensor_{i}".encode(), int(t)
            result.append(entry)
        return result
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = b"serving_default", 0
    signature.inputs, signature.outputs = entries(model.subgraphs[0].inputs), entries(model.subgraphs[0].outputs)
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    out.write_bytes(builder.Output())
    return out


def by_ai_edge(path, samples, reference, held_out, work):
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe
    path = with_signature(path, work / "signed.tflite")
    interpreter = Interpreter(model_path=str(path))
    key = next(iter(interpreter.get_signature_list()))
    runner = interpreter.get_signature_runner(key)
    named = {name: d for name, d in runner.get_input_details().items()}
    order = ordered(list(named.values()))
    names = [next(n for n, d in named.items() if d["name"] == o["name"]) for o in order]
    made = quantizer.Quantizer(str(path), recipe.static_wi8_ai8())
    data = {key: [{n: arranged(s[k], d["shape"]).astype(d["dtype"]) for n, d, s in zip(names, order, samples)} for k in range(CALIBRATION)]}
    (work / "aieq.tflite").write_bytes(made.quantize(made.calibrate(data)).quantized_model)
    return figures(reference, run_litert(work / "aieq.tflite", held_out))[1]


def by_onnxruntime(path, samples, reference, held_out, work, percentile):
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            import onnxruntime
            names = [i.name for i in onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()]
            self.rows = iter([{name: np.asarray(s[k]) for name, s in zip(names, samples)} for k in range(CALIBRATION)])

        def get_next(self):
            return next(self.rows, None)
    q.shape_inference.quant_pre_process(str(path), str(work / "prepared.onnx"), skip_symbolic_shape=True)
    q.quantize_static(str(work / "prepared.onnx"), str(work / "ort.onnx"), Reader(), quant_format=q.QuantFormat.QDQ, per_channel=True,
                      activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8,
                      calibrate_method=q.CalibrationMethod.Percentile if percentile else q.CalibrationMethod.MinMax)
    return figures(reference, run_onnx(work / "ort.onnx", held_out))[1]


def chip(program, row, arguments, work):
    code, said_json, said, row["compile_s"] = reef(program, "compile", *arguments, "-o", work / "compiled", "--json", "--verify", "--all-rewrites")
    if code not in (0, 3):
        return row | {"failed": f"compile ({code}): {said}"}
    made = json.loads(said_json)["files"][0]
    row["ops"], row["on_chip"], row["verified"] = made["operations"], made["operations_on_chip"], made["verified"]
    row["left"] = sorted({f"{op['type']}: {op['findings'][0]['rule']} {op['findings'][0]['particulars']}"
                          for op in made["check"]["ops"] if op["on"] != "edgetpu" and op["findings"]})[:8]
    if row["on_chip"]:
        row["sound"] = reef(program, "audit", "--strict", made["output"])[0] == 0
    return row


def measure(program, path, arguments, work):
    samples = samples_beside(path)
    calibration, held_out = [s[:CALIBRATION] for s in samples], [s[CALIBRATION:] for s in samples]
    row = {"name": path.name}
    reference = attempt((run_onnx if path.suffix == ".onnx" else run_litert), path, held_out)
    if not isinstance(reference, list):
        row["reference"] = reference
    (work / "compiled").mkdir()
    sizes = []
    if path.suffix == ".onnx":
        import onnx
        for value, s in zip(onnx.load(path, load_external_data=False).graph.input, samples):
            if any(not d.HasField("dim_value") for d in value.type.tensor_type.shape.dim):
                sizes += ["--input-shape", f"{value.name}:{','.join(map(str, s.shape[1:]))}"]
    code, _, said, _ = reef(program, "check", path, *sizes)
    if code not in (0, 3):
        return row | {"failed": f"check ({code}): {said}"}
    if not is_float(path):
        code, _, said, _ = reef(program, "convert", path, *sizes, "-o", work / "made.tflite")
        if code != 0:
            return row | {"failed": f"convert ({code}): {said}"}
        if isinstance(reference, list):
            row["same"], row["db"] = figures(reference, run_litert(work / "made.tflite", held_out))
        return chip(program, row, [work / "made.tflite"], work)
    code, _, said, row["convert_s"] = reef(program, "convert", path, *sizes, "-o", work / "float.tflite")
    if code != 0:
        return row | {"failed": f"convert ({code}): {said}"}
    outputs = attempt(run_litert, work / "float.tflite", held_out)
    if not isinstance(outputs, list):
        return row | {"failed": f"LiteRT on the converted file: {outputs}"}
    if isinstance(reference, list):
        row["same"], _ = figures(reference, outputs)
    else:
        reference = outputs
    from ai_edge_litert.interpreter import Interpreter
    details = ordered(Interpreter(model_path=str(work / "float.tflite")).get_input_details())
    for d, s in zip(details, samples):
        if path.suffix != ".onnx" and (d["shape_signature"] < 0).any():
            sizes += ["--input-shape", f"{d['name']}:{','.join(map(str, s.shape[1:]))}"]
    def rows_of(values, detail):
        rows = [arranged(values[k], detail["shape"]).astype(detail["dtype"]) for k in range(CALIBRATION)]
        return np.concatenate(rows) if rows[0].ndim and rows[0].shape[0] == 1 else np.stack(rows)
    arrays = {f"input_{i}": rows_of(s, d) for i, (s, d) in enumerate(zip(samples, details))}
    np.savez(work / "data.npz", **arrays)
    data = ["--data", work / "data.npz", "--preprocess", "none"] + (["--array", ",".join(arrays)] if len(arrays) > 1 else [])
    for what, how in (("db", ["--calibration", "minmax", "--held-back", "0"]), ("auto", [])):
        made = work / f"{what}.tflite"
        code, _, said, row[f"{what}_s"] = reef(program, "quantize", path, *sizes, *data, *how, "-o", made)
        if code not in (0, 3):
            return row | {"failed": f"quantize ({code}): {said}"}
        row[f"{what}_code"] = code
        outputs = attempt(run_litert, made, held_out)
        if not isinstance(outputs, list):
            return row | {"failed": f"LiteRT on the quantized file ({what}): {outputs}"}
        row[what] = figures(reference, outputs)[1]
    if arguments.peers:
        row["aieq"] = in_child(by_ai_edge, work / "float.tflite", samples, reference, held_out, work)
        if path.suffix == ".onnx":
            row["ort"] = in_child(by_onnxruntime, path, samples, reference, held_out, work, False)
            row["ort_percentile"] = in_child(by_onnxruntime, path, samples, reference, held_out, work, True)
    return chip(program, row, [path, *sizes, *data], work)


def text(row):
    def figure(key):
        value = row.get(key, "-")
        return f"{value:.1f}" if isinstance(value, float) else str(value)[:60]
    if "failed" in row:
        return f"| {row['name']} | {row['failed']} |" + " |" * 8
    same = f"{row['same']:.1e}" if "same" in row else row.get("reference", "-")[:60]
    said = {True: "yes", False: "NO", None: "-"}
    return (f"| {row['name']} | {same} | {figure('db')} | {figure('auto')} | {figure('aieq')} | {figure('ort')} | {figure('ort_percentile')} | {row.get('on_chip')} of {row.get('ops')} | "
            f"{said[row.get('verified')]} | {said[row.get('sound')]} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default="*", help="patterns with *, separated by commas")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures; what is in it already is not run again")
    arguments = parser.parse_args()
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    known = {row["name"] for row in rows}
    print("| model | same | dB | auto | AIEQ | ORT | ORT percentile | on chip | verified | sound |\n" + "| --- " * 10 + "|", flush=True)
    for path in sorted(p for p in arguments.folder.iterdir() if p.suffix in (".onnx", ".tflite")):
        if path.name in known or not any(fnmatch.fnmatch(path.name, pattern) for pattern in arguments.models.split(",")):
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            row = in_child(measure, arguments.reef, path, arguments, pathlib.Path(work))
        rows.append(row if isinstance(row, dict) else {"name": path.name, "failed": f"this script: {row}"})
        print(text(rows[-1]), flush=True)
        print(f"{path.name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1, default=float))


if __name__ == "__main__":
    main()
