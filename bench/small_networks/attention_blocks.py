# SPDX-License-Identifier: Apache-2.0
"""Further published blocks around attention in small: positions, sparse and low-rank attention, hybrids, heads of segmenters."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .attention_parts import Block, feed_forward, HEAD, HEADS, RMSNorm, SwiGLU, TOKENS, WIDTH
from .parts import conv, Function, network
from .spellings import answer, CAUSAL, Heads, join, qkv, split


def linear(inputs=WIDTH, outputs=WIDTH, bias=True):
    return nn.Linear(inputs, outputs, bias)


def attend(q, k, v, bias=0.0):
    return (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias).softmax(-1) @ v


# --- Positions


@network(TOKENS, WIDTH)
def sinusoids_in_forward():
    def forward(m, x):
        at = torch.arange(x.shape[1])[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
        place = torch.stack([at.sin(), at.cos()], -1).flatten(1)
        return m.blocks(x * math.sqrt(WIDTH) + place)

    encoder = nn.TransformerEncoderLayer(WIDTH, HEADS, 128, 0.0, batch_first=True)
    return Function(forward, blocks=nn.TransformerEncoder(encoder, 2, enable_nested_tensor=False))


@network(TOKENS, WIDTH)
def t5_buckets():
    """Distances are put into buckets in the forward function, as Hugging Face writes it."""

    def bucket(distance):
        n, far = distance.abs(), 8
        large = far + (torch.log(n.float().clamp(min=1) / far) / math.log(16) * far).to(torch.long)
        return (distance > 0).long() * 16 + torch.where(n < far, n, large.clamp(max=15))

    def forward(m, x):
        at = torch.arange(x.shape[1])
        bias = m.table(bucket(at[None] - at[:, None])).permute(2, 0, 1).unsqueeze(0)
        for layer in m.layers:
            x = x + layer["o"](join(F.scaled_dot_product_attention(
                *(split(layer[name](layer["n1"](x))) for name in "qkv"), attn_mask=bias, scale=1.0)))
            x = x + layer["ff"](layer["n2"](x))
        return x

    layer = lambda: nn.ModuleDict({**{name: linear(bias=False) for name in "qkvo"}, "n1": RMSNorm(), "n2": RMSNorm(),
                                   "ff": feed_forward(nn.ReLU)})
    return Function(forward, table=nn.Embedding(32, HEADS), layers=nn.ModuleList(layer() for _ in range(2)))


@network(TOKENS, WIDTH)
def rotary_complex_as_matrix():
    """Rotation by a constant matrix for each place: a product with [tokens, channels, channels]."""
    angle = torch.arange(TOKENS)[:, None] / 100 ** (torch.arange(HEAD // 2) / (HEAD // 2))
    turn = torch.zeros(TOKENS, HEAD, HEAD)
    i = torch.arange(0, HEAD, 2)
    turn[:, i, i], turn[:, i + 1, i + 1] = angle.cos(), angle.cos()
    turn[:, i, i + 1], turn[:, i + 1, i] = angle.sin(), -angle.sin()

    def spelled(m, x):
        q, k, v = qkv(m, x)
        rotated = lambda y: torch.einsum("nhtd,tde->nhte", y, m.turn)
        return m.o(join(attend(rotated(q), rotated(k), v)))

    return answer(Block(Heads(spelled, turn=turn)))


@network(TOKENS, WIDTH)
def rotary_tokens_before_heads():
    """Rotated before heads are transposed, cosines for halves (ModernBERT, Phi)."""
    angle = torch.arange(TOKENS)[:, None] / 10000 ** (torch.arange(HEAD // 2) / (HEAD // 2))

    def spelled(m, x):
        n, t, _ = x.shape

        def turned(y):
            y = y.view(n, t, HEADS, HEAD)
            a, b = y[..., :HEAD // 2], y[..., HEAD // 2:]
            return torch.cat((a * m.cos - b * m.sin, a * m.sin + b * m.cos), -1).transpose(1, 2)

        return m.o(join(F.scaled_dot_product_attention(turned(m.q(x)), turned(m.k(x)), split(m.v(x)), is_causal=True)))

    return answer(*(Block(Heads(spelled, cos=angle.cos()[:, None], sin=angle.sin()[:, None]), SwiGLU(), RMSNorm) for _ in range(2)))


@network(TOKENS, WIDTH)
def qwen_norms():
    """Queries and keys are RMS-normalized head by head before they are rotated; two groups of keys."""
    angle = torch.arange(TOKENS)[:, None] / 10000 ** (torch.arange(HEAD // 2) / (HEAD // 2))

    class Qwen(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = linear(), linear(outputs=2 * HEAD), linear(outputs=2 * HEAD), linear()
            self.nq, self.nk = RMSNorm(HEAD), RMSNorm(HEAD)
            self.register_buffer("cos", torch.cat([angle, angle], -1).cos())
            self.register_buffer("sin", torch.cat([angle, angle], -1).sin())

        def turned(self, y):
            a, b = y.chunk(2, -1)
            return y * self.cos + torch.cat((-b, a), -1) * self.sin

        def forward(self, x):
            n, t, _ = x.shape
            q = self.turned(self.nq(self.q(x).view(n, t, HEADS, HEAD)).transpose(1, 2))
            k = self.turned(self.nk(self.k(x).view(n, t, 2, HEAD)).transpose(1, 2))
            return self.o(join(F.scaled_dot_product_attention(q, k, split(self.v(x), 2), is_causal=True, enable_gqa=True)))

    return answer(*(Block(Qwen(), SwiGLU(), RMSNorm) for _ in range(2)))


@network(TOKENS, WIDTH)
def sliding_window_with_sink():
    """Tokens see the eight before them and the first four; a mask of where (Mistral, StreamingLLM)."""
    at = torch.arange(TOKENS)
    allowed = (at[None] <= at[:, None]) & ((at[:, None] - at[None] < 8) | (at[None] < 4))

    def spelled(m, x):
        q, k, v = qkv(m, x)
        scores = torch.where(m.allowed, q @ k.transpose(2, 3) * HEAD**-0.5, torch.tensor(-65504.0))
        return m.o(join(scores.softmax(-1) @ v))

    return answer(*(Block(Heads(spelled, allowed=allowed)) for _ in range(2)))


# --- Fewer products


@network(TOKENS, WIDTH)
def linformer():
    """Keys and values are projected along the tokens."""

    class Lin(Heads):
        def __init__(self):
            super().__init__(None)
            self.e, self.f = linear(TOKENS, 8), nn.Parameter(torch.randn(8, TOKENS) * 0.2)

        def forward(self, x):
            k = self.e(self.k(x).transpose(1, 2)).transpose(1, 2)
            return self.o(join(attend(split(self.q(x)), split(k), split(torch.matmul(self.f, self.v(x))))))

    return answer(Block(Lin()), Block(Lin()))


@network(TOKENS, WIDTH)
def performer():
    """Random features of exponentials."""

    def spelled(m, x):
        q, k, v = qkv(m, x)
        features = lambda y: torch.exp(y * HEAD**-0.25 @ m.random - y.square().sum(-1, keepdim=True) * (0.5 * HEAD**-0.5)) + 1e-3
        q, k = features(q), features(k)
        return m.o(join(q @ (k.transpose(2, 3) @ v) / (q @ k.sum(2, keepdim=True).transpose(2, 3))))

    return answer(*(Block(Heads(spelled, random=torch.randn(HEAD, 24))) for _ in range(2)))


@network(TOKENS, WIDTH)
def nystrom():
    """Landmarks are means of segments; the inverse by three rounds of products."""

    def spelled(m, x):
        q, k, v = qkv(m, x)
        q = q * HEAD**-0.5
        ql, kl = (y.view(-1, HEADS, 8, TOKENS // 8, HEAD).mean(3) for y in (q, k))
        a, b, c = (q @ kl.transpose(2, 3)).softmax(-1), (ql @ kl.transpose(2, 3)).softmax(-1), (ql @ k.transpose(2, 3)).softmax(-1)
        z = b.transpose(2, 3) / 2
        for _ in range(3):
            z = z @ (2 * torch.eye(8) - b @ z)
        return m.o(join(a @ z @ (c @ v)))

    return answer(Block(Heads(spelled)))


@network(TOKENS, WIDTH)
def set_transformer():
    """Induced points attend to the set, the set to them; pooled by a learned seed."""
    cross = lambda: nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(m, x):
        points, seed = (y.expand(x.shape[0], -1, -1) for y in (m.points, m.seed))
        h = m.n1(points + m.a(points, x, x, need_weights=False)[0])
        y = m.n2(x + m.b(x, h, h, need_weights=False)[0])
        return m.head(m.c(seed, y, y, need_weights=False)[0].flatten(1))

    made = Function(forward, a=cross(), b=cross(), c=cross(), n1=nn.LayerNorm(WIDTH), n2=nn.LayerNorm(WIDTH), head=linear(WIDTH, 5))
    made.points, made.seed = nn.Parameter(torch.randn(1, 8, WIDTH)), nn.Parameter(torch.randn(1, 1, WIDTH))
    return made


@network(TOKENS, WIDTH)
def synthesizer():
    """Weights from a layer, not from products of queries and keys."""

    def spelled(m, x):
        weights = m.dense(F.relu(m.q(x))).softmax(-1)
        return m.o(torch.bmm(weights, m.v(x)))

    return answer(*(Block(Heads(spelled, dense=linear(WIDTH, TOKENS))) for _ in range(2)))


@network(TOKENS, WIDTH)
def attention_free():
    """AFT: exponentials of keys and of learned biases between tokens."""

    def spelled(m, x):
        e = torch.exp(m.k(x).clamp(-4, 4))
        w = torch.exp(m.bias)
        return m.o(torch.sigmoid(m.q(x)) * (w @ (e * m.v(x))) / (w @ e))

    return answer(*(Block(Heads(spelled, bias=torch.randn(TOKENS, TOKENS) * 0.2)) for _ in range(2)))


@network(TOKENS, WIDTH)
def fourier():
    """FNet: the real part of a transform over both axes, as products with constant matrices."""

    class Mix(nn.Module):
        def __init__(self):
            super().__init__()
            for name, n in (("t", TOKENS), ("c", WIDTH)):
                phase = 2 * math.pi / n * torch.outer(torch.arange(n), torch.arange(n))
                self.register_buffer(f"cos_{name}", phase.cos() / n**0.5)
                self.register_buffer(f"sin_{name}", phase.sin() / n**0.5)

        def forward(self, x):
            return self.cos_t @ (x @ self.cos_c) - self.sin_t @ (x @ self.sin_c)

    return answer(Block(Mix()), Block(Mix()))


@network(TOKENS, WIDTH)
def external_attention():
    """Two small memories instead of keys and values; weights are normalized twice."""

    def spelled(m, x):
        weights = m.keys(m.q(x)).softmax(1)
        return m.o(m.values(weights / (1e-9 + weights.sum(2, keepdim=True))))

    return answer(*(Block(Heads(spelled, keys=linear(WIDTH, 16, False), values=linear(16, WIDTH, False))) for _ in range(2)))


@network(TOKENS, WIDTH)
def gated_attention_unit():
    """GAU: one head, squared rectifiers, scale and offset for queries and keys."""

    class Unit(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(WIDTH), linear(WIDTH, 2 * 96 + 24), linear(96, WIDTH)
            self.gamma, self.beta = nn.Parameter(torch.rand(2, 24)), nn.Parameter(torch.randn(2, 24) * 0.1)

        def forward(self, x):
            u, v, base = torch.split(F.silu(self.up(self.norm(x))), [96, 96, 24], -1)
            q, k = torch.unbind(torch.einsum("nts,hs->nths", base, self.gamma) + self.beta, 2)
            weights = F.relu(torch.einsum("ntd,nsd->nts", q, k) / TOKENS).square()
            return x + self.down(u * torch.einsum("nts,nse->nte", weights, v))

    return answer(Unit(), Unit())


# --- Pictures


def image_block(body, *shape):
    """A convolution in front of a block over [batch, channels, height, width], and a classifier."""
    return nn.Sequential(conv(3, WIDTH, 3, 2), body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, 10))


@network(3, 32, 32)
def non_local():
    def forward(m, x):
        n, c, h, w = x.shape
        theta = m.theta(x).view(n, c // 2, -1).permute(0, 2, 1)
        phi, g = m.pool(m.phi(x)).view(n, c // 2, -1), m.pool(m.g(x)).view(n, c // 2, -1).permute(0, 2, 1)
        y = torch.matmul(F.softmax(torch.matmul(theta, phi), dim=-1), g).permute(0, 2, 1).contiguous()
        return x + m.w(y.view(n, c // 2, h, w))

    half = lambda: nn.Conv2d(WIDTH, WIDTH // 2, 1)
    return image_block(Function(forward, theta=half(), phi=half(), g=half(), pool=nn.MaxPool2d(2), w=nn.Conv2d(WIDTH // 2, WIDTH, 1)))


@network(3, 32, 32)
def dual_attention():
    """DANet: places attend to places, channels to channels (the largest energy less each)."""

    def forward(m, x):
        n, c, h, w = x.shape
        flat = x.view(n, c, -1)
        q, k = m.q(x).view(n, 16, -1).permute(0, 2, 1), m.k(x).view(n, 16, -1)
        places = torch.bmm(m.v(x).view(n, c, -1), torch.bmm(q, k).softmax(-1).permute(0, 2, 1)).view(n, c, h, w)
        energy = torch.bmm(flat, flat.permute(0, 2, 1)) / (h * w)
        energy = torch.max(energy, -1, keepdim=True)[0].expand_as(energy) - energy
        channels = torch.bmm(energy.softmax(-1), flat).view(n, c, h, w)
        return m.a * places + m.b * channels + x

    made = Function(forward, q=nn.Conv2d(WIDTH, 16, 1), k=nn.Conv2d(WIDTH, 16, 1), v=nn.Conv2d(WIDTH, WIDTH, 1))
    made.a, made.b = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor(0.4))
    return image_block(made)


@network(3, 32, 32)
def axial():
    """Rows attend, then columns."""

    class Axis(nn.Module):
        def __init__(self, axis):
            super().__init__()
            self.axis, self.attention = axis, nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x):
            y = x.permute(0, 2, 3, 1) if self.axis else x.permute(0, 3, 2, 1)
            n, a, b, c = y.shape
            y = y.reshape(n * a, b, c)
            y = self.attention(y, y, y, need_weights=False)[0].reshape(n, a, b, c)
            return x + (y.permute(0, 3, 1, 2) if self.axis else y.permute(0, 3, 2, 1))

    return image_block(nn.Sequential(Axis(0), Axis(1)))


@network(3, 32, 32)
def criss_cross():
    """Each place attends to its row and its column; softmax over both together."""

    def forward(m, x):
        q, k, v = m.q(x), m.k(x), m.v(x)
        rows = torch.einsum("nchw,nchv->nhwv", q, k)
        columns = torch.einsum("nchw,ncgw->nhwg", q, k)
        weights = torch.cat([rows, columns], -1).softmax(-1)
        r, c = weights.split(x.shape[-1], -1)
        return x + torch.einsum("nhwv,nchv->nchw", r, v) + torch.einsum("nhwg,ncgw->nchw", c, v)

    return image_block(Function(forward, q=nn.Conv2d(WIDTH, 16, 1), k=nn.Conv2d(WIDTH, 16, 1), v=nn.Conv2d(WIDTH, WIDTH, 1)))


@network(3, 32, 32)
def convolutional_projections():
    """CvT: depthwise convolutions give queries, and keys at half of the resolution; a layer norm over channels in front."""

    class Cvt(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2, self.ff = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), feed_forward()
            part = lambda stride: nn.Sequential(nn.Conv2d(WIDTH, WIDTH, 3, stride, 1, groups=WIDTH, bias=False), nn.BatchNorm2d(WIDTH))
            self.pq, self.pk, self.pv = part(1), part(2), part(2)
            self.q, self.k, self.v, self.o = linear(), linear(), linear(), linear()

        def forward(self, x):
            n, c, h, w = x.shape
            flat = x.flatten(2).transpose(1, 2)
            image = self.n1(flat).transpose(1, 2).reshape(n, c, h, w)
            tokens = lambda p: p(image).flatten(2).transpose(1, 2)
            y = attend(split(self.q(tokens(self.pq))), split(self.k(tokens(self.pk))), split(self.v(tokens(self.pv))))
            flat = flat + self.o(join(y))
            return (flat + self.ff(self.n2(flat))).transpose(1, 2).view(n, c, h, w)

    return image_block(nn.Sequential(Cvt(), Cvt()))


@network(3, 32, 32)
def spatial_reduction():
    """PVT: keys of a strided convolution with a norm; positions of a depthwise one in the feed-forward layer."""

    def forward(m, x):
        n, c, h, w = x.shape
        t = x.flatten(2).transpose(1, 2)
        y = m.n1(t)
        few = m.nr(m.sr(y.permute(0, 2, 1).reshape(n, c, h, w)).reshape(n, c, -1).permute(0, 2, 1))
        k, v = m.kv(few).reshape(n, -1, 2, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        t = t + m.o(join(F.scaled_dot_product_attention(split(m.q(y)), k, v)))
        z = m.up(m.n2(t))
        z = F.gelu(m.dw(z.transpose(1, 2).view(n, -1, h, w)).flatten(2).transpose(1, 2))
        return (t + m.down(z)).transpose(1, 2).view(n, c, h, w)

    return image_block(Function(forward, n1=nn.LayerNorm(WIDTH), n2=nn.LayerNorm(WIDTH), nr=nn.LayerNorm(WIDTH), sr=nn.Conv2d(WIDTH, WIDTH, 4, 4),
                                kv=linear(WIDTH, 2 * WIDTH), q=linear(), o=linear(), up=linear(WIDTH, 128), down=linear(128, WIDTH),
                                dw=nn.Conv2d(128, 128, 3, 1, 1, groups=128)))


@network(3, 32, 32)
def unfolded_patches():
    """MobileViT as nn.Unfold writes it, and folded again."""

    def forward(m, x):
        n, c, h, w = x.shape
        y = F.unfold(m.local(x), 2, stride=2).view(n, c, 4, -1).permute(0, 2, 3, 1).reshape(n * 4, -1, c)
        y = m.block(y).view(n, 4, -1, c).permute(0, 3, 1, 2).reshape(n, c * 4, -1)
        return m.fuse(torch.cat([x, F.fold(y, (h, w), 2, stride=2)], 1))

    return image_block(Function(forward, local=conv(WIDTH, WIDTH), fuse=conv(2 * WIDTH, WIDTH), block=Block(Heads(lambda m, x: m.o(
        join(attend(*qkv(m, x))))))))


@network(3, 32, 32)
def shifted_by_slices():
    """Swin, rolled by slices and concatenation; windows by splitting and stacking."""

    class Windows(nn.Module):
        def __init__(self, shift):
            super().__init__()
            self.shift, self.block = shift, Block(Heads(lambda m, x: m.o(join(attend(*qkv(m, x), m.bias))), bias=torch.randn(HEADS, 16, 16)))

        def rolled(self, x, by):
            x = torch.cat([x[:, by:], x[:, :by]], 1)
            return torch.cat([x[:, :, by:], x[:, :, :by]], 2)

        def forward(self, x):
            x = x.permute(0, 2, 3, 1)
            x = self.rolled(x, self.shift) if self.shift else x
            tiles = torch.cat([column for row in x.split(4, 1) for column in row.split(4, 2)])
            tiles = self.block(tiles.reshape(-1, 16, WIDTH)).reshape(-1, 4, 4, WIDTH).split(x.shape[0])
            x = torch.cat([torch.cat(tiles[4 * i:4 * i + 4], 2) for i in range(4)], 1)
            x = self.rolled(x, 16 - self.shift) if self.shift else x
            return x.permute(0, 3, 1, 2)

    return image_block(nn.Sequential(Windows(0), Windows(2)))


@network(3, 32, 32)
def relative_tables():
    """CoAtNet and BEiT: a table indexed by the distance in both directions, gathered in the forward function."""
    at = torch.stack(torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")).flatten(1)
    index = ((at[:, :, None] - at[:, None]) + 7)
    index = index[0] * 15 + index[1]

    def forward(m, x):
        n, c, h, w = x.shape
        t = x.flatten(2).transpose(1, 2)
        bias = m.table[m.index.view(-1)].view(64, 64, HEADS).permute(2, 0, 1).contiguous()
        q, k, v = m.qkv(m.norm(t)).view(n, 64, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4).unbind(0)
        return (t + m.o(join(attend(q, k, v, bias)))).transpose(1, 2).reshape(n, c, h, w)

    made = Function(forward, qkv=linear(WIDTH, 3 * WIDTH), o=linear(), norm=nn.LayerNorm(WIDTH))
    made.table = nn.Parameter(torch.randn(225, HEADS))
    made.register_buffer("index", index)
    return image_block(nn.Sequential(conv(WIDTH, WIDTH, 3, 2), made))


@network(3, 32, 32)
def segmenter():
    """Class tokens and patches through a block; masks are products of both, normalized."""

    def forward(m, x):
        t = m.embed(x).flatten(2).transpose(1, 2) + m.place
        t = m.block(torch.cat((t, m.classes.expand(x.shape[0], -1, -1)), 1))
        patches, classes = m.pp(t[:, :-5]), m.pc(t[:, -5:])
        masks = F.normalize(patches, dim=-1) @ F.normalize(classes, dim=-1).transpose(1, 2)
        masks = m.norm(masks).transpose(1, 2).reshape(-1, 5, 8, 8)
        return F.interpolate(masks, scale_factor=4, mode="bilinear")

    made = Function(forward, embed=nn.Conv2d(3, WIDTH, 4, 4), block=Block(Heads(lambda m, x: m.o(join(attend(*qkv(m, x)))))),
                    pp=linear(), pc=linear(), norm=nn.LayerNorm(5))
    made.place, made.classes = nn.Parameter(torch.randn(1, 64, WIDTH) * 0.3), nn.Parameter(torch.randn(1, 5, WIDTH))
    return made


@network(3, 32, 32)
def two_way_masks():
    """SAM's decoder: tokens attend to the picture, the picture to the tokens; masks by a computed layer over enlarged maps."""

    def forward(m, x):
        image = m.embed(x)
        keys, tokens = image.flatten(2).transpose(1, 2), m.tokens.expand(x.shape[0], -1, -1)
        tokens = m.n1(tokens + m.a(tokens, keys + m.place, keys, need_weights=False)[0])
        tokens = m.n2(tokens + m.ff(tokens))
        keys = m.n3(keys + m.b(keys + m.place, tokens, tokens, need_weights=False)[0])
        large = F.gelu(m.up(keys.transpose(1, 2).reshape(-1, WIDTH, 8, 8)))
        n, c, h, w = large.shape
        return (m.hyper(tokens[:, :3]) @ large.view(n, c, h * w)).view(n, 3, h, w), m.score(tokens[:, 3])

    cross = lambda: nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    made = Function(forward, embed=nn.Conv2d(3, WIDTH, 4, 4), a=cross(), b=cross(), ff=feed_forward(), up=nn.ConvTranspose2d(WIDTH, 16, 2, 2),
                    hyper=linear(WIDTH, 16), score=linear(WIDTH, 3), n1=nn.LayerNorm(WIDTH), n2=nn.LayerNorm(WIDTH), n3=nn.LayerNorm(WIDTH))
    made.place, made.tokens = nn.Parameter(torch.randn(1, 64, WIDTH) * 0.3), nn.Parameter(torch.randn(1, 4, WIDTH))
    return made


