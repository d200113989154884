#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes a pruned classifier in several ways at once and keeps the one that is best on training pictures held back from all of them.

    bench/qat_variants.py ZOO --pictures CIFAR.npz --pruned FOLDER --model NAME [--zeros] [--variants NAME,...] [--device cuda]
        --float-end SECONDS --end SECONDS [--out FILE.json] [--models-to FOLDER]

The collection's evaluation set chooses nothing: every variant recovers in float arithmetic, the `--finalists` best of them train on in the
chip's, and the best of these is written; all three choices go by the 5,000 pictures held back. Variants take turns, one step each, on streams
of their own, because a step of a small network fills little of a GPU. Teachers' outputs are computed once where pictures are only mirrored.
"""
import argparse
import dataclasses
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
from qat_accuracy import Student, Teacher, TeacherModule, normalized, outputs_of, parameters, post_training, score  # noqa: E402
from quantized_accuracy import MODELS  # noqa: E402

HELD_BACK, CHECKED = 5000, 2000


@dataclasses.dataclass(frozen=True)
class Variant:
    """How a network recovers and is trained on."""
    rate: float = 4e-3
    batch: int = 256
    share: float = 0.5         # of the teacher; the others learn from labels
    temperature: float = 2.0
    mirror: bool = True
    move: int = 0              # pixels at the most
    teachers: str = ""         # further networks, whose outputs are averaged with the network's own; only with move = 0
    average: float = 0.998
    exact_rate: float = 5e-4   # in the chip's arithmetic


_OTHERS = "cifar_mobilenetv2,cifar_effnet_silu"
VARIANTS = {
    "mirrored": Variant(rate=2e-3),
    "mirrored, three teachers": Variant(teachers=_OTHERS),
    "mirrored, teachers above all": Variant(teachers=_OTHERS, share=0.9, temperature=4.0),
    "as they are": Variant(mirror=False),
    "mirrored, moved by one": Variant(move=1),
    "mirrored, large batches": Variant(teachers=_OTHERS, rate=8e-3, batch=512),
    "mirrored, moved by four": Variant(rate=1.5e-3, move=4, exact_rate=1e-4),
    "mirrored, moved by two": Variant(rate=2e-3, move=2, exact_rate=1e-4),
}


class Table:
    """Pictures as they are and mirrored, with the teachers' outputs and the label of each, chosen by one gather for a batch."""

    def __init__(self, inputs, targets, count, batch, mirror, seed):
        self.inputs, self.targets, self.count, self.batch, self.mirror = inputs, targets, count, min(batch, count), mirror
        self.generator = torch.Generator(inputs.device).manual_seed(seed)

    def __len__(self):
        return self.count // self.batch

    def __iter__(self):
        device = self.inputs.device
        order = torch.randperm(self.count, generator=self.generator, device=device)
        if self.mirror:
            order = order + self.count * torch.randint(0, 2, (self.count,), generator=self.generator, device=device)
        for i in range(len(self)):
            chosen = order[i * self.batch:(i + 1) * self.batch]
            yield self.inputs[chosen], self.targets[chosen]


def learned_loss(model, variant, teacher=None):
    """Of inputs and labels, or of inputs and what Table gives."""
    from reef.torch import distillation_loss

    def value(inputs, targets):
        outputs = model(inputs)
        if targets.dim() == 1:
            with torch.no_grad():
                wanted = teacher(inputs)
            labels = targets
        else:
            wanted, labels = targets[:, :-1], targets[:, -1].long()
        distilled = distillation_loss(outputs, wanted, variant.temperature)
        return variant.share * distilled + (1 - variant.share) * F.cross_entropy(outputs, labels)
    return value


@torch.no_grad()
def logits_of(model, inputs):
    model.eval()
    return torch.cat([model(part) for part in inputs.split(1000)])


