# SPDX-License-Identifier: Apache-2.0
"""Small transformers that nobody has designed: parts of published ones, joined at random.

"random_transformer_17" is the network of seed 17: a sequence of vectors, of windows or of patches of any (also odd or prime)
number of tokens, any width and number of heads, positions (learned, rotary, ALiBi), norms (LayerNorm, RMSNorm; in front, behind or
on queries and keys), masks, shared keys and values, gated layers, blocks of other kinds between (MLP-Mixer, Conformer,
Perceiver, a decoder over other tokens), and one of the usual ends. bench/random_networks.py has convolutional networks.
"""
import random

COUNT = 200
TOKENS = (1, 7, 16, 33, 49, 50, 64, 65, 77, 100, 128, 196, 197)


def plan_of(seed):
    r = random.Random(seed)
    head = r.choice([8, 12, 16, 20, 24, 32])
    heads = r.choice([1, 2, 3, 4, 5, 6])
    side = r.choice([24, 32, 40, 56])
    patch = r.choice([4, 7, 8])
    return {"head": head, "heads": heads, "tokens": r.choice(TOKENS), "side": side, "patch": patch, "kind": r.choice(["series", "series", "picture"]),
            "features": r.choice([16, 27, 40, 64])}


def shape_of_seed(seed):
    plan = plan_of(seed)
    return (3, plan["side"], plan["side"]) if plan["kind"] == "picture" else (plan["tokens"], plan["features"])


