#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pruned models without training: `reef prune` beside its peers, on the same samples in one run.

    bench/pruning.py build/reef ZOO [--models NAME,...] [--limit N] [--out FILE.md] [--docs docs/prune.md]
    bench/pruning.py build/reef ZOO --streaming resnet50 [--docs docs/prune.md]

For every trained model of the collection, with 30 and 50 % of the parameters removed:
  Reef            `reef prune --params`, fitted to the calibration samples, run in LiteRT
  torch-pruning   whole channels by their magnitude in groups (its default), the ratio searched that removes as much;
                  the better one of global and per-layer ranking is shown. The streams of transformers stay whole, as in
                  Reef: what normalizations average over is pruned by neither
and with 30 and 50 % of the single weights of every layer set to zero:
  Reef            `reef prune --zeros`, run in LiteRT
  l1              torch.nn.utils.prune.l1_unstructured on every layer

--streaming builds a network of timm that is too large for the chip's memory, with random weights (so that accuracy says
nothing, and outputs are compared instead), and makes it fit. --docs puts the table into a page, between its marks.

Accuracy is measured on samples that were not fitted to; "dB" is how near outputs are to the float model's (power of
its outputs around their mean over power of the difference), which tells models apart where accuracy cannot. Peers come
from PyPI by name: torch, torch-pruning, onnx, onnxruntime, ai-edge-litert, numpy.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn.utils import prune as torch_prune

from onnx_to_torch import OnnxModule
from quantized_accuracy import MODELS, figure, normalized, run_onnx, run_tflite, shown

NAMES = ["cifar_resnet8", "cifar_mobilenetv2", "cifar_effnet_silu", "cifar_vit_tiny", "shapes_yolo",
         "cifar_unet_denoise", "text_bert_tiny"]


def parameters(model):
    """All of them: those of layers, and constants that nothing is removed from (embeddings, normalizations)."""
    return sum(p.numel() for layer in model.layers.values() for p in layer.parameters()) + model.other_parameters


def run_torch(model, samples, is_image):
    model.eval()
    with torch.no_grad():
        return [model(torch.tensor(normalized(s).transpose(2, 0, 1)[None] if is_image else s[None].astype(np.int64)))[0]
                .numpy() for s in samples]


def distance(reference, outputs):
    a, b = np.stack([o.reshape(-1) for o in reference]), np.stack([o.reshape(-1) for o in outputs])
    return 10 * np.log10(((a - a.mean()) ** 2).sum() / max(((a - b) ** 2).sum(), 1e-30))


def layer_lists(model):
    """Layers that must keep their outputs, and heads of layers that compute queries, keys and values."""
    heads = {model.layers[key]: count for key, count in model.heads.items()}
    keep = [list(model.layers.values())[-1]]
    if heads:  # streams stay whole: hidden layers are those whose result another Linear reads behind an activation
        keep += [layer for key, layer in model.layers.items() if layer not in heads and "_m_0_" not in key]
    return keep, heads


def by_torch_pruning(source, sample, share, is_image):
    """Models with at most `share` of the parameters left, one for each way to rank; with what was refused."""
    import torch_pruning as tp
    results, problems = [], []
    for is_global in (False, True):
        def pruned(ratio):
            model = copy.deepcopy(source)
            keep, heads = layer_lists(model)
            pruner = tp.pruner.BasePruner(model, sample, importance=tp.importance.GroupMagnitudeImportance(p=2),
                                          global_pruning=is_global, pruning_ratio=ratio, ignored_layers=keep,
                                          num_heads=heads, max_pruning_ratio=0.9)
            pruner.step()
            with torch.no_grad():
                model(sample)
            return model
        low, high, best = 0.0, 0.9, None
        try:
            for _ in range(7):
                middle = (low + high) / 2
                model = pruned(middle)
                if parameters(model) <= share * parameters(source):
                    high, best = middle, model
                else:
                    low = middle
            if best is not None:
                results.append(best)
        except Exception as error:  # the peer's own failure is a result, too
            problems.append(f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}")
    return results, problems


def by_l1(source, share):
    model = copy.deepcopy(source)
    for layer in model.layers.values():
        torch_prune.l1_unstructured(layer, "weight", amount=share)
        torch_prune.remove(layer, "weight")
    return model


