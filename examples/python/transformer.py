# SPDX-License-Identifier: Apache-2.0
"""From PyTorch to the Edge TPU: a small vision transformer and a small text classifier.

    python transformer.py [--reef build/reef] [--work DIR] [--quick]

Both are trained here, in seconds to minutes on a CPU, on data that is made here: pictures of shapes, and sentences about
the weather at sea. Each is exported to ONNX, quantized and compiled by one command, and then run on a virtual Edge TPU:

  accuracy   of PyTorch, and of the compiled file, on samples that training and calibration did not see
  on chip    operators on the Edge TPU, of how many
  latency    of one inference over USB 3, simulated; nothing of it has run on silicon

The text model reads words: it carries its vocabulary and the names of its classes (`--attach`), so that
`reef run --text` takes a sentence and gives its answer. Needs torch, onnx and numpy; calls `reef`.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import torch
from torch import nn

SIDE, PATCH = 32, 4                    # a picture is 8 x 8 patches
SHAPES = ("disc", "square", "cross", "ring")
WORDS = ("[PAD] [UNK] [CLS] [SEP] the sea is was will be calm rough quiet stormy gentle wild today tomorrow tonight "
         "not very wind waves are no boats sailed stayed in out of harbour").split()
LENGTH = 16                            # tokens of a sentence
MOODS = ("calm", "rough")


class Block(nn.Module):
    """One layer of a transformer, norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.layers = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = self.before_attention(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.layers(self.before_layers(x))


class VisionTransformer(nn.Module):
    def __init__(self, width=64, heads=4, depth=3):
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, PATCH)
        self.positions = nn.Parameter(torch.randn(1, (SIDE // PATCH) ** 2, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(SHAPES)))

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.blocks(tokens).mean(1))


class TextClassifier(nn.Module):
    """BERT in small: the first token, [CLS], is what is read."""

    def __init__(self, width=64, heads=4, depth=2):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), width)
        self.positions = nn.Parameter(torch.randn(1, LENGTH, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(MOODS)))

    def forward(self, tokens):
        return self.head(self.blocks(self.words(tokens) + self.positions)[:, 0])


