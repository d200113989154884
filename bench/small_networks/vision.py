# SPDX-License-Identifier: Apache-2.0
"""Faces, text in pictures, points, poses, video."""

import torch
from torch import nn
from torch.nn import functional as F

from .parts import conv, conv1, Function, grid, network, Residual


@network(1, 32, 100)
def crnn():
    body = nn.Sequential(
        conv(1, 16),
        nn.MaxPool2d(2),
        conv(16, 32),
        nn.MaxPool2d(2),
        conv(32, 32),
        nn.MaxPool2d((2, 1)),
        conv(32, 48),
        nn.MaxPool2d((4, 1)),
    )

    def forward(m, x):
        y = m.body(x).squeeze(2).permute(0, 2, 1)
        return m.fc(m.rnn(y)[0]).log_softmax(-1)

    return Function(forward, body=body, rnn=nn.LSTM(48, 32, batch_first=True, bidirectional=True), fc=nn.Linear(64, 37))


@network(3, 256)
def point_net():
    body = nn.Sequential(conv1(3, 32, 1), conv1(32, 64, 1), conv1(64, 128, 1))

    def forward(m, x):
        t = m.t2(m.t1(x).amax(-1)).view(-1, 3, 3) + torch.eye(3)
        return m.fc(m.body((x.transpose(1, 2) @ t).transpose(1, 2)).amax(-1))

    return Function(
        forward,
        t1=nn.Sequential(conv1(3, 32, 1), conv1(32, 64, 1)),
        t2=nn.Linear(64, 9),
        body=body,
        fc=nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


@network(25, 3)
def graph_network():
    generator = torch.Generator().manual_seed(0)
    links = (torch.rand(25, 25, generator=generator) < 0.2).float() + torch.eye(25)
    m = Function(
        lambda m, x: m.fc(F.relu(m.a @ m.w2(F.relu(m.a @ m.w1(x)))).mean(1)),
        w1=nn.Linear(3, 32),
        w2=nn.Linear(32, 32),
        fc=nn.Linear(32, 6),
    )
    m.register_buffer("a", links / links.sum(1, keepdim=True))
    return m


@network(2)
def sine_field():
    def forward(m, x):
        y = torch.cat([f(x * 2**i) for i in range(4) for f in (torch.sin, torch.cos)], 1)
        return torch.sigmoid(m.body(y))

    return Function(
        forward, body=nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    )


@network(3, 112, 112)
def mobile_face_net():
    c = lambda i, o, k=3, s=1, g=1, act=True: nn.Sequential(
        nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), *([nn.PReLU(o)] if act else [])
    )
    block = lambda i, o, s: nn.Sequential(c(i, 2 * i, 1), c(2 * i, 2 * i, 3, s, 2 * i), c(2 * i, o, 1, act=False))
    last = nn.Sequential(
        nn.Conv2d(64, 64, 7, groups=64, bias=False),
        nn.BatchNorm2d(64),
        nn.Conv2d(64, 64, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.Flatten(),
    )
    return Function(
        lambda m, x: F.normalize(m.body(x)),
        body=nn.Sequential(
            c(3, 32, 3, 2), block(32, 32, 2), Residual(block(32, 32, 1)), block(32, 48, 2), block(48, 64, 2), last
        ),
    )


@network(3, 112, 112)
def iresnet_face():
    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.a = nn.Sequential(
                nn.BatchNorm2d(i),
                nn.Conv2d(i, o, 3, 1, 1, bias=False),
                nn.BatchNorm2d(o),
                nn.PReLU(o),
                nn.Conv2d(o, o, 3, 2, 1, bias=False),
                nn.BatchNorm2d(o),
            )
            self.s = nn.Sequential(nn.Conv2d(i, o, 1, 2, bias=False), nn.BatchNorm2d(o))

        def forward(self, x):
            return self.a(x) + self.s(x)

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.PReLU(16),
        Block(16, 16),
        Block(16, 32),
        Block(32, 32),
        Block(32, 32),
        nn.BatchNorm2d(32),
        nn.Flatten(),
        nn.Linear(32 * 49, 64),
        nn.BatchNorm1d(64),
    )