@network(3, 32, 32)
def slot_attention():
    """Slots compete for places: softmax over the slots, then means; updated by a GRU cell."""

    def forward(m, x):
        t = m.embed(x).flatten(2).transpose(1, 2)
        k, v = m.k(t), m.v(t)
        slots = m.slots.expand(x.shape[0], -1, -1)
        for _ in range(2):
            weights = (k @ m.q(m.norm(slots)).transpose(1, 2) * WIDTH**-0.5).softmax(-1) + 1e-8
            updates = (weights / weights.sum(1, keepdim=True)).transpose(1, 2) @ v
            slots = m.gru(updates.reshape(-1, WIDTH), slots.reshape(-1, WIDTH)).view(-1, 4, WIDTH)
        return slots

    made = Function(forward, embed=nn.Conv2d(3, WIDTH, 4, 4), k=linear(), v=linear(), q=linear(), norm=nn.LayerNorm(WIDTH),
                    gru=nn.GRUCell(WIDTH, WIDTH))
    made.slots = nn.Parameter(torch.randn(1, 4, WIDTH))
    return made


@network(3, 32, 32)
def clip():
    """A picture's vector beside five classes' constant vectors: cosines times a temperature, softmax."""

    def forward(m, x):
        t = torch.cat([m.first.expand(x.shape[0], 1, -1), m.embed(x).flatten(2).permute(0, 2, 1)], 1) + m.place
        t = m.blocks(m.n1(t).permute(1, 0, 2)).permute(1, 0, 2)
        y = m.n2(t[:, 0, :]) @ m.project
        y = y / y.norm(dim=-1, keepdim=True)
        return (m.factor.exp() * y @ m.words.t()).softmax(-1)

    class Resblock(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.n1, self.n2 = nn.MultiheadAttention(WIDTH, HEADS), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.up, self.down = linear(WIDTH, 128), linear(128, WIDTH)

        def forward(self, x):
            y = self.n1(x)
            x = x + self.attention(y, y, y, need_weights=False, attn_mask=None)[0]
            y = self.up(self.n2(x))
            return x + self.down(y * torch.sigmoid(1.702 * y))

    made = Function(forward, embed=nn.Conv2d(3, WIDTH, 4, 4, bias=False), blocks=nn.Sequential(Resblock(), Resblock()),
                    n1=nn.LayerNorm(WIDTH), n2=nn.LayerNorm(WIDTH))
    made.first, made.place = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(65, WIDTH) * 0.3)
    made.project, made.factor = nn.Parameter(torch.randn(WIDTH, 32) / 8), nn.Parameter(torch.tensor(1.5))
    made.register_buffer("words", F.normalize(torch.randn(5, 32), dim=-1))
    return made


