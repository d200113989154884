# SPDX-License-Identifier: Apache-2.0
"""What the small networks are built from."""

import torch
from torch import nn


NETWORKS = {}  # name: (shape of one sample, function that builds the module)


def network(*shape):
    def add(kind):
        NETWORKS[kind.__name__] = (shape, kind)
        return kind

    return add


class Function(nn.Module):
    """A module of modules, with a function that joins them."""

    def __init__(self, forward, **modules):
        super().__init__()
        self.joined = forward
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x):
        return self.joined(self, x)


def conv(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.ReLU, dilation=1, norm=nn.BatchNorm2d):
    pad = (kernel - 1) * dilation // 2
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, pad, dilation, groups, bias=norm is None)]
    layers += [norm(outputs)] if norm else []
    return nn.Sequential(*layers, *([act()] if act else []))


def conv1(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.ReLU, dilation=1):
    pad = (kernel - 1) * dilation // 2
    layers = [nn.Conv1d(inputs, outputs, kernel, stride, pad, dilation, groups, bias=False), nn.BatchNorm1d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


def separable(inputs, outputs, stride=1, act=nn.ReLU):
    return nn.Sequential(conv(inputs, inputs, 3, stride, inputs, act), conv(inputs, outputs, 1, act=act))


class Residual(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.body(x)


def grid(*sides):
    """Centres of all cells as fractions, [N, 2]."""
    points = []
    for side in sides:
        at = (torch.arange(side) + 0.5) / side
        y, x = torch.meshgrid(at, at, indexing="ij")
        points.append(torch.stack([x, y], -1).reshape(-1, 2))
    return torch.cat(points)
