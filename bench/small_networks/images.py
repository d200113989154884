# SPDX-License-Identifier: Apache-2.0
"""Pictures to pictures: segmentation, super-resolution, denoising, pictures from numbers."""

import torch
from torch import nn
from torch.nn import functional as F

from .parts import conv, Function, network, Residual, separable


def u_net(up):
    def forward(m, x):
        a = m.d1(x)
        b = m.d2(F.max_pool2d(a, 2))
        c = m.d3(F.max_pool2d(b, 2))
        b = m.u2(torch.cat([m.up2(c), b], 1))
        return m.head(m.u1(torch.cat([m.up1(b), a], 1)))

    double = lambda i, o: nn.Sequential(conv(i, o), conv(o, o))
    return Function(
        forward,
        d1=double(3, 16),
        d2=double(16, 32),
        d3=double(32, 64),
        up2=up(64, 32),
        up1=up(32, 16),
        u2=double(64, 32),
        u1=double(32, 16),
        head=nn.Conv2d(16, 4, 1),
    )


@network(3, 64, 64)
def unet():
    return u_net(lambda i, o: nn.ConvTranspose2d(i, o, 2, 2))


@network(3, 48, 48)
def unet_bilinear():
    return u_net(
        lambda i, o: nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), conv(i, o, 1))
    )


@network(3, 64, 64)
def attention_unet():
    def forward(m, x):
        a = m.d1(x)
        b = m.d2(F.max_pool2d(a, 2))
        up = m.up(b)
        return m.head(m.u(torch.cat([a * m.gate(F.relu(m.g(up) + m.x(a))), up], 1)))

    return Function(
        forward,
        d1=conv(3, 16),
        d2=conv(16, 32),
        up=nn.ConvTranspose2d(32, 16, 2, 2),
        g=nn.Conv2d(16, 8, 1),
        x=nn.Conv2d(16, 8, 1),
        gate=nn.Sequential(nn.Conv2d(8, 1, 1), nn.Sigmoid()),
        u=conv(32, 16),
        head=nn.Sequential(nn.Conv2d(16, 1, 1), nn.Sigmoid()),
    )


@network(3, 64, 64)
def fast_scnn():
    pool = lambda s: nn.Sequential(nn.AdaptiveAvgPool2d(s), conv(32, 8, 1))

    def forward(m, x):
        fine = m.down(x)
        deep = m.deep(fine)
        size = deep.shape[2:]
        deep = m.merge(
            torch.cat([deep] + [F.interpolate(p(deep), size, mode="bilinear", align_corners=True) for p in m.pools], 1)
        )
        deep = F.interpolate(deep, scale_factor=4, mode="bilinear", align_corners=True)
        return F.interpolate(m.head(F.relu(m.a(fine) + m.b(deep))), scale_factor=8, mode="bilinear", align_corners=True)

    return Function(
        forward,
        down=nn.Sequential(conv(3, 16, 3, 2), separable(16, 24, 2), separable(24, 32, 2)),
        deep=nn.Sequential(separable(32, 32, 2), separable(32, 32, 2)),
        pools=nn.ModuleList(pool(s) for s in (1, 2)),
        merge=conv(48, 32, 1),
        a=conv(32, 32, 1, act=None),
        b=conv(32, 32, 1, act=None),
        head=nn.Conv2d(32, 5, 1),
    )


@network(3, 48, 48)
def pspnet():
    def forward(m, x):
        y = m.body(x)
        parts = [
            F.interpolate(layer(F.adaptive_avg_pool2d(y, s)), y.shape[2:], mode="bilinear", align_corners=False)
            for s, layer in zip((1, 2, 3, 6), m.layers)
        ]
        return F.interpolate(m.head(torch.cat([y, *parts], 1)), x.shape[2:], mode="bilinear", align_corners=False)

    return Function(
        forward,
        body=nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2)),
        layers=nn.ModuleList(conv(32, 8, 1) for _ in range(4)),
        head=nn.Sequential(conv(64, 32), nn.Conv2d(32, 5, 1)),
    )


