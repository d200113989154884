# SPDX-License-Identifier: Apache-2.0
"""The parts of transformers in the many ways in which people spell them in PyTorch.

One network for each spelling of a product of two activations, of a softmax, a norm, a gate or a position, in a block that is
ordinary otherwise. The arithmetic of most is the same; what exporters write is not.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .attention_parts import Block, feed_forward, HEAD, HEADS, TOKENS, WIDTH
from .parts import Function, NETWORKS


class Heads(nn.Module):
    """Projections only; how the rest is written is what the networks below differ in."""

    def __init__(self, spelled, key_heads=HEADS, **more):
        super().__init__()
        self.q, self.o = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.k, self.v = nn.Linear(WIDTH, key_heads * HEAD), nn.Linear(WIDTH, key_heads * HEAD)
        self.spelled = spelled
        for name, value in more.items():
            if isinstance(value, torch.Tensor):
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, x):
        return self.spelled(self, x)


def split(x, heads=HEADS):
    """[batch, heads, tokens, channels]"""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def join(x):
    return x.transpose(1, 2).flatten(2)


def qkv(m, x):
    return split(m.q(x)), split(m.k(x)), split(m.v(x))


# --- Products


def einsum_letters(m, x):
    """Heads stay inside of the last axis's letters: no transpose is written at all."""
    q, k, v = (layer(x).unflatten(-1, (HEADS, HEAD)) for layer in (m.q, m.k, m.v))
    weights = torch.einsum("nqhd,nkhd->nhqk", q * HEAD**-0.5, k).softmax(dim=-1)
    return m.o(torch.einsum("nhqk,nkhd->nqhd", weights, v).reshape(x.shape))


def einsum_heads_in_weights(m, x):
    """As JAX and Mesh TensorFlow have it: weights of shape [channels, heads, channels of a head]."""
    of = lambda layer: torch.einsum("ntc,chd->nhtd", x, layer.weight.t().reshape(WIDTH, HEADS, HEAD))
    q, k, v = of(m.q), of(m.k), of(m.v)
    weights = torch.einsum("nhid,nhjd->nhij", q, k).mul(HEAD**-0.5).softmax(-1)
    out = m.o.weight.t().reshape(HEADS, HEAD, WIDTH)
    return torch.einsum("nhtd,hdc->ntc", torch.einsum("nhij,nhjd->nhid", weights, v), out)


def baddbmm(m, x):
    """BLOOM: the mask is added by the product, heads are the batch."""
    n, t, _ = x.shape
    flat = lambda y: y.view(n, t, HEADS, HEAD).permute(0, 2, 1, 3).reshape(n * HEADS, t, HEAD)
    q, k, v = flat(m.q(x)), flat(m.k(x)), flat(m.v(x))
    scores = torch.baddbmm(m.mask.repeat(n, 1, 1), q, k.transpose(1, 2), beta=1.0, alpha=HEAD**-0.5)
    y = torch.bmm(F.softmax(scores, dim=-1, dtype=torch.float32).to(x.dtype), v)
    return m.o(y.view(n, HEADS, t, HEAD).permute(0, 2, 1, 3).reshape(n, t, WIDTH))


def tokens_first(m, x):
    """fairseq: [tokens, batch, channels], heads folded into the batch."""
    n, t, _ = x.shape
    x = x.transpose(0, 1)
    flat = lambda y: y.contiguous().view(t, n * HEADS, HEAD).transpose(0, 1)
    q, k, v = flat(m.q(x) * HEAD**-0.5), flat(m.k(x)), flat(m.v(x))
    y = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v)
    return m.o(y.transpose(0, 1).reshape(t, n, WIDTH)).transpose(0, 1)


def transposed_scores(m, x):
    """Keys first: softmax over the last axis but one."""
    q, k, v = qkv(m, x)
    weights = (k @ q.transpose(-1, -2) * HEAD**-0.5).softmax(-2)
    return m.o(join(weights.transpose(-1, -2) @ v))


def channels_first(m, x):
    """1x1 convolutions over [batch, channels, tokens] (YOLO, SAGAN): values times transposed weights."""
    flat = lambda layer: F.conv1d(x.transpose(1, 2), layer.weight[..., None], layer.bias).view(-1, HEADS, HEAD, x.shape[1])
    q, k, v = flat(m.q), flat(m.k), flat(m.v)
    weights = (q.transpose(2, 3) @ k / math.sqrt(HEAD)).softmax(-1)
    return m.o((v @ weights.transpose(2, 3)).flatten(1, 2).transpose(1, 2))


