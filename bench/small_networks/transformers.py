# SPDX-License-Identifier: Apache-2.0
"""Transformers in small: two blocks of 64 channels for each published variant of attention, norms and gates.

Sequences come in as vectors (what an embedding gives), pictures as pictures.
"""

import torch
from torch import nn
from torch.nn import functional as F

from . import attention_parts as parts
from .attention_parts import Block, feed_forward, HEADS, heads_of, joined, RMSNorm, SwiGLU, TOKENS, WIDTH
from .parts import conv, Function, NETWORKS, network


def sequence(*blocks, outputs=16):
    """Blocks over tokens, and a layer that answers for each token."""
    return nn.Sequential(*blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, outputs))


def add_variant(name, make_block):
    NETWORKS[name] = ((TOKENS, WIDTH), lambda: sequence(make_block(), make_block()))


ATTENTIONS = {
    "gpt2": parts.Causal, "nano_gpt": parts.CausalInfinite, "sdpa": parts.Sdpa, "sdpa_causal": parts.CausalSdpa,
    "t5_bias": parts.RelativeBias, "alibi": parts.Alibi, "rotary_pairs": parts.RotaryPairs, "rotary_part": parts.RotaryPart,
    "linear_elu": parts.Linear, "efficient": parts.Efficient, "cross_covariance": parts.CrossCovariance,
    "cosine": parts.Cosine, "normed_keys": parts.NormedKeys, "talking_heads": parts.TalkingHeads,
    "soft_capped": parts.SoftCapped, "sigmoid": parts.Sigmoid, "squared_scores": parts.SquaredScores,
    "softmax_one_more": parts.OneMore, "retention": parts.Retention, "relative_shift": parts.RelativeShift,
    "packed": parts.Packed, "packed_last": parts.PackedLast, "chunked": parts.Chunked,
    "disentangled": parts.Disentangled, "einsum": parts.Einsum, "batch_of_heads": parts.BatchOfHeads,
}
for _name, _kind in ATTENTIONS.items():
    add_variant(f"attention_{_name}", lambda kind=_kind: Block(kind()))

ACTIVATIONS = {
    "quick_gelu": parts.QuickGelu, "squared_relu": parts.SquaredRelu, "gelu_tanh": lambda: nn.GELU("tanh"),
    "mish": nn.Mish, "softplus": nn.Softplus, "selu": nn.SELU, "celu": lambda: nn.CELU(0.7), "silu": nn.SiLU,
    "logsigmoid": nn.LogSigmoid, "hardswish": nn.Hardswish, "elu": nn.ELU,
}
for _name, _kind in ACTIVATIONS.items():
    add_variant(f"feed_forward_{_name}", lambda kind=_kind: Block(parts.Packed(), feed_forward(kind)))

BLOCKS = {
    "llama": lambda: Block(parts.Rotary(key_heads=2, bias=False), SwiGLU(), RMSNorm),
    "llama_interleaved": lambda: Block(parts.RepeatedKeys(key_heads=2, bias=False), SwiGLU(), RMSNorm),
    "multi_query": lambda: Block(parts.Rotary(key_heads=1, bias=False), SwiGLU(), RMSNorm),
    "gemma": lambda: Block(parts.SoftCapped(bias=False), parts.GatedGelu(), RMSNorm),
    "t5": lambda: Block(parts.RelativeBias(bias=False), feed_forward(nn.ReLU), RMSNorm),
    "bert_post_norm": lambda: Block(parts.Attention(), post=True),
    "torch_rms_norm": lambda: Block(parts.Packed(), norm=nn.RMSNorm),
    "no_affine_norm": lambda: Block(parts.Packed(), norm=lambda w: nn.LayerNorm(w, elementwise_affine=False)),
}
for _name, _make in BLOCKS.items():
    add_variant(f"block_{_name}", _make)


@network(TOKENS, WIDTH)
def torch_encoder():
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 128, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(WIDTH, 16))


@network(TOKENS, WIDTH)
def torch_encoder_causal():
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 128, 0.0, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(TOKENS)
    return Function(lambda m, x: m.head(m.body(x, mask=mask, is_causal=True)),
                    body=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), head=nn.Linear(WIDTH, 16))


