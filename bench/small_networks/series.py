# SPDX-License-Identifier: Apache-2.0
"""Sound, time series and tables."""

import torch
from torch import nn
from torch.nn import functional as F

from .parts import conv, conv1, Function, network, Residual, separable


@network(1, 49, 10)
def ds_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 64, (10, 4), 2, (5, 1)),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        *[separable(64, 64) for _ in range(3)],
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 12),
    )


@network(1, 40, 101)
def bc_resnet():
    class Broadcast(nn.Module):
        def __init__(self, c=16):
            super().__init__()
            self.f2 = nn.Sequential(nn.Conv2d(c, c, (3, 1), padding=(1, 0), groups=c), nn.BatchNorm2d(c))
            self.f1 = nn.Sequential(
                nn.Conv2d(c, c, (1, 3), padding=(0, 1), groups=c), nn.BatchNorm2d(c), nn.SiLU(), nn.Conv2d(c, c, 1)
            )

        def forward(self, x):
            y = self.f2(x)
            return F.relu(x + y + self.f1(y.mean(2, keepdim=True)))

    return nn.Sequential(
        nn.Conv2d(1, 16, 5, (2, 1), 2),
        nn.ReLU(),
        Broadcast(),
        Broadcast(),
        nn.Conv2d(16, 24, (5, 1)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 12),
    )


@network(40, 101)
def tc_resnet():
    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.a, self.b, self.s = conv1(i, o, 9, 2), conv1(o, o, 9, act=None), conv1(i, o, 1, 2)

        def forward(self, x):
            return F.relu(self.b(self.a(x)) + self.s(x))

    return nn.Sequential(
        conv1(40, 16), Block(16, 24), Block(24, 32), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 12)
    )


@network(1, 4000)
def m5_raw_sound():
    return nn.Sequential(
        conv1(1, 32, 81, 16),
        nn.MaxPool1d(4),
        conv1(32, 32),
        nn.MaxPool1d(4),
        conv1(32, 64),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(64, 12),
        nn.LogSoftmax(-1),
    )


