#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transformers from PyTorch on the Edge TPU: how many operators are on the chip, and how long one inference takes.

    bench/transformer_latency.py build/reef ZOO [--models PATTERN,...] [--exporters older,newer] [--work DIR]
                                 [--json FILE]
    bench/transformer_latency.py build/reef ZOO --sizes

ZOO has onnx/cifar_vit_tiny.onnx and onnx/text_bert_tiny.onnx, which are trained; the other networks have random weights.
Each is exported by PyTorch's older and newer exporter, quantized (min-max ranges on 8 samples that are drawn), compiled
and verified by `reef compile --verify`, and checked by `reef audit --strict`. Prints a Markdown table:

  on chip    operators on the Edge TPU, of how many in the compiled model
  Edge TPU   milliseconds of one inference, simulated on the virtual device; in brackets what `reef check` predicts of it
  CPU        the quantized model on the host's CPU alone, estimated
  split      what Google's compiler maps of it on the chip and the rest on the CPU, estimated

over USB 3 at a desktop computer and at a Raspberry Pi 4. Nothing of this ran on silicon. Figures that --json FILE has
already are not measured again. --sizes prints another table instead: what `reef check` predicts for four layers of
several widths and numbers of tokens. Needs torch, timm, ultralytics, onnx, onnxscript, ai-edge-litert and numpy.
"""
import argparse
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from breadth import arranged, input_shape

LINKS = {"usb3": "USB 3", "usb3-rpi4": "Raspberry Pi 4"}
SAMPLES = 8


class Network:
    """What an exporter needs: a module, the shape of its input, and whether that holds the numbers of words."""

    def __init__(self, build, shape, words=0):
        self.build, self.shape, self.words = build, shape, words

    def samples(self):
        random = np.random.default_rng(1)
        shape = (SAMPLES, *self.shape[1:])
        if self.words:
            return random.integers(0, self.words, shape).astype(np.int64)
        return random.normal(0, 1, shape).astype(np.float32)


def from_timm(name, **options):
    def build():
        import timm
        return timm.create_model(name, pretrained=False, exportable=True, **options)
    return build


def bert(layers, width, heads, tokens, words=2000, classes=2):
    """As BERT is: sums of embeddings, norms behind the sums, an answer from the first token."""
    def build():
        import torch
        from torch import nn

        class Bert(nn.Module):
            def __init__(self):
                super().__init__()
                self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
                self.norm = nn.LayerNorm(width)
                layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
                self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
                self.pooler, self.answer = nn.Linear(width, width), nn.Linear(width, classes)

            def forward(self, ids):
                x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
                return self.answer(torch.tanh(self.pooler(self.layers(x)[:, 0])))

        return Bert()
    return build


def swin_blocks():
    """Two blocks over 14 x 14 places, windows of 7; the second one's windows are shifted."""
    from timm.models.swin_transformer import SwinTransformerBlock
    from torch import nn
    return nn.Sequential(*(SwinTransformerBlock(48, (14, 14), 3, window_size=7, shift_size=shift) for shift in (0, 3)))


def yolo11_attention():
    from ultralytics.nn.modules.block import C2PSA
    return C2PSA(128, 128, 1)


def rtdetr_attention():
    from ultralytics.nn.modules.transformer import AIFI
    return AIFI(64, 128, 4)


PICTURE = (1, 3, 224, 224)
NETWORKS = {
    "DeiT-tiny, 196 tokens": Network(from_timm("deit_tiny_patch16_224", class_token=False, global_pool="avg"), PICTURE),
    "DeiT-tiny, 197 tokens": Network(from_timm("deit_tiny_patch16_224"), PICTURE),
    "BERT-mini (4 of 256), 128 tokens": Network(bert(4, 256, 4, 128), (1, 128), 2000),
    "BERT, 6 layers of 384, 128 tokens": Network(bert(6, 384, 6, 128), (1, 128), 2000),
    "MobileViT-XS, 128 pixels": Network(from_timm("mobilevit_xs"), (1, 3, 128, 128)),
    "two Swin blocks, 14x14 of 48": Network(swin_blocks, (1, 14, 14, 48)),
    "C2PSA of YOLO11, 10x10 of 128": Network(yolo11_attention, (1, 128, 10, 10)),
    "AIFI of RT-DETR, 10x10 of 64": Network(rtdetr_attention, (1, 64, 10, 10)),
    "DeiT-small, 197 tokens": Network(from_timm("deit_small_patch16_224"), PICTURE),
}
TRAINED = {"cifar_vit_tiny": "cifar10_eval.npz", "text_bert_tiny, 64 tokens": "text_eval.npz"}


def encoder(layers, width, tokens):
    """Layers alone: norms in front, heads of 64 channels, four times the width between."""
    def build():
        from torch import nn
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return Network(build, (1, tokens, width))


WIDTHS, TOKENS, LAYERS = (128, 192, 256, 384, 512, 768), (32, 64, 128, 197, 256, 512, 1024), 4


def print_sizes(reef, work):
    """Milliseconds over USB 3, predicted; in brackets on the CPU alone, estimated."""
    print(f"| tokens | {' | '.join(f'{width} wide' for width in WIDTHS)} |\n| ---: |{' ---: |' * len(WIDTHS)}")
    for tokens in TOKENS:
        row = []
        for width in WIDTHS:
            path = work / f"layers_{width}_{tokens}.onnx"
            export(encoder(LAYERS, width, tokens), path, "older")
            check = json.loads(called(reef, "check", path, "--json")[1])
            whole = check["operators"] == check["operators_on_edgetpu"]
            missing = "" if whole else f", {check['operators'] - check['operators_on_edgetpu']} operators not on the chip"
            row.append(f"{check['predicted_ms']:.3g} ({check['predicted_cpu_only_ms']:.3g}){missing}")
            path.unlink()
        print(f"| {tokens} | {' | '.join(row)} |", flush=True)