@network(TOKENS, WIDTH)
def torch_decoder():
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, 128, 0.0, "gelu", batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(12)
    return Function(lambda m, x: m.head(m.body(x[:, :12], x, tgt_mask=mask)), body=nn.TransformerDecoder(layer, 2),
                    head=nn.Linear(WIDTH, 16))


@network(TOKENS, WIDTH)
def torch_encoder_decoder():
    whole = nn.Transformer(WIDTH, HEADS, 1, 1, 128, 0.0, batch_first=True)
    return Function(lambda m, x: m.head(m.body(x, x[:, 4:20])), body=whole, head=nn.Linear(WIDTH, 16))


@network(TOKENS, WIDTH)
def multihead_with_weights():
    def forward(m, x):
        y, weights = m.attention(x, x, x)
        return m.head(y), weights

    return Function(forward, attention=nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), head=nn.Linear(WIDTH, 16))


@network(TOKENS, WIDTH)
def multihead_key_sizes():
    """Keys and values of other widths, tokens first."""

    def forward(m, x):
        q, kv = x.transpose(0, 1), m.narrow(x).transpose(0, 1)
        return m.head(m.attention(q, kv, kv, need_weights=False)[0].transpose(0, 1))

    return Function(forward, narrow=nn.Linear(WIDTH, 32), head=nn.Linear(WIDTH, 16),
                    attention=nn.MultiheadAttention(WIDTH, HEADS, kdim=32, vdim=32, add_bias_kv=True))


@network(TOKENS, WIDTH)
def bert_with_mask():
    """Hugging Face's additive mask, of ones; the pooler takes the first token."""

    class Layer(Block):
        def __init__(self):
            super().__init__(parts.Attention(), post=True)

    def forward(m, x):
        for layer in m.layers:
            q, k, v = layer.attention.split(x)
            scores = layer.attention.scores(q, k) + (1.0 - m.mask[:, None, None, :]) * torch.finfo(x.dtype).min
            x = layer.n1(x + layer.attention.o(joined(scores.softmax(-1) @ v)))
            x = layer.n2(x + layer.ff(x))
        return m.head(torch.tanh(m.pool(x[:, 0])))

    made = Function(forward, layers=nn.ModuleList(Layer() for _ in range(2)), pool=nn.Linear(WIDTH, WIDTH),
                    head=nn.Linear(WIDTH, 3))
    made.register_buffer("mask", (torch.arange(TOKENS) < 27).float()[None])
    return made


