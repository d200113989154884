#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Architectures that Reef's developers did not make, through the whole chain, beside other tools.

    bench/breadth.py build/reef [--models PATTERN,...] [--family NAME,...] [--dynamo] [--peers] [--auto]
                     [--pictures DIR] [--work DIR] [--out FILE.md]

Each architecture comes from torchvision or timm with random weights (nothing is downloaded). Its batch norms are
settled on pictures, so that activations have the ranges of a trained network, more or less; random weights say nothing
about accuracy, and SQNR is used to find what breaks. Then, for each:

  converted   `reef convert`; outputs in LiteRT equal those of ONNX Runtime (largest difference below 0.1 % of the
              largest value)
  dB          `reef quantize` (min-max ranges on 6 pictures; --auto: everything it tries), SQNR in LiteRT on 4 pictures
              that calibration did not see, the worst output's
  usable      it runs in LiteRT, no scale is outside of [1e-12, 1e6], every output has 10 dB
  on chip     `reef compile`: operators on the chip, of how many
  verified    `reef compile --verify` ran the whole file on the virtual device and compared all outputs
  sound       `reef audit --strict`
  ORT, AIEQ   with --peers: SQNR of ONNX Runtime's quantize_static (QDQ, int8 per channel, min-max) in ONNX Runtime,
              and of AI Edge Quantizer (static int8) in LiteRT, on the same pictures

Packages by name from PyPI: torch, torchvision, timm, onnx, onnxscript, onnxruntime, ai-edge-litert, and for --peers
ai-edge-quantizer. Exported files stay in --work and are used again.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

CALIBRATION, HELD_OUT = 6, 4
LEAST_DB = 10

# family: {name: side of the picture}. A name is torchvision's where torchvision has it, else timm's.
ARCHITECTURES = {
    "mobile convnets": {
        "mobilenet_v2": 128, "mobilenet_v3_small": 128, "mobilenet_v3_large": 128, "mnasnet1_0": 128,
        "efficientnet_b0": 128, "squeezenet1_1": 128, "shufflenet_v2_x1_0": 128, "ghostnet_100": 128,
        "mobilenetv4_conv_small": 128, "mobileone_s0": 128, "tinynet_e": 106, "lcnet_050": 128, "fbnetc_100": 128,
        "semnasnet_075": 128, "hardcorenas_a": 128, "mixnet_s": 128, "efficientnet_lite0": 128, "rexnet_100": 128,
        "repghostnet_050": 128, "spnasnet_100": 128,
    },
    "convnets": {
        "vgg11": 224, "alexnet": 224, "googlenet": 96, "inception_v3": 160, "densenet121": 96, "regnet_x_400mf": 128,
        "regnet_y_400mf": 128, "cspresnet50": 96, "cspdarknet53": 96, "hrnet_w18_small": 128, "dla34": 96,
        "vovnet39a": 96, "repvgg_a0": 128, "ese_vovnet19b_dw": 128, "selecsls42b": 96, "xception41": 128,
        "dpn48b": 96, "nf_regnet_b0": 128, "darknet53": 96, "gernet_s": 128,
    },
    "ResNet-like": {
        "resnet18": 128, "resnet50": 96, "resnext50_32x4d": 96, "wide_resnet50_2": 64, "skresnet18": 128,
        "res2net50_26w_4s": 96, "resnetv2_50": 96, "seresnet50": 96, "resnest14d": 96, "ecaresnet26t": 128,
        "botnet26t_256": 256, "lambda_resnet26t": 128, "resnet26d": 128,
    },
    "GELU convnets": {
        "convnext_tiny": 64, "convnextv2_atto": 64, "convmixer_768_32": 56, "poolformer_s12": 64,
        "focalnet_tiny_srf": 64, "mambaout_femto": 64, "inception_next_atto": 64, "repvit_m0_9": 64,
        "fastvit_t8": 64, "starnet_s1": 64,
    },
    "transformers and hybrids": {
        "vit_tiny_patch16_224": 224, "deit_tiny_patch16_224": 224, "swin_tiny_patch4_window7_224": 224,
        "cait_xxs24_224": 224, "xcit_nano_12_p16_224": 224, "pit_ti_224": 224, "mobilevit_xxs": 128,
        "mobilevitv2_050": 128, "efficientformer_l1": 224, "efficientformerv2_s0": 224, "efficientvit_b0": 128,
        "levit_128s": 224, "edgenext_xx_small": 128, "coatnet_nano_rw_224": 224, "maxvit_nano_rw_256": 256,
        "swiftformer_xs": 128, "convit_tiny": 224,
    },
    "MLPs": {"mixer_s32_224": 224, "gmlp_ti16_224": 224, "resmlp_12_224": 224},
    "segmentation": {"lraspp_mobilenet_v3_large": 128, "deeplabv3_mobilenet_v3_large": 128, "fcn_resnet50": 64},
}