def head_by_head(m, x):
    """A loop over heads with slices; the results are concatenated."""
    q, k, v = m.q(x), m.k(x), m.v(x)
    results = []
    for h in range(HEADS):
        at = slice(h * HEAD, (h + 1) * HEAD)
        weights = torch.softmax(torch.matmul(q[:, :, at], k[:, :, at].transpose(1, 2)) / HEAD**0.5, dim=2)
        results.append(torch.matmul(weights, v[:, :, at]))
    return m.o(torch.cat(results, dim=-1))


def stacked_heads(m, x):
    """Channels are split and stacked (Vaswani's tensor2tensor): heads come in front of the batch."""
    fold = lambda y: torch.stack(y.split(HEAD, dim=-1))
    q, k, v = fold(m.q(x)), fold(m.k(x)), fold(m.v(x))
    y = torch.matmul((q @ k.transpose(-1, -2) * HEAD**-0.5).softmax(-1), v)
    return m.o(torch.cat([one.squeeze(0) for one in y.split(1)], -1))


def one_head(m, x):
    return m.o(torch.softmax(m.q(x) @ m.k(x).mT / WIDTH**0.5, -1) @ m.v(x))


def tensordot(m, x):
    """Products of matrices without a batch, one sample and one head at a time; heads and channels are contracted at once."""
    results = []
    for one in x:
        q, k, v = (layer(one).view(-1, HEADS, HEAD).transpose(0, 1) for layer in (m.q, m.k, m.v))
        rows = [torch.mm(torch.mm(q[h], k[h].t()).div(HEAD**0.5).softmax(1), v[h]) for h in range(HEADS)]
        results.append(torch.tensordot(torch.stack(rows), m.mix, dims=([0, 2], [0, 1])))
    return m.o(torch.stack(results))


