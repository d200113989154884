# SPDX-License-Identifier: Apache-2.0
"""A detector from pictures with boxes.

The network gives rows: centre, width and height as fractions of the picture, objectness, and a probability for each class, all from 0 to 1.
Reef's own `run --image --draw` and `eval --metric map50` read rows of this form, which is YOLO's. All of it, boxes included, runs on the
chip. There are two heads (`--head`):

  yolo  one row for each cell of two maps, an eighth and a sixteenth of the picture
  ssd   four default boxes for each cell of three maps, an eighth, a sixteenth and a thirty-second of the picture
"""

from __future__ import annotations

import hashlib
from typing import Any, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._backbones import Backbone, convolution
from ._boxes import Box, read_boxes
from ._loop import Tell, print_on_first, world
from ._pictures import load, varied
from ._session import Session, Task, TrainRequest

_LARGE = 0.35  # boxes with a longer side, as a fraction of the picture, belong to the coarse map
_TINY = 1e-4
_MATCHING = 0.5  # overlap from which on a default box answers for a box
_EMPTY = 3       # rows without a box that count, for each one with a box: those that are most wrong


class YoloHead(nn.Module):
    """One row for each cell of a map: the box may lie anywhere around the cell, of any size."""

    def __init__(self, channels: int, classes: int, cells: int):
        super().__init__()
        self.cells, self.values = cells, 5 + classes
        self.layers = nn.Sequential(convolution(channels, channels, 3, 1, channels), convolution(channels, 48))
        self.last = nn.Conv2d(48, self.values, 1)
        nn.init.constant_(self.last.bias, 0.0)
        with torch.no_grad():
            self.last.bias[4] = -4.0  # most cells are empty
        self.register_buffer("corners", _cells(cells)[:, :, 0] - 0.5 / cells)

    def forward(self, x: Tensor) -> Tensor:
        raw = self.last(self.layers(x)).permute(0, 2, 3, 1).reshape(-1, self.cells * self.cells, self.values)
        share = torch.sigmoid(raw)
        centre = share[..., :2] * (2.0 / self.cells) + self.corners
        return torch.cat([centre, share[..., 2:]], -1)


# Default boxes: their sides as fractions of the picture, for the three maps from fine to coarse, and their widths over their heights.
_SCALES, _RATIOS = (0.10, 0.25, 0.55), (1.0, 2.0, 0.5, 1.0)
_LARGER = 1.4  # the side of the second square box beside the first


def _cells(cells: int) -> Tensor:
    """Left upper corners of all cells, row by row: [1, cells * cells, 1, 2]."""
    rows, columns = torch.meshgrid(torch.arange(cells), torch.arange(cells), indexing="ij")
    return torch.stack([columns, rows], -1).reshape(1, cells * cells, 1, 2).to(torch.float32) / cells


def default_boxes(cells: int, scale: float) -> Tensor:
    """Centre and size of the default boxes of every cell: [cells * cells * 4, 4]."""
    sides = torch.tensor([[scale * ratio**0.5, scale / ratio**0.5] for ratio in _RATIOS])
    sides[-1] *= _LARGER
    centres = (_cells(cells) + 0.5 / cells).expand(1, -1, len(_RATIOS), 2)
    return torch.cat([centres, sides.expand(1, cells * cells, -1, 2)], -1).reshape(-1, 4)


class SsdHead(nn.Module):
    """Four rows for each cell of a map, each of which corrects a default box (Liu et al., 2016).

    SSD's own exp() of sizes would take a function that no table serves over all of its range; (2 sigmoid)^2 of YOLOv5 is the default
    box's size times 0 to 4. "Objectness" stands for SSD's class 0, the background, as its opposite.
    """

    def __init__(self, channels: int, classes: int, cells: int, scale: float):
        super().__init__()
        self.cells, self.values = cells, 5 + classes
        self.layers = nn.Sequential(convolution(channels, channels, 3, 1, channels), convolution(channels, 64))
        self.last = nn.Conv2d(64, len(_RATIOS) * self.values, 1)
        nn.init.constant_(self.last.bias, 0.0)
        with torch.no_grad():
            self.last.bias.view(len(_RATIOS), -1)[:, 4] = -4.0
        boxes = default_boxes(cells, scale).unsqueeze(0)
        self.register_buffer("first_corner", boxes[..., :2] - boxes[..., 2:])
        self.register_buffer("reach", 2.0 * boxes[..., 2:])
        self.register_buffer("largest", 4.0 * boxes[..., 2:])

    def forward(self, x: Tensor) -> Tensor:
        raw = self.last(self.layers(x)).permute(0, 2, 3, 1).reshape(-1, self.cells * self.cells * len(_RATIOS), self.values)
        share = torch.sigmoid(raw)
        centre = share[..., :2] * self.reach + self.first_corner
        size = share[..., 2:4] * share[..., 2:4] * self.largest
        return torch.cat([centre, size, share[..., 4:]], -1)