@network(3, 64, 64)
def erfnet():
    class NonBottleneck(nn.Module):
        def __init__(self, c, d):
            super().__init__()
            self.a = nn.Sequential(
                nn.Conv2d(c, c, (3, 1), padding=(1, 0)),
                nn.ReLU(),
                nn.Conv2d(c, c, (1, 3), padding=(0, 1)),
                nn.BatchNorm2d(c),
                nn.ReLU(),
            )
            self.b = nn.Sequential(
                nn.Conv2d(c, c, (3, 1), padding=(d, 0), dilation=(d, 1)),
                nn.ReLU(),
                nn.Conv2d(c, c, (1, 3), padding=(0, d), dilation=(1, d)),
                nn.BatchNorm2d(c),
            )

        def forward(self, x):
            return F.relu(x + self.b(self.a(x)))

    class Down(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.c, self.n = nn.Conv2d(i, o - i, 3, 2, 1), nn.BatchNorm2d(o)

        def forward(self, x):
            return F.relu(self.n(torch.cat([self.c(x), F.max_pool2d(x, 2)], 1)))

    return nn.Sequential(
        Down(3, 16),
        Down(16, 32),
        NonBottleneck(32, 2),
        NonBottleneck(32, 4),
        nn.ConvTranspose2d(32, 16, 3, 2, 1, 1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        NonBottleneck(16, 1),
        nn.ConvTranspose2d(16, 4, 2, 2),
    )


@network(3, 64, 64)
def hourglass():
    class Level(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.skip, self.down, self.up = conv(24, 24), conv(24, 24), conv(24, 24)
            self.inner = Level(depth - 1) if depth > 1 else conv(24, 24)

        def forward(self, x):
            return self.skip(x) + F.interpolate(self.up(self.inner(self.down(F.max_pool2d(x, 2)))), scale_factor=2)

    return nn.Sequential(conv(3, 24, 7, 2), Level(3), conv(24, 24), nn.Conv2d(24, 17, 1))


@network(1, 24, 24)
def espcn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, 1, 2),
        nn.Tanh(),
        nn.Conv2d(32, 16, 3, 1, 1),
        nn.Tanh(),
        nn.Conv2d(16, 9, 3, 1, 1),
        nn.PixelShuffle(3),
    )


@network(1, 24, 24)
def fsrcnn():
    c = lambda i, o, k: nn.Sequential(nn.Conv2d(i, o, k, padding=k // 2), nn.PReLU(o))
    return nn.Sequential(
        c(1, 56, 5), c(56, 12, 1), c(12, 12, 3), c(12, 12, 3), c(12, 56, 1), nn.ConvTranspose2d(56, 1, 9, 3, 4, 2)
    )


@network(3, 24, 24)
def srgan_generator():
    block = lambda: Residual(
        nn.Conv2d(32, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.PReLU(), nn.Conv2d(32, 32, 3, 1, 1), nn.BatchNorm2d(32)
    )
    up = lambda: nn.Sequential(nn.Conv2d(32, 128, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU())
    return nn.Sequential(
        nn.Conv2d(3, 32, 9, 1, 4),
        nn.PReLU(),
        Residual(block(), block(), nn.Conv2d(32, 32, 3, 1, 1)),
        up(),
        up(),
        nn.Conv2d(32, 3, 9, 1, 4),
        nn.Tanh(),
    )


@network(3, 24, 24)
def rcan():
    class Channel(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(24, 6, 1), nn.Conv2d(6, 24, 1)

        def forward(self, x):
            return x * torch.sigmoid(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))

    block = lambda: Residual(nn.Conv2d(24, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, 24, 3, 1, 1), Channel())
    body = nn.Sequential(
        nn.Conv2d(3, 24, 3, 1, 1), Residual(block(), block()), nn.Conv2d(24, 12, 3, 1, 1), nn.PixelShuffle(2)
    )
    return Function(lambda m, x: m.body(x) + F.interpolate(x, scale_factor=2, mode="bicubic"), body=body)


@network(64)
def dcgan_generator():
    up = lambda i, o: nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
    first = nn.Sequential(nn.ConvTranspose2d(64, 64, 4, 1, 0, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    return Function(
        lambda m, x: m.body(x[:, :, None, None]),
        body=nn.Sequential(first, up(64, 48), up(48, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()),
    )


@network(3, 32, 32)
def pix2pix():
    d = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.InstanceNorm2d(o), nn.LeakyReLU(0.2))
    u = lambda i, o: nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1), nn.InstanceNorm2d(o), nn.ReLU())

    def forward(m, x):
        a = m.d1(x)
        return torch.tanh(m.head(torch.cat([m.u2(m.d2(a)), a], 1)))

    return Function(
        forward,
        d1=nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2)),
        d2=d(16, 32),
        u2=u(32, 16),
        head=nn.ConvTranspose2d(32, 3, 4, 2, 1),
    )


@network(3, 32, 32)
def cyclegan():
    c = lambda i, o, k, s=1: nn.Sequential(
        nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o), nn.ReLU()
    )
    block = lambda: Residual(
        nn.ReflectionPad2d(1),
        nn.Conv2d(32, 32, 3),
        nn.InstanceNorm2d(32),
        nn.ReLU(),
        nn.ReflectionPad2d(1),
        nn.Conv2d(32, 32, 3),
        nn.InstanceNorm2d(32),
    )
    up = nn.Sequential(nn.ConvTranspose2d(32, 16, 3, 2, 1, 1), nn.InstanceNorm2d(16), nn.ReLU())
    return nn.Sequential(
        c(3, 16, 7), c(16, 32, 3, 2), block(), block(), up, nn.ReflectionPad2d(3), nn.Conv2d(16, 3, 7), nn.Tanh()
    )


@network(3, 48, 48)
def style_transfer():
    c = lambda i, o, k, s=1: nn.Sequential(
        nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True), nn.ReLU()
    )
    up = lambda i, o: nn.Sequential(nn.Upsample(scale_factor=2), c(i, o, 3))
    return nn.Sequential(
        c(3, 16, 9), c(16, 32, 3, 2), Residual(c(32, 32, 3)), up(32, 16), nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9)
    )