def cut_to_tensors(module):
    """A model that gives a dictionary or a list, as one that gives a tuple of tensors."""
    import torch

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            y = self.module(x)
            y = list(y.values()) if isinstance(y, dict) else list(y) if isinstance(y, (list, tuple)) else [y]
            return tuple(t for t in y if isinstance(t, torch.Tensor))

    return Plain()


def build(name, side):
    import timm
    import torch
    import torchvision
    torch.manual_seed(abs(hash_of(name)) % 2**31)
    if name in torchvision.models.list_models():
        extra = {"aux_logits": False} if name in ("googlenet", "inception_v3") else {}
        if "deeplab" in name or "fcn_" in name or "lraspp" in name:
            extra = {"weights_backbone": None}
        if extra.get("aux_logits") is False:
            extra["init_weights"] = False
        return torchvision.models.get_model(name, weights=None, **extra)
    extra = {}
    if timm.is_model(name) and "img_size" not in extra:
        try:
            return timm.create_model(name, pretrained=False, img_size=side, exportable=True)
        except TypeError:
            pass
    return timm.create_model(name, pretrained=False, exportable=True)


def hash_of(name):
    value = 0
    for letter in name.encode():
        value = (value * 131 + letter) % 2**31
    return value


def settle(module, pictures):
    """Running means and variances of batch norms from pictures; constants that start at 0 get small values."""
    import torch
    for m in module.modules():
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm):
            m.reset_running_stats()
            m.momentum = None
    module.train()
    for m in module.modules():
        if "Dropout" in type(m).__name__ or "DropPath" in type(m).__name__:
            m.eval()
    with torch.no_grad():
        for _ in range(2):
            module(torch.from_numpy(pictures))
        for p in module.parameters():
            if p.numel() > 0 and bool((p == p.flatten()[0]).all()) and abs(float(p.flatten()[0])) < 1e-3:
                p.add_(torch.randn_like(p) * 0.02)
    module.eval()