class Detector(nn.Module):
    """Backbone and heads; `default` are the default boxes of all rows where the head has such (SSD), else None."""

    def __init__(self, kind: str, classes: int, size: int, width: float, head: str = "yolo"):
        super().__init__()
        self.backbone = Backbone(kind, width, 2)
        channels = self.backbone.channels
        self.below: Optional[nn.Module] = None
        if head == "yolo":
            self.fine = YoloHead(channels[2], classes, size // 8)
            self.coarse = YoloHead(channels[4], classes, size // 16)
            return
        cells = (size // 8, size // 16, (size // 16 + 1) // 2)
        self.below = convolution(channels[4], channels[4], 3, 2)
        self.fine, self.coarse, self.coarsest = (
            SsdHead(count, classes, side, scale) for count, side, scale in zip((channels[2], channels[4], channels[4]), cells, _SCALES))
        self.register_buffer("default", torch.cat([default_boxes(side, scale) for side, scale in zip(cells, _SCALES)]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.backbone(x)
        rows = [self.fine(maps[2]), self.coarse(maps[4])]
        if self.below is not None:
            rows.append(self.coarsest(self.below(maps[4])))
        return torch.cat(rows, 1)


def overlaps(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of boxes (centre, size), pair by pair."""
    low = torch.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    high = torch.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    shared = (high - low).clamp(min=0).prod(-1)
    return shared / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - shared + 1e-9)


Target = Tuple[int, Box]  # the row that answers for a box


def cell_targets(boxes: List[Box], fine: int, coarse: int) -> List[Target]:
    """YOLO: the cell of the box's centre, in the map for its size."""
    result = []
    for box in boxes:
        _, x, y, w, h = box
        cells, first = (coarse, fine * fine) if max(w, h) > _LARGE else (fine, 0)
        column, row = min(int(x * cells), cells - 1), min(int(y * cells), cells - 1)
        result.append((first + row * cells + column, box))
    return result


def default_targets(boxes: List[Box], default: Tensor) -> List[Target]:
    """SSD: every default box that overlaps a box by half and whose size can be brought to the box's, and for each box the closest one in
    any case."""
    if not boxes:
        return []
    truth = torch.tensor([box[1:] for box in boxes])
    shared = overlaps(default.unsqueeze(1), truth.unsqueeze(0))  # [rows, boxes]
    best, owner = shared.max(1)
    owners = {int(row): int(owner[row]) for row in (best >= _MATCHING).nonzero().flatten()}
    for number in shared.amax(0).argsort().tolist():  # the box with the closest default box has the last word
        owners[int(shared[:, number].argmax())] = number
    return [(row, boxes[number]) for row, number in owners.items()]


def found_boxes(rows: Tensor, threshold: float = 0.05, most: int = 100) -> List[Tuple[float, int, Tensor]]:
    """Score, class, box of what a picture's rows say; of boxes of a class that overlap, the best."""
    scores = rows[:, 4:5] * rows[:, 5:]
    kept: List[Tuple[float, int, Tensor]] = []
    for kind in range(scores.shape[1]):
        order = [i for i in scores[:, kind].argsort(descending=True).tolist()[:most] if scores[i, kind] >= threshold]
        chosen: List[int] = []
        for i in order:
            if all(float(overlaps(rows[i, :4], rows[j, :4])) < 0.5 for j in chosen):
                chosen.append(i)
        kept += [(float(scores[i, kind]), kind, rows[i, :4]) for i in chosen]
    return kept


def map50(outputs: Tensor, truths: List[List[Box]], classes: int) -> float:
    """Mean over classes of the average precision at an overlap of 0.5."""
    found = [found_boxes(rows) for rows in outputs]
    precisions = []
    for kind in range(classes):
        wanted = [[torch.tensor(box[1:]) for box in boxes if box[0] == kind] for boxes in truths]
        total = sum(len(boxes) for boxes in wanted)
        if total == 0:
            continue
        ranked = sorted(((score, i, box) for i, rows in enumerate(found) for score, k, box in rows if k == kind), key=lambda r: -r[0])
        used, hits = set(), []
        for _, i, box in ranked:
            best = max(range(len(wanted[i])), key=lambda j: float(overlaps(box, wanted[i][j])), default=None)
            hit = best is not None and (i, best) not in used and float(overlaps(box, wanted[i][best])) >= 0.5
            if hit:
                used.add((i, best))
            hits.append(hit)
        right = torch.tensor(hits, dtype=torch.float64).cumsum(0)
        precision = right / torch.arange(1, len(hits) + 1)
        precision = precision.flip(0).cummax(0).values.flip(0) if len(hits) else precision
        precisions.append(float((precision * torch.tensor(hits, dtype=torch.float64)).sum() / total))
    return sum(precisions) / max(len(precisions), 1)


class DetectorTask(Task):
    metric = "mAP50"

    def __init__(self, request: TrainRequest, tell: Tell):
        self.request = request
        data = read_boxes(request.data)
        self.class_names = data.class_names
        order = sorted(range(len(data)), key=lambda i: hashlib.sha256(data.files[i].name.encode()).digest())
        count = min(max(round(len(order) * request.held_back), 1), len(order) - 1)
        tested, learned = sorted(order[:count]), sorted(order[count:])
        tell(f"{len(data)} pictures with {sum(map(len, data.boxes))} boxes of {len(self.class_names)} classes ({data.form}): "
             f"{len(learned)} to learn from, {len(tested)} to test with")
        self.pixels = load([data.files[i] for i in learned], request.size)
        self.test_pixels = load([data.files[i] for i in tested], request.size)
        self.boxes, self.test_boxes = [data.boxes[i] for i in learned], [data.boxes[i] for i in tested]

    def network(self) -> nn.Module:
        model = Detector(self.request.backbone, len(self.class_names), self.request.size, self.request.width, self.request.head)
        self.default = model.default if self.request.head == "ssd" else None
        return model

    def _targets(self, boxes: List[Box]) -> List[Target]:
        if self.default is not None:
            return default_targets(boxes, self.default)
        return cell_targets(boxes, self.request.size // 8, self.request.size // 16)

    def loss(self, model: nn.Module, own: Tensor, generator: torch.Generator, batch: Tensor) -> Tensor:
        rank, processes = world()
        pixels, boxes = varied(self.pixels[own], range(rank, len(batch), processes), generator, self.request.mirror,
                               [self.boxes[i] for i in own.tolist()])
        return self._loss(model(self.inputs(model, pixels)).float(), boxes)

    def _loss(self, outputs: Tensor, boxes: List[List[Box]]) -> Tensor:
        places: List[Tuple[int, int]] = []
        wanted: List[Tuple[float, ...]] = []
        kinds: List[int] = []
        for i, own in enumerate(boxes):
            for row, (kind, *box) in self._targets(own):
                places.append((i, row))
                wanted.append(tuple(box))
                kinds.append(kind)
        outputs = outputs.clamp(_TINY, 1 - _TINY)
        there = torch.zeros(outputs.shape[:2], device=outputs.device)
        if not places:
            return F.binary_cross_entropy(outputs[..., 4], there, reduction="sum") / len(boxes)
        at = tuple(torch.tensor(column, device=outputs.device) for column in zip(*places))
        there[at] = 1.0
        rows, truth = outputs[at], torch.tensor(wanted, device=outputs.device)
        box_loss = (1 - overlaps(rows[:, :4], truth)).sum() + 2 * F.l1_loss(rows[:, :4], truth, reduction="sum")
        classes = F.one_hot(torch.tensor(kinds, device=outputs.device), len(self.class_names)).float()
        class_loss = F.binary_cross_entropy(rows[:, 5:], classes, reduction="sum")
        return (2 * box_loss + class_loss + self._object_loss(outputs[..., 4], there)) / len(boxes)

    def _object_loss(self, objectness: Tensor, there: Tensor) -> Tensor:
        losses = F.binary_cross_entropy(objectness, there, reduction="none")
        if self.default is None:
            return losses.sum()
        # SSD has so many rows that the easy ones without a box would outweigh all others (hard negative mining).
        empty = torch.where(there > 0, torch.zeros_like(losses), losses).flatten(1)
        count = (_EMPTY * there.sum(1, keepdim=True)).clamp(min=_EMPTY)
        order = empty.argsort(1, descending=True).argsort(1)
        return (losses * there).sum() + (empty * (order < count)).sum()

    def figure(self, outputs: Tensor, first: int) -> float:
        return map50(outputs, self.test_boxes[:first], len(self.class_names))


def train_detector(request: TrainRequest, tell: Tell = print_on_first) -> Dict[str, Any]:
    """Trains and writes everything into request.output; returns the report."""
    request.check()
    return Session(request, DetectorTask(request, tell), tell).run()