@network(64, 80)
def matchboxnet():
    s = lambda i, o, k: nn.Sequential(
        nn.Conv1d(i, i, k, padding=k // 2, groups=i, bias=False),
        nn.Conv1d(i, o, 1, bias=False),
        nn.BatchNorm1d(o),
        nn.ReLU(),
    )
    return nn.Sequential(
        s(64, 48, 11),
        Residual(s(48, 48, 13), s(48, 48, 13)),
        s(48, 48, 29),
        nn.Conv1d(48, 12, 1),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
    )


def last_of(rnn, size, outputs):
    def forward(m, x):
        y = m.rnn(x)[0]
        return m.fc(y[:, -1])

    return Function(forward, rnn=rnn, fc=nn.Linear(size, outputs))


@network(49, 10)
def kws_gru():
    return last_of(nn.GRU(10, 48, batch_first=True), 48, 12)


@network(49, 10)
def kws_lstm():
    return last_of(nn.LSTM(10, 48, num_layers=2, batch_first=True), 48, 12)


@network(30, 12)
def bidirectional_gru():
    return last_of(nn.GRU(12, 32, batch_first=True, bidirectional=True), 64, 6)


@network(30, 12)
def plain_rnn():
    return last_of(nn.RNN(12, 32, batch_first=True), 32, 6)


@network(1, 40, 64)
def attention_rnn():
    def forward(m, x):
        y = m.rnn(m.body(x)[:, 0].transpose(1, 2))[0]
        weights = (m.q(y[:, 32])[:, None] @ y.transpose(1, 2)).softmax(-1)
        return m.fc((weights @ y)[:, 0])

    return Function(
        forward,
        body=nn.Sequential(conv(1, 8, 5), conv(8, 1, 5)),
        rnn=nn.GRU(40, 24, batch_first=True, bidirectional=True),
        q=nn.Linear(48, 48),
        fc=nn.Linear(48, 12),
    )


@network(12, 64)
def tcn():
    class Causal(nn.Module):
        def __init__(self, i, o, d):
            super().__init__()
            self.pad = (2 * d, 0)
            self.a, self.b, self.s = nn.Conv1d(i, o, 3, dilation=d), nn.Conv1d(o, o, 3, dilation=d), nn.Conv1d(i, o, 1)

        def forward(self, x):
            y = F.relu(self.a(F.pad(x, self.pad)))
            return F.relu(F.relu(self.b(F.pad(y, self.pad))) + self.s(x))

    return Function(
        lambda m, x: m.fc(m.body(x)[:, :, -1]),
        body=nn.Sequential(Causal(12, 24, 1), Causal(24, 24, 2), Causal(24, 24, 4)),
        fc=nn.Linear(24, 5),
    )


@network(1, 256)
def wavenet():
    class Gate(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.d = d
            self.f, self.g, self.r, self.s = (
                nn.Conv1d(16, 16, 2, dilation=d),
                nn.Conv1d(16, 16, 2, dilation=d),
                nn.Conv1d(16, 16, 1),
                nn.Conv1d(16, 24, 1),
            )

        def forward(self, x):
            p = F.pad(x, (self.d, 0))
            y = torch.tanh(self.f(p)) * torch.sigmoid(self.g(p))
            return x + self.r(y), self.s(y)

    def forward(m, x):
        y, total = m.first(x), 0
        for gate in m.gates:
            y, s = gate(y)
            total = total + s
        return m.last(F.relu(total))

    return Function(
        forward,
        first=nn.Conv1d(1, 16, 1),
        gates=nn.ModuleList(Gate(2**i) for i in range(4)),
        last=nn.Sequential(nn.Conv1d(24, 24, 1), nn.ReLU(), nn.Conv1d(24, 32, 1)),
    )


@network(1, 800)
def conv_tasnet():
    block = lambda d: Residual(
        nn.Conv1d(24, 48, 1),
        nn.PReLU(),
        nn.GroupNorm(1, 48),
        nn.Conv1d(48, 48, 3, padding=d, dilation=d, groups=48),
        nn.PReLU(),
        nn.GroupNorm(1, 48),
        nn.Conv1d(48, 24, 1),
    )

    def forward(m, x):
        y = F.relu(m.encoder(x))
        masks = torch.sigmoid(m.mask(m.body(m.norm(y)))).view(-1, 2, 32, y.shape[-1])
        return torch.cat([m.decoder(y * masks[:, i]) for i in range(2)], 1)

    return Function(
        forward,
        encoder=nn.Conv1d(1, 32, 16, 8, bias=False),
        norm=nn.GroupNorm(1, 32),
        body=nn.Sequential(nn.Conv1d(32, 24, 1), block(1), block(2), nn.PReLU()),
        mask=nn.Conv1d(24, 64, 1),
        decoder=nn.ConvTranspose1d(32, 1, 16, 8, bias=False),
    )


@network(2, 512)
def demucs():
    def forward(m, x):
        a = m.e1(x)
        b = m.e2(a)
        y = m.fc(m.rnn(b.transpose(1, 2))[0]).transpose(1, 2)
        return m.d1(m.d2(y + b) + a)

    e = lambda i, o: nn.Sequential(nn.Conv1d(i, o, 8, 4, 2), nn.ReLU(), nn.Conv1d(o, 2 * o, 1), nn.GLU(1))
    d = lambda i, o, act: nn.Sequential(
        nn.Conv1d(i, 2 * i, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(i, o, 8, 4, 2), act
    )
    return Function(
        forward,
        e1=e(2, 16),
        e2=e(16, 32),
        rnn=nn.LSTM(32, 32, batch_first=True, bidirectional=True),
        fc=nn.Linear(64, 32),
        d2=d(32, 16, nn.ReLU()),
        d1=d(16, 2, nn.Identity()),
    )


@network(64, 40)
def conformer():
    class Block(nn.Module):
        def __init__(self, c=48):
            super().__init__()
            ff = lambda: nn.Sequential(nn.LayerNorm(c), nn.Linear(c, 2 * c), nn.SiLU(), nn.Linear(2 * c, c))
            self.f1, self.f2, self.n, self.nc, self.last = ff(), ff(), nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
            self.attention = nn.MultiheadAttention(c, 4, batch_first=True)
            self.conv = nn.Sequential(
                nn.Conv1d(c, 2 * c, 1),
                nn.GLU(1),
                nn.Conv1d(c, c, 15, padding=7, groups=c),
                nn.BatchNorm1d(c),
                nn.SiLU(),
                nn.Conv1d(c, c, 1),
            )

        def forward(self, x):
            x = x + 0.5 * self.f1(x)
            y = self.n(x)
            x = x + self.attention(y, y, y, need_weights=False)[0]
            x = x + self.conv(self.nc(x).transpose(1, 2)).transpose(1, 2)
            return self.last(x + 0.5 * self.f2(x))

    return nn.Sequential(nn.Linear(40, 48), Block(), nn.Linear(48, 20))


@network(128, 9)
def har_lstm_cnn():
    return Function(
        lambda m, x: m.fc(m.rnn(m.conv(x.transpose(1, 2)).transpose(1, 2))[0].mean(1)),
        conv=nn.Sequential(conv1(9, 24, 5, 2), conv1(24, 32, 5, 2)),
        rnn=nn.LSTM(32, 32, batch_first=True),
        fc=nn.Linear(32, 6),
    )


@network(9, 96)
def inception_time():
    class Block(nn.Module):
        def __init__(self, i):
            super().__init__()
            self.first, self.pool = (
                nn.Conv1d(i, 16, 1, bias=False),
                nn.Sequential(nn.MaxPool1d(3, 1, 1), nn.Conv1d(i, 8, 1, bias=False)),
            )
            self.convs, self.norm = (
                nn.ModuleList(nn.Conv1d(16, 8, k, padding=k // 2, bias=False) for k in (9, 19, 39)),
                nn.BatchNorm1d(32),
            )

        def forward(self, x):
            y = self.first(x)
            return F.relu(self.norm(torch.cat([c(y) for c in self.convs] + [self.pool(x)], 1)))

    return nn.Sequential(Block(9), Block(32), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 6))


@network(48)
def n_beats():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.back, self.ahead = (
                nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()),
                nn.Linear(64, 48),
                nn.Linear(64, 12),
            )

        def forward(self, x):
            y = self.body(x)
            return x - self.back(y), self.ahead(y)

    def forward(m, x):
        total = 0
        for stack in m.stacks:
            x, y = stack(x)
            total = total + y
        return total

    return Function(forward, stacks=nn.ModuleList(Stack() for _ in range(3)))


@network(96)
def patch_tst():
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True)

    def forward(m, x):
        tokens = m.embed(x.unfold(1, 16, 8)) + m.place.weight
        return m.head(m.body(tokens).flatten(1))

    return Function(
        forward,
        embed=nn.Linear(16, 32),
        place=nn.Embedding(11, 32),
        body=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        head=nn.Linear(11 * 32, 12),
    )


@network(20)
def table_mlp():
    return nn.Sequential(
        nn.BatchNorm1d(20),
        nn.Linear(20, 64),
        nn.BatchNorm1d(64),
        nn.SELU(),
        nn.Dropout(0.1),
        nn.Linear(64, 32),
        nn.ELU(),
        nn.Linear(32, 3),
        nn.Softmax(-1),
    )


@network(16)
def table_transformer():
    layer = nn.TransformerEncoderLayer(24, 4, 48, 0.0, batch_first=True)

    def forward(m, x):
        tokens = x[:, :, None] * m.scale.weight + m.shift.weight
        tokens = torch.cat([m.token.weight.expand(x.shape[0], 1, 24), tokens], 1)
        return m.head(m.body(tokens)[:, 0])

    return Function(
        forward,
        scale=nn.Embedding(16, 24),
        shift=nn.Embedding(16, 24),
        token=nn.Embedding(1, 24),
        body=nn.TransformerEncoder(layer, 2),
        head=nn.Sequential(nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 2)),
    )


@network(13)
def deep_and_cross():
    def forward(m, x):
        y = x
        for layer in m.cross:
            y = x * layer(y) + y
        return torch.sigmoid(m.head(torch.cat([y, m.deep(x)], 1)))

    return Function(
        forward,
        cross=nn.ModuleList(nn.Linear(13, 13) for _ in range(2)),
        deep=nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()),
        head=nn.Linear(29, 1),
    )
