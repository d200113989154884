# SPDX-License-Identifier: Apache-2.0
"""Parts that convolutional networks are built of, each with sizes and parameters drawn at random.

"part_resize_7" is a small convnet around a resizing with the parameters of seed 7. Architectures have the usual sizes of each
part; a stranger's network has others. One kind of part for each network, so that a failure names it.
"""
import random

SEEDS = 12  # of each kind
KINDS = {}  # name: function (random numbers, channels, height, width, modules) -> module that takes them


def part(function):
    KINDS[function.__name__] = function
    return function


def sizes(name):
    """Channels, height and width in front of the part."""
    r = random.Random(name)
    return r.choice((4, 6, 8, 12, 16, 20, 24, 33, 48)), r.choice((7, 8, 10, 13, 14, 16, 20, 24)), r.choice((7, 8, 10, 13, 14, 16, 20, 24))


def divisor_of(r, n, most=64):
    return r.choice([d for d in range(1, min(n, most) + 1) if n % d == 0])


@part
def depth_multiplier(r, c, h, w, t):
    k = r.choice((1, 3, 5))
    return t.nn.Conv2d(c, c * r.randint(2, 6), k, r.choice((1, 2)), r.choice((0, k // 2)), groups=c)


@part
def groups(r, c, h, w, t):
    count, inside, outside = r.choice((2, 3, 4, 8, 16, 32, 64, 92)), r.choice((1, 2, 3, 4, 8)), r.choice((1, 2, 3, 4, 8))
    k = r.choice((1, 3, 5))
    return t.nn.Sequential(t.nn.Conv2d(c, count * inside, 1), t.nn.Conv2d(count * inside, count * outside, k, r.choice((1, 2)), k // 2, groups=count))


@part
def division(r, c, h, w, t):
    return r.choice([
        t.call(lambda m, x: x / (1 + x.abs())),
        t.call(lambda m, x: x / (x.abs().mean((2, 3), keepdim=True) + 0.1)),
        t.call(lambda m, x: x / (t.F.relu(m.a(x)) + 0.5), a=t.nn.Conv2d(c, c, 1)),
        t.call(lambda m, x: m.a(x) / (x.pow(2).sum(1, keepdim=True) + 1).sqrt(), a=t.nn.Conv2d(c, c, 1)),
        t.call(lambda m, x: 1 / (1 + t.torch.exp(-m.a(x))), a=t.nn.Conv2d(c, c, 1)),
        t.call(lambda m, x: x / m.spread, spread=t.torch.rand(1, c, 1, 1) + 0.5),
        t.call(lambda m, x: x / (t.F.avg_pool2d(x.abs(), 3, 1, 1) + 0.3)),
        t.call(lambda m, x: 2.0 / (t.F.softplus(x) + 0.5)),
    ])


@part
def edge_padding(r, c, h, w, t):
    most = min(h, w) - 1
    pads = [r.randint(0, min(4, most)) for _ in range(4)]
    mode = r.choice(("reflect", "replicate", "circular", "reflect"))
    return t.call(lambda m, x: m.a(t.F.pad(x, pads, mode)), a=t.nn.Conv2d(c, c, 3))


@part
def resize(r, c, h, w, t):
    mode = r.choice(("bilinear", "bilinear", "nearest"))
    size = r.choice([(2 * h, 2 * w), (3 * h, 3 * w), (h + 5, 2 * w - 1), (h // 2, w // 2), (h + 1, w + 1), (4 * h, 4 * w), (h - 2, w + 3)])
    extra = {"align_corners": r.random() < 0.5} if mode == "bilinear" else {}
    return t.call(lambda m, x: t.F.interpolate(x, size=size, mode=mode, **extra))


@part
def transposition(r, c, h, w, t):
    heads = divisor_of(r, c)
    inner = c // heads
    return r.choice([
        t.call(lambda m, x: m.a(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(1, c, h, w), a=t.nn.Linear(c, c)),
        t.call(lambda m, x: m.a(x.permute(0, 2, 1, 3)).permute(0, 2, 1, 3), a=t.nn.Conv2d(h, h, 3, 1, 1)),
        t.call(lambda m, x: m.a(x.permute(0, 3, 2, 1)).permute(0, 3, 2, 1), a=t.nn.Conv2d(w, w, 1)),
        t.call(lambda m, x: m.a(x.view(1, heads, inner, h * w).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).reshape(1, c, h, w), a=t.nn.Linear(inner, inner)),
        t.call(lambda m, x: m.a(x.flatten(2)).view(1, c, h, w), a=t.nn.Linear(h * w, h * w)),
        t.call(lambda m, x: x.transpose(2, 3)),
        t.call(lambda m, x: x.view(1, heads, inner, h, w).transpose(1, 2).reshape(1, c, h, w)),
    ])


@part
def joined_constants(r, c, h, w, t):
    grid = t.torch.stack(t.torch.meshgrid(t.torch.linspace(-1, 1, h), t.torch.linspace(-1, 1, w), indexing="ij"))[None]
    token = t.torch.randn(1, 1, c)
    return r.choice([
        t.call(lambda m, x: t.torch.cat([x, m.grid], 1), grid=grid),
        t.call(lambda m, x: m.a(t.torch.cat([m.token, x.flatten(2).transpose(1, 2)], 1))[:, 1:].transpose(1, 2).reshape(1, c, h, w), token=token, a=t.nn.Linear(c, c)),
        t.call(lambda m, x: t.torch.cat([m.rows, x, m.rows], 2), rows=t.torch.randn(1, c, 1, w)),
        t.call(lambda m, x: t.torch.cat([t.torch.zeros(1, 3, h, w), x], 1)),
        t.call(lambda m, x: m.a(t.torch.cat([x.mean((2, 3)), m.extra], 1))[:, :, None, None] * x, extra=t.torch.randn(1, 5), a=t.nn.Linear(c + 5, c)),
    ])


@part
def response_norm(r, c, h, w, t):
    def forward(m, x):
        size = t.torch.norm(x, p=2, dim=(2, 3), keepdim=True)
        return x + m.scale * (x * (size / (size.mean(1, keepdim=True) + 1e-6))) + m.offset
    return t.call(forward, scale=t.torch.randn(1, c, 1, 1), offset=t.torch.randn(1, c, 1, 1))


@part
def branches(r, c, h, w, t):
    nn, b = t.nn, r.choice((c, c, 2 * c))
    stride = r.choice((1, 1, 2))
    ways = [nn.Sequential(nn.Conv2d(c, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)) for _ in range(r.randint(1, 4))]
    ways += [nn.Sequential(nn.Conv2d(c, b, 1, stride, 0, bias=False), nn.BatchNorm2d(b))] * r.randint(0, 1)
    ways += [nn.Sequential(nn.Conv2d(c, b, (1, 3), stride, (0, 1)), nn.BatchNorm2d(b))] * r.randint(0, 1)
    ways += [nn.Sequential(nn.Conv2d(c, b, (3, 1), stride, (1, 0)), nn.BatchNorm2d(b))] * r.randint(0, 1)
    ways += [nn.Sequential(nn.Conv2d(c, b, 1), nn.BatchNorm2d(b), nn.AvgPool2d(3, stride, 1))] * r.randint(0, 1)
    ways += [nn.BatchNorm2d(c)] if b == c and stride == 1 and r.random() < 0.7 else []
    return t.call(lambda m, x: t.F.relu(sum(way(x) for way in m.ways)), ways=nn.ModuleList(ways))


@part
def squeeze_excite(r, c, h, w, t):
    nn, q = t.nn, max(1, c // r.choice((1, 2, 4, 8, 16)))
    gate = r.choice((nn.Sigmoid(), nn.Hardsigmoid(), nn.Tanh(), nn.Softmax(1)))
    act = r.choice((nn.ReLU(), nn.SiLU(), nn.Hardswish(), nn.PReLU(q)))
    k = r.choice((3, 5))
    return r.choice([
        t.call(lambda m, x: x * gate(m.b(act(m.a(x.mean((2, 3), keepdim=True))))), a=nn.Conv2d(c, q, 1), b=nn.Conv2d(q, c, 1), act=act),
        t.call(lambda m, x: x * gate(m.b(act(m.a(t.F.adaptive_avg_pool2d(x, 1).flatten(1))))).view(1, c, 1, 1), a=nn.Linear(c, q), b=nn.Linear(q, c), act=act),
        t.call(lambda m, x: x * t.torch.sigmoid(m.a(x.mean((2, 3))[:, None]))[:, 0, :, None, None], a=nn.Conv1d(1, 1, k, 1, k // 2)),
        t.call(lambda m, x: x * t.torch.sigmoid(m.a(x)), a=nn.Conv2d(c, 1, 1)),
        t.call(lambda m, x: x * t.torch.sigmoid(m.a(t.torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1))), a=nn.Conv2d(2, 1, 7, 1, 3)),
        t.call(lambda m, x: x * (t.torch.sigmoid(m.b(act(m.a(x.mean((2, 3), keepdim=True)))) + m.b(act(m.a(x.amax((2, 3), keepdim=True)))))), a=nn.Conv2d(c, q, 1), b=nn.Conv2d(q, c, 1), act=act),
        t.call(lambda m, x: x * m.b(act(m.a(t.torch.softmax(m.s(x).flatten(2), -1).matmul(x.flatten(2).transpose(1, 2)).view(1, c, 1, 1)))), s=nn.Conv2d(c, 1, 1), a=nn.Conv2d(c, q, 1), b=nn.Conv2d(q, c, 1), act=act),
    ])


@part
def gates(r, c, h, w, t):
    nn = t.nn
    wide = nn.Conv2d(c, 2 * c, 1)
    return r.choice([
        t.call(lambda m, x: t.F.glu(m.a(x), 1), a=wide),
        t.call(lambda m, x: (lambda u, v: u * t.F.silu(v))(*m.a(x).chunk(2, 1)), a=wide),
        t.call(lambda m, x: (lambda u, v: t.torch.tanh(u) * t.F.hardsigmoid(v))(*m.a(x).chunk(2, 1)), a=wide),
        t.call(lambda m, x: (lambda g: g * x + (1 - g) * m.b(x))(t.torch.sigmoid(m.a(x))), a=nn.Conv2d(c, c, 1), b=nn.Conv2d(c, c, 3, 1, 1)),
        t.call(lambda m, x: x * t.torch.sigmoid(m.c(t.F.relu(m.a(x) + t.F.interpolate(m.b(t.F.avg_pool2d(x, 2)), size=(h, w))))), a=nn.Conv2d(c, c, 1), b=nn.Conv2d(c, c, 1), c=nn.Conv2d(c, 1, 1)),
        t.call(lambda m, x: x * t.F.gelu(m.a(x)), a=nn.Conv2d(c, c, 7, 1, 3, groups=c)),
        t.call(lambda m, x: t.torch.maximum(x, m.a(x)) * t.F.relu6(x + 3) / 6, a=nn.Conv2d(c, c, 3, 1, 1, groups=c)),
    ])


@part
def norms(r, c, h, w, t):
    nn = t.nn
    return r.choice([
        nn.InstanceNorm2d(c), nn.InstanceNorm2d(c, affine=True), nn.GroupNorm(divisor_of(r, c), c), nn.GroupNorm(1, c), nn.GroupNorm(divisor_of(r, c), c),
        t.call(lambda m, x: m.n(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), n=nn.LayerNorm(c)), nn.LayerNorm((c, h, w)),
        t.call(lambda m, x: x * t.torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * m.g, g=t.torch.randn(1, c, 1, 1)),
        nn.LocalResponseNorm(r.choice((3, 5))), t.call(lambda m, x: t.F.normalize(x, dim=1)),
        t.call(lambda m, x: (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-5)),
    ])


@part
def shuffles(r, c, h, w, t):
    nn, f = t.nn, r.choice((2, 3, 4))
    g = divisor_of(r, c)
    unshuffle = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()) if h % f or w % f else nn.PixelUnshuffle(f)
    return r.choice([
        nn.Sequential(nn.Conv2d(c, 3 * f * f, 1), nn.PixelShuffle(f)), nn.Sequential(nn.Conv2d(c, 8 * f * f, 1), nn.PixelShuffle(f)),
        nn.Sequential(nn.ZeroPad2d((0, -w % f, 0, -h % f)), nn.PixelUnshuffle(f)), nn.ChannelShuffle(g) if g > 1 else nn.Sequential(nn.Conv2d(c, 4, 1), nn.PixelShuffle(2)),
        nn.ConvTranspose2d(c, r.choice((4, 16)), r.choice((2, 3, 4)), 2, r.choice((0, 1))),
        t.call(lambda m, x: t.torch.cat([x[..., ::2, :][..., : h // 2, :], x[..., 1::2, :]], 1)),
    ])


@part
def pyramid(r, c, h, w, t):
    nn = t.nn
    q, mode = r.choice((8, 12, 32)), r.choice(("nearest", "bilinear"))
    joins, weighs = r.random() < 0.4, r.random() < 0.4

    def forward(m, x):
        levels = [x]
        for layer in m.down:
            levels.append(t.F.relu(layer(levels[-1])))
        levels = [side(y) for side, y in zip(m.sides, levels)]
        for i in (1, 0):
            up = t.F.interpolate(levels[i + 1], size=levels[i].shape[2:], mode=mode)
            if joins:
                levels[i] = m.joints[i](t.torch.cat([levels[i], up], 1))
            elif weighs:
                share = t.F.relu(m.shares)
                levels[i] = (share[0] * levels[i] + share[1] * up) / (share.sum() + 1e-4)
            else:
                levels[i] = levels[i] + up
        small = levels[2]
        for i in (0, 1):
            levels[i + 1] = levels[i + 1] + t.F.max_pool2d(levels[i], 3, 2, 1)
        return t.torch.cat([level.flatten(2) for level in levels], 2)[..., None] if r_ends else levels[1] + small.mean()
    r_ends = r.random() < 0.5
    return t.call(forward, down=nn.ModuleList([nn.Conv2d(c, c, 3, 2, 1) for _ in range(2)]), sides=nn.ModuleList([nn.Conv2d(c, q, 1) for _ in range(3)]),
                  joints=nn.ModuleList([nn.Conv2d(2 * q, q, 1) for _ in range(2)]), shares=t.torch.rand(2) + 0.2)


def picture(name):
    _, height, width = sizes(name)
    return (3, 2 * height, 2 * width)


NETWORKS = {name: picture(name) for name in (f"part_{kind}_{seed}" for kind in KINDS for seed in range(SEEDS))}


def build(name):
    import types

    import torch
    from torch import nn
    from torch.nn import functional as F

    class Call(nn.Module):
        def __init__(self, function, **modules):
            super().__init__()
            self.function = function
            for key, module in modules.items():
                setattr(self, key, module if isinstance(module, nn.Module) else nn.Parameter(module))

        def forward(self, x):
            return self.function(self, x)

    tools = types.SimpleNamespace(torch=torch, nn=nn, F=F, call=lambda function, **modules: Call(function, **modules))
    c, h, w = sizes(name)
    middle = KINDS[name.removeprefix("part_").rsplit("_", 1)[0]](random.Random(name + "!"), c, h, w, tools)
    first = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU6())
    with torch.no_grad():
        channels = middle.eval()(torch.rand(1, c, h, w) + 0.1).shape[1]
    network = nn.Sequential(first, middle, nn.Conv2d(channels, 16, 1), nn.ReLU(), nn.Conv2d(16, 8, 1))
    # Parts know a batch of one; more pictures, on which batch norms are settled, go through one by one.
    return Call(lambda m, x: torch.cat([m.network(one[None]) for one in x]) if x.shape[0] > 1 else m.network(x), network=network)