@network(TOKENS, WIDTH)
def gpt_with_padding():
    """Left padding and causality in one mask, made in the forward function; the answer is that of the last token."""

    def forward(m, x):
        t = x.shape[1]
        causal = torch.tril(torch.ones(t, t, dtype=torch.bool))
        mask = torch.where(causal & m.kept[None], 0.0, torch.finfo(torch.float32).min)[None, None]
        for layer in m.layers:
            q, k, v = layer["qkv"](layer["n1"](x)).split(WIDTH, dim=2)
            x = x + layer["o"](join(F.scaled_dot_product_attention(split(q), split(k), split(v), attn_mask=mask)))
            x = x + layer["ff"](layer["n2"](x))
        return m.head(m.norm(x)[:, -1])

    layer = lambda: nn.ModuleDict({"qkv": linear(WIDTH, 3 * WIDTH), "o": linear(), "n1": nn.LayerNorm(WIDTH), "n2": nn.LayerNorm(WIDTH),
                                   "ff": feed_forward(lambda: nn.GELU("tanh"))})
    made = Function(forward, layers=nn.ModuleList(layer() for _ in range(2)), norm=nn.LayerNorm(WIDTH), head=linear(WIDTH, 50, False))
    made.register_buffer("kept", torch.arange(TOKENS) >= 3)
    return made