def read_pictures(folder, side, count):
    """Pictures [count, 3, side, side] between -2 and 2; drawn ones where there is no folder."""
    files = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png")) \
        if folder else []
    result = []
    for i in range(count):
        if files:
            from PIL import Image
            picture = Image.open(files[i * len(files) // count]).convert("RGB").resize((side, side))
            result.append((np.asarray(picture, np.float32) / 255 - 0.45) / 0.225)
        else:
            random = np.random.default_rng(i)
            coarse = random.uniform(-2, 2, (8, 8, 3))
            rows = np.linspace(0, 7, side).astype(int)
            result.append((coarse[rows][:, rows] + random.normal(0, 0.1, (side, side, 3))).astype(np.float32))
    return np.stack(result).transpose(0, 3, 1, 2).astype(np.float32)


def export(name, side, pictures, path, dynamo):
    import torch
    module = build(name, side)
    settle(module, pictures)
    module = cut_to_tensors(module).eval()
    sample = torch.from_numpy(pictures[:1])
    if dynamo:
        torch.onnx.export(module, (sample,), str(path), dynamo=True, external_data=False, input_names=["input"])
    else:
        torch.onnx.export(module, (sample,), str(path), dynamo=False, opset_version=17, input_names=["input"])


def run_onnx(path, pictures):
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return [session.run(None, {name: picture[None]}) for picture in pictures]


def run_litert(path, pictures):
    """Outputs as real numbers, one list for each picture. Pictures are channels-first, the model takes the other."""
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    taken, given = interpreter.get_input_details()[0], interpreter.get_output_details()
    outputs = []
    for picture in pictures:
        value = picture[None] if tuple(taken["shape"])[1] == 3 else picture.transpose(1, 2, 0)[None]
        scale, zero = taken["quantization"]
        if taken["dtype"] != np.float32:
            limits = np.iinfo(taken["dtype"])
            value = np.clip(np.round(value / scale) + zero, limits.min, limits.max).astype(taken["dtype"])
        interpreter.set_tensor(taken["index"], value)
        interpreter.invoke()
        row = []
        for detail in given:
            result = interpreter.get_tensor(detail["index"])
            scale, zero = detail["quantization"]
            row.append((result.astype(np.float32) - zero) * scale if scale else result)
        outputs.append(row)
    return outputs


def in_layout_of(reference, output):
    """An output that became channels-last, as the reference has it."""
    if reference.shape == output.shape:
        return output
    if output.ndim == 4 and output.transpose(0, 3, 1, 2).shape == reference.shape:
        return output.transpose(0, 3, 1, 2)
    return output.reshape(reference.shape) if output.size == reference.size else None


def paired(reference, outputs):
    """(reference, output) of each output over all pictures."""
    for o in range(len(reference[0])):
        pairs = [(r[o], in_layout_of(r[o], y[o])) for r, y in zip(reference, outputs)]
        yield np.stack([a for a, _ in pairs]).astype(np.float64), np.stack([b for _, b in pairs]).astype(np.float64)


def worst_sqnr(reference, outputs):
    worst = np.inf
    for a, b in paired(reference, outputs):
        noise = np.sum((a - b) ** 2)
        signal = np.sum((a - a.mean()) ** 2)
        worst = min(worst, 120.0 if noise == 0 else 10 * np.log10(max(signal, 1e-30) / noise))
    return worst


def scales_are_usable(path):
    from ai_edge_litert.interpreter import Interpreter
    for detail in Interpreter(model_path=str(path), num_threads=1).get_tensor_details():
        scales = detail["quantization_parameters"]["scales"]
        if len(scales) and (min(scales) < 1e-12 or max(scales) > 1e6):
            return False
    return True


def reef(*arguments):
    """(exit code, standard output, last line of standard error, CPU seconds)"""
    before = os.times()
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return done.returncode, done.stdout, lines[-1] if lines else "", seconds


def by_onnxruntime(path, calibration, held_out, reference, work):
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
    return worst_sqnr(reference, run_onnx(made, held_out))


def by_ai_edge(path, calibration, held_out, reference, work):
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe
    interpreter = Interpreter(model_path=str(path))
    key = list(interpreter.get_signature_list())[0] if interpreter.get_signature_list() else None
    name = interpreter.get_signature_list()[key]["inputs"][0] if key else None
    made = quantizer.Quantizer(str(path), recipe.static_wi8_ai8())
    data = {key: [{name: p.transpose(1, 2, 0)[None]} for p in calibration]}
    result = made.quantize(made.calibrate(data))
    out = work / "aieq_int8.tflite"
    out.write_bytes(result.quantized_model)
    return worst_sqnr(reference, run_litert(out, held_out))


def attempt(function, *arguments):
    """A peer's figure, or why there is none."""
    try:
        return function(*arguments)
    except Exception as error:  # whatever another tool raises is its result
        return f"{type(error).__name__}"


def measure(program, name, side, arguments, work):
    row = {"name": name, "side": side}
    suffix = "_dynamo" if arguments.dynamo else ""
    onnx = arguments.work / f"{name}{suffix}.onnx"
    calibration = read_pictures(arguments.pictures, side, CALIBRATION + HELD_OUT)
    calibration, held_out = calibration[:CALIBRATION], calibration[CALIBRATION:]
    if not onnx.exists():
        try:
            export(name, side, calibration, onnx, arguments.dynamo)
        except Exception as error:
            return row | {"failed": f"PyTorch does not export it: {type(error).__name__}"}
    reference = run_onnx(onnx, held_out)
    float_file, int8_file = work / f"{name}.tflite", work / f"{name}_int8.tflite"
    code, _, said, row["convert_s"] = reef(program, "convert", onnx, "-o", float_file)
    if code != 0:
        return row | {"failed": f"convert: {said}"}
    differences = [np.abs(a - b).max() / max(np.abs(a).max(), 1e-12)
                   for a, b in paired(reference, run_litert(float_file, held_out))]
    row["difference"] = max(differences)
    np.savez(work / "calib.npz", calib=calibration.transpose(0, 2, 3, 1))
    how = [] if arguments.auto else ["--calibration", "minmax", "--held-back", "0"]
    code, _, said, row["quantize_s"] = reef(program, "quantize", onnx, "--data", work / "calib.npz", "--preprocess",
                                            "none", *how, "-o", int8_file)
    if code not in (0, 3):
        return row | {"failed": f"quantize: {said}"}
    row["db"] = attempt(lambda: worst_sqnr(reference, run_litert(int8_file, held_out)))
    row["usable"] = isinstance(row["db"], float) and row["db"] >= LEAST_DB and scales_are_usable(int8_file)
    code, said_json, said, row["compile_s"] = reef(program, "compile", int8_file, "-o", work, "--json", "--verify")
    if code not in (0, 3):
        return row | {"failed": f"compile: {said}"}
    compiled = json.loads(said_json)["files"][0]
    row["ops"], row["on_chip"] = compiled["operations"], compiled["operations_on_chip"]
    row["verified"], row["why"] = compiled["verified"], compiled.get("not_verified", "")
    if row["on_chip"] > 0:
        code, _, said, _ = reef(program, "audit", "--strict", compiled["output"])
        row["sound"] = code == 0
    if arguments.peers:
        row["ort"] = attempt(by_onnxruntime, onnx, calibration, held_out, reference, work)
        row["aieq"] = attempt(by_ai_edge, float_file, calibration, held_out, reference, work)
    return row


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
        cells = [row["name"], str(row["side"]), said(bool(row["difference"] < 1e-3)), db(row["db"]),
                 said(row["usable"]), f"{row['on_chip']} of {row['ops']}", said(row["verified"]),
                 said(row.get("sound"))]
        cells += [db(row["ort"]), db(row["aieq"])] if has_peers else []
        yield "| " + " | ".join(cells) + " |"


def summary(rows):
    done = [row for row in rows if "failed" not in row]
    exported = [row for row in rows if not row.get("failed", "").startswith("PyTorch")]
    yield f"{len(exported)} architectures exported, {len(done)} through the whole chain"
    yield f"converted and equal to ONNX Runtime: {sum(row['difference'] < 1e-3 for row in done)}"
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
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--auto", action="store_true", help="quantize with all that Reef tries by default")
    parser.add_argument("--pictures", help="folder of pictures; without it they are drawn")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "reef_breadth")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="also write all figures")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    families = [f for f in arguments.family.split(",") if f] or list(ARCHITECTURES)
    rows = []
    for family in families:
        for name, side in ARCHITECTURES[family].items():
            if not any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models.split(",")):
                continue
            begin = time.monotonic()
            with tempfile.TemporaryDirectory() as work:
                row = measure(arguments.reef, name, side, arguments, pathlib.Path(work)) | {"family": family}
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