@network(1, 28, 28)
def variational_autoencoder():
    encoder = nn.Sequential(conv(1, 16, 3, 2), conv(16, 32, 3, 2), nn.Flatten())
    decoder = nn.Sequential(
        nn.Linear(8, 32 * 49),
        nn.ReLU(),
        nn.Unflatten(1, (32, 7, 7)),
        nn.ConvTranspose2d(32, 16, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1),
        nn.Sigmoid(),
    )

    def forward(m, x):
        y = m.encoder(x)
        mean, log = m.mean(y), m.log(y)
        return m.decoder(mean + 0.1 * torch.exp(0.5 * log)), mean

    return Function(forward, encoder=encoder, decoder=decoder, mean=nn.Linear(32 * 49, 8), log=nn.Linear(32 * 49, 8))


@network(3, 40, 40)
def dncnn():
    return Function(
        lambda m, x: x - m.body(x),
        body=nn.Sequential(
            nn.Conv2d(3, 24, 3, 1, 1), nn.ReLU(), *[conv(24, 24) for _ in range(4)], nn.Conv2d(24, 3, 3, 1, 1)
        ),
    )


@network(3, 32, 32)
def nafnet():
    class Block(nn.Module):
        def __init__(self, c=16):
            super().__init__()
            self.n1, self.n2 = nn.GroupNorm(1, c), nn.GroupNorm(1, c)
            self.a, self.d, self.b, self.s = (
                nn.Conv2d(c, 2 * c, 1),
                nn.Conv2d(2 * c, 2 * c, 3, 1, 1, groups=2 * c),
                nn.Conv2d(c, c, 1),
                nn.Conv2d(c, c, 1),
            )
            self.e, self.f = nn.Conv2d(c, 2 * c, 1), nn.Conv2d(c, c, 1)

        def forward(self, x):
            gate = lambda t: t.chunk(2, 1)[0] * t.chunk(2, 1)[1]
            y = gate(self.d(self.a(self.n1(x))))
            x = x + self.b(y * self.s(y.mean((2, 3), keepdim=True)))
            return x + self.f(gate(self.e(self.n2(x))))

    return Function(
        lambda m, x: x + m.body(x),
        body=nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1),
            Block(),
            nn.Conv2d(16, 32, 2, 2),
            Block(32),
            nn.Conv2d(32, 64, 1),
            nn.PixelShuffle(2),
            Block(),
            nn.Conv2d(16, 3, 3, 1, 1),
        ),
    )
