#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of quantization-aware training beside fp32 and post-training quantization, on the networks of the collection.

    bench/qat_accuracy.py ZOO [--pictures CIFAR.npz] [--pruned FOLDER] [--models NAME,...] [--device cuda] [--out FILE.json]
    bench/qat_accuracy.py --render docs/train.md FILE.json...

All figures of a line are of the same samples, the collection's evaluation set, which nothing is trained with:

  fp32      the network in ONNX Runtime
  plain     prepare_qat()'s starting point: minimum and maximum of the calibration samples, nothing recovered
  post      `reef quantize` with all its means
  QAT       after reef.torch.finetune() with the float network as the teacher

the last three in the chip's arithmetic; the last one is of the int8 file that reef.torch.convert() wrote. With --pruned, what is trained is
FOLDER/NAME_p25.tflite (`reef prune --params 0.25`) or, with --zeros, FOLDER/NAME_z75.tflite (`reef prune --zeros 0.75`), whose zeros stay.

Trained with: `--pictures`, an .npz with "images" (uint8, [count, 32, 32, 3]) and "labels", which is CIFAR-10's own training set for the
published figures. For the denoiser noise is added to them; pictures for the detector are drawn (`drawn_shapes`). Without --pictures the
first `--train` samples of the evaluation set are learned from, without labels, and the others are measured with.

PYTHONPATH and REEF_LIBRARY say where Reef's Python package is. Peers from PyPI: torch, onnx, onnxruntime.
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from onnx_to_torch import OnnxModule  # noqa: E402
from quantized_accuracy import MODELS, figure  # noqa: E402

NETWORKS = ("cifar_resnet8", "cifar_mobilenetv2", "cifar_effnet_silu", "cifar_vit_tiny", "cifar_unet_denoise", "shapes_yolo")
NOISE = 25.0  # standard deviation of the denoiser's evaluation set, in pixel values, before they are cut to 0 to 255
SHAPES = 6000  # drawn pictures for the detector


def normalized(pixels):
    """uint8 pixels, channels-last, as the networks take them."""
    return (torch.as_tensor(pixels).float() - 127.5).permute(0, 3, 1, 2) / 127.5


def joined(outputs, like):
    """Outputs in the float model's layout; an output that was split is put together again along its last dimension."""
    value = outputs if torch.is_tensor(outputs) else torch.cat(list(outputs), -1)
    return value.permute(0, 3, 1, 2) if value.dim() == 4 and value.shape[1:] != like.shape[1:] else value


class Teacher:
    """The float network on any device, for batches of any size."""

    def __init__(self, path, device):
        self.net = OnnxModule(str(path)).to(device).eval()
        self.net.values = {name: value.to(device) if value.dtype == torch.float32 else value for name, value in self.net.values.items()}
        for parameter in self.net.parameters():
            parameter.requires_grad_(False)

    @torch.no_grad()
    def __call__(self, x):
        return torch.func.vmap(lambda sample: self.net(sample[None])[0])(x)


class Student(torch.nn.Module):
    """The trained module with outputs as the teacher's."""

    def __init__(self, qat, like):
        super().__init__()
        self.qat, self.like = qat, like

    @property
    def device(self):
        return self.qat.device

    def forward(self, x):
        return joined(self.qat(x), self.like)


