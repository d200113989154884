# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks that nobody has designed: blocks of published families, joined at random.

"random_17" is the network of seed 17: picture or spectrum of any (also odd) size, a stem, two to four stages of blocks with
random widths, kernels, norms and activations, perhaps a neck, and one to three heads. A chain that holds for hundreds of them
will hold for most networks of strangers; one that fails names a class of failures.
"""
import random

import random_blocks

COUNT = 900
FIRST_WITH_MORE = 400  # seeds from here on also draw from the blocks of random_blocks.py


def shape_of_seed(seed):
    choose = random.Random(seed)
    sizes = (32, 40, 48, 56, 64, 72, 80, 96, 37, 45, 50, 61, 75, 90)
    height = choose.choice(sizes)
    width = height if choose.random() < 0.6 else choose.choice(sizes)
    return (choose.choice((3, 3, 3, 1, 4)), height, width)


def build(seed):
    import torch
    from torch import nn
    from torch.nn import functional as F

    r = random.Random(seed)
    channels_in, *_ = shape_of_seed(seed)
    r.random()

    class Call(nn.Module):
        def __init__(self, function, **modules):
            super().__init__()
            self.function = function
            for name, module in modules.items():
                setattr(self, name, module)

        def forward(self, x):
            return self.function(self, x)

    style = {
        "norm": r.choice(["batch"] * 6 + ["group", "instance", "layer", "none"]),
        "activation": r.choice(["relu"] * 3 + ["relu6", "silu", "gelu", "hardswish", "leaky", "elu", "prelu", "mish", "tanh"]),
        "padding": r.choice(["zeros"] * 5 + ["reflect", "replicate"]),
    }

    def activation(c):
        return {"relu": nn.ReLU, "relu6": nn.ReLU6, "silu": nn.SiLU, "gelu": nn.GELU, "hardswish": nn.Hardswish,
                "leaky": lambda: nn.LeakyReLU(0.1), "elu": nn.ELU, "prelu": lambda: nn.PReLU(c), "mish": nn.Mish,
                "tanh": nn.Tanh}[style["activation"]]()

    def norm(c):
        if style["norm"] == "layer":
            return Call(lambda m, x: m.n(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), n=nn.LayerNorm(c))
        if style["norm"] == "group":
            return nn.GroupNorm(next(g for g in (8, 4, 2, 1) if c % g == 0), c)
        return {"batch": nn.BatchNorm2d, "instance": lambda c: nn.InstanceNorm2d(c, affine=True),
                "none": lambda c: nn.Identity()}[style["norm"]](c)

    def conv(a, b, k=3, s=1, g=1, d=1, act=True):
        layers = [nn.Conv2d(a, b, k, s, d * (k // 2), d, g, bias=style["norm"] == "none", padding_mode=style["padding"]), norm(b)]
        return nn.Sequential(*layers, *([activation(b)] if act else []))

    def gate(c):
        small = max(4, c // 8)
        squeeze = r.choice(["avg", "max", "both"])
        last = r.choice([nn.Sigmoid(), nn.Hardsigmoid(), nn.Sequential(nn.ReLU6())])
        mlp = nn.Sequential(nn.Conv2d(c, small, 1), nn.ReLU(), nn.Conv2d(small, c, 1))

        def forward(m, x):
            parts = {"avg": [F.adaptive_avg_pool2d(x, 1)], "max": [F.adaptive_max_pool2d(x, 1)],
                     "both": [x.mean((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)]}[squeeze]
            return x * m.last(sum(m.mlp(p) for p in parts))
        return Call(forward, mlp=mlp, last=last)

    def spatial_gate(c):
        return Call(lambda m, x: x * torch.sigmoid(m.f(torch.cat([x.mean(1, True), x.amax(1, True)], 1))),
                    f=nn.Conv2d(2, 1, r.choice([3, 5, 7]), padding="same"))

    def eca(c):
        return Call(lambda m, x: x * torch.sigmoid(m.f(x.mean((2, 3))[:, None]))[:, 0, :, None, None],
                    f=nn.Conv1d(1, 1, 3, padding=1))

    def coordinate(c):
        small = max(4, c // 4)

        def forward(m, x):
            h, w = x.shape[2:]
            both = torch.cat([x.mean(3, True), x.mean(2, True).permute(0, 1, 3, 2)], 2)
            a, b = torch.split(F.relu(m.f(both)), [h, w], 2)
            return x * torch.sigmoid(m.a(a)) * torch.sigmoid(m.b(b.permute(0, 1, 3, 2)))
        return Call(forward, f=nn.Conv2d(c, small, 1), a=nn.Conv2d(small, c, 1), b=nn.Conv2d(small, c, 1))

    def attention(c):
        heads = next(h for h in (4, 2, 1) if c % h == 0)

        def forward(m, x):
            n, c, h, w = x.shape
            q, k, v = m.qkv(x).reshape(n, 3, heads, c // heads, h * w).unbind(1)
            weights = torch.softmax(q.transpose(-1, -2) @ k * (c // heads) ** -0.5, -1)
            return x + m.out((v @ weights.transpose(-1, -2)).reshape(n, c, h, w))
        return Call(forward, qkv=nn.Conv2d(c, 3 * c, 1), out=nn.Conv2d(c, c, 1))

    def global_context(c):
        small = max(4, c // 4)

        def forward(m, x):
            weights = torch.softmax(m.mask(x).flatten(2), -1)
            context = (x.flatten(2) @ weights.transpose(1, 2))[..., None]
            return x + m.two(F.relu(m.one(context)))
        return Call(forward, mask=nn.Conv2d(c, 1, 1), one=nn.Conv2d(c, small, 1), two=nn.Conv2d(small, c, 1))

    def extra(c, pixels):
        options = [gate, spatial_gate, eca, coordinate, global_context] + ([attention] if pixels <= 400 else [])
        return r.choice(options)(c) if r.random() < 0.35 else nn.Identity()

    # Blocks: (channels in, channels out, stride) -> module.
    def plain(a, b, s):
        return conv(a, b, r.choice([1, 3, 3, 5]), s, d=r.choice([1, 1, 2]) if s == 1 else 1)

    def residual(a, b, s):
        body = nn.Sequential(conv(a, b, 3, s), conv(b, b, 3, act=False))
        skip = nn.Identity() if a == b and s == 1 else r.choice([
            lambda: nn.Conv2d(a, b, 1, s), lambda: nn.Sequential(nn.AvgPool2d(s, s, ceil_mode=True), nn.Conv2d(a, b, 1))])()
        return Call(lambda m, x: m.act(m.body(x) + m.skip(x)), body=body, skip=skip, act=activation(b))

    def bottleneck(a, b, s):
        m = max(8, b // 4 // 8 * 8)
        g = r.choice([1, 2, 4])
        body = nn.Sequential(conv(a, m, 1), conv(m, m, 3, s, g), extra(m, 999), conv(m, b, 1, act=False))
        return Call(lambda m, x: m.act(m.body(x) + m.skip(x)), body=body, skip=nn.Conv2d(a, b, 1, s), act=activation(b))

    def inverted(a, b, s):
        m = a * r.choice([2, 3, 4])
        body = nn.Sequential(conv(a, m, 1), conv(m, m, r.choice([3, 5, 7]), s, m), extra(m, 999), conv(m, b, 1, act=False))
        return Call(lambda m, x: m.body(x) + x if m.joins else m.body(x), body=body, joins=a == b and s == 1)

    def convnext(a, b, s):
        body = nn.Sequential(nn.Conv2d(a, a, 7, 1, 3, groups=a), norm(a), nn.Conv2d(a, 2 * a, 1), nn.GELU(), nn.Conv2d(2 * a, a, 1))
        down = nn.Conv2d(a, b, s, s) if (a, s) != (b, 1) else nn.Identity()
        return Call(lambda m, x: m.down(x + m.body(x)), body=body, down=down)

    def dense(a, b, s):
        grow = max(4, b // 3)
        layers = nn.ModuleList([conv(a + i * grow, grow) for i in range(3)])

        def forward(m, x):
            for layer in m.layers:
                x = torch.cat([x, layer(x)], 1)
            return m.end(x)
        return Call(forward, layers=layers, end=conv(a + 3 * grow, b, 1 if s == 1 else 3, s))

    def csp(a, b, s):
        half = b // 2
        return Call(lambda m, x: m.end(torch.cat([m.inner(m.one(m.down(x))), m.two(m.down(x))], 1)), down=conv(a, b, 3, s),
                    one=conv(b, half, 1), two=conv(b, half, 1), inner=residual(half, half, 1), end=conv(2 * half, b, 1))

    def c2f(a, b, s):
        half = b // 2

        def forward(m, x):
            y = list(m.start(x).chunk(2, 1))
            y.extend(inner(y[-1]) for inner in m.inner)
            return m.end(torch.cat(y, 1))
        return Call(forward, start=conv(a, 2 * half, 3, s), inner=nn.ModuleList([residual(half, half, 1) for _ in range(2)]),
                    end=conv(4 * half, b, 1))

    def shuffle(a, b, s):
        half = b // 2

        def forward(m, x):
            y = m.start(x)
            y = torch.cat([y[:, :half], m.branch(y[:, half:])], 1)
            n, c, h, w = y.shape
            return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return Call(forward, start=conv(a, 2 * half, 3, s),
                    branch=nn.Sequential(conv(half, half, 1), conv(half, half, 3, 1, half), conv(half, half, 1)))

    def ghost(a, b, s):
        half = b // 2
        return Call(lambda m, x: (lambda y: torch.cat([y, m.cheap(y)], 1))(m.first(x)), first=conv(a, half, 3, s),
                    cheap=conv(half, half, 3, 1, half))

    def res2(a, b, s):
        part = max(4, b // 4)

        def forward(m, x):
            parts = list(torch.split(m.start(x), part, 1))
            for i in range(1, 4):
                parts[i] = m.inner[i - 1](parts[i] + (parts[i - 1] if i > 1 else 0))
            return m.end(torch.cat(parts, 1))
        return Call(forward, start=conv(a, 4 * part, 1, s), inner=nn.ModuleList([conv(part, part) for _ in range(3)]),
                    end=conv(4 * part, b, 1))

    def inception(a, b, s):
        q = b // 4
        rest = b - 3 * q
        return Call(lambda m, x: torch.cat([m.a(x), m.b(x), m.c(x), m.d(x)], 1), a=conv(a, q, 1, s),
                    b=nn.Sequential(conv(a, q, 1), conv(q, q, 3, s)), c=nn.Sequential(conv(a, q, 1), conv(q, q, 5, s)),
                    d=nn.Sequential(r.choice([nn.MaxPool2d, nn.AvgPool2d])(3, s, 1), conv(a, rest, 1)))

    def selective(a, b, s):
        small = max(8, b // 4)

        def forward(m, x):
            both = torch.stack([m.three(x), m.five(x)], 1)
            weights = m.choose(F.relu(m.squeeze(both.sum(1).mean((2, 3), keepdim=True))))
            weights = torch.softmax(weights.view(x.shape[0], 2, -1, 1, 1), 1)
            return (both * weights).sum(1)
        return Call(forward, three=conv(a, b, 3, s), five=conv(a, b, 3, s) if s > 1 else conv(a, b, 3, s, d=2),
                    squeeze=nn.Conv2d(b, small, 1), choose=nn.Conv2d(small, 2 * b, 1))

    def mixer(a, b, s):
        return Call(lambda m, x: (lambda y: m.end(y + m.token(y)))(m.start(x)), start=conv(a, b, 3, s),
                    token=nn.Sequential(nn.Conv2d(b, b, 9, padding="same", groups=b), activation(b)), end=conv(b, b, 1))

    def split_kernels(a, b, s):
        k = r.choice([3, 5, 7])
        return nn.Sequential(nn.Conv2d(a, b, (1, k), (1, s), (0, k // 2)), nn.Conv2d(b, b, (k, 1), (s, 1), (k // 2, 0)), norm(b),
                             activation(b))

    def pooled(a, b, s):
        pools = [nn.MaxPool2d(3, s, 1), nn.MaxPool2d(2, s, ceil_mode=s > 1) if s > 1 else nn.MaxPool2d(5, 1, 2),
                 nn.AvgPool2d(3, s, 1, count_include_pad=r.random() < 0.5)]
        return nn.Sequential(conv(a, b), r.choice(pools))

    blocks = [plain, residual, residual, bottleneck, inverted, inverted, convnext, dense, csp, c2f, shuffle, ghost, res2, inception,
              selective, mixer, split_kernels, pooled]

    if seed >= FIRST_WITH_MORE:
        blocks = [*blocks, *random_blocks.blocks(r, Call, conv, norm, activation)]

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            width = r.choice([8, 12, 16, 20, 24, 32])
            self.stem = r.choice([
                lambda: conv(channels_in, width, 3, 2), lambda: nn.Sequential(conv(channels_in, width, 7, 2), nn.MaxPool2d(3, 2, 1)),
                lambda: nn.Conv2d(channels_in, width, 4, 4), lambda: nn.Sequential(nn.PixelUnshuffle(1), conv(channels_in, width, 3, 1)),
                lambda: nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(channels_in, width, 7, 2), norm(width), activation(width))])()
            self.stages, widths, inner = nn.ModuleList(), [width], r.sample(blocks, 2)
            for _ in range(r.choice([2, 3, 3, 4])):
                wider = widths[-1] * r.choice([1, 1.5, 2])
                wider = int(wider) // 4 * 4
                layers = [r.choice(inner)(widths[-1], wider, r.choice([1, 2, 2]))]
                layers += [r.choice(inner + [r.choice(blocks)])(wider, wider, 1) for _ in range(r.choice([0, 1, 2]))]
                self.stages.append(nn.Sequential(*layers, extra(wider, 400 if len(self.stages) > 1 else 999)))
                widths.append(wider)
            self.further = random_blocks.head(r, widths[-1], Call) if seed >= FIRST_WITH_MORE and r.random() < 0.25 else None
            self.kind = r.choice(["class"] * 4 + ["mask", "mask", "boxes", "boxes", "embedding", "heat", "decoder", "tasks"])
            self.make_head(widths)

        def make_head(self, widths):
            last, self.across = widths[-1], r.choice([16, 24, 32])
            if self.kind in ("class", "tasks"):
                self.classes = nn.Linear(last, r.choice([2, 10, 17, 100]))
                self.hidden = nn.Sequential(nn.Linear(last, last), r.choice([nn.ReLU(), nn.Tanh(), nn.GELU()])) \
                    if r.random() < 0.4 else nn.Identity()
                self.pooling = r.choice(["avg", "max", "mean", "gem", "flatten4"])
                if self.pooling == "flatten4":
                    self.classes = nn.Linear(last * 4, self.classes.out_features)
                    self.hidden = nn.Identity()
                self.probabilities = r.random() < 0.3
            if self.kind == "embedding":
                self.classes = nn.Linear(last, 64)
            if self.kind in ("mask", "boxes", "heat", "tasks"):
                self.sideways = nn.ModuleList([nn.Conv2d(w, self.across, 1) for w in widths[1:]])
                self.smooth = conv(self.across, self.across)
                self.scale_mode = r.choice(["nearest", "bilinear", "bilinear_aligned"])
                outputs = {"mask": r.choice([1, 2, 5, 21]), "heat": 17, "tasks": 1, "boxes": r.choice([9, 18, 24])}[self.kind]
                self.last = nn.Conv2d(self.across, outputs, 1)
                self.end = r.choice(["none", "sigmoid", "softmax"]) if self.kind == "mask" else "none"
                self.box_head = r.choice(["cat", "raw", "decoded"])
            if self.kind == "decoder":
                ups = []
                for w, to in zip(widths[:0:-1], widths[-2::-1]):
                    ups.append(r.choice([
                        lambda: nn.ConvTranspose2d(w, to, 4, 2, 1), lambda: nn.ConvTranspose2d(w, to, 2, 2),
                        lambda: nn.ConvTranspose2d(w, to, 3, 2, 1, 1), lambda: nn.Sequential(nn.Upsample(scale_factor=2), conv(w, to)),
                        lambda: nn.Sequential(nn.Conv2d(w, 4 * to, 3, 1, 1), nn.PixelShuffle(2))])())
                self.ups = nn.ModuleList(ups)
                self.last = nn.Conv2d(widths[0], 3, 3, 1, 1)

        def resized(self, x, size):
            if self.scale_mode == "nearest":
                return F.interpolate(x, size=size)
            return F.interpolate(x, size=size, mode="bilinear", align_corners=self.scale_mode == "bilinear_aligned")

        def neck(self, features):
            x = None
            made = []
            for side, feature in zip(reversed(self.sideways), reversed(features)):
                y = side(feature)
                x = y if x is None else self.smooth(y + self.resized(x, y.shape[2:]))
                made.append(x)
            return made[::-1]

        def class_scores(self, x):
            if self.pooling == "flatten4":
                pooled = F.adaptive_avg_pool2d(x, 2).flatten(1) if x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0 else \
                    torch.cat([x.mean((2, 3)), x.amax((2, 3)), x[:, :, 0, 0], x[:, :, -1, -1]], 1)
            else:
                pooled = {"avg": lambda: F.adaptive_avg_pool2d(x, 1).flatten(1), "max": lambda: x.amax((2, 3)),
                          "mean": lambda: x.flatten(2).mean(-1), "gem": lambda: x.clamp(min=1e-2).pow(3).mean((2, 3)).pow(1 / 3)}[
                              self.pooling]()
            scores = self.classes(self.hidden(pooled))
            return torch.softmax(scores, -1) if self.probabilities else scores

        def boxes(self, features):
            rows = []
            for x in self.neck(features)[:3]:
                y = self.last(x)
                n, c, h, w = y.shape
                if self.box_head == "raw":
                    rows.append(y)
                    continue
                y = y.view(n, 3, c // 3, h, w).permute(0, 1, 3, 4, 2) if c % 3 == 0 else y.permute(0, 2, 3, 1)
                if self.box_head == "decoded":
                    grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")[::-1], -1).float()
                    y = torch.cat([(torch.sigmoid(y[..., :2]) + grid) / w, torch.sigmoid(y[..., 2:])], -1)
                rows.append(y.reshape(n, -1, y.shape[-1]))
            return tuple(rows) if self.box_head == "raw" else torch.cat(rows, 1)

        def forward(self, x):
            size = x.shape[2:]
            x = self.stem(x)
            features = []
            for stage in self.stages:
                x = stage(x)
                features.append(x)
            if self.further is not None:
                return self.further(x)
            if self.kind == "class":
                return self.class_scores(x)
            if self.kind == "embedding":
                return F.normalize(self.classes(x.mean((2, 3))), dim=1)
            if self.kind == "boxes":
                return self.boxes(features)
            if self.kind == "decoder":
                for up in self.ups:
                    x = F.leaky_relu(up(x), 0.2)
                return torch.tanh(self.last(x))
            y = self.last(self.neck(features)[0])
            if self.kind == "heat":
                return y
            y = F.interpolate(y, size=size, mode="bilinear", align_corners=False)
            y = {"none": lambda: y, "sigmoid": lambda: torch.sigmoid(y), "softmax": lambda: torch.softmax(y, 1)}[self.end]()
            return (y, self.class_scores(x)) if self.kind == "tasks" else y

    return Network()


NETWORKS = {f"random_{seed}": shape_of_seed(seed) for seed in range(COUNT)}
