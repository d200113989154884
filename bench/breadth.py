#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Architectures that Reef's developers did not make, through the whole chain, beside other tools.

    bench/breadth.py build/reef [--models PATTERN,...] [--family NAME,...] [--dynamo] [--peers all|low] [--auto | --auto-low]
                     [--pictures DIR] [--work DIR] [--json FILE] [--out FILE.md]

Each architecture comes from torchvision, timm, Ultralytics or Keras with random weights (breadth_models.py, keras_models.py);
they say nothing about accuracy, and SQNR is used to find what breaks. For each:

  converted   `reef convert`; outputs in LiteRT equal those of ONNX Runtime (largest difference below 0.1 % of the
              largest value). Keras' models are float TFLite already: LiteRT before and after
  dB          `reef quantize` (min-max ranges on 6 pictures; --auto: everything it tries), SQNR in LiteRT on 4 pictures
              that calibration did not see, the worst output's
  rounded     (JSON only) dB that are left in float when nothing but the pictures is rounded to 8 bits: how much the network amplifies
  usable      it runs in LiteRT, no scale is outside of [1e-12, 1e6], every output has 10 dB and, with --peers, not more
              than 2 dB less than the best of them
  on chip     `reef compile`: operators on the chip, of how many
  verified    `reef compile --verify` ran the whole file on the virtual device and compared all outputs
  sound       `reef audit --strict`
  ORT, AIEQ   with --peers (low: only where Reef has less than 10 dB): SQNR of ONNX Runtime's quantize_static (QDQ, int8
              per channel, min-max) in ONNX Runtime, and of AI Edge Quantizer (static int8) in LiteRT, same pictures