@network(80, 96)
def whisper_encoder():
    at = torch.arange(48)[:, None] * torch.exp(-torch.arange(WIDTH // 2) * 0.29)
    made = Function(
        lambda m, x: m.norm(m.blocks(F.gelu(m.c2(F.gelu(m.c1(x)))).permute(0, 2, 1) + m.place)),
        c1=nn.Conv1d(80, WIDTH, 3, padding=1), c2=nn.Conv1d(WIDTH, WIDTH, 3, 2, 1),
        blocks=nn.Sequential(Block(parts.Sdpa()), Block(parts.Sdpa())), norm=nn.LayerNorm(WIDTH))
    made.register_buffer("place", torch.cat([at.sin(), at.cos()], 1))
    return made


@network(1, 1600)
def wav2vec():
    """Sound as it is: convolutions with norms, positions by a grouped convolution, blocks."""

    class Same(nn.Module):
        def forward(self, x):
            return x[:, :, :-1]

    place = nn.utils.parametrizations.weight_norm(nn.Conv1d(WIDTH, WIDTH, 16, padding=8, groups=4), dim=2)
    front = nn.Sequential(nn.Conv1d(1, 32, 10, 5, bias=False), nn.GroupNorm(32, 32), nn.GELU(),
                          nn.Conv1d(32, 32, 3, 2, bias=False), nn.GELU(), nn.Conv1d(32, 32, 3, 2, bias=False), nn.GELU())

    def forward(m, x):
        y = m.project(m.norm(m.front(x).transpose(1, 2)))
        return m.head(m.blocks(y + m.place(y.transpose(1, 2)).transpose(1, 2)))

    return Function(forward, front=front, norm=nn.LayerNorm(32), project=nn.Linear(32, WIDTH),
                    place=nn.Sequential(place, Same(), nn.GELU()),
                    blocks=nn.Sequential(Block(parts.Attention(), post=True), Block(parts.Attention(), post=True)),
                    head=nn.Linear(WIDTH, 20))


@network(TOKENS, WIDTH)
def g_mlp():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 128), nn.Linear(64, WIDTH)
            self.gate_norm, self.mix = nn.LayerNorm(64), nn.Linear(TOKENS, TOKENS)

        def forward(self, x):
            u, v = F.gelu(self.up(self.norm(x))).chunk(2, -1)
            return x + self.down(u * self.mix(self.gate_norm(v).transpose(1, 2)).transpose(1, 2))

    return sequence(Gated(), Gated())


@network(TOKENS, WIDTH)
def perceiver():
    """Learned latent vectors attend to the input, then to themselves; a learned query reads the answer."""

    def forward(m, x):
        latent = m.latent.expand(x.shape[0], -1, -1)
        latent = latent + m.read.between(m.n1(latent), m.n2(x))
        return m.head(m.answer.between(m.query.expand(x.shape[0], -1, -1), m.block(latent))[:, 0])

    made = Function(forward, read=parts.Cross(), answer=parts.Cross(), block=Block(parts.Sdpa()), n1=nn.LayerNorm(WIDTH),
                    n2=nn.LayerNorm(WIDTH), head=nn.Linear(WIDTH, 10))
    made.latent, made.query = nn.Parameter(torch.randn(1, 16, WIDTH)), nn.Parameter(torch.randn(1, 1, WIDTH))
    return made


@network(3, 32, 32)
def detr():
    """Object queries over a small backbone: self attention, cross attention, boxes and classes."""

    def forward(m, x):
        memory = m.encoder((m.body(x).flatten(2).transpose(1, 2)) + m.place)
        y = m.queries.expand(x.shape[0], -1, -1)
        for layer in m.layers:
            y = layer["n1"](y + layer["self"](y))
            y = layer["n2"](y + layer["cross"].between(y, memory + m.place))
            y = layer["n3"](y + layer["ff"](y))
        return m.classes(y), m.boxes(y).sigmoid()

    layer = lambda: nn.ModuleDict({"self": parts.Attention(), "cross": parts.Cross(), "ff": feed_forward(nn.ReLU),
                                   **{f"n{i}": nn.LayerNorm(WIDTH) for i in (1, 2, 3)}})
    made = Function(forward, body=nn.Sequential(conv(3, 32, 3, 2), conv(32, WIDTH, 3, 2)), encoder=Block(parts.Attention()),
                    layers=nn.ModuleList(layer() for _ in range(2)), classes=nn.Linear(WIDTH, 5),
                    boxes=nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4)))
    made.place = nn.Parameter(torch.randn(1, 64, WIDTH) * 0.3)
    made.queries = nn.Parameter(torch.randn(1, 10, WIDTH))
    return made


