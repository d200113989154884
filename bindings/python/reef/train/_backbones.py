# SPDX-License-Identifier: Apache-2.0
"""Networks that fit the Edge TPU whole: convolutions, depthwise convolutions, ReLU6, sums, no squeeze-and-excitation."""

from __future__ import annotations

import pathlib
from typing import Dict, Iterable, List, Tuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .._library import Error

# Expansion, channels, blocks, stride, kernel.
Stages = List[Tuple[int, int, int, int, int]]
BACKBONES: Dict[str, Stages] = {
    # In the manner of MobileNet V2 (Sandler et al., 2018) and of EfficientNet-Lite (5 x 5 kernels).
    "mobilenet": [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 2, 2, 3), (6, 64, 2, 2, 3), (6, 96, 1, 1, 3)],
    "efficientnet-lite": [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 2, 2, 3), (6, 112, 1, 1, 5)],
}


_SHIPPED = pathlib.Path(__file__).with_name("weights")


def shipped_weights(kind: str, width: float) -> str:
    """File of the package with a trained backbone (tools/train_backbones.py made it)."""
    path = _SHIPPED / f"{kind}_{width}.pt"
    if not path.is_file():
        there = sorted(file.stem.rsplit("_", 1) for file in _SHIPPED.glob("*.pt"))
        raise Error(f"no {kind} of width {width} is shipped; there are " + (", ".join(f"{k} of width {w}" for k, w in there) or "none"))
    return str(path)


class GlobalBatchNorm(nn.BatchNorm2d):
    """Batch norm over the batches of all processes, so that a global batch gives the same numbers however it is cut."""

    is_shared = True  # False: every process has all of the batch

    def forward(self, x: Tensor) -> Tensor:
        if not (self.is_shared and self.training and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
            return super().forward(x)
        shape, count = (1, -1, 1, 1), torch.tensor([x.numel() / x.shape[1]], dtype=x.dtype, device=x.device)
        sums = _over_processes(torch.cat([x.sum((0, 2, 3)), count]))
        total = sums[-1].detach()
        mean = sums[:-1] / total
        # The mean of squares less the square of the mean would lose most digits where channels are far from zero.
        distance = x - mean.reshape(shape)
        variance = _over_processes((distance * distance).sum((0, 2, 3))) / total
        with torch.no_grad():
            self.num_batches_tracked += 1
            share = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            self.running_mean += share * (mean - self.running_mean)
            self.running_var += share * (variance * total / (total - 1) - self.running_var)
        scaled = distance * torch.rsqrt(variance + self.eps).reshape(shape)
        return scaled * self.weight.reshape(shape) + self.bias.reshape(shape)


class _SumOverProcesses(torch.autograd.Function):
    """Every process's result depends on every process's numbers, so the gradients of all of them come back."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:  # type: ignore[override]
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # type: ignore[override]
        total = gradient.clone()
        dist.all_reduce(total)
        return total


def _over_processes(sums: Tensor) -> Tensor:
    return _SumOverProcesses.apply(sums)


@torch.no_grad()
def settle_statistics(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Statistics of all batch norms anew, as plain means over `batches`: moving averages lag behind where epochs have few steps."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum, norm.is_shared = None, False  # all processes see the same batches
    model.train()
    for batch in batches:
        model(batch)
    for norm, momentum in zip(norms, kept):
        norm.momentum, norm.is_shared = momentum, True
    model.eval()


def convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1, active: bool = True) -> nn.Sequential:
    layers: List[nn.Module] = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                               GlobalBatchNorm(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU6()] if active else []))


class Block(nn.Module):
    """Inverted residual: wider, filtered, narrower; added to the input where sizes allow."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int, kernel: int):
        super().__init__()
        wide = inputs * expansion
        self.is_residual = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(*([convolution(inputs, wide)] if expansion > 1 else []),
                                    convolution(wide, wide, kernel, stride, wide), convolution(wide, outputs, active=False))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


def _channels(count: float) -> int:
    """A multiple of 8, which the chip's tiles like."""
    return max(8, int(count + 4) // 8 * 8)


class Backbone(nn.Module):
    """Feature maps at a quarter, an eighth and a sixteenth of the picture (of half of that, with a stem of stride 1)."""

    def __init__(self, kind: str, width: float, stem_stride: int):
        super().__init__()
        channels = _channels(32 * width)
        self.stem = convolution(3, channels, 3, stem_stride)
        self.stages = nn.ModuleList()
        self.channels: List[int] = []
        for expansion, outputs, blocks, stride, kernel in BACKBONES[kind]:
            outputs = _channels(outputs * width)
            stage = [Block(channels if i == 0 else outputs, outputs, expansion, stride if i == 0 else 1, kernel)
                     for i in range(blocks)]
            self.stages.append(nn.Sequential(*stage))
            channels = outputs
            self.channels.append(channels)

    def forward(self, x: Tensor) -> List[Tensor]:
        x, maps = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps


class Classifier(nn.Module):
    """No dropout: its random numbers would depend on how a batch is cut over processes, and on where a run was resumed."""

    def __init__(self, kind: str, classes: int, size: int, width: float = 1.0):
        super().__init__()
        self.backbone = Backbone(kind, width, 1 if size <= 48 else 2)
        features = _channels(320 * width)
        self.head = convolution(self.backbone.channels[-1], features)
        self.last = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        features = self.head(self.backbone(x)[-1])
        return self.last(features.mean((2, 3)))
