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

With --float-epochs the network first recovers in float arithmetic (reef.torch.recover); the teacher is the unpruned network in float arithmetic.
Nothing is chosen by the held-out figures: the last weights are what is written.

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
from concurrent.futures import ThreadPoolExecutor

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


class Noisy:
    """Pictures with noise, and as they are."""

    def __init__(self, batches):
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for clean, *_ in self.batches:
            pixels = clean * 127.5 + 127.5 + NOISE * torch.randn_like(clean)
            yield (pixels.round().clamp(0, 255) - 127.5) / 127.5, clean


class Taught:
    """Batches whose labels are the teacher's outputs, for a loss of one's own."""

    def __init__(self, batches, teacher):
        self.batches, self.teacher = batches, teacher

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        for inputs, *_ in self.batches:
            with torch.no_grad():
                wanted = self.teacher(inputs)
            yield inputs, wanted


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
def outputs_of(model, samples, device):
    model.eval()
    size = 500 if str(device).startswith("cuda") and samples.shape[1] <= 64 else 100
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
    return {"share": 0.5 if is_pruned else 0.9} if has_labels else {}


def batches_of(samples, labels, metric, teacher, size, device):
    import reef.torch
    if metric == "map50":
        return Taught(reef.torch.PictureBatches(samples, batch=size, mirror=False, move=0, device=device), teacher)
    batches = reef.torch.PictureBatches(samples, labels, batch=size, device=device)
    return Noisy(batches) if metric == "psnr" else batches


def train(student, teacher, samples, labels, metric, row, judge, save, arguments):
    """Recovers in float arithmetic if that is asked for, then trains in the chip's; `row` gets the figures in between."""
    import reef.torch
    options = options_of(metric, row["is_pruned"], labels is not None)
    teaching, device = None if metric == "map50" else teacher, arguments.device
    row["losses"], began = [], time.monotonic()

    def tell(epoch, loss):
        row["losses"].append(loss)
        row["seconds"] = time.monotonic() - began
        print(f"  {row['network']}{row['variant']}: epoch {epoch}, loss {loss:.5f}, {row['seconds']:.0f} s", file=sys.stderr, flush=True)
        save()
    row["float_epochs"] = 0
    if arguments.float_epochs:
        seconds = min(arguments.float_limit, arguments.float_share * (arguments.end - time.time()))
        batches = batches_of(samples, labels, metric, teacher, arguments.float_batch, device)
        losses = reef.torch.recover(student, batches, epochs=arguments.float_epochs, rate=arguments.float_rate, teacher=teaching,
                                    seconds=seconds, progress=tell, **options)
        row.update(float_epochs=len(losses), float_seconds=time.monotonic() - began, recovered=judge())
        student.qat.arithmetic = "float"
        row["real"] = judge()
        student.qat.arithmetic = "chip"
        print(f"  {row['network']}{row['variant']}: {row['real']:.4f} in float arithmetic, {row['recovered']:.4f} in the chip's",
              file=sys.stderr, flush=True)
        save()
    batches, seconds = batches_of(samples, labels, metric, teacher, arguments.batch, device), min(arguments.limit, arguments.end - time.time())
    losses = reef.torch.finetune(student, batches, epochs=arguments.epochs, rate=arguments.rate, teacher=teaching, seconds=seconds,
                                 progress=tell, **options)
    row["epochs"] = len(losses)


def post_training(source, calibration, folder):
    """`reef quantize` with all its means."""
    import reef
    best = pathlib.Path(folder) / "best.tflite"
    reef.quantize(source, best, np.ascontiguousarray(calibration.permute(0, 2, 3, 1).numpy()))
    return best


def measure(name, arguments, rows):
    """Appends the network's row to `rows` and fills it as figures come."""
    import reef
    import reef.torch
    file, inputs, answers, metric = MODELS[name]
    data, path = np.load(arguments.zoo / "data" / f"{file}.npz"), arguments.zoo / "onnx" / f"{name}.onnx"
    samples, labels, first = learned_samples(name, data, inputs, metric, arguments)
    last = first + arguments.held_out
    tested, truths, device = data[inputs][first:last], data[answers][first:last], arguments.device
    calibration = normalized(data["calib"])
    variant = "" if not arguments.pruned else "_z75" if arguments.zeros else "_p25"
    floats = outputs_of(torch.nn.Module.eval(TeacherModule(Teacher(path, device))), tested, device)
    row = {"network": name, "variant": variant, "metric": metric, "held_out": len(tested), "learned": len(samples),
           "is_pruned": bool(arguments.pruned), "rate": arguments.rate, "batch": arguments.batch, "fast": arguments.fast,
           "zeros": arguments.zeros, "fp32": score(metric, floats, truths)[0], "error": "ended early"}
    rows.append(row)

    def save():
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n")

    def file_of(path):
        module = reef.torch.from_quantized(path).to(device)
        module.layout = qat.layout
        return module

    def judge(module=None):
        return score(metric, outputs_of(Student(module, like) if module else student, tested, device), truths)[0]

    like, example = torch.from_numpy(floats[:1]), torch.zeros(1, *calibration.shape[1:])
    teacher = Student(reef.torch.prepare_qat(path, example, calibration).to(device), like)
    teacher.qat.arithmetic = "float"
    source = arguments.pruned / f"{name}{variant}.tflite" if variant else path
    qat = reef.torch.prepare_qat(source, example, calibration, keep_zeros=arguments.zeros).to(device)
    student, qat.fast_sums = Student(qat, like), arguments.fast
    row.update(plain=judge(), parameters=parameters(qat))
    print(name + variant, {key: row[key] for key in ("fp32", "plain", "parameters")}, file=sys.stderr, flush=True)
    save()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        post = pool.submit(post_training, source, calibration, folder)  # on the CPU meanwhile
        train(student, teacher, samples, labels, metric, row, judge, save, arguments)
        row["module"] = judge()
        save()
        written = (arguments.models_to or pathlib.Path(folder)) / f"{name}{variant}_int8.tflite"
        try:  # an error if an output code on the virtual device is not the module's
            result = reef.torch.convert(qat, written, verify=arguments.verify)
        except reef.Error as error:
            row["error"] = str(error)
            return
        row.update(verified=result.verified, notes=result.notes, parameters_after=parameters(qat), after=judge(file_of(written)))
        save()
        row["post"] = judge(file_of(post.result()))
    del row["error"]
    save()


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
        lines.append(f"| {name} | {row['metric']} | {row['held_out']} | {row['learned']} | {row.get('float_epochs', 0)} + {row['epochs']} | {row['parameters_after']} | {cells} |")
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
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of training in the chip's arithmetic at most")
    parser.add_argument("--float-epochs", type=int, default=0, help="epochs in float arithmetic before (reef.torch.recover)")
    parser.add_argument("--float-batch", type=int, default=256)
    parser.add_argument("--float-rate", type=float, default=2e-3)
    parser.add_argument("--float-limit", type=float, default=math.inf, help="seconds of them at most")
    parser.add_argument("--end", type=float, default=math.inf, help="when training must have ended, in seconds since 1970")
    parser.add_argument("--float-share", type=float, default=0.7, help="of the time until --end")
    parser.add_argument("--models-to", type=pathlib.Path, help="folder for the trained int8 models")
    parser.add_argument("--verify", type=int, default=4, help="random inputs to compare with the virtual device")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--render", nargs="+", metavar=("DOCUMENT", "FILE"))
    arguments = parser.parse_args()
    if arguments.render:
        return render(arguments.render[0], arguments.render[1:])
    rows = []
    for name in arguments.models.split(","):
        measure(name, arguments, rows)
    print(table(rows), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