@network(3, 32, 32)
def deformable_decoder():
    """RT-DETR's decoder: each query samples a few places of the maps that it computes itself."""

    def forward(m, x):
        first = m.body(x)
        levels = [first, m.down(first)]
        y = m.queries.expand(x.shape[0], -1, -1)
        y = m.n1(y + m.attention(y))
        points = m.offsets(y).view(-1, 10, HEADS, 2, 2, 2) * 0.1 + m.places.sigmoid()[None, :, None, None, None]
        weights = m.weights(y).view(-1, 10, HEADS, 4).softmax(-1).permute(0, 2, 1, 3).reshape(-1, 1, 10, 4)
        sampled = []
        for i, level in enumerate(levels):
            value = m.value(level).unflatten(1, (HEADS, -1)).flatten(0, 1)
            at = 2 * points[:, :, :, i].transpose(1, 2).flatten(0, 1) - 1
            sampled.append(F.grid_sample(value, at, align_corners=False))
        mixed = (torch.cat(sampled, -1) * weights).sum(-1).view(-1, WIDTH, 10).transpose(1, 2)
        y = m.n2(y + m.out(mixed))
        return m.classes(m.n3(y + m.ff(y)))

    made = Function(forward, body=nn.Sequential(conv(3, 32, 3, 2), conv(32, WIDTH, 3, 2)), down=conv(WIDTH, WIDTH, 3, 2),
                    attention=parts.Attention(), offsets=nn.Linear(WIDTH, HEADS * 8), weights=nn.Linear(WIDTH, HEADS * 4),
                    value=nn.Conv2d(WIDTH, WIDTH, 1), out=nn.Linear(WIDTH, WIDTH), ff=feed_forward(nn.ReLU),
                    classes=nn.Linear(WIDTH, 5), **{f"n{i}": nn.LayerNorm(WIDTH) for i in (1, 2, 3)})
    made.queries, made.places = nn.Parameter(torch.randn(1, 10, WIDTH)), nn.Parameter(torch.randn(10, 2))
    return made


