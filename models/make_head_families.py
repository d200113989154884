#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One small detector for each family of heads, trained on drawn shapes, as ONNX files.

    models/make_head_families.py OUT [--steps 1500] [--batch 128] [--families v8,v5,...]

What quantization does to a detector depends on how its head encodes boxes and on how its outputs are joined, not on
its size. Weights of the usual detectors cannot be had without a download, so each family is trained here: the same
backbone (SiLU, two feature maps), pictures of 128 x 128 with up to three shapes of four classes.

  v8     distances to the edges as distributions over bins, scores by sigmoid; boxes (pixels) and scores joined
         along channels (YOLOv8, v9, 11, 12)
  v10    as v8, but one cell alone answers for an object, and the 20 best rows are chosen in the graph: centre, size, score
         and number of the class (YOLOv10, 26)
  v5     anchors, objectness; boxes (pixels), objectness and scores joined along the last axis (YOLOv5, v7)
  yolox  exponential of sizes, no anchors; otherwise as v5 (YOLOX, YOLOv6)
  ssd    priors, encoded offsets, SOFTMAX over classes and background; boxes and scores as two outputs (SSD)
  detr   the best cells are queries of a small transformer decoder; boxes (fractions) and scores joined, rows in the
         order of a selection (DETR, RT-DETR)

The same seed gives the same pictures; weights depend on the machine. A minute for each on a GPU; on a CPU `--steps 500 --batch 24`
takes some two minutes for each and is enough for most boxes to be right.
"""
import argparse
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

SIDE, CLASSES, OBJECTS, BINS = 128, 4, 3, 8
STRIDES = (8, 16)
ANCHORS = (((18, 18), (26, 26), (36, 36)), ((44, 44), (56, 56), (72, 72)))


def draw(count, generator, device):
    """Pictures [count, 3, SIDE, SIDE] from 0 to 1, boxes [count, OBJECTS, 4] (centre and size, pixels), classes; -1: none."""
    def uniform(*shape, low=0.0, high=1.0):
        return torch.rand(*shape, generator=generator, device=device) * (high - low) + low

    coarse = uniform(count, 3, 6, 6, low=0.1, high=0.9)
    pictures = F.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear") + 0.05 * torch.randn(
        count, 3, SIDE, SIDE, generator=generator, device=device)
    rows = torch.arange(SIDE, device=device, dtype=torch.float32) + 0.5
    boxes = torch.zeros(count, OBJECTS, 4, device=device)
    kinds = torch.randint(0, CLASSES, (count, OBJECTS), generator=generator, device=device)
    kinds[uniform(count, OBJECTS) < 0.3] = -1
    for o in range(OBJECTS):
        size = uniform(count, low=16, high=64)
        # One third of the width each, so that shapes hardly ever hide each other.
        x = uniform(count, low=0.2, high=0.8) * (SIDE / OBJECTS) + o * SIDE / OBJECTS
        y = uniform(count, low=0.2, high=0.8) * SIDE
        boxes[:, o] = torch.stack([x, y, size, size], 1)
        u = (rows[None, None, :] - x[:, None, None]) / (size[:, None, None] / 2)
        v = (rows[None, :, None] - y[:, None, None]) / (size[:, None, None] / 2)
        radius = (u * u + v * v).sqrt()
        inside = torch.stack([(u.abs() < 1) & (v.abs() < 1), (radius < 1).expand_as(radius),
                              (v < 1) & (v > 2 * u.abs() - 1), (radius < 1) & (radius > 0.55)], 1)
        shown = inside.gather(1, kinds[:, o].clamp(min=0)[:, None, None, None].expand(-1, 1, SIDE, SIDE))
        shown = shown & (kinds[:, o] >= 0)[:, None, None, None]
        colour = uniform(count, 3, 1, 1)
        pictures = torch.where(shown, colour, pictures)
    return pictures.clamp(0, 1), boxes, kinds


def conv(inputs, outputs, stride=1, filter=3):
    return nn.Sequential(nn.Conv2d(inputs, outputs, filter, stride, filter // 2, bias=False), nn.BatchNorm2d(outputs),
                         nn.SiLU())


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 16, 2), conv(16, 32, 2), conv(32, 48), conv(48, 64, 2), conv(64, 64))
        self.down = nn.Sequential(conv(64, 96, 2), conv(96, 96), conv(96, 96))
        self.up = conv(96 + 64, 64, filter=1)
        self.out = conv(64, 64)

    def forward(self, x):
        fine = self.stem(x)
        coarse = self.down(fine)
        joined = torch.cat([F.interpolate(coarse, scale_factor=2.0, mode="nearest"), fine], 1)
        return self.out(self.up(joined)), coarse


def cells():
    """Centres [N, 2] in pixels and strides [N, 1] of all cells of both feature maps."""
    centres, strides = [], []
    for stride in STRIDES:
        at = (torch.arange(SIDE // stride, dtype=torch.float32) + 0.5) * stride
        y, x = torch.meshgrid(at, at, indexing="ij")
        centres.append(torch.stack([x, y], -1).reshape(-1, 2))
        strides.append(torch.full((len(centres[-1]), 1), float(stride)))
    return torch.cat(centres), torch.cat(strides)


def flat(x, per_cell=1):
    """[b, per_cell * c, h, w] -> [b, h * w * per_cell, c]"""
    b, c, h, w = x.shape
    return x.view(b, per_cell, c // per_cell, h * w).permute(0, 3, 1, 2).reshape(b, h * w * per_cell, c // per_cell)


class Head(nn.Module):
    """Raw predictions [b, N, values] of both maps, with `per_cell` rows for each cell."""

    def __init__(self, values, per_cell=1):
        super().__init__()
        self.per_cell = per_cell
        self.towers = nn.ModuleList([nn.Sequential(conv(c, 64), nn.Conv2d(64, values * per_cell, 1)) for c in (64, 96)])

    def forward(self, maps):
        return torch.cat([flat(tower(x), self.per_cell) for tower, x in zip(self.towers, maps)], 1)


def corners(box):
    return torch.cat([box[..., :2] - box[..., 2:] / 2, box[..., :2] + box[..., 2:] / 2], -1)


def overlap(a, b):
    """Intersection over union of boxes by corners, pair by pair."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    area = lambda box: (box[..., 2:] - box[..., :2]).clamp(min=0).prod(-1)
    return shared / (area(a) + area(b) - shared + 1e-6)


