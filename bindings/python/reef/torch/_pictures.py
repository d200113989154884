# SPDX-License-Identifier: Apache-2.0
"""Batches of small pictures, varied on the device that trains with them."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor

from .._library import Error


class PictureBatches:
    """One epoch for each iteration: pictures in random order, each mirrored or not and moved by some pixels, whose place its border's
    reflection takes. All pictures lie on the device as bytes, so sets of a few hundred MB are meant; `reef.data` reads larger ones.

        batches = reef.torch.PictureBatches(images, labels, batch=256, device="cuda")
        reef.torch.finetune(qat, batches, teacher=model)

    Gives (inputs, labels), or (inputs,) without labels: inputs are [batch, channels, height, width], (pixel - mean) / deviation. What does
    not fill a batch is left out of the epoch.
    """

    def __init__(self, images: Union[np.ndarray, Tensor], labels: Union[None, np.ndarray, Tensor] = None, *, batch: int = 128,
                 mirror: bool = True, move: int = 4, mean: float = 127.5, deviation: float = 127.5,
                 device: Union[str, torch.device] = "cpu", seed: int = 0):
        pixels = torch.as_tensor(images)
        if pixels.dim() != 4 or pixels.dtype != torch.uint8:
            raise Error(f"pictures must be bytes, [count, height, width, channels], not {pixels.dtype} of shape {list(pixels.shape)}")
        if labels is not None and len(labels) != len(pixels):
            raise Error(f"{len(pixels)} pictures have {len(labels)} labels")
        if not 0 <= move < min(pixels.shape[1:3]):
            raise Error(f"pictures of {pixels.shape[1]} by {pixels.shape[2]} cannot be moved by {move} pixels")
        self.images = pixels.to(device)
        self.labels = None if labels is None else torch.as_tensor(labels).to(device, torch.int64)
        self.batch, self.mirror, self.move, self.mean, self.deviation = min(batch, len(pixels)), mirror, move, mean, deviation
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.images) // self.batch

    def __iter__(self) -> Iterator[Tuple[Tensor, ...]]:
        device = self.images.device
        order = torch.randperm(len(self.images), generator=self.generator).to(device)
        moves = torch.randint(-self.move, self.move + 1, (2, len(order)), generator=self.generator).to(device)
        flips = (torch.rand(len(order), generator=self.generator) < 0.5 * self.mirror).to(device)
        for i in range(len(self)):
            part = slice(i * self.batch, (i + 1) * self.batch)
            chosen = order[part]
            inputs = self.prepared(self._varied(chosen, moves[:, part], flips[part]))
            yield (inputs,) if self.labels is None else (inputs, self.labels[chosen])

    def prepared(self, pixels: Tensor) -> Tensor:
        """Pixels, [batch, height, width, channels], as the network takes them."""
        return (pixels.permute(0, 3, 1, 2).float() - self.mean) / self.deviation

    def _varied(self, chosen: Tensor, moves: Tensor, flips: Tensor) -> Tensor:
        rows = _reflected(moves[0], self.images.shape[1])
        columns = _reflected(moves[1], self.images.shape[2])
        columns = torch.where(flips[:, None], columns.flip(1), columns)
        return self.images[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


def _reflected(moves: Tensor, size: int) -> Tensor:
    """Places along one dimension, moved; those outside are mirrored at the border."""
    places = (torch.arange(size, device=moves.device) + moves[:, None]).abs()
    return (size - 1) - ((size - 1) - places).abs()