class Batches:
    """One epoch: batches in random order, mirrored and moved at random, with what is to be learned."""

    def __init__(self, samples, labels, batch, metric, seed, device):
        self.samples, self.labels, self.batch, self.metric = samples, labels, batch, metric
        self.generator, self.device = torch.Generator().manual_seed(seed), device

    def __len__(self):
        return max(len(self.samples) // self.batch, 1)

    def __iter__(self):
        order = torch.randperm(len(self.samples), generator=self.generator)
        for chosen in order.split(self.batch)[:len(self)]:
            yield self._varied(chosen)

    def _varied(self, chosen):
        pixels = torch.as_tensor(self.samples[chosen.numpy()]).to(self.device)
        if self.metric == "map50":
            return (normalized(pixels),)
        if bool(torch.rand((), generator=self.generator) < 0.5):
            pixels = pixels.flip(2)
        if self.metric == "psnr":
            noise = torch.randn(pixels.shape, generator=self.generator).to(self.device) * NOISE
            return normalized((pixels + noise).round().clamp(0, 255)), normalized(pixels)
        padded = F.pad(pixels.permute(0, 3, 1, 2).float(), (4, 4, 4, 4), mode="reflect").permute(0, 2, 3, 1)
        y, x = torch.randint(0, 9, (2,), generator=self.generator).tolist()
        moved = normalized(padded[:, y:y + 32, x:x + 32])
        return (moved,) if self.labels is None else (moved, torch.as_tensor(self.labels[chosen.numpy()]).to(self.device))


def drawn_shapes(count, seed, size=128):
    """Pictures like those that the detector learned from: one to four discs, squares, triangles and rings on a noisy gradient."""
    random, rows = np.random.default_rng(seed), np.arange(size)
    y, x = np.meshgrid(rows, rows, indexing="ij")
    pictures = np.empty((count, size, size, 3), np.uint8)
    for i in range(count):
        angle, ends = random.uniform(0, 2 * np.pi), random.uniform(0, 255, (2, 3))
        share = (np.cos(angle) * (x - size / 2) + np.sin(angle) * (y - size / 2)) / (1.5 * size) + 0.5
        picture = ends[0] + share[..., None] * (ends[1] - ends[0])
        for _ in range(random.integers(1, 5)):
            side, kind = 2 * random.integers(6, 26), random.integers(0, 4)
            cx, cy = random.integers(side // 2, size - side // 2, 2)
            dx, dy, half = x - cx, y - cy, side / 2
            radius = np.hypot(dx, dy)
            inside = (radius <= half, (abs(dx) <= half) & (abs(dy) <= half),
                      (abs(dy) <= half) & (abs(dx) <= (dy + half) / 2), (radius <= half) & (radius >= 0.6 * half))[kind]
            picture[inside] = random.uniform(0, 255, 3)
        pictures[i] = np.clip(picture + random.normal(0, 8, picture.shape), 0, 255)
    return pictures


def rows_loss(outputs, wanted):
    """Detector's rows beside the teacher's: objectness everywhere, boxes and classes where the teacher sees something."""
    outputs, weight = outputs.clamp(1e-4, 1 - 1e-4), wanted[..., 4:5]
    objectness = F.binary_cross_entropy(outputs[..., 4], wanted[..., 4].clamp(0, 1), reduction="sum")
    boxes = (weight * (outputs[..., :4] - wanted[..., :4]).abs()).sum()
    classes = F.binary_cross_entropy(outputs[..., 5:], wanted[..., 5:].clamp(0, 1), weight.expand_as(wanted[..., 5:]), reduction="sum")
    return (objectness + 20 * boxes + classes) / len(outputs)


@torch.no_grad()
def outputs_of(model, samples, device, size=100):
    model.eval()
    return np.concatenate([model(normalized(samples[i:i + size]).to(device)).cpu().numpy() for i in range(0, len(samples), size)])


def score(metric, outputs, truths):
    rows = outputs.transpose(0, 2, 3, 1) if outputs.ndim == 4 else outputs
    return figure(metric, list(rows), truths)


def learned_samples(name, data, inputs, metric, arguments):
    """Samples and labels to learn from, and where the held-out part of the evaluation set begins."""
    if metric == "map50":
        return drawn_shapes(min(SHAPES, arguments.most), 1), None, 0
    if arguments.pictures:
        pictures = np.load(arguments.pictures)
        return pictures["images"][:arguments.most], pictures["labels"][:arguments.most].astype(np.int64), 0
    first = min(arguments.train, len(data[inputs]) // 2)
    clean = data["clean"] if metric == "psnr" else data[inputs]
    return np.concatenate([data["calib"], clean[:first]]) if metric != "psnr" else clean[:first], None, first


def options_of(metric, is_pruned, has_labels):
    """What finetune() is told besides: pruned networks learn from labels, too."""
    if metric == "psnr":
        return {"loss": F.mse_loss, "share": 0.0}
    if metric == "map50":
        return {"loss": rows_loss}
    return {"share": 0.7 if is_pruned else 0.9} if has_labels else {}


class Taught(Batches):
    """Batches whose labels are the teacher's outputs, for a loss of one's own."""

    def __init__(self, teacher, *arguments):
        super().__init__(*arguments)
        self.teacher = teacher

    def _varied(self, chosen):
        inputs = super()._varied(chosen)[0]
        return inputs, self.teacher(inputs)


def epochs_within(student, batches, teacher, options, arguments):
    """As many epochs as asked for, or as the time allows by the speed of a few steps, which are taken back."""
    import reef.torch
    state = {name: value.clone() for name, value in student.qat.state_dict().items()}
    few = [batch for batch, _ in zip(batches, range(8))]
    reef.torch.finetune(student, few[:3], epochs=1, rate=1e-6, teacher=teacher, **options)
    began = time.monotonic()
    reef.torch.finetune(student, few[3:] or few, epochs=1, rate=1e-6, teacher=teacher, **options)
    step = (time.monotonic() - began) / len(few[3:] or few)
    student.qat.load_state_dict(state)
    fitting = arguments.limit / (step * len(batches))
    print(f"  {1000 * step:.0f} ms a step, {len(batches)} steps an epoch", file=sys.stderr, flush=True)
    return max(min(arguments.epochs, int(fitting) if math.isfinite(fitting) else arguments.epochs), 1)


def train(qat, like, teacher, samples, labels, metric, is_pruned, arguments):
    import reef.torch
    student, options = Student(qat, like), options_of(metric, is_pruned, labels is not None)
    parts = (samples, labels, arguments.batch, metric, 0, arguments.device)
    batches = Taught(teacher, *parts) if metric == "map50" else Batches(*parts)
    teaching = None if metric == "map50" else teacher
    epochs, began = epochs_within(student, batches, teaching, options, arguments), time.monotonic()

    def tell(epoch, loss):
        print(f"  epoch {epoch} of {epochs}: loss {loss:.5f}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    losses = reef.torch.finetune(student, batches, epochs=epochs, rate=arguments.rate, teacher=teaching, progress=tell, **options)
    return losses, time.monotonic() - began


def measure(name, arguments):
    import reef
    import reef.torch
    file, inputs, answers, metric = MODELS[name]
    data, path = np.load(arguments.zoo / "data" / f"{file}.npz"), arguments.zoo / "onnx" / f"{name}.onnx"
    samples, labels, first = learned_samples(name, data, inputs, metric, arguments)
    last = first + arguments.held_out
    tested, truths, device = data[inputs][first:last], data[answers][first:last], arguments.device
    calibration = normalized(data["calib"])
    teacher = Teacher(path, device)
    floats = outputs_of(torch.nn.Module.eval(TeacherModule(teacher)), tested, device)
    row = {"network": name, "metric": metric, "held_out": len(tested), "learned": len(samples), "is_pruned": bool(arguments.pruned),
           "rate": arguments.rate, "batch": arguments.batch, "fast": arguments.fast, "zeros": arguments.zeros,
           "fp32": score(metric, floats, truths)[0]}
    like, example = torch.from_numpy(floats[:1]), torch.zeros(1, *calibration.shape[1:])
    variant = "" if not arguments.pruned else "_z75" if arguments.zeros else "_p25"
    source = arguments.pruned / f"{name}{variant}.tflite" if variant else path
    qat = reef.torch.prepare_qat(source, example, calibration, keep_zeros=arguments.zeros).to(device)
    row["plain"] = score(metric, outputs_of(Student(qat, like), tested, device), truths)[0]
    qat.fast_sums = arguments.fast
    row["parameters"] = parameters(qat)
    with tempfile.TemporaryDirectory() as folder:
        best = pathlib.Path(folder) / "best.tflite"
        reef.quantize(source, best, np.ascontiguousarray(calibration.permute(0, 2, 3, 1).numpy()))
        recovered = reef.torch.from_quantized(best).to(device)
        recovered.layout = qat.layout
        row["post"] = score(metric, outputs_of(Student(recovered, like), tested, device), truths)[0]
    print(name, {key: value for key, value in row.items() if key in ("fp32", "plain", "post")}, file=sys.stderr, flush=True)
    row["losses"], row["seconds"] = train(qat, like, teacher, samples, labels, metric, bool(arguments.pruned), arguments)
    row["epochs"] = len(row["losses"])
    row["module"] = score(metric, outputs_of(Student(qat, like), tested, device), truths)[0]
    with tempfile.TemporaryDirectory() as folder:
        written = (arguments.models_to or pathlib.Path(folder)) / f"{name}{variant}_int8.tflite"
        try:  # an error if an output code on the virtual device is not the module's
            result = reef.torch.convert(qat, written, verify=arguments.verify)
        except reef.Error as error:
            return {**row, "error": str(error)}
        converted = reef.torch.from_quantized(written).to(device)
    converted.layout = qat.layout
    row.update(verified=result.verified, notes=result.notes, parameters_after=parameters(qat),
               after=score(metric, outputs_of(Student(converted, like), tested, device), truths)[0])
    return row


@torch.no_grad()
def parameters(qat):
    """Weights, biases and other constants that are not zero."""
    masked = [getattr(qat.constants, f"kept_{key}", 1.0) * value for key, value in qat.constants.values.items()]
    return sum(int((value != 0).sum()) for value in masked)


class TeacherModule(torch.nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.teacher = teacher

    def forward(self, x):
        return self.teacher(x)


def table(rows):
    """The table of the documentation. Figures of accuracy in percent, of noise in dB."""
    lines = ["| network | metric | held out | learned from | epochs | parameters that are not 0 | fp32 | plain min-max | `reef quantize` | after QAT |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in sorted(rows, key=lambda row: (row["is_pruned"], row["zeros"], NETWORKS.index(row["network"]))):
        if "error" in row:
            lines.append(f"| {row['network']} | not converted: {row['error']} |")
            continue
        unit = 1 if row["metric"] == "psnr" else 100
        cells = " | ".join(f"{row[key] * unit:.2f}" for key in ("fp32", "plain", "post", "after"))
        name = row["network"] + ("" if not row["is_pruned"] else ", zeros" if row["zeros"] else ", channels")
        lines.append(f"| {name} | {row['metric']} | {row['held_out']} | {row['learned']} | {row['epochs']} | {row['parameters_after']} | {cells} |")
    return "\n".join(lines)


def render(document, files):
    """Puts the table between the document's two marks."""
    rows = [row for file in files for row in json.loads(pathlib.Path(file).read_text())]
    text = pathlib.Path(document).read_text()
    begin, end = "<!-- bench/qat_accuracy.py -->\n", "<!-- end of bench/qat_accuracy.py -->"
    if begin not in text or end not in text:
        sys.exit(f"{document} has no marks for the table: {begin.strip()} and {end}")
    before, after = text.split(begin)[0], text.split(end)[1]
    pathlib.Path(document).write_text(f"{before}{begin}{table(rows)}\n{end}{after}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zoo", type=pathlib.Path, nargs="?")
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--pictures", type=pathlib.Path, help=".npz with images and labels to learn from")
    parser.add_argument("--pruned", type=pathlib.Path, help="folder with NAME_p25.tflite")
    parser.add_argument("--zeros", action="store_true", help="the pruned model has single weights at zero, which stay")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fast", action="store_true", help="train with sums in float32 on a GPU (QatModel.fast_sums)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--train", type=int, default=1000, help="samples of the evaluation set to learn from, without --pictures")
    parser.add_argument("--most", type=int, default=10**9, help="pictures to learn from at most")
    parser.add_argument("--held-out", type=int, default=10**9, help="samples to measure with at most")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of training; fewer epochs where they do not fit")
    parser.add_argument("--models-to", type=pathlib.Path, help="folder for the trained int8 models")
    parser.add_argument("--verify", type=int, default=4, help="random inputs to compare with the virtual device")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--render", nargs="+", metavar=("DOCUMENT", "FILE"))
    arguments = parser.parse_args()
    if arguments.render:
        return render(arguments.render[0], arguments.render[1:])
    rows = []
    for name in arguments.models.split(","):
        rows.append(measure(name, arguments))
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