def owners(places, strides, boxes, kinds):
    """[b, N]: the object that a cell is asked for, or -1: near its centre, on the map that suits its size."""
    distance = (places[None, :, None, :] - boxes[:, None, :, :2]).abs().amax(-1)
    fits = torch.where(boxes[:, None, :, 2] < 40, strides[None] == 8, strides[None] == 16)
    is_near = (distance < 0.9 * strides[None]) & fits & (kinds >= 0)[:, None, :]
    found, owner = torch.where(is_near, -distance, torch.full_like(distance, -1e9)).max(-1)
    return torch.where(found > -1e8, owner, torch.full_like(owner, -1))


def nearest_only(owner, places, boxes):
    """Of the cells that are asked for an object, the one nearest to its centre."""
    result = torch.full_like(owner, -1)
    for o in range(boxes.shape[1]):
        distance = (places[None] - boxes[:, o, None, :2]).norm(dim=-1)
        distance = torch.where(owner == o, distance, torch.full_like(distance, 1e9))
        nearest, at = distance.min(1, keepdim=True)
        result.scatter_(1, at, torch.where(nearest < 1e8, torch.full_like(at, o), result.gather(1, at)))
    return result


def best_rows(boxes, scores, count=20):
    """The rows with the best scores: [b, count, 6], as YOLOv10 gives them out."""
    best, at = scores.flatten(1).topk(count)
    row = torch.div(at, CLASSES, rounding_mode="floor")[..., None]
    return torch.cat([boxes.gather(1, row.expand(-1, -1, 4)), best[..., None], (at % CLASSES)[..., None].float()], -1)