@network(TOKENS, WIDTH)
def padding_mask_of_torch():
    """nn.TransformerEncoder with padded keys; answers are the mean of the tokens that are kept."""

    def forward(m, x):
        y = m.body(x, src_key_padding_mask=m.padded.expand(x.shape[0], -1))
        kept = (~m.padded).float()[..., None]
        return m.head((y * kept).sum(1) / kept.sum(1).clamp(min=1))

    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 128, 0.0, "gelu", batch_first=True, norm_first=True)
    made = Function(forward, body=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), head=linear(WIDTH, 3))
    made.register_buffer("padded", torch.arange(TOKENS)[None] >= 25)
    return made


@network(TOKENS, WIDTH)
def attention_pooling():
    """Words are weighed by a small layer (speaker recognition): weighted mean and deviation."""

    def forward(m, x):
        y = m.block(x)
        weights = m.score(torch.tanh(m.hidden(y))).softmax(1)
        mean = (weights * y).sum(1)
        deviation = ((weights * y * y).sum(1) - mean * mean).clamp(min=1e-4).sqrt()
        return m.head(torch.cat([mean, deviation], 1))

    return Function(forward, block=Block(Heads(lambda m, x: m.o(join(attend(*qkv(m, x)))))), hidden=linear(WIDTH, 32), score=linear(32, 1),
                    head=linear(2 * WIDTH, 10))


@network(TOKENS, WIDTH)
def decoder_without_encoder():
    """A causal nn.TransformerEncoder with tokens first, tied output weights (word language model of PyTorch's examples)."""

    def forward(m, x):
        y = m.body(x.transpose(0, 1), mask=m.mask).transpose(0, 1)
        return F.log_softmax(F.linear(y, m.words.weight), -1)

    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 128, 0.0)
    made = Function(forward, body=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), words=nn.Embedding(40, WIDTH))
    made.register_buffer("mask", CAUSAL[0])
    return made
