# SPDX-License-Identifier: Apache-2.0
"""A classifier from a folder of pictures."""

from __future__ import annotations

from typing import Any, Dict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._backbones import Classifier
from ._loop import Tell, print_on_first, world
from ._pictures import load, read_classes, split, varied
from ._session import Session, Task, TrainRequest


class ClassifierTask(Task):
    metric = "accuracy"

    def __init__(self, request: TrainRequest, tell: Tell):
        self.request = request
        pictures = read_classes(request.data)
        self.class_names = pictures.class_names
        learned, tested = split(pictures, request.held_back)
        tell(f"{len(pictures)} pictures of {len(self.class_names)} classes: {len(learned)} to learn from, {len(tested)} to test with")
        self.pixels, self.test_pixels = load(learned.files, request.size), load(tested.files, request.size)
        self.labels, self.test_labels = torch.tensor(learned.labels), torch.tensor(tested.labels)

    def network(self) -> nn.Module:
        return Classifier(self.request.backbone, len(self.class_names), self.request.size, self.request.width)

    def loss(self, model: nn.Module, own: Tensor, generator: torch.Generator, batch: Tensor) -> Tensor:
        rank, size = world()
        pixels, _ = varied(self.pixels[own], range(rank, len(batch), size), generator, self.request.mirror)
        outputs = model(self.inputs(model, pixels))
        return F.cross_entropy(outputs, self.labels[own].to(outputs.device), label_smoothing=0.05)

    def figure(self, outputs: Tensor, first: int) -> float:
        return float((outputs.argmax(1) == self.test_labels[:first]).float().mean())


def train_classifier(request: TrainRequest, tell: Tell = print_on_first) -> Dict[str, Any]:
    """Trains and writes everything into request.output; returns the report."""
    request.check()
    return Session(request, ClassifierTask(request, tell), tell).run()