@network(3, 64, 64)
def blaze_face():
    class Block(nn.Module):
        def __init__(self, i, o, s=1):
            super().__init__()
            self.s, self.more = s, o - i
            self.body = nn.Sequential(nn.Conv2d(i, i, 5, s, 0 if s == 2 else 2, groups=i), nn.Conv2d(i, o, 1))

        def forward(self, x):
            y = F.pad(x, (1, 2, 1, 2)) if self.s == 2 else x
            skip = F.max_pool2d(x, 2) if self.s == 2 else x
            return F.relu(self.body(y) + F.pad(skip, (0, 0, 0, 0, 0, self.more)))

    def forward(m, x):
        a = m.body(F.pad(x, (1, 2, 1, 2)))
        b = m.down(a)
        flat = lambda t, n: t.permute(0, 2, 3, 1).reshape(t.shape[0], -1, n)
        return torch.cat([flat(m.ra(a), 16), flat(m.rb(b), 16)], 1), torch.cat([flat(m.ca(a), 1), flat(m.cb(b), 1)], 1)

    return Function(
        forward,
        body=nn.Sequential(nn.Conv2d(3, 16, 5, 2), nn.ReLU(), Block(16, 24), Block(24, 32, 2), Block(32, 32)),
        down=Block(32, 48, 2),
        ra=nn.Conv2d(32, 32, 1),
        rb=nn.Conv2d(48, 96, 1),
        ca=nn.Conv2d(32, 2, 1),
        cb=nn.Conv2d(48, 6, 1),
    )


@network(3, 48, 48)
def mtcnn_onet():
    c = lambda i, o, k: nn.Sequential(nn.Conv2d(i, o, k), nn.PReLU(o))
    body = nn.Sequential(
        c(3, 32, 3),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        c(32, 64, 3),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        c(64, 64, 3),
        nn.MaxPool2d(2, 2, ceil_mode=True),
        c(64, 128, 2),
    )

    def forward(m, x):
        y = m.fc(m.body(x).permute(0, 3, 2, 1).reshape(x.shape[0], -1))
        return m.a(y).softmax(-1), m.b(y), m.c(y)

    return Function(
        forward,
        body=body,
        fc=nn.Sequential(nn.Linear(1152, 128), nn.PReLU(128)),
        a=nn.Linear(128, 2),
        b=nn.Linear(128, 4),
        c=nn.Linear(128, 10),
    )


@network(3, 64, 64)
def text_detector_db():
    def forward(m, x):
        a = m.b1(x)
        b = m.b2(a)
        c = m.b3(b)
        up = lambda t, s: F.interpolate(t, scale_factor=s, mode="nearest")
        y = torch.cat([m.l1(a), up(m.l2(b), 2), up(m.l3(c), 4)], 1)
        shrink, threshold = m.p(y), m.t(y)
        return 1 / (1 + torch.exp(-5 * (shrink - threshold)))

    head = lambda: nn.Sequential(
        conv(24, 16),
        nn.ConvTranspose2d(16, 16, 2, 2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 2, 2),
        nn.Sigmoid(),
    )
    return Function(
        forward,
        b1=conv(3, 16, 3, 4),
        b2=conv(16, 24, 3, 2),
        b3=conv(24, 32, 3, 2),
        l1=conv(16, 8, 1),
        l2=conv(24, 8, 1),
        l3=conv(32, 8, 1),
        p=head(),
        t=head(),
    )


@network(3, 64, 64)
def spatial_transformer():
    body = nn.Sequential(
        conv(3, 16, 3, 2), conv(16, 32, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
    )

    def forward(m, x):
        theta = m.place(x).view(-1, 2, 3) * 0.1 + torch.tensor([[1.0, 0, 0], [0, 1, 0]])
        places = torch.cat([grid(64) * 2 - 1, torch.ones(64 * 64, 1)], 1) @ theta.transpose(1, 2)
        return m.body(F.grid_sample(x, places.view(-1, 64, 64, 2), align_corners=False))

    return Function(
        forward,
        place=nn.Sequential(conv(3, 8, 3, 4), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 6)),
        body=body,
    )


