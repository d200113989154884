# SPDX-License-Identifier: Apache-2.0
"""Parts of transformers: attention in its published variants, norms, feed-forward layers and blocks."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, TOKENS = 64, 4, 32
HEAD = WIDTH // HEADS


class RMSNorm(nn.Module):
    """As Llama writes it."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class SwiGLU(nn.Module):
    def __init__(self, width=WIDTH, hidden=2 * WIDTH):
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class GatedGelu(SwiGLU):
    """T5 v1.1 and Gemma."""

    def forward(self, x):
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


def feed_forward(act=nn.GELU, width=WIDTH):
    return nn.Sequential(nn.Linear(width, 2 * width), act(), nn.Linear(2 * width, width))


class QuickGelu(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class SquaredRelu(nn.Module):
    def forward(self, x):
        return F.relu(x) ** 2


class Block(nn.Module):
    """Attention and a feed-forward layer, each with a norm in front (or, `post`, behind) and a residual sum."""

    def __init__(self, attention, forward=None, norm=nn.LayerNorm, width=WIDTH, post=False):
        super().__init__()
        self.attention, self.ff, self.post = attention, forward or feed_forward(width=width), post
        self.n1, self.n2 = norm(width), norm(width)

    def forward(self, x):
        if self.post:
            x = self.n1(x + self.attention(x))
            return self.n2(x + self.ff(x))
        x = x + self.attention(self.n1(x))
        return x + self.ff(self.n2(x))


def heads_of(x, heads=HEADS):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Separate projections, as Hugging Face writes them; variants override what differs."""

    def __init__(self, width=WIDTH, heads=HEADS, key_heads=None, bias=True, tokens=TOKENS):
        super().__init__()
        self.heads, self.key_heads, self.head = heads, key_heads or heads, width // heads
        self.q = nn.Linear(width, width, bias=bias)
        self.k = nn.Linear(width, self.key_heads * self.head, bias=bias)
        self.v = nn.Linear(width, self.key_heads * self.head, bias=bias)
        self.o = nn.Linear(width, width, bias=bias)
        self.setup(tokens)

    def setup(self, tokens):
        pass

    def split(self, x):
        return heads_of(self.q(x), self.heads), heads_of(self.k(x), self.key_heads), heads_of(self.v(x), self.key_heads)

    def scores(self, q, k):
        return q @ k.transpose(-1, -2) / self.head**0.5

    def weights(self, scores):
        return scores.softmax(-1)

    def forward(self, x):
        q, k, v = self.split(x)
        return self.o(joined(self.weights(self.scores(q, k)) @ v))


class Causal(Attention):
    """GPT-2: a lower triangle of a registered mask and the lowest number."""

    def setup(self, tokens):
        self.register_buffer("mask", torch.tril(torch.ones(tokens, tokens, dtype=torch.bool))[None, None])

    def weights(self, scores):
        lowest = torch.full([], torch.finfo(scores.dtype).min)
        return torch.where(self.mask, scores, lowest).softmax(-1)


class CausalInfinite(Causal):
    """nanoGPT: -inf."""

    def weights(self, scores):
        return scores.masked_fill(~self.mask, float("-inf")).softmax(-1)


class Sdpa(Attention):
    causal = False

    def forward(self, x):
        q, k, v = self.split(x)
        return self.o(joined(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)))


class CausalSdpa(Sdpa):
    causal = True


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class Rotary(Attention):
    """Llama: halves are rotated; keys of a group of heads are repeated."""

    def setup(self, tokens):
        angles = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, self.head, 2) / self.head)
        angles = torch.cat([angles, angles], -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("mask", torch.full((tokens, tokens), torch.finfo(torch.float32).min).triu(1))

    def turned(self, x):
        return x * self.cos + rotate_half(x) * self.sin

    def repeated(self, x):
        times = self.heads // self.key_heads
        if times == 1:
            return x
        n, h, t, d = x.shape
        return x[:, :, None].expand(n, h, times, t, d).reshape(n, h * times, t, d)

    def forward(self, x):
        q, k, v = self.split(x)
        q, k = self.turned(q), self.turned(k)
        scores = q @ self.repeated(k).transpose(2, 3) / self.head**0.5 + self.mask
        return self.o(joined(scores.softmax(-1, dtype=torch.float32) @ self.repeated(v)))


class RotaryPairs(Rotary):
    """GPT-J and RoFormer: neighbours are rotated."""

    def turned(self, x):
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = self.cos[:, : self.head // 2], self.sin[:, : self.head // 2]
        return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


class RotaryPart(Rotary):
    """GPT-NeoX: a part of each head is rotated."""

    def turned(self, x):
        half = self.head // 2
        a, b = x[..., :half], x[..., half:]
        cos, sin = self.cos[:, :: 2], self.sin[:, :: 2]
        return torch.cat([a * cos + rotate_half(a) * sin, b], -1)


class RepeatedKeys(Rotary):
    """The same by repeat_interleave."""

    def repeated(self, x):
        return x.repeat_interleave(self.heads // self.key_heads, 1)


class RelativeBias(Attention):
    """T5: no scale, a learned bias by distance, the same for all samples."""

    def setup(self, tokens):
        self.bias = nn.Embedding(2 * tokens, self.heads)
        at = torch.arange(tokens)
        self.register_buffer("distance", at[None] - at[:, None] + tokens)

    def scores(self, q, k):
        return q @ k.transpose(3, 2) + self.bias(self.distance).permute(2, 0, 1)[None]


class Alibi(Causal):
    def setup(self, tokens):
        super().setup(tokens)
        at = torch.arange(tokens)
        slopes = 2.0 ** (-8 * torch.arange(1, self.heads + 1) / self.heads)
        self.register_buffer("alibi", slopes[:, None, None] * (at[None] - at[:, None]))

    def scores(self, q, k):
        return super().scores(q, k) + self.alibi


class Linear(Attention):
    """Linear attention with elu + 1."""

    def forward(self, x):
        q, k, v = self.split(x)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return self.o(joined(q @ (k.transpose(2, 3) @ v) / (q @ k.sum(2)[..., None] + 1e-6)))


class Efficient(Attention):
    """Softmax of queries over channels and of keys over tokens (efficient attention, XCiT's relative)."""

    def forward(self, x):
        q, k, v = self.split(x)
        return self.o(joined(q.softmax(-1) @ (k.softmax(-2).transpose(2, 3) @ v)))


class CrossCovariance(Attention):
    """XCiT: channels attend to channels, normalized over tokens, with a temperature."""

    def setup(self, tokens):
        self.temperature = nn.Parameter(torch.ones(self.heads, 1, 1) * 2)

    def forward(self, x):
        q, k, v = (t.transpose(2, 3) for t in self.split(x))
        weights = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(2, 3) * self.temperature).softmax(-1)
        return self.o((weights @ v).permute(0, 3, 1, 2).flatten(2))


class Cosine(Attention):
    """Swin v2: cosines times a learned factor."""

    def setup(self, tokens):
        self.factor = nn.Parameter(torch.full((self.heads, 1, 1), 2.0))

    def scores(self, q, k):
        return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(2, 3) * self.factor.clamp(max=4.6).exp()


class NormedKeys(Attention):
    """Queries and keys are normalized head by head (ViT-22B)."""

    def setup(self, tokens):
        self.nq, self.nk = nn.LayerNorm(self.head), nn.LayerNorm(self.head)

    def scores(self, q, k):
        return super().scores(self.nq(q), self.nk(k))


class TalkingHeads(Attention):
    """CaiT: heads are mixed before and behind softmax."""

    def setup(self, tokens):
        self.before, self.behind = nn.Linear(self.heads, self.heads), nn.Linear(self.heads, self.heads)

    def weights(self, scores):
        mixed = self.before(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).softmax(-1)
        return self.behind(mixed.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class SoftCapped(Causal):
    """Gemma 2: scores are capped by tanh."""

    def scores(self, q, k):
        return torch.tanh(super().scores(q, k) / 30) * 30


class Sigmoid(Attention):
    def weights(self, scores):
        return torch.sigmoid(scores - 3)


class SquaredScores(Attention):
    """Primer and ReLU attention."""

    def weights(self, scores):
        return F.relu(scores) ** 2 / 32


class OneMore(Attention):
    """Softmax with 1 in the denominator."""

    def weights(self, scores):
        e = scores.exp()
        return e / (1 + e.sum(-1, keepdim=True))


class Retention(Attention):
    def setup(self, tokens):
        at = torch.arange(tokens)
        decay = (1 - 2.0 ** (-2 - torch.arange(self.heads)))[:, None, None] ** (at[:, None] - at[None]).clamp(min=0)
        self.register_buffer("decay", decay * (at[:, None] >= at[None]))
        self.norm = nn.GroupNorm(self.heads, self.heads * self.head)

    def forward(self, x):
        q, k, v = self.split(x)
        y = joined((q @ k.transpose(2, 3) * self.decay / self.head**0.5) @ v)
        return self.o(self.norm(y.flatten(0, 1)).view_as(y))


class RelativeShift(Attention):
    """Transformer-XL: a product with position vectors, whose rows are shifted by padding and reshaping."""

    def setup(self, tokens):
        self.place = nn.Parameter(torch.randn(1, self.heads, self.head, tokens) * 0.3)
        self.u, self.w = (nn.Parameter(torch.randn(self.heads, 1, self.head) * 0.1) for _ in range(2))

    def scores(self, q, k):
        by_place = (q + self.w) @ self.place
        n, h, t, s = by_place.shape
        by_place = F.pad(by_place, (1, 0)).view(n, h, s + 1, t)[:, :, 1:].reshape(n, h, t, s)
        return ((q + self.u) @ k.transpose(2, 3) + by_place) / self.head**0.5


class Packed(Attention):
    """One layer for queries, keys and values, taken apart by reshape and unbind (timm)."""

    def setup(self, tokens):
        self.qkv = nn.Linear(self.heads * self.head, 3 * self.heads * self.head)

    def split(self, x):
        n, t, c = x.shape
        return self.qkv(x).reshape(n, t, 3, self.heads, self.head).permute(2, 0, 3, 1, 4).unbind(0)

    def scores(self, q, k):
        return q * self.head**-0.5 @ k.transpose(-2, -1)


class PackedLast(Packed):
    """The same with the three next to each other in every head (GPT-NeoX, BLOOM)."""

    def split(self, x):
        n, t, c = x.shape
        return self.qkv(x).view(n, t, self.heads, 3 * self.head).transpose(1, 2).chunk(3, -1)


class Chunked(Attention):
    """Blocks of tokens attend to themselves and to the block before (Longformer, Reformer)."""

    def forward(self, x, size=8):
        q, k, v = (t.unflatten(2, (-1, size)) for t in self.split(x))
        before = lambda t: torch.cat([F.pad(t[:, :, :-1], (0, 0, 0, 0, 1, 0)), t], 3)
        y = (q @ before(k).transpose(3, 4) / self.head**0.5).softmax(-1) @ before(v)
        return self.o(joined(y.flatten(2, 3)))


class Disentangled(Attention):
    """DeBERTa: scores of content and place, picked by distance."""

    def setup(self, tokens):
        self.place = nn.Parameter(torch.randn(2 * tokens, self.heads * self.head) * 0.3)
        at = torch.arange(tokens)
        self.register_buffer("distance", (at[:, None] - at[None] + tokens).clamp(0, 2 * tokens - 1)[None, None])

    def scores(self, q, k):
        place = heads_of(self.k(self.place)[None], self.heads)
        by_place = q @ place.transpose(2, 3)
        index = self.distance.expand(q.shape[0], self.heads, -1, -1)
        return (q @ k.transpose(2, 3) + by_place.gather(3, index)) / (2 * self.head) ** 0.5


class Einsum(Attention):
    def split(self, x):
        shape = (x.shape[0], x.shape[1], self.heads, self.head)
        return self.q(x).view(shape), self.k(x).view(shape), self.v(x).view(shape)

    def forward(self, x):
        q, k, v = self.split(x)
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).div(self.head**0.5).softmax(-1)
        return self.o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


class BatchOfHeads(Attention):
    """fairseq and nn.MultiheadAttention of old: heads are a batch, products are bmm."""

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.transpose(0, 1).contiguous().view(t, n * self.heads, self.head).transpose(0, 1)
                   for y in (self.q(x) * self.head**-0.5, self.k(x), self.v(x)))
        y = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
        return self.o(y.transpose(0, 1).contiguous().view(t, n, c).transpose(0, 1))


class Cross(Attention):
    """Queries of one sequence, keys and values of another."""

    def between(self, x, memory):
        q, k, v = heads_of(self.q(x), self.heads), heads_of(self.k(memory), self.heads), heads_of(self.v(memory), self.heads)
        return self.o(joined(self.weights(self.scores(q, k)) @ v))