Packages by name from PyPI: torch, torchvision, timm, ultralytics, onnx, onnxscript, onnxruntime, ai-edge-litert, tensorflow (for
Keras), and for --peers ai-edge-quantizer. Exported files stay in --work and are used again.
"""
import argparse
import fnmatch
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

from breadth_models import ARCHITECTURES, export, read_samples, shape_of
from trial import attempt, in_child, reef

CALIBRATION, HELD_OUT = 6, 4
LEAST_DB = 10
EQUAL = 1e-3
BEHIND_PEERS_DB = 2


def run_onnx(path, pictures, optimizes=False):
    """Outputs of each picture. The reference is run as written: ONNX Runtime 1.31's optimizer joins Pad with zeros and
    MaxPool to a MaxPool that ignores its padding, which is not the same where activations are negative (yolov3-tiny)."""
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    if not optimizes:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return [session.run(None, {name: picture[None]}) for picture in pictures]


def arranged(sample, shape):
    """A sample as the converted model takes it: channels last where the importer has put them there."""
    if tuple(shape) == sample.shape:
        return sample
    return np.moveaxis(sample, 0, -1)


def run_litert(path, pictures):
    """Outputs as real numbers, one list for each picture. Pictures are channels-first, as PyTorch takes them."""
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    taken, given = interpreter.get_input_details()[0], interpreter.get_output_details()
    outputs = []
    for picture in pictures:
        value = arranged(picture, taken["shape"][1:])[None]
        scale, zero = taken["quantization"]
        if taken["dtype"] != np.float32 and scale:
            limits = np.iinfo(taken["dtype"])
            value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
        value = value.astype(taken["dtype"])
        interpreter.set_tensor(taken["index"], value)
        interpreter.invoke()
        row = []
        for detail in given:
            result = interpreter.get_tensor(detail["index"])
            scale, zero = detail["quantization"]
            row.append((result.astype(np.float32) - zero) * scale if scale else result)
        outputs.append(row)
    return outputs


def input_shape(path):
    from ai_edge_litert.interpreter import Interpreter
    return Interpreter(model_path=str(path), num_threads=1).get_input_details()[0]["shape"][1:]


def in_layout_of(reference, output):
    """An output that became channels-last, as the reference has it. Where both ways have the shape (3 anchors on 3 x 3
    places), the one that is nearer."""
    ways = [output] + ([np.moveaxis(output, -1, 1)] if output.ndim > 2 else [])
    ways = [way for way in ways if way.shape == reference.shape]
    if ways:
        return min(ways, key=lambda way: np.abs(way - reference).sum())
    return output.reshape(reference.shape) if output.size == reference.size else None


def split_axis(whole, parts):
    """The axis along which arrays of shapes `parts` make up one of shape `whole`; None: they do not."""
    for axis in range(len(whole)):
        rest = [tuple(p[:axis]) + tuple(p[axis + 1:]) for p in parts if len(p) == len(whole)]
        if len(rest) == len(parts) and set(rest) == {whole[:axis] + whole[axis + 1:]} and \
                sum(p[axis] for p in parts) == whole[axis]:
            return axis
    return None


def split_like(rows, shapes):
    """Outputs of each picture, where Reef gives one out as several: these parts, each judged by itself."""
    if len(shapes) == len(rows[0]):
        return rows
    result = []
    for row in rows:
        parts, left = [], list(shapes)
        for output in row:
            count = next((n for n in range(1, len(left) + 1) if split_axis(output.shape, left[:n]) is not None), None)
            if left and count is None and sorted(left[0]) == sorted(output.shape):  # channels last
                parts, left = parts + [output], left[1:]
                continue
            if count is None:
                raise ValueError(f"outputs {shapes} are not parts of {[o.shape for o in row]}")
            axis = split_axis(output.shape, left[:count])
            parts += np.split(output, np.cumsum([s[axis] for s in left[:count]])[:-1], axis)
            left = left[count:]
        result.append(parts)
    return result


def paired(reference, outputs):
    """(reference, output) of each output over all pictures."""
    for o in range(len(reference[0])):
        pairs = [(r[o], in_layout_of(r[o], y[o])) for r, y in zip(reference, outputs)]
        yield np.stack([a for a, _ in pairs]).astype(np.float64), np.stack([b for _, b in pairs]).astype(np.float64)


def difference(reference, output):
    """The largest, relative to the largest value. Detectors that choose their best rows give them out in order of scores:
    rows with almost the same score may change places, so each row is compared with the one that is nearest."""
    largest = max(np.abs(reference).max(), 1e-12)
    direct = np.abs(reference - output).max() / largest
    if direct < EQUAL or reference.ndim != 4 or reference.shape[2] > 1000:
        return direct
    nearest = [np.abs(a[:, None] - b[None]).max(-1) for a, b in zip(reference[:, 0], output[:, 0])]
    return min(direct, max(max(d.min(0).max(), d.min(1).max()) for d in nearest) / largest)


def worst_sqnr(reference, outputs):
    worst = np.inf
    for a, b in paired(reference, outputs):
        noise = np.sum((a - b) ** 2)
        signal = np.sum((a - a.mean()) ** 2)
        worst = min(worst, 120.0 if noise == 0 else 10 * np.log10(max(signal, 1e-30) / noise))
    return worst


def rounded(pictures, calibration):
    """Pictures in 8 bits, as every quantized network takes them."""
    low, high = min(0, np.min(calibration)), max(0, np.max(calibration))
    step = (high - low) / 255
    return [(np.round(np.clip(p, low, high) / step) * step).astype(np.float32) for p in pictures]


def scales_are_usable(path):
    from ai_edge_litert.interpreter import Interpreter
    for detail in Interpreter(model_path=str(path), num_threads=1).get_tensor_details():
        scales = detail["quantization_parameters"]["scales"]
        if len(scales) and (min(scales) < 1e-12 or max(scales) > 1e6):
            return False
    return True


def by_onnxruntime(path, calibration, held_out, reference, shapes, work):
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rows = iter([{"input": p[None]} for p in calibration])

        def get_next(self):
            return next(self.rows, None)

    prepared, made = work / "prepared.onnx", work / "ort_int8.onnx"
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    quantize_static(str(prepared), str(made), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                    calibrate_method=CalibrationMethod.MinMax)
    return worst_sqnr(reference, split_like(run_onnx(made, held_out, optimizes=True), shapes))


def by_ai_edge(path, calibration, held_out, reference, shapes, work):
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe
    interpreter = Interpreter(model_path=str(path))
    key = list(interpreter.get_signature_list())[0] if interpreter.get_signature_list() else None
    name = interpreter.get_signature_list()[key]["inputs"][0] if key else None
    made = quantizer.Quantizer(str(path), recipe.static_wi8_ai8())
    shape = interpreter.get_input_details()[0]["shape"][1:]
    data = {key: [{name: arranged(p, shape)[None]} for p in calibration]}
    result = made.quantize(made.calibrate(data))
    out = work / "aieq_int8.tflite"
    out.write_bytes(result.quantized_model)
    return worst_sqnr(reference, split_like(run_litert(out, held_out), shapes))


def peers(source, float_file, calibration, held_out, reference, shapes, work):
    """The other quantizers' figures. They do not depend on Reef's, so they are kept beside the exported file."""
    kept = source.with_suffix(".peers.json")
    if not kept.exists():
        figures = {"ort": "-" if source.suffix == ".tflite" else
                   attempt(by_onnxruntime, source, calibration, held_out, reference, shapes, work),
                   "aieq": attempt(by_ai_edge, float_file, calibration, held_out, reference, shapes, work)}
        kept.write_text(json.dumps(figures))
    return json.loads(kept.read_text())


def by_default(program, source, work, held_out, reference, row):
    """What `reef quantize` makes by default of a model that min-max ranges leave below 10 dB."""
    made = work / "auto.tflite"
    code, _, said, _ = reef(program, "quantize", source, "--data", work / "calib.npz", "--preprocess", "none", "-o", made)
    if code not in (0, 3):
        row["auto"] = f"quantize: {said}"
        return
    outputs = attempt(run_litert, made, held_out)
    row["auto"] = worst_sqnr(split_like(reference, [o.shape for o in outputs[0]]), outputs) if isinstance(outputs, list) else outputs
    row["auto_verdict"] = "NOT USABLE" if code == 3 else "ok"


def is_usable(row, int8_file):
    """By what the default does, where that was measured."""
    best = max((row[key] for key in ("db", "auto") if isinstance(row.get(key), float)), default=-np.inf)
    if best < LEAST_DB or not scales_are_usable(int8_file):
        return False
    others = [row[peer] for peer in ("ort", "aieq") if isinstance(row.get(peer), float)]
    return best >= max(others, default=0) - BEHIND_PEERS_DB


def products(op):
    """Multiplications of an operator of `reef check --json`; 0 for those without weights or a second matrix."""
    shapes = [t["shape"] for t in op["inputs"]]
    result = int(np.prod(op["outputs"][0]["shape"]))
    if op["type"] in ("CONV_2D", "FULLY_CONNECTED"):
        return result * int(np.prod(shapes[1][1:]))
    if op["type"] == "DEPTHWISE_CONV_2D":
        return result * int(np.prod(shapes[1][:3]))
    if op["type"] == "TRANSPOSE_CONV":
        return int(np.prod(shapes[2])) * int(np.prod(shapes[1][:3]))
    if op["type"] == "BATCH_MATMUL":
        *outer, rows, columns = op["outputs"][0]["shape"]
        outer = int(np.prod(outer))  # an operand without these dimensions is used for all of them
        return result * max(int(np.prod(shapes[0])) // (outer * rows), int(np.prod(shapes[1])) // (outer * columns))
    if op["type"] == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        return result * sum(s[-1] for s in shapes[1:9] if len(s) == 2)
    return 0


def compiled(program, row, int8_file, work, options=()):
    """Compile, verify, audit; fills the row, or says what failed."""
    code, said_json, said, row["compile_s"] = reef(program, "compile", int8_file, "-o", work, "--json", "--verify", *options)
    if code not in (0, 3):
        return row | {"failed": f"compile: {said}"}
    made = json.loads(said_json)["files"][0]
    row["ops"], row["on_chip"] = made["operations"], made["operations_on_chip"]
    counts = [(products(op), op["on"] == "edgetpu") for op in made["check"]["ops"]]
    row["products"], row["products_on_chip"] = sum(n for n, _ in counts), sum(n for n, on_chip in counts if on_chip)
    row["left"] = sorted({f"{op['type']}: {op['findings'][0]['rule']} {op['findings'][0]['particulars']}"
                          for op in made["check"]["ops"] if op["on"] != "edgetpu" and op["findings"]})[:8]
    row["no_code"] = [part["no_machine_code"] for part in made["edge_tpu_subgraphs"] if not part["has_code"]]
    row["verified"], row["why"] = made["verified"], made.get("not_verified", "")
    if row["on_chip"] > 0:
        code, _, said, _ = reef(program, "audit", "--strict", made["output"])
        row["sound"] = code == 0
    return row


def exported_path(arguments, name):
    if name.startswith("keras_"):
        return arguments.work / f"{name}.tflite"
    return arguments.work / f"{name}{'_dynamo' if arguments.dynamo else ''}.onnx"


def exported_size(arguments, name):
    """Bytes of the exported file; files that are not there yet come last."""
    path = exported_path(arguments, name)
    return path.stat().st_size if path.exists() else sys.maxsize


def measure(program, name, side, arguments, work):
    row = {"name": name, "side": side}
    source = exported_path(arguments, name)
    calibration = read_samples(arguments.pictures, shape_of(side), CALIBRATION + HELD_OUT)
    calibration, held_out = calibration[:CALIBRATION], calibration[CALIBRATION:]
    if not source.exists():
        try:
            export(name, side, calibration, source, arguments.dynamo)
        except Exception as error:
            return row | {"failed": f"not exported by its framework: {type(error).__name__}"}
    run_source = run_litert if source.suffix == ".tflite" else run_onnx
    reference = run_source(source, held_out)
    float_file, int8_file = work / f"{name}.tflite", work / f"{name}_int8.tflite"
    code, _, said, row["convert_s"] = reef(program, "convert", source, "-o", float_file)
    if code != 0:
        return row | {"failed": f"convert: {said}"}
    row["difference"] = max(difference(a, b) for a, b in paired(reference, run_litert(float_file, held_out)))
    np.savez(work / "calib.npz", calib=np.stack([arranged(p, input_shape(float_file)) for p in calibration]))
    how = [] if arguments.auto else ["--calibration", "minmax", "--held-back", "0"]
    code, _, said, row["quantize_s"] = reef(program, "quantize", source, "--data", work / "calib.npz", "--preprocess",
                                            "none", *how, "-o", int8_file)
    if code not in (0, 3):
        return row | {"failed": f"quantize: {said}"}
    row["verdict"] = "NOT USABLE" if code == 3 else "ok"
    row["db"] = attempt(run_litert, int8_file, held_out)
    if isinstance(row["db"], list):
        outputs, row["db"] = row["db"], None
        shapes = [o.shape for o in outputs[0]]
        row["rounded_input"] = worst_sqnr(reference, run_source(source, rounded(held_out, calibration)))
        reference = split_like(reference, shapes)
        row["db"] = worst_sqnr(reference, outputs)
        if arguments.peers == "all" or (arguments.peers == "low" and row["db"] < LEAST_DB):
            row |= peers(source, float_file, calibration, held_out, reference, shapes, work)
        if arguments.auto_low and row["db"] < LEAST_DB:
            by_default(program, source, work, held_out, reference, row)
    row["usable"] = is_usable(row, int8_file)
    if arguments.keep:
        (arguments.work / int8_file.name).write_bytes(int8_file.read_bytes())
    return compiled(program, row, int8_file, work, arguments.compile_options.split())


def table(rows, has_peers):
    columns = ["architecture", "side", "converted", "dB", "usable", "on chip", "verified", "sound"]
    columns += ["ORT dB", "AIEQ dB"] if has_peers else []
    yield "| " + " | ".join(columns) + " |"
    yield "| " + " | ".join("---" for _ in columns) + " |"

    def db(value):
        return f"{value:.1f}" if isinstance(value, float) else str(value)

    def said(value):
        return {True: "yes", False: "NO", None: "-"}[value]

    for row in rows:
        if "failed" in row:
            yield f"| {row['name']} | {row['side']} | {row['failed']} |" + " |" * (len(columns) - 3)
            continue
        cells = [row["name"], str(row["side"]), said(bool(row["difference"] < EQUAL)), db(row["db"]),
                 said(row["usable"]), f"{row['on_chip']} of {row['ops']}", said(row["verified"]),
                 said(row.get("sound"))]
        cells += [db(row.get("ort", "-")), db(row.get("aieq", "-"))] if has_peers else []
        yield "| " + " | ".join(cells) + " |"


def summary(rows):
    done = [row for row in rows if "failed" not in row]
    exported = [row for row in rows if not row.get("failed", "").startswith("not exported")]
    yield f"{len(exported)} architectures exported, {len(done)} through the whole chain"
    yield f"converted and equal to ONNX Runtime: {sum(row['difference'] < EQUAL for row in done)}"
    yield f"usable: {sum(row['usable'] for row in done)}"
    yield f"all operators on the chip: {sum(row['on_chip'] == row['ops'] for row in done)}"
    yield f"verified: {sum(row['verified'] is True for row in done)}"
    for what in ("convert_s", "quantize_s", "compile_s"):
        if done:
            yield f"{what[:-2]}: median {np.median([row[what] for row in done]):.2f} CPU s (measured)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("--models", default="*", help="patterns with *, separated by commas")
    parser.add_argument("--family", default="", help="families, separated by commas")
    parser.add_argument("--dynamo", action="store_true", help="PyTorch's newer exporter")
    parser.add_argument("--peers", choices=["all", "low"])
    parser.add_argument("--auto", action="store_true", help="quantize with all that Reef tries by default")
    parser.add_argument("--auto-low", action="store_true", help="the same besides, for models that min-max ranges leave below 10 dB")
    parser.add_argument("--compile-options", default="", help="for reef compile: --all-rewrites shows what can be on the chip, also "
                        "where the CPU is predicted to be faster")
    parser.add_argument("--pictures", help="folder of pictures; without it they are drawn")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "reef_breadth")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures; what is in it already is not run again")
    parser.add_argument("--smallest-first", action="store_true", help="in order of the sizes of exported files in --work")
    parser.add_argument("--keep", action="store_true", help="leave the quantized models in --work")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    families = [f for f in arguments.family.split(",") if f] or list(ARCHITECTURES)
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    known = {row["name"] for row in rows}
    asked = [(family, name, side) for family in families for name, side in ARCHITECTURES[family].items()
             if name not in known and any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models.split(","))]
    if arguments.smallest_first:
        asked.sort(key=lambda one: exported_size(arguments, one[1]))
    for family, name, side in asked:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as work:
            row = in_child(measure, arguments.reef, name, side, arguments, pathlib.Path(work))
        row = row if isinstance(row, dict) else {"name": name, "side": side, "failed": f"this script: {row}"}
        row["family"] = family
        rows.append(row)
        print(f"{name}: {row.get('failed') or list(table([row], arguments.peers))[-1]} "
              f"({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=1, default=float))
    text = "\n".join([*table(rows, arguments.peers), "", *(f"- {line}" for line in summary(rows))]) + "\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