def pictures(count, random):
    """Shapes of any colour and size on noise, [count, 3, SIDE, SIDE] from 0 to 1, and which each is."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    images, kinds = random.uniform(0, 0.35, (count, 3, SIDE, SIDE)), random.integers(0, len(SHAPES), count)
    for i, kind in enumerate(kinds):
        radius = random.uniform(6, 12)
        dy, dx = (y - random.uniform(radius, SIDE - radius)), (x - random.uniform(radius, SIDE - radius))
        distance = np.hypot(dy, dx)
        inside = {"disc": distance < radius, "ring": (distance < radius) & (distance > 0.6 * radius),
                  "square": np.maximum(abs(dy), abs(dx)) < 0.8 * radius,
                  "cross": (np.minimum(abs(dy), abs(dx)) < 0.25 * radius) & (distance < radius)}[SHAPES[kind]]
        images[i][:, inside] = random.uniform(0.5, 1, (3, 1))
    return images.astype(np.float32), kinds


def sentences(count, random):
    """Sentences and whether the sea is calm in them; "not" and "no" turn them around."""
    texts, moods = [], random.integers(0, 2, count)
    for mood in moods:
        turned = random.random() < 0.4
        words = ("calm", "quiet", "gentle") if (mood == 0) != turned else ("rough", "stormy", "wild")
        end = random.choice(["", " today", " tonight", " tomorrow", " in the harbour"])
        texts.append(f"the {random.choice(['sea', 'wind'])} {random.choice(['is', 'was', 'will be'])} "
                     f"{'not ' if turned else ''}{random.choice(['', 'very '])}{random.choice(words)}{end}")
    return texts, moods


def tokens_of(texts):
    """As `reef run --text` does it: words of the vocabulary between [CLS] and [SEP]."""
    rows = np.zeros((len(texts), LENGTH), np.int64)
    for row, text in zip(rows, texts):
        ids = [2] + [WORDS.index(word) if word in WORDS else 1 for word in text.split()][:LENGTH - 2] + [3]
        row[:len(ids)] = ids
    return rows


def train(model, inputs, answers, steps):
    inputs, answers = torch.from_numpy(inputs), torch.from_numpy(answers)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    model.train()
    for _ in range(steps):
        some = torch.randint(len(inputs), (64,))
        loss = nn.functional.cross_entropy(model(inputs[some]), answers[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def accuracy_in_torch(model, inputs, answers):
    with torch.no_grad():
        return float((model(torch.from_numpy(inputs)).argmax(1).numpy() == answers).mean())


def call(reef, *options):
    done = subprocess.run([reef, *map(str, options)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"reef {' '.join(map(str, options))}\n{done.stderr}")
    return done.stdout


def to_edge_tpu(reef, model, sample, calibration, work, name, *attached):
    """Exports, quantizes and compiles; the compiled file, and what `reef compile` says of it."""
    onnx = work / f"{name}.onnx"
    torch.onnx.export(model, (torch.from_numpy(sample),), onnx, input_names=["x"], dynamo=False)
    np.savez(work / f"{name}_calibration.npz", x=calibration)
    said = json.loads(call(reef, "compile", onnx, "--data", work / f"{name}_calibration.npz", "--preprocess", "none",
                           *(word for file in attached for word in ("--attach", file)), "-o", work, "--json"))["files"][0]
    return pathlib.Path(said["output"]), said


def accuracy_on_chip(reef, compiled, inputs, answers, work):
    np.savez(work / "test.npz", x=inputs, labels=answers)
    return json.loads(call(reef, "eval", compiled, "--data", work / "test.npz", "--array", "x", "--truth", "labels",
                           "--preprocess", "none", "--device", "virtual", "--metric", "top1", "--json"))["value"]


def simulated_ms(said):
    """Of one inference: the program that runs every time, without the one that brings weights to the chip once."""
    programs = json.loads(said)["edge_tpu"]
    return programs[-1]["ms"]


def line(name, in_torch, on_chip, said, ms):
    print(f"{name:8} PyTorch {in_torch:6.1%}   Edge TPU {on_chip:6.1%}   on chip {said['operations_on_chip']} of "
          f"{said['operations']}   {ms:.2f} ms (simulated, USB 3)")


def vision(reef, work, steps, tested, random):
    images, kinds = pictures(3000, random)
    model = train(VisionTransformer(), images, kinds, steps)
    test_images, test_kinds = pictures(tested, random)
    compiled, said = to_edge_tpu(reef, model, images[:1], images[:100], work, "vision")
    ran = call(reef, "run", compiled, "--device", "virtual", "--json")
    line("vision", accuracy_in_torch(model, test_images, test_kinds),
         accuracy_on_chip(reef, compiled, test_images, test_kinds, work), said, simulated_ms(ran))


def text(reef, work, steps, tested, random):
    texts, moods = sentences(3000, random)
    model = train(TextClassifier(), tokens_of(texts), moods, steps)
    test_texts, test_moods = sentences(tested, random)
    (work / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (work / "labels.txt").write_text("\n".join(MOODS) + "\n")
    compiled, said = to_edge_tpu(reef, model, tokens_of(texts[:1]), tokens_of(texts[:100]), work, "text",
                                 work / "vocab.txt", work / "labels.txt")
    said_of = {sentence: call(reef, "run", compiled, "--device", "virtual", "--text", sentence, "--json")
               for sentence in ("The sea is very calm today", "The wind was not gentle")}
    line("text", accuracy_in_torch(model, tokens_of(test_texts), test_moods),
         accuracy_on_chip(reef, compiled, tokens_of(test_texts), test_moods, work), said,
         simulated_ms(next(iter(said_of.values()))))
    for sentence, ran in said_of.items():
        print(f"         {sentence:28} {json.loads(ran)['outputs'][0]['top'][0]['label']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reef", default=shutil.which("reef") or "build/reef")
    parser.add_argument("--work", type=pathlib.Path, help="where models stay (default: a temporary folder)")
    parser.add_argument("--quick", action="store_true", help="a third of the training, 40 samples to test with")
    args = parser.parse_args()
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or pathlib.Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        steps, tested = (200, 40) if args.quick else (600, 200)
        vision(args.reef, work, steps, tested, random)
        text(args.reef, work, steps, tested, random)


if __name__ == "__main__":
    main()