def by_reef(reef, zoo, name, options, work):
    data_file = MODELS[name][0]
    out = work / f"{name}.tflite"
    command = [reef, "prune", zoo / "onnx" / f"{name}.onnx", "--data", zoo / "data" / f"{data_file}.npz", "-o", out,
               "--points", "1", "--no-simulation", *options]
    if "text" not in data_file:
        command += ["--preprocess", "mean=127.5,std=127.5"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return out.read_bytes()


def measure(reef, zoo, name, limit, work):
    data_file, array, truth_array, metric = MODELS[name]
    data = np.load(zoo / "data" / f"{data_file}.npz")
    samples, truths = data[array][:limit], data[truth_array][:limit]
    is_image = samples.ndim == 4
    last = (lambda outputs: [o.transpose(1, 2, 0) for o in outputs]) if metric == "psnr" else (lambda outputs: outputs)
    path = zoo / "onnx" / f"{name}.onnx"
    reference = last(run_onnx(path, samples, is_image))
    source = OnnxModule(path)
    ours = last(run_torch(source, samples[:8], is_image))
    assert distance(reference[:8], ours) > 60, f"{name}: the torch module is not the ONNX model"
    whole, error = figure(metric, reference, truths)
    sample = torch.tensor(normalized(samples[0]).transpose(2, 0, 1)[None] if is_image else
                          samples[0][None].astype(np.int64))
    rows = []
    for removed in (0.3, 0.5):
        by_peer, problems = by_torch_pruning(source, sample, 1 - removed, is_image)
        peer = max(((figure(metric, o, truths)[0], distance(reference, o)) for o in
                    (last(run_torch(m, samples, is_image)) for m in by_peer)), default=None)
        outputs = run_tflite(by_reef(reef, zoo, name, ["--params", str(1 - removed)], work), samples, is_image)
        rows.append((name, metric, whole, error, "channels", removed, figure(metric, outputs, truths)[0],
                     distance(reference, outputs), peer, problems))
        zeroed = last(run_torch(by_l1(source, removed), samples, is_image))
        outputs = run_tflite(by_reef(reef, zoo, name, ["--zeros", str(removed)], work), samples, is_image)
        rows.append((name, metric, whole, error, "zeros", removed, figure(metric, outputs, truths)[0],
                     distance(reference, outputs), (figure(metric, zeroed, truths)[0], distance(reference, zeroed)), []))
    return rows


def table(rows):
    lines = ["| model | figure | float | what goes | Reef | peer | Reef, dB | peer, dB | better |",
             "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- |"]
    for name, metric, whole, _, what, removed, value, near, peer, problems in rows:
        theirs = (shown(peer[0], metric), f"{peer[1]:.1f}") if peer else (problems[0] if problems else "none", "")
        better = peer is None or (value >= peer[0] and near > peer[1])
        text = "both" if better and peer else "peer fails" if better else "dB" if near > peer[1] else "no"
        lines.append(f"| {name} | {metric} | {shown(whole, metric)} | {100 * removed:.0f} % {what} | "
                     f"{shown(value, metric)} | {theirs[0]} | {near:.1f} | {theirs[1]} | {text} |")
    return "\n".join(lines) + "\n"


STREAMING_SIZE, STREAMING_SAMPLES = 96, 96


def streaming_network(name, pictures, folder):
    """The network as ONNX, its normalizations settled on the pictures, and these as an .npz."""
    import timm
    torch.manual_seed(0)
    # A residual branch that begins with zeros, as for training, would be removed for nothing.
    options = {"zero_init_last": False} if name.startswith("resnet") else {}
    model = timm.create_model(name, pretrained=False, **options)
    large = torch.nn.functional.interpolate(torch.tensor(pictures.transpose(0, 3, 1, 2)).float(), STREAMING_SIZE, mode="bilinear")
    with torch.no_grad():
        model.train()
        for _ in range(4):
            model((large - 127.5) / 127.5)
        model.eval()
        path = folder / f"{name}.onnx"
        torch.onnx.export(model, torch.zeros(1, 3, STREAMING_SIZE, STREAMING_SIZE), str(path), opset_version=17, dynamo=False)
    pixels = large.clamp(0, 255).round().byte().numpy().transpose(0, 2, 3, 1)
    np.savez(folder / "pictures.npz", images=pixels)
    return path, folder / "pictures.npz"


def streaming(reef, zoo, name, work):
    """One row: parameters, bytes sent with every inference, simulated time, before and after."""
    pictures = np.load(zoo / "data" / "cifar10_eval.npz")["images"][:STREAMING_SAMPLES]
    model, data = streaming_network(name, pictures, work)
    command = [reef, "prune", model, "--data", data, "--preprocess", "mean=127.5,std=127.5", "--fit", "--points", "1", "-o",
               work / "fits.tflite", "--json"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    points = json.loads(done.stdout)["points"]
    lines = [f"| {name}, {STREAMING_SIZE}x{STREAMING_SIZE} | parameters | cached | sent each time | simulated, ms | outputs, dB |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for word, point in (("before", points[0]), ("after `--fit`", points[-1])):
        near = "" if word == "before" else f"{point['agreement_db']:.1f}"
        lines.append(f"| {word} | {point['parameters']:,} | {point['cached_bytes']:,} | {point['streamed_bytes']:,} | "
                     f"{point['simulated_ms']:.2f} | {near} |")
    return "\n".join(lines) + "\n"


def put_into(page, mark, text):
    """Replaces what stands between <!-- MARK --> and <!-- end of MARK -->."""
    before, found, rest = page.read_text().partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition(f"<!-- end of {mark} -->")
    if not found or not end:
        sys.exit(f"{page} has no place for '{mark}'")
    page.write_text(before + found + text + end + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reef")
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(NAMES))
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("--streaming", metavar="NETWORK", help="of timm")
    options = parser.parse_args()
    if options.streaming:
        with tempfile.TemporaryDirectory() as work:
            text = streaming(options.reef, options.zoo, options.streaming, pathlib.Path(work))
        if options.docs:
            put_into(options.docs, "streaming", text)
        print(text)
        return
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for name in options.models.split(","):
            rows += measure(options.reef, options.zoo, name, options.limit, pathlib.Path(work))
            print(table(rows[-4:]), flush=True)
    text = table(rows)
    if options.out:
        options.out.write_text(text)
    if options.docs:
        put_into(options.docs, "beside other tools", text)
    print(text)


if __name__ == "__main__":
    main()