class Work:
    """Pictures and teachers, which all variants share."""

    def __init__(self, arguments):
        import reef.torch
        self.arguments, self.device = arguments, torch.device(arguments.device)
        file, self.inputs_name, self.answers_name, self.metric = MODELS[arguments.model]
        self.data, self.path = np.load(arguments.zoo / "data" / f"{file}.npz"), arguments.zoo / "onnx" / f"{arguments.model}.onnx"
        self.calibration = normalized(self.data["calib"])
        self.example = torch.zeros(1, *self.calibration.shape[1:])
        pictures = np.load(arguments.pictures)
        images, labels = pictures["images"][:arguments.most], pictures["labels"][:arguments.most].astype(np.int64)
        back = min(HELD_BACK, len(images) // 5)
        self.images, self.labels = images[:-back], labels[:-back]
        self.back, self.back_labels = normalized(images[-back:]).to(self.device), torch.from_numpy(labels[-back:]).to(self.device)
        self.like, self.teachers, self.tables = torch.zeros(1, int(labels.max()) + 1), {}, {}
        first = normalized(self.images).to(self.device)
        self.both = torch.cat([first, first.flip(3)])
        self.prepare = reef.torch.prepare_qat

    def teacher(self, name):
        if name not in self.teachers:
            qat = self.prepare(self.arguments.zoo / "onnx" / f"{name}.onnx", self.example, self.calibration).to(self.device)
            qat.arithmetic = "float"
            self.teachers[name] = Student(qat, self.like)
        return self.teachers[name]

    def targets(self, names, inputs, labels):
        logits = [torch.log_softmax(logits_of(self.teacher(name), inputs), 1) for name in names]
        return torch.cat([torch.stack(logits).mean(0), labels.float()[:, None]], 1)

    def names(self, variant):
        return (self.arguments.model, *(name for name in variant.teachers.split(",") if name and name != self.arguments.model))

    def batches(self, variant, seed):
        import reef.torch
        if variant.move:
            return reef.torch.PictureBatches(self.images, self.labels, batch=variant.batch, mirror=variant.mirror, move=variant.move,
                                             device=self.device, seed=seed)
        names = self.names(variant)
        if names not in self.tables:
            labels = torch.from_numpy(self.labels).to(self.device)
            self.tables[names] = self.targets(names, self.both, torch.cat([labels, labels]))
        return Table(self.both, self.tables[names], len(self.images), variant.batch, variant.mirror, seed)

    def check(self, variant):
        inputs, labels = self.back[:CHECKED], self.back_labels[:CHECKED]
        wanted = labels if variant.move else self.targets(self.names(variant), inputs, labels)
        return list(zip(inputs.split(500), wanted.split(500)))


class Candidate:
    def __init__(self, name, work, seed):
        arguments, form = work.arguments, "z75" if work.arguments.zeros else "p25"
        self.name, self.variant, self.work = name, VARIANTS[name], work
        self.qat = work.prepare(arguments.pruned / f"{arguments.model}_{form}.tflite", work.example, work.calibration,
                                keep_zeros=arguments.zeros).to(work.device)
        self.qat.fast_sums, self.student = True, Student(self.qat, work.like)
        self.batches, self.check = work.batches(self.variant, seed), work.check(self.variant)
        self.loss = learned_loss(self.student, self.variant, work.teacher(arguments.model))
        self.float_losses, self.losses, self.figures = [], [], {}
        self.stream = torch.cuda.Stream() if work.device.type == "cuda" else None

    def on_stream(self):
        return torch.cuda.stream(self.stream)  # nothing where it is None

    def recovering(self, seconds):
        from reef.torch._finetune import recover_steps
        return recover_steps(self.float_losses, self.student, self.batches, self.work.arguments.epochs, self.variant.rate, self.loss,
                             average=self.variant.average, seconds=seconds, calibration=self.work.both[:256].cpu(), progress=self.tell)

    def training(self, seconds):
        from reef.torch._finetune import finetune_steps
        return finetune_steps(self.losses, self.student, self.batches, self.work.arguments.epochs, self.variant.exact_rate, self.loss,
                              average=0.998, check=self.check, seconds=seconds, progress=self.tell)

    def tell(self, epoch, loss):
        if epoch < 4 or epoch % 10 == 0:
            print(f"  {self.name}: epoch {epoch}, loss {loss:.5f}, {time.strftime('%H:%M:%S')}", file=sys.stderr, flush=True)

    def judge(self, figure):
        """Share of the pictures held back that it knows, in the chip's arithmetic."""
        right = logits_of(self.student, self.work.back).argmax(1) == self.work.back_labels
        self.figures[figure] = float(right.float().mean())
        return self.figures[figure]


def in_turns(candidates, runs):
    """One step of each, until all have ended."""
    left = list(zip(candidates, runs))
    while left:
        for pair in list(left):
            with pair[0].on_stream():
                if next(pair[1], StopIteration) is StopIteration:
                    left.remove(pair)
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def best_of(candidates, figure):
    for candidate in candidates:
        print(f"{candidate.name}: {candidate.judge(figure):.4f} of pictures held back ({figure}), losses "
              f"{[round(loss, 4) for loss in (candidate.float_losses + candidate.losses)[-2:]]}", flush=True)
    return sorted(candidates, key=lambda candidate: -candidate.figures[figure])


def measure(arguments):
    import reef
    import reef.torch
    work = Work(arguments)
    tested, truths = work.data[work.inputs_name], work.data[work.answers_name]
    variant = "_z75" if arguments.zeros else "_p25"
    floats = outputs_of(torch.nn.Module.eval(TeacherModule(Teacher(work.path, work.device))), tested, work.device)
    row = {"network": arguments.model, "variant": variant, "metric": work.metric, "held_out": len(tested), "learned": len(work.images),
           "is_pruned": True, "zeros": arguments.zeros, "fp32": score(work.metric, floats, truths)[0], "error": "ended early"}

    def save():
        if arguments.out:
            arguments.out.write_text(json.dumps([row], indent=1) + "\n")

    def figure_of(module):
        return score(work.metric, outputs_of(module, tested, work.device), truths)[0]

    candidates = [Candidate(name, work, seed) for seed, name in enumerate(arguments.variants.split(";"))]
    row.update(plain=figure_of(candidates[0].student), parameters=parameters(candidates[0].qat))
    print({key: row[key] for key in ("fp32", "plain", "parameters")}, time.strftime("%H:%M:%S"), flush=True)
    save()
    if work.device.type == "cuda":
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        post = pool.submit(post_training, arguments.pruned / f"{arguments.model}{variant}.tflite", work.calibration, folder)
        in_turns(candidates, [c.recovering(arguments.float_end - time.time()) for c in candidates])
        candidates = best_of(candidates, "recovered")
        row["variants"] = {c.name: {**dataclasses.asdict(c.variant), **c.figures, "epochs": len(c.float_losses), "losses": c.float_losses}
                           for c in candidates}
        row["recovered"] = figure_of(candidates[0].student)
        save()
        finalists = candidates[:arguments.finalists]
        in_turns(finalists, [c.training(arguments.end - time.time()) for c in finalists])
        chosen = best_of(finalists, "trained")[0]
        for c in finalists:
            row["variants"][c.name].update(c.figures, exact_losses=c.losses)
        row.update(chosen=chosen.name, float_epochs=len(chosen.float_losses), epochs=len(chosen.losses), module=figure_of(chosen.student))
        print("chosen:", chosen.name, row["module"], time.strftime("%H:%M:%S"), flush=True)
        save()
        written = (arguments.models_to or pathlib.Path(folder)) / f"{arguments.model}{variant}_int8.tflite"
        result = reef.torch.convert(chosen.qat, written, verify=arguments.verify)  # an error if a code differs from the virtual device's

        def file_of(path):
            module = reef.torch.from_quantized(path).to(work.device)
            module.layout = chosen.qat.layout
            return Student(module, work.like)
        row.update(verified=result.verified, notes=result.notes, parameters_after=parameters(chosen.qat), after=figure_of(file_of(written)))
        save()
        row["post"] = figure_of(file_of(post.result()))
    del row["error"]
    save()
    print({key: row[key] for key in ("fp32", "plain", "post", "recovered", "module", "after", "chosen", "verified")}, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zoo", type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--pruned", type=pathlib.Path, required=True)
    parser.add_argument("--zeros", action="store_true")
    parser.add_argument("--variants", default=";".join(VARIANTS), help="names, separated by semicolons")
    parser.add_argument("--finalists", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--epochs", type=int, default=10**6, help="of either part at most")
    parser.add_argument("--most", type=int, default=10**9, help="pictures at most")
    parser.add_argument("--float-end", type=float, default=math.inf, help="when recovering must have ended, in seconds since 1970")
    parser.add_argument("--end", type=float, default=math.inf, help="when training must have ended")
    parser.add_argument("--verify", type=int, default=20, help="random inputs to compare with the virtual device")
    parser.add_argument("--models-to", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    measure(parser.parse_args())
    return 0


if __name__ == "__main__":
    sys.exit(main())