class Patches(nn.Module):
    """Patch embedding, tokens in front, positions, blocks, and the first token's answer (or, without one, the mean's)."""

    def __init__(self, *blocks, extra=1, side=32, patch=4):
        super().__init__()
        self.embed, self.blocks = nn.Conv2d(3, WIDTH, patch, patch), nn.Sequential(*blocks)
        self.tokens = nn.Parameter(torch.randn(1, extra, WIDTH)) if extra else None
        self.place = nn.Parameter(torch.randn(1, (side // patch) ** 2 + extra, WIDTH) * 0.3)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        if self.tokens is not None:
            x = torch.cat([self.tokens.expand(x.shape[0], -1, -1), x], 1)
        x = self.norm(self.blocks(x + self.place))
        return self.head(x[:, 0] if self.tokens is not None else x.mean(1))


@network(3, 32, 32)
def vit_registers():
    return Patches(Block(parts.Packed()), Block(parts.Packed()), extra=5)


@network(3, 32, 32)
def vit_mean():
    return Patches(Block(parts.Sdpa()), Block(parts.Sdpa()), extra=0)


@network(3, 32, 32)
def dino_v2():
    """Layer scales and a packed SwiGLU."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.up, self.down = parts.Packed(), nn.Linear(WIDTH, 256), nn.Linear(128, WIDTH)
            self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.s1, self.s2 = nn.Parameter(torch.rand(WIDTH)), nn.Parameter(torch.rand(WIDTH))

        def forward(self, x):
            x = x + self.s1 * self.attention(self.n1(x))
            a, b = self.up(self.n2(x)).chunk(2, -1)
            return x + self.s2 * self.down(F.silu(a) * b)

    return Patches(Scaled(), Scaled())


@network(3, 32, 32)
def parallel_blocks():
    """Attention and feed-forward of the same norm, summed (GPT-J, ViT-22B)."""

    class Parallel(Block):
        def forward(self, x):
            y = self.n1(x)
            return x + self.attention(y) + self.ff(y)

    return Patches(Parallel(parts.NormedKeys()), Parallel(parts.NormedKeys()))


@network(3, 32, 32)
def pooled_keys():
    """PVT and MViT: keys and values of a map that is pooled or strided."""

    class Pooled(parts.Cross):
        def setup(self, tokens):
            self.smaller, self.norm = nn.Conv2d(WIDTH, WIDTH, 2, 2), nn.LayerNorm(WIDTH)
            self.pool = nn.Conv2d(WIDTH, WIDTH, 3, 1, 1, groups=WIDTH)

        def forward(self, x):
            image = x.transpose(1, 2).unflatten(2, (8, 8))
            memory = self.norm(self.smaller(image).flatten(2).transpose(1, 2))
            return self.between(self.pool(image).flatten(2).transpose(1, 2), memory) + x

    return Patches(Block(Pooled()), Block(Pooled()), extra=0)


@network(3, 32, 32)
def shifted_windows():
    """Swin: windows of 4 x 4, rolled by 2, with a mask and a relative bias; patches are merged."""

    class Windows(parts.RelativeBias):
        shift = 0

        def windows(self, x):
            return x.view(-1, 2, 4, 2, 4, x.shape[-1]).transpose(2, 3).reshape(-1, 16, x.shape[-1])

        def forward(self, x):
            x = x.unflatten(1, (8, 8))
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x
            q, k, v = self.split(self.windows(x))
            scores = self.scores(q * self.head**-0.5, k)
            if self.shift:
                scores = (scores.view(-1, 4, self.heads, 16, 16) + self.mask[None, :, None]).flatten(0, 1)
            y = self.o(joined(scores.softmax(-1) @ v))
            y = y.view(-1, 2, 2, 4, 4, WIDTH).transpose(2, 3).reshape(-1, 8, 8, WIDTH)
            y = torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y
            return y.flatten(1, 2)

    class Shifted(Windows):
        shift = 2

        def setup(self, tokens):
            super().setup(tokens)
            strips = torch.tensor([0] * 4 + [1] * 2 + [2] * 2)
            areas = self.windows((strips[:, None] * 3 + strips[None])[None, ..., None].float())[..., 0]
            self.register_buffer("mask", (areas[:, None] != areas[:, :, None]) * -100.0)

    def merged(m, x):
        x = x.unflatten(1, (8, 8))
        parts4 = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return m.layer(m.norm(torch.cat(parts4, -1).flatten(1, 2)))

    merge = Function(merged, norm=nn.LayerNorm(4 * WIDTH), layer=nn.Linear(4 * WIDTH, WIDTH, bias=False))
    return Patches(Block(Windows(tokens=16)), Block(Shifted(tokens=16)), merge, extra=0)


@network(3, 32, 32)
def area_attention():
    """YOLO12: tokens in strips, queries and keys by convolutions, positions by a depthwise one."""

    class Area(nn.Module):
        def __init__(self, areas):
            super().__init__()
            self.areas, self.qkv = areas, nn.Conv2d(WIDTH, 3 * WIDTH, 1)
            self.o, self.place = nn.Conv2d(WIDTH, WIDTH, 1), nn.Conv2d(WIDTH, WIDTH, 7, 1, 3, groups=WIDTH)

        def forward(self, x):
            n, c, h, w = x.shape
            qkv = self.qkv(x).flatten(2).transpose(1, 2).reshape(n * self.areas, -1, 3 * c)
            q, k, v = qkv.view(n * self.areas, -1, HEADS, 3 * c // HEADS).permute(0, 2, 3, 1).split([c // HEADS] * 3, 2)
            y = v @ ((q.transpose(-2, -1) @ k) * (c // HEADS) ** -0.5).softmax(-1).transpose(-2, -1)
            back = lambda t: t.permute(0, 3, 1, 2).reshape(n, h, w, c).permute(0, 3, 1, 2)
            return x + self.o(back(y) + self.place(back(v)))

    return nn.Sequential(conv(3, WIDTH, 3, 2), Area(4), conv(WIDTH, WIDTH, 3, 2), Area(1), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(WIDTH, 10))


@network(3, 32, 32)
def grid_attention():
    """MaxViT: windows, then a grid over the whole picture."""

    class Grid(parts.Packed):
        is_grid = True

        def forward(self, x):
            x = x.unflatten(1, (8, 8)).unflatten(2, (2, 4)).unflatten(1, (2, 4))
            order = (0, 2, 4, 1, 3, 5) if self.is_grid else (0, 1, 3, 2, 4, 5)
            y = super().forward(x.permute(order).reshape(-1, 4 if self.is_grid else 16, WIDTH))
            sides = (4, 4, 2, 2) if self.is_grid else (2, 2, 4, 4)
            back = (0, 3, 1, 4, 2, 5) if self.is_grid else (0, 1, 3, 2, 4, 5)
            return y.reshape(-1, *sides, WIDTH).permute(back).reshape(-1, 64, WIDTH)

    class Window(Grid):
        is_grid = False

    return Patches(Block(Window()), Block(Grid()), extra=0)