def grouped_by_views(m, x):
    """Grouped queries without repeating keys: a fifth axis, broadcast in the product."""
    n, t, _ = x.shape
    q = m.q(x).view(n, t, 2, HEADS // 2, HEAD).permute(0, 2, 3, 1, 4)
    k, v = (layer(x).view(n, t, 2, 1, HEAD).permute(0, 2, 3, 1, 4) for layer in (m.k, m.v))
    y = (q @ k.transpose(-1, -2) / HEAD**0.5).softmax(-1) @ v
    return m.o(y.permute(0, 3, 1, 2, 4).reshape(n, t, WIDTH))


def grouped_by_rows(m, x):
    """Grouped queries as more rows of one product."""
    n, t, _ = x.shape
    q = m.q(x).view(n, t, 2, HEADS // 2, HEAD).permute(0, 2, 3, 1, 4).reshape(n, 2, HEADS // 2 * t, HEAD)
    k, v = split(m.k(x), 2), split(m.v(x), 2)
    y = (q @ k.transpose(-1, -2) / HEAD**0.5).softmax(-1) @ v
    return m.o(y.view(n, HEADS, t, HEAD).transpose(1, 2).flatten(2))


def sdpa_grouped(m, x):
    return m.o(join(F.scaled_dot_product_attention(split(m.q(x)), split(m.k(x), 2), split(m.v(x), 2), enable_gqa=True)))


def sdpa_scaled(m, x):
    q, k, v = qkv(m, x)
    return m.o(join(F.scaled_dot_product_attention(q, k, v, scale=0.3)))


def sdpa_float_mask(m, x):
    q, k, v = qkv(m, x)
    return m.o(join(F.scaled_dot_product_attention(q, k, v, attn_mask=m.mask.view(1, HEADS, TOKENS, TOKENS))))


def sdpa_bool_mask(m, x):
    q, k, v = qkv(m, x)
    return m.o(join(F.scaled_dot_product_attention(q, k, v, attn_mask=m.mask[0] > -1)))


def sdpa_few_keys(m, x):
    """Keys and values of every third token."""
    y = x[:, ::3]
    return m.o(join(F.scaled_dot_product_attention(split(m.q(x)), split(m.k(y)), split(m.v(y)))))


def sdpa_without_heads(m, x):
    return m.o(F.scaled_dot_product_attention(m.q(x), m.k(x), m.v(x)))


def with_prefix(m, x):
    """Prefix tuning: learned keys and values in front, as a cache of former tokens would be."""
    q, k, v = qkv(m, x)
    of_all = lambda y: y.expand(x.shape[0], -1, -1, -1)
    k, v = torch.cat([of_all(m.k_before), k], 2), torch.cat([of_all(m.v_before), v], 2)
    return m.o(join((q @ k.transpose(2, 3) * HEAD**-0.5).softmax(-1) @ v))


def with_cache(m, x):
    """The last token alone asks; keys and values are of all."""
    q, k, v = split(m.q(x[:, -1:])), split(m.k(x)), split(m.v(x))
    return x + m.o(join(F.scaled_dot_product_attention(q, k, v)))


# --- Softmax


def softmax_by_hand(m, x):
    q, k, v = qkv(m, x)
    scores = q @ k.transpose(2, 3) / HEAD**0.5
    e = torch.exp(scores - scores.max(-1, keepdim=True).values)
    return m.o(join(e / e.sum(-1, keepdim=True) @ v))


def softmax_divided_later(m, x):
    q, k, v = qkv(m, x)
    scores = q @ k.transpose(2, 3) / HEAD**0.5
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return m.o(join((e @ v) / e.sum(-1, keepdim=True)))


def log_softmax(m, x):
    q, k, v = qkv(m, x)
    return m.o(join(F.log_softmax(q @ k.transpose(2, 3) / HEAD**0.5, -1).exp() @ v))


def softmax_twice_scaled(m, x):
    """Queries and keys each take the fourth root of the width (Whisper)."""
    q, k, v = (split(layer(x)) for layer in (m.q, m.k, m.v))
    return m.o(join((q * HEAD**-0.25 @ (k * HEAD**-0.25).transpose(2, 3)).float().softmax(-1).to(q.dtype) @ v))


def softmax_of_clamped(m, x):
    """Hugging Face's guard: scores are cut, masked by where, and nan becomes 0."""
    q, k, v = qkv(m, x)
    scores = (q @ k.transpose(2, 3) / HEAD**0.5).clamp(-50, 50)
    return m.o(join(torch.nan_to_num(scores.masked_fill(m.mask[0] < -1, -1e9).softmax(-1)) @ v))


def temperature_of_head(m, x):
    q, k, v = qkv(m, x)
    return m.o(join(((q @ k.transpose(2, 3)) * m.temperature.exp()).softmax(-1) @ v))


def register_tokens_dropped(m, x):
    """Weights of keys that nobody may see are multiplied by 0 behind softmax, and renormalized."""
    q, k, v = qkv(m, x)
    weights = (q @ k.transpose(2, 3) / HEAD**0.5).softmax(-1) * (m.mask[0] > -1)
    return m.o(join(weights / (weights.sum(-1, keepdim=True) + 1e-9) @ v))


CAUSAL = torch.full((HEADS, TOKENS, TOKENS), -10000.0).triu(1)
SPELLINGS = {
    "einsum_letters": (einsum_letters, {}), "einsum_heads_in_weights": (einsum_heads_in_weights, {}),
    "baddbmm": (baddbmm, {"mask": CAUSAL}), "tokens_first": (tokens_first, {}),
    "transposed_scores": (transposed_scores, {}), "channels_first": (channels_first, {}),
    "head_by_head": (head_by_head, {}), "stacked_heads": (stacked_heads, {}), "one_head": (one_head, {}),
    "tensordot": (tensordot, {"mix": torch.randn(HEADS, HEAD, WIDTH) / 8}),
    "grouped_by_views": (grouped_by_views, {"key_heads": 2}), "grouped_by_rows": (grouped_by_rows, {"key_heads": 2}),
    "sdpa_grouped": (sdpa_grouped, {"key_heads": 2}), "sdpa_scaled": (sdpa_scaled, {}),
    "sdpa_float_mask": (sdpa_float_mask, {"mask": torch.randn(HEADS, TOKENS, TOKENS)}),
    "sdpa_bool_mask": (sdpa_bool_mask, {"mask": CAUSAL}), "sdpa_few_keys": (sdpa_few_keys, {}),
    "sdpa_without_heads": (sdpa_without_heads, {}), "softmax_by_hand": (softmax_by_hand, {}),
    "with_prefix": (with_prefix, {"k_before": torch.randn(1, HEADS, 5, HEAD), "v_before": torch.randn(1, HEADS, 5, HEAD)}),
    "with_cache": (with_cache, {}), "softmax_divided_later": (softmax_divided_later, {}), "log_softmax": (log_softmax, {}),
    "softmax_twice_scaled": (softmax_twice_scaled, {}), "softmax_of_clamped": (softmax_of_clamped, {"mask": CAUSAL}),
    "temperature_of_head": (temperature_of_head, {"temperature": torch.randn(HEADS, 1, 1) * 0.3 - 1}),
    "register_tokens_dropped": (register_tokens_dropped, {"mask": CAUSAL}),
}


def answer(*blocks):
    return nn.Sequential(*blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16))


for _name, (_spelled, _more) in SPELLINGS.items():
    NETWORKS[f"spelled_{_name}"] = ((TOKENS, WIDTH), lambda s=_spelled, m=_more: answer(*(Block(Heads(s, **m)) for _ in range(2))))


# --- Norms


class Norm(nn.Module):
    def __init__(self, spelled, width=WIDTH):
        super().__init__()
        self.a, self.b, self.spelled = nn.Parameter(1 + 0.1 * torch.randn(width)), nn.Parameter(0.1 * torch.randn(width)), spelled

    def forward(self, x):
        return self.spelled(self, x)


def annotated(m, x):
    """The Annotated Transformer: the deviation of a sample (one less than all), the guard outside of the root."""
    return m.a * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + m.b


def variance(m, x):
    return (x - x.mean(2, keepdim=True)) * torch.rsqrt(x.var(2, keepdim=True, unbiased=False) + 1e-5) * m.a + m.b


def squares_less_square(m, x):
    """The mean of squares less the square of the mean."""
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / ((x * x).mean(-1, keepdim=True) - mean * mean + 1e-5).sqrt() * m.a + m.b


def var_mean(m, x):
    deviation, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(deviation + 1e-6) * m.a + m.b


NORMS = {
    "annotated": annotated, "variance": variance, "squares_less_square": squares_less_square, "var_mean": var_mean,
    "functional": lambda m, x: F.layer_norm(x, (WIDTH,), m.a, m.b, 1e-12),
    "rms_by_norm": lambda m, x: x / (x.norm(2, dim=-1, keepdim=True) * WIDTH**-0.5 + 1e-8) * m.a,
    "rms_normalize": lambda m, x: F.normalize(x, dim=-1) * WIDTH**0.5 * m.a,
    "rms_one_more": lambda m, x: x.float() / torch.sqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * (1 + m.b),
    "rms_functional": lambda m, x: F.rms_norm(x, (WIDTH,), m.a, 1e-6),
    "channels_first": lambda m, x: F.group_norm(x.transpose(1, 2), 1, m.a, m.b).transpose(1, 2),
    "instance": lambda m, x: F.instance_norm(x.transpose(1, 2), weight=m.a, bias=m.b).transpose(1, 2),
    "tanh": lambda m, x: torch.tanh(0.5 * x) * m.a + m.b,
}
for _name, _spelled in NORMS.items():
    NETWORKS[f"norm_{_name}"] = ((TOKENS, WIDTH), lambda s=_spelled: answer(
        *(Block(Heads(einsum_letters), norm=lambda width: Norm(s, width)) for _ in range(2))))


# --- Gates


def gated(function, hidden=2 * WIDTH):
    return Function(lambda m, x: m.down(function(m.up(x))), up=nn.Linear(WIDTH, 2 * hidden), down=nn.Linear(hidden, WIDTH))


def halves(function):
    def apply(x):
        a, b = x.chunk(2, -1)
        return function(a) * b
    return lambda: gated(apply)


def even_and_odd(x):
    return F.silu(x[..., ::2]) * x[..., 1::2]


def plain(function):
    class Act(nn.Module):
        def forward(self, x):
            return function(x)

    return lambda: feed_forward(Act)


GATES = {
    "gelu_by_erf": plain(lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))),
    "gelu_new": plain(lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))),
    "gelu_fast": plain(lambda x: 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x)))),
    "squared_clamp": plain(lambda x: x.clamp(min=0).square()), "star": plain(lambda x: F.relu(x) ** 2 * 0.89 - 0.45),
    "glu": lambda: gated(lambda x: F.glu(x, -1)), "reglu": halves(F.relu), "bilinear": halves(lambda x: x),
    "geglu": halves(F.gelu), "swiglu_even_odd": lambda: gated(even_and_odd),
    "clamped_swiglu": halves(lambda x: x.clamp(max=7) * torch.sigmoid(1.702 * x.clamp(max=7))),
    "tanh_glu": halves(torch.tanh), "exp_gate": halves(lambda x: torch.exp(-x.abs())),
}
for _name, _make in GATES.items():
    NETWORKS[f"gate_{_name}"] = ((TOKENS, WIDTH), lambda make=_make: answer(
        *(Block(Heads(stacked_heads), make()) for _ in range(2))))