class Detector(nn.Module):
    def __init__(self, family):
        super().__init__()
        self.family = family
        self.backbone = Backbone()
        centres, strides = cells()
        if family in ("v8", "v10"):
            self.head = Head(4 * BINS + CLASSES)
        elif family == "yolox":
            self.head = Head(5 + CLASSES)
        elif family in ("v5", "ssd"):
            self.head = Head(5 + CLASSES, 3)
            sizes = torch.cat([torch.tensor(a, dtype=torch.float32).repeat((SIDE // s) ** 2, 1)
                               for a, s in zip(ANCHORS, STRIDES)])
            centres, strides = centres.repeat_interleave(3, 0), strides.repeat_interleave(3, 0)
            self.register_buffer("sizes", sizes)
        else:
            self.head = Head(CLASSES)
            self.memory = nn.ModuleList([nn.Conv2d(c, 64, 1) for c in (64, 96)])
            self.place = nn.Linear(2, 64)
            self.query, self.key, self.value, self.merge = (nn.Linear(64, 64) for _ in range(4))
            self.norm, self.norm2 = nn.LayerNorm(64), nn.LayerNorm(64)
            self.inner = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
            self.box, self.kind = nn.Linear(64, 4), nn.Linear(64, CLASSES)
        self.register_buffer("centres", centres)
        self.register_buffer("strides", strides)

    # Boxes (centre and size, pixels) and logits from raw predictions.
    def decode(self, raw):
        if self.family in ("v8", "v10"):
            bins = torch.arange(BINS, device=raw.device, dtype=raw.dtype)
            spread = raw[..., :4 * BINS].reshape(raw.shape[0], -1, 4, BINS).softmax(-1) @ bins
            near, far = self.centres - spread[..., :2] * self.strides, self.centres + spread[..., 2:] * self.strides
            return torch.cat([(near + far) / 2, far - near], -1), raw[..., 4 * BINS:]
        if self.family == "v5":
            value = raw[..., :4].sigmoid()
            return torch.cat([(value[..., :2] * 2 - 1) * self.strides + self.centres,
                              (value[..., 2:] * 2) ** 2 * self.sizes], -1), raw[..., 4:]
        if self.family == "yolox":
            return torch.cat([raw[..., :2] * self.strides + self.centres,
                              raw[..., 2:4].clamp(max=6).exp() * self.strides], -1), raw[..., 4:]
        return torch.cat([raw[..., :2] * 0.1 * self.sizes + self.centres,
                          (raw[..., 2:4] * 0.2).clamp(max=4).exp() * self.sizes], -1), raw[..., 4:]

    def select(self, maps):
        """Boxes as fractions and logits of the best cells, and the logits of all cells."""
        scores = self.head(maps)
        memory = torch.cat([flat(layer(x)) for layer, x in zip(self.memory, maps)], 1)
        places = (self.centres / SIDE)[None].expand(memory.shape[0], -1, -1)
        best = scores.amax(-1).topk(20, dim=1).indices[..., None]
        x = memory.gather(1, best.expand(-1, -1, 64))
        at = places.gather(1, best.expand(-1, -1, 2))
        keyed = memory + self.place(places)
        q, k, v = self.query(x + self.place(at)), self.key(keyed), self.value(memory)
        split = lambda t: t.reshape(t.shape[0], -1, 4, 16).transpose(1, 2)
        attention = (split(q) @ split(k).transpose(2, 3) / 4).softmax(-1) @ split(v)
        x = self.norm(x + self.merge(attention.transpose(1, 2).reshape(x.shape)))
        x = self.norm2(x + self.inner(x))
        shift = self.box(x)
        boxes = torch.cat([at + 0.2 * shift[..., :2].tanh(), shift[..., 2:].sigmoid()], -1)
        return boxes, self.kind(x), scores

    def forward(self, x):
        maps = self.backbone(x)
        if self.family == "detr":
            boxes, logits, _ = self.select(maps)
            return torch.cat([boxes, logits.sigmoid()], -1)
        boxes, logits = self.decode(self.head(maps))
        if self.family == "v8":
            return torch.cat([boxes, logits.sigmoid()], -1).transpose(1, 2)
        if self.family == "v10":
            return best_rows(boxes, logits.sigmoid())
        if self.family == "ssd":
            return boxes / SIDE, logits.softmax(-1)
        return torch.cat([boxes, logits.sigmoid()], -1)

    def loss(self, pictures, boxes, kinds):
        maps = self.backbone(pictures)
        return self.selected_loss(maps, boxes, kinds) if self.family == "detr" else self.dense_loss(maps, boxes, kinds)

    def dense_loss(self, maps, boxes, kinds):
        raw = self.head(maps)
        found, logits = self.decode(raw)
        owner = owners(self.centres, self.strides, boxes, kinds)
        if self.family == "v10":
            owner = nearest_only(owner, self.centres, boxes)
        if hasattr(self, "sizes"):  # the anchor must be like the box
            size = boxes.gather(1, owner.clamp(min=0)[..., None].expand(-1, -1, 4))[..., 2]
            ratio = torch.maximum(size / self.sizes[:, 0], self.sizes[:, 0] / size)
            owner = torch.where(ratio < 1.4, owner, torch.full_like(owner, -1))
        is_owned = owner >= 0
        wanted = boxes.gather(1, owner.clamp(min=0)[..., None].expand(-1, -1, 4))
        kind = kinds.gather(1, owner.clamp(min=0)).clamp(min=0)
        count = is_owned.sum().clamp(min=1)
        shared = overlap(corners(found), corners(wanted))
        near = F.smooth_l1_loss(found / self.strides, wanted / self.strides, reduction="none").sum(-1)
        loss = (((1 - shared) * 3 + 0.3 * near) * is_owned).sum() / count
        one_hot = F.one_hot(kind, CLASSES).float() * is_owned[..., None]
        if self.family in ("v8", "v10"):
            return loss + F.binary_cross_entropy_with_logits(logits, one_hot, reduction="sum") / count
        if self.family == "ssd":
            target = torch.where(is_owned, kind + 1, torch.zeros_like(kind))
            return loss + 3 * (F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
                               * (1 + 2 * is_owned)).sum() / count / 3
        objectness = F.binary_cross_entropy_with_logits(logits[..., 0], is_owned.float(), reduction="sum") / count
        each = F.binary_cross_entropy_with_logits(logits[..., 1:], one_hot, reduction="none").sum(-1)
        return loss + objectness + (each * is_owned).sum() / count

    def selected_loss(self, maps, boxes, kinds):
        found, logits, scores = self.select(maps)
        owner = owners(self.centres, self.strides, boxes, kinds)
        kind = kinds.gather(1, owner.clamp(min=0)).clamp(min=0)
        one_hot = F.one_hot(kind.clamp(min=0), CLASSES).float() * (owner >= 0)[..., None]
        loss = F.binary_cross_entropy_with_logits(scores, one_hot, reduction="sum") / (owner >= 0).sum().clamp(min=1)
        wanted = boxes / SIDE
        with torch.no_grad():  # each object takes the nearest query that is free
            cost = (found[:, :, None, :] - wanted[:, None]).abs().sum(-1)
            cost = cost - logits.sigmoid().gather(2, kinds.clamp(min=0)[:, None].expand(-1, 20, -1))
            taken = torch.full(found.shape[:2], -1, device=found.device)
            for o in range(OBJECTS):
                free = torch.where(taken < 0, cost[:, :, o], torch.full_like(cost[:, :, o], 1e9)).argmin(1)
                row = torch.where(kinds[:, o] >= 0, torch.tensor(o, device=found.device),
                                  taken.gather(1, free[:, None])[:, 0])
                taken.scatter_(1, free[:, None], row[:, None])
        is_taken = taken >= 0
        target = wanted.gather(1, taken.clamp(min=0)[..., None].expand(-1, -1, 4))
        shared = overlap(corners(found), corners(target))
        near = (found - target).abs().sum(-1)
        count = is_taken.sum().clamp(min=1)
        one_hot = F.one_hot(kinds.gather(1, taken.clamp(min=0)).clamp(min=0), CLASSES).float() * is_taken[..., None]
        return loss + ((2 * (1 - shared) + 5 * near) * is_taken).sum() / count + \
            3 * F.binary_cross_entropy_with_logits(logits, one_hot, reduction="sum") / count


FAMILIES = ("v8", "v10", "v5", "yolox", "ssd", "detr")


def train(family, steps, batch, device):
    generator = torch.Generator(device=device)
    generator.manual_seed(7)
    torch.manual_seed(7)
    model = Detector(family).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    for step in range(steps):
        loss = model.loss(*draw(batch, generator, device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        schedule.step()
        if step % (steps // 5) == 0 or step == steps - 1:
            print(f"{family}: step {step}, loss {loss.item():.3f}", flush=True)
    return model.eval().cpu()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--weights", type=pathlib.Path, help="folder of weights of an earlier run: only export them")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for family in arguments.families.split(","):
        if arguments.weights:
            model = Detector(family).eval()
            model.load_state_dict(torch.load(arguments.weights / f"{family}.pt", weights_only=True))
        else:
            model = train(family, arguments.steps, arguments.batch, device)
            torch.save(model.state_dict(), arguments.out / f"{family}.pt")
        try:
            torch.onnx.export(model, (torch.zeros(1, 3, SIDE, SIDE),), str(arguments.out / f"{family}.onnx"),
                              dynamo=False, opset_version=17, input_names=["input"])
        except ModuleNotFoundError as missing:
            print(f"{family}: not exported, {missing}; --weights exports it elsewhere")


if __name__ == "__main__":
    main()
