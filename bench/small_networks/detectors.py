# SPDX-License-Identifier: Apache-2.0
"""Detectors whose boxes are decoded, and chosen, in the graph."""

import torch
from torch import nn
from torch.nn import functional as F

from .parts import conv, Function, grid, network


def pyramid():
    return nn.Sequential(conv(3, 16, 3, 2), conv(16, 24, 3, 2), conv(24, 32, 3, 2)), conv(32, 48, 3, 2)


def flat(x, values):
    """[b, n * values, h, w] -> [b, h * w * n, values]"""
    return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, values)


@network(3, 96, 96)
def center_net():
    def forward(m, x):
        y = m.up(m.body(x))
        heat, size, shift = m.heat(y).sigmoid(), m.size(y), m.shift(y)
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        scores, at = heat.flatten(1).topk(20)
        place = at % (24 * 24)
        pick = lambda t: t.flatten(2).transpose(1, 2).gather(1, place[..., None].expand(-1, -1, 2))
        centre = torch.stack([(place % 24).float(), (place // 24).float()], -1) + pick(shift)
        return torch.cat([centre, pick(size), scores[..., None], (at // (24 * 24)).float()[..., None]], -1)

    return Function(
        forward,
        body=nn.Sequential(*pyramid()),
        up=nn.Sequential(
            nn.ConvTranspose2d(48, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU()
        ),
        heat=nn.Conv2d(32, 4, 1),
        size=nn.Conv2d(32, 2, 1),
        shift=nn.Conv2d(32, 2, 1),
    )


@network(3, 96, 96)
def center_net_maps():
    def forward(m, x):
        y = m.up(m.body(x))
        heat = m.heat(y).sigmoid()
        return heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float(), m.size(y)

    return Function(
        forward,
        body=nn.Sequential(*pyramid()),
        up=nn.Sequential(nn.ConvTranspose2d(48, 32, 4, 2, 1), nn.ReLU()),
        heat=nn.Conv2d(32, 4, 1),
        size=nn.Conv2d(32, 2, 1),
    )


def two_maps(per_cell, values):
    a, b = pyramid()
    return dict(
        a=a,
        b=b,
        ha=nn.Sequential(conv(32, 32), nn.Conv2d(32, per_cell * values, 3, 1, 1)),
        hb=nn.Sequential(conv(48, 32), nn.Conv2d(32, per_cell * values, 3, 1, 1)),
    )


def rows(m, x, values):
    a = m.a(x)
    return torch.cat([flat(m.ha(a), values), flat(m.hb(m.b(a)), values)], 1)


@network(3, 96, 96)
def ssd_decoded():
    def forward(m, x):
        raw = rows(m, x, 9)
        centre, size = raw[..., :2] * 0.1 * 0.3 + m.centres, torch.exp(raw[..., 2:4] * 0.2) * 0.3
        return torch.cat([centre - size / 2, centre + size / 2], -1), raw[..., 4:].softmax(-1)

    m = Function(forward, **two_maps(3, 9))
    m.register_buffer("centres", grid(12, 6).repeat_interleave(3, 0))
    return m


@network(3, 96, 96)
def fcos_decoded():
    def forward(m, x):
        raw = rows(m, x, 9)
        edges = F.relu(raw[..., :4]) * 0.1
        scores = torch.sqrt(raw[..., 5:].sigmoid() * raw[..., 4:5].sigmoid())
        return torch.cat([m.centres - edges[..., :2], m.centres + edges[..., 2:], scores], -1)

    m = Function(forward, **two_maps(1, 9))
    m.register_buffer("centres", grid(12, 6))
    return m


@network(3, 96, 96)
def yolox_decoded():
    def forward(m, x):
        raw = rows(m, x, 9)
        boxes = torch.cat([(raw[..., :2] + m.centres * 12) * 8, torch.exp(raw[..., 2:4]) * 8], -1)
        return torch.cat([boxes, raw[..., 4:].sigmoid()], -1)

    m = Function(forward, **two_maps(1, 9))
    m.register_buffer("centres", grid(12, 6))
    return m


def chosen(choose):
    """A detector that ends with the choice of its best boxes."""

    def forward(m, x):
        raw = rows(m, x, 8)
        centre, size = m.centres + raw[..., :2] * 0.1, torch.sigmoid(raw[..., 2:4]) * 0.5
        return choose(torch.cat([centre - size / 2, centre + size / 2], -1) * 96, raw[..., 4:].sigmoid())

    m = Function(forward, **two_maps(1, 8))
    m.register_buffer("centres", grid(12, 6))
    return m


@network(3, 96, 96)
def top_k_boxes():
    def choose(boxes, scores):
        best, kind = scores.max(-1)
        best, at = best.topk(20)
        return boxes.gather(1, at[..., None].expand(-1, -1, 4)), best, kind.gather(1, at)

    return chosen(choose)


@network(3, 96, 96)
def top_k_rows():
    def choose(boxes, scores):
        best, at = scores.flatten(1).topk(20)
        place = torch.div(at, 4, rounding_mode="floor")
        return torch.cat(
            [boxes.gather(1, place[..., None].expand(-1, -1, 4)), best[..., None], (at % 4)[..., None].float()], -1
        )

    return chosen(choose)


@network(3, 96, 96)
def nms_boxes():
    import torchvision

    def choose(boxes, scores):
        best, kind = scores[0].max(-1)
        kept = torchvision.ops.nms(boxes[0], best, 0.5)[:20]
        return boxes[0][kept], best[kept], kind[kept]

    return chosen(choose)


@network(3, 96, 96)
def sorted_boxes():
    def choose(boxes, scores):
        best, at = scores.amax(-1).sort(descending=True)
        return boxes.gather(1, at[:, :20, None].expand(-1, -1, 4)), best[:, :20]

    return chosen(choose)