def build(seed):
    import torch
    from torch import nn
    from torch.nn import functional as F
    plan, r = plan_of(seed), random.Random(seed + 1_000_000)
    head, heads = plan["head"], plan["heads"]
    width = head * heads
    rotary_half = head // 4 * 2  # of each head's channels so many turn
    style = {"norm": r.choice(["layer", "layer", "rms"]), "place": r.choice(["pre", "pre", "post", "both"]), "bias": r.random() < 0.7,
             "position": r.choice(["learned", "none", "rotary", "alibi"]), "mask": r.choice(["none", "none", "causal", "window"]),
             "keys": r.choice([k for k in (1, heads, heads, heads // 2) if k and heads % k == 0]), "normed": r.random() < 0.2,
             "feed": r.choice(["gelu", "relu", "swiglu", "geglu", "tanh_gelu", "silu"]), "packed": r.random() < 0.5, "fused": r.random() < 0.4}

    class RMSNorm(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.weight = nn.Parameter(1 + 0.1 * torch.randn(c))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    def norm(c):
        return nn.LayerNorm(c) if style["norm"] == "layer" else RMSNorm(c)

    class Gated(nn.Module):
        def __init__(self, act):
            super().__init__()
            hidden = r.choice([2 * width, 8 * width // 3])
            self.gate, self.up, self.down = nn.Linear(width, hidden), nn.Linear(width, hidden), nn.Linear(hidden, width)
            self.act = act

        def forward(self, x):
            return self.down(self.act(self.gate(x)) * self.up(x))

    def feed():
        acts = {"gelu": nn.GELU, "relu": nn.ReLU, "tanh_gelu": lambda: nn.GELU("tanh"), "silu": nn.SiLU}
        if style["feed"] in ("swiglu", "geglu"):
            return Gated(F.silu if style["feed"] == "swiglu" else F.gelu)
        hidden = r.choice([2, 3, 4]) * width
        return nn.Sequential(nn.Linear(width, hidden), acts[style["feed"]](), nn.Linear(hidden, width))

    class Attention(nn.Module):
        """Of `tokens` to `others` tokens; keys and values may be shared by several heads."""

        def __init__(self, tokens, others=None):
            super().__init__()
            self.keys, self.crosses = style["keys"], others is not None
            self.sizes = [width, self.keys * head, self.keys * head]
            self.packed = style["packed"] and not self.crosses
            if self.packed:
                self.qkv = nn.Linear(width, sum(self.sizes), style["bias"])
            else:
                self.q, self.k, self.v = (nn.Linear(width, size, style["bias"]) for size in self.sizes)
            self.out = nn.Linear(width, width)
            self.nq, self.nk = (norm(head), norm(head)) if style["normed"] else (nn.Identity(), nn.Identity())
            others = others or tokens
            rows, columns = torch.arange(tokens)[:, None], torch.arange(others)[None]
            bias = torch.zeros(heads, tokens, others)
            if style["position"] == "alibi":
                bias = bias - (2.0 ** -torch.arange(1, heads + 1))[:, None, None] * (rows - columns).abs()
            if style["mask"] == "causal" and not self.crosses:
                bias = bias.masked_fill(columns > rows, float("-inf") if r.random() < 0.5 else -1e9)
            if style["mask"] == "window" and not self.crosses:
                bias = bias.masked_fill((columns - rows).abs() > 5, -1e4)
            self.has_bias = bool((bias != 0).any())
            self.register_buffer("bias", bias)
            angles = torch.arange(max(tokens, others))[:, None] / 100.0 ** (torch.arange(max(1, rotary_half // 2))[None] / max(1, rotary_half // 2))
            self.register_buffer("cos", torch.cat([angles.cos(), angles.cos()], 1))
            self.register_buffer("sin", torch.cat([angles.sin(), angles.sin()], 1))

        def turned(self, x):
            if style["position"] != "rotary":
                return x
            turning, rest = x[..., :rotary_half], x[..., rotary_half:]
            a, b = turning.chunk(2, -1)
            cos, sin = self.cos[:x.shape[2]], self.sin[:x.shape[2]]
            return torch.cat([turning * cos + torch.cat([-b, a], -1) * sin, rest], -1)

        def forward(self, x, other=None):
            other = x if other is None else other
            n, t, _ = x.shape
            q, k, v = self.qkv(x).split(self.sizes, -1) if self.packed else (self.q(x), self.k(other), self.v(other))
            q = self.turned(self.nq(q.reshape(n, t, heads, head).transpose(1, 2)))
            k = self.turned(self.nk(k.reshape(n, -1, self.keys, head).transpose(1, 2)))
            v = v.reshape(n, -1, self.keys, head).transpose(1, 2)
            if self.keys != heads:
                k, v = k.repeat_interleave(heads // self.keys, 1), v.repeat_interleave(heads // self.keys, 1)
            if style["fused"]:
                y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias[None] if self.has_bias else None)
            else:
                scores = q @ k.transpose(-1, -2) * head**-0.5
                y = (scores + self.bias if self.has_bias else scores).softmax(-1) @ v
            return self.out(y.transpose(1, 2).reshape(n, t, width))

    class Residual(nn.Module):
        def __init__(self, body):
            super().__init__()
            self.body, self.before, self.behind = body, norm(width), norm(width)

        def forward(self, x, *more):
            y = self.body(self.before(x) if style["place"] != "post" else x, *more)
            if style["place"] == "both":
                return x + self.behind(y)
            return x + y if style["place"] == "pre" else self.behind(x + y)

    class Mixer(nn.Module):
        def __init__(self, tokens):
            super().__init__()
            hidden = r.choice([16, 24, 64])
            self.mix = nn.Sequential(nn.Linear(tokens, hidden), nn.GELU(), nn.Linear(hidden, tokens))

        def forward(self, x):
            return self.mix(x.transpose(1, 2)).transpose(1, 2)

    class Convolution(nn.Module):
        """Of a Conformer."""

        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
            self.along, self.norm = nn.Conv1d(width, width, r.choice([3, 7, 15]), padding="same", groups=width), nn.BatchNorm1d(width)

        def forward(self, x):
            y = F.glu(self.up(x.transpose(1, 2)), 1)
            return self.down(F.silu(self.norm(self.along(y)))).transpose(1, 2)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            tokens = plan["tokens"]
            self.has_class = r.random() < 0.4
            if plan["kind"] == "picture":
                self.patches = nn.Conv2d(3, width, plan["patch"], plan["patch"])
                tokens = (plan["side"] // plan["patch"]) ** 2
            else:
                self.entry = nn.Linear(plan["features"], width)
            if self.has_class:
                self.first = nn.Parameter(torch.randn(1, 1, width) * 0.5)
                tokens += 1
            self.places = nn.Parameter(torch.randn(1, tokens, width) * 0.3) if style["position"] == "learned" else None
            latents = r.choice([5, 8, 13])
            self.kinds, blocks = [], []
            for _ in range(r.choice([1, 2, 2, 3])):
                kind = r.choice(["attention"] * 5 + ["mixer", "conformer"])
                body = {"attention": lambda: Attention(tokens), "mixer": lambda: Mixer(tokens), "conformer": Convolution}[kind]()
                blocks += [Residual(body), Residual(feed())]
                self.kinds += ["self", "self"]
            self.latents = nn.Parameter(torch.randn(1, latents, width)) if r.random() < 0.3 else None
            if self.latents is not None:
                blocks += [Residual(Attention(latents, tokens)), Residual(feed()), Residual(Attention(latents)), Residual(feed())]
                self.kinds += ["cross", "self", "self", "self"]
            self.blocks, self.norm = nn.ModuleList(blocks), norm(width)
            self.end = r.choice(["first", "mean", "each"])
            self.answer = nn.Linear(width, r.choice([4, 10, 16]))

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2) if plan["kind"] == "picture" else self.entry(x)
            if self.has_class:
                x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)
            if self.places is not None:
                x = x + self.places
            seen = None
            for block, kind in zip(self.blocks, self.kinds):
                if kind == "cross":
                    x, seen = self.latents.expand(x.shape[0], -1, -1), x
                x = block(x, seen) if kind == "cross" else block(x)
            x = self.norm(x)
            return self.answer({"first": x[:, 0], "mean": x.mean(1), "each": x}[self.end])

    torch.manual_seed(seed)
    return Network()


NETWORKS = {f"random_transformer_{seed}": shape_of_seed(seed) for seed in range(COUNT)}