@network(6, 32, 32)
def flow_by_correlation():
    def forward(m, x):
        a, b = m.f(x[:, :3]), m.f(x[:, 3:])
        p = F.pad(b, (2, 2, 2, 2))
        cost = torch.stack([(a * p[:, :, i : i + 16, j : j + 16]).mean(1) for i in range(5) for j in range(5)], 1)
        return F.interpolate(m.head(torch.cat([cost, a], 1)), scale_factor=2, mode="bilinear", align_corners=False) * 2

    return Function(
        forward,
        f=nn.Sequential(conv(3, 16, 3, 2), conv(16, 16)),
        head=nn.Sequential(conv(41, 32), nn.Conv2d(32, 2, 3, 1, 1)),
    )


@network(3, 64, 64)
def argmax_mask():
    return Function(
        lambda m, x: m.body(x).argmax(1), body=nn.Sequential(conv(3, 16), conv(16, 16), nn.Conv2d(16, 5, 1))
    )


@network(3, 64, 64)
def class_and_score():
    def forward(m, x):
        score, kind = m.body(x).softmax(-1).max(-1)
        return score, kind

    return Function(
        forward,
        body=nn.Sequential(
            conv(3, 16, 3, 2), conv(16, 32, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)
        ),
    )


@network(3, 64, 64)
def soft_argmax_pose():
    def forward(m, x):
        heat = m.body(x).flatten(2).softmax(-1).view(-1, 5, 16, 16)
        at = torch.linspace(0, 1, 16)
        return torch.stack([(heat.sum(2) * at).sum(-1), (heat.sum(3) * at).sum(-1)], -1)

    return Function(forward, body=nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), nn.Conv2d(32, 5, 1)))


@network(3, 64, 64)
def siamese_similarity():
    body = nn.Sequential(
        conv(3, 16, 3, 2), conv(16, 32, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 16)
    )

    def forward(m, x):
        a, b = m.body(x), m.body(x.flip(3))
        return F.cosine_similarity(a, b)[:, None], (a - b).norm(dim=1, keepdim=True)

    return Function(forward, body=body)


@network(3, 64, 64)
def image_captioner_step():
    layer = nn.TransformerDecoderLayer(32, 4, 64, 0.0, batch_first=True)

    def forward(m, x):
        memory = m.body(x).flatten(2).transpose(1, 2)
        return m.head(
            m.decoder(
                m.words.weight[None].expand(x.shape[0], -1, -1),
                memory,
                tgt_mask=nn.Transformer.generate_square_subsequent_mask(6),
            )
        )

    return Function(
        forward,
        body=nn.Sequential(conv(3, 16, 3, 4), conv(16, 32, 3, 4)),
        words=nn.Embedding(6, 32),
        decoder=nn.TransformerDecoder(layer, 1),
        head=nn.Linear(32, 40),
    )


@network(3, 16, 32, 32)
def video_3d():
    c = lambda i, o, s: nn.Sequential(nn.Conv3d(i, o, 3, s, 1, bias=False), nn.BatchNorm3d(o), nn.ReLU())
    return nn.Sequential(
        c(3, 8, (1, 2, 2)), nn.MaxPool3d(2), c(8, 16, 1), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5)
    )


@network(8, 3, 32, 32)
def frames_and_lstm():
    def forward(m, x):
        b, t = x.shape[:2]
        y = m.body(x.flatten(0, 1)).view(b, t, 24)
        return m.fc(m.rnn(y)[0][:, -1])

    return Function(
        forward,
        body=nn.Sequential(conv(3, 16, 3, 2), conv(16, 24, 3, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        rnn=nn.LSTM(24, 24, batch_first=True),
        fc=nn.Linear(24, 5),
    )


@network(8, 3, 32, 32)
def temporal_shift():
    def forward(m, x):
        b, t = x.shape[:2]
        y = m.first(x.flatten(0, 1)).view(b, t, 16, 16, 16)
        y = torch.cat(
            [
                F.pad(y[:, 1:, :4], (0, 0, 0, 0, 0, 0, 0, 1)),
                F.pad(y[:, :-1, 4:8], (0, 0, 0, 0, 0, 0, 1, 0)),
                y[:, :, 8:],
            ],
            2,
        )
        return m.fc(m.second(y.flatten(0, 1)).mean((2, 3)).view(b, t, 24).mean(1))

    return Function(forward, first=conv(3, 16, 3, 2), second=conv(16, 24, 3, 2), fc=nn.Linear(24, 5))