def export(network, path, exporter):
    import torch
    torch.manual_seed(0)
    module = network.build().eval()
    sample = (torch.from_numpy(network.samples()[:1]),)
    if exporter == "newer":
        torch.onnx.export(module, sample, str(path), dynamo=True, external_data=False, input_names=["input"])
    else:
        torch.onnx.export(module, sample, str(path), dynamo=False, opset_version=17, input_names=["input"])


def called(*command):
    """(exit code, standard output). What a command says in vain is shown."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(str(c) for c in command)}: {done.stderr.strip().splitlines()[-1:]}")
    return done.returncode, done.stdout


def simulated_ms(reef, path, link, sample):
    programs = json.loads(called(reef, "run", path, "--in", sample, "--device", "virtual", "--link", link, "--json")[1])
    return sum(program["ms"] for program in programs["edge_tpu"] if program["program"] != "PARAMETER_CACHING")


def calibration_of(reef, source, samples, work):
    """Options for drawn samples, in the order of axes that the importer gives inputs."""
    called(reef, "convert", source, "-o", work / "float.tflite")
    shape = input_shape(work / "float.tflite")
    np.savez(work / "samples.npz", calib=np.stack([arranged(sample, shape) for sample in samples]))
    return ["--data", work / "samples.npz", "--preprocess", "none"]


def write_zeros(path, model):
    """One input of zeros, which are words, too. What it holds makes no difference to the time."""
    from ai_edge_litert.interpreter import Interpreter
    detail = Interpreter(model_path=str(model), num_threads=1).get_input_details()[0]
    path.write_bytes(np.zeros(detail["shape"], detail["dtype"]).tobytes())


def measure(reef, source, calibration, work):
    int8, sample = work / "int8.tflite", work / "sample.bin"
    called(reef, "quantize", source, *calibration, "--calibration", "minmax", "--held-back", "0", "-o", int8)
    write_zeros(sample, int8)
    made = json.loads(called(reef, "compile", int8, "-o", work, "--verify", "--json")[1])["files"][0]
    row = {"operators": made["operations"], "on_chip": made["operations_on_chip"], "verified": made["verified"]}
    row["left"] = sorted(f"{op['type']}: {op['findings'][0]['rule']}" for op in made["check"]["ops"]
                         if op["on"] != "edgetpu" and op["findings"])
    row["sound"] = subprocess.run([str(reef), "audit", "--strict", made["output"]], capture_output=True).returncode == 0
    # The compiled file is judged: which rewrites are made may depend on the host, which compile was not told.
    options = ["--all-rewrites"] if row["on_chip"] == row["operators"] else []
    for link in LINKS:
        check = json.loads(called(reef, "check", int8, "--link", link, *options, "--json")[1])
        as_google = json.loads(called(reef, "check", int8, "--link", link, "--no-rewrites", "--choose", "first",
                                      "--json")[1])
        row[link] = {"simulated": simulated_ms(reef, made["output"], link, sample), "predicted": check["predicted_ms"],
                     "cpu": check["predicted_cpu_only_ms"], "split": as_google["predicted_ms"]}
    return row


def cells(name, exporter, row):
    def times(link):
        t = row[link]
        return f"{t['simulated']:.2f} ({t['predicted']:.2f}) | {t['cpu']:.3g} / {t['split']:.3g}"
    said = "yes" if row["verified"] and row["sound"] else "NO"
    return f"| {name} | {exporter} | {row['on_chip']} of {row['operators']} | {' | '.join(map(times, LINKS))} | {said} |"


def asked(arguments):
    """(name, exporter, source file or network)"""
    for name, data in TRAINED.items():
        yield name, "older", arguments.zoo / "onnx" / f"{name.split(',')[0]}.onnx", data
    for name, network in NETWORKS.items():
        for exporter in arguments.exporters.split(","):
            yield name, exporter, network, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef", type=pathlib.Path)
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--models", default="*", help="patterns with *, separated by commas")
    parser.add_argument("--exporters", default="older,newer")
    parser.add_argument("--work", type=pathlib.Path, help="where exported models stay and are found again")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--sizes", action="store_true")
    arguments = parser.parse_args()
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        kept = arguments.work or temporary
        kept.mkdir(parents=True, exist_ok=True)
        if arguments.sizes:
            return print_sizes(arguments.reef, temporary)
        for number, (name, exporter, source, data) in enumerate(asked(arguments)):
            key = f"{name} / {exporter}"
            if key in rows or not any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models.split(",")):
                continue
            try:
                work = temporary / str(number)
                work.mkdir()
                calibration = ["--data", arguments.zoo / "data" / data] if data else None
                if data is None:
                    path = kept / f"{''.join(c if c.isalnum() else '_' for c in name)}_{exporter}.onnx"
                    if not path.exists():
                        export(source, path, exporter)
                    calibration = calibration_of(arguments.reef, path, source.samples(), work)
                    source = path
                rows[key] = measure(arguments.reef, source, calibration, work)
            except Exception as error:  # the other networks are still worth measuring
                rows[key] = {"failed": f"{type(error).__name__}: {error}"[:300]}
            print(key, rows[key].get("failed") or cells(name, exporter, rows[key]), file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
    heads = " | ".join(f"{link}: Edge TPU | CPU / split" for link in LINKS.values())
    print(f"| model | exporter | on chip | {heads} | verified, sound |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for key, row in rows.items():
        name, exporter = key.rsplit(" / ", 1)
        print(f"| {name} | {exporter} | {row['failed']} | | | | | |" if "failed" in row else cells(name, exporter, row))


if __name__ == "__main__":
    main()
