# SPDX-License-Identifier: Apache-2.0
"""Layers that PyTorch has and that few architectures of torchvision or timm use, each in the middle of a small convnet.

A network of a stranger often differs from the usual ones by a single such layer. The convolutions in front of it and
behind it show whether it splits the network in two.
"""

SIDE = 32


def layers():
    """name: function that makes a module from 16 channels of 16 x 16 to as many channels as its second value."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Call(nn.Module):
        def __init__(self, function, **modules):
            super().__init__()
            self.function = function
            for name, module in modules.items():
                if isinstance(module, nn.Module):
                    setattr(self, name, module)
                else:
                    self.register_parameter(name, nn.Parameter(module))

        def forward(self, x):
            return self.function(self, x)

    def call(function, **modules):
        return Call(lambda m, x: function(x) if not modules else function(m, x), **modules)

    activations = {
        "mish": nn.Mish(),
        "elu": nn.ELU(),
        "selu": nn.SELU(),
        "celu": nn.CELU(0.5),
        "softplus": nn.Softplus(),
        "softsign": nn.Softsign(),
        "hardtanh": nn.Hardtanh(-2, 2),
        "logsigmoid": nn.LogSigmoid(),
        "hardshrink": nn.Hardshrink(),
        "softshrink": nn.Softshrink(),
        "tanhshrink": nn.Tanhshrink(),
        "threshold": nn.Threshold(0.1, -1),
        "relu_squared": call(lambda x: F.relu(x) ** 2),
        "quick_gelu": call(lambda x: x * torch.sigmoid(1.702 * x)),
        "gelu_tanh": nn.GELU("tanh"),
        "prelu_shared": nn.PReLU(),
        "prelu": nn.PReLU(16),
        "snake": call(lambda x: x + torch.sin(x) ** 2),
        "sine": call(torch.sin),
        "gaussian": call(lambda x: torch.exp(-x * x)),
        "hard_sigmoid_gate": call(lambda x: x * F.hardsigmoid(x)),
        "clamp_min": call(lambda x: x.clamp(min=-0.5)),
        "clamp": call(lambda x: x.clamp(-0.7, 1.3)),
        "abs": call(torch.abs),
        "sqrt_abs": call(lambda x: torch.sqrt(x.abs() + 1e-3)),
        "log1p": call(lambda x: torch.log1p(F.relu(x))),
        "sign_root": call(lambda x: torch.sign(x) * torch.sqrt(x.abs() + 1e-6)),
        "reciprocal": call(lambda x: 1 / (1 + x.abs())),
        "maxout": call(lambda x: torch.maximum(x[:, :8], x[:, 8:])),
        "glu": nn.GLU(1),
        "crelu": call(lambda x: torch.cat([F.relu(x), F.relu(-x)], 1)),
    }
    norms = {
        "instance_norm": nn.InstanceNorm2d(16, affine=True),
        "group_norm": nn.GroupNorm(4, 16),
        "local_response_norm": nn.LocalResponseNorm(5),
        "layer_norm_whole": nn.LayerNorm([16, 16, 16]),
        "l2_channels": call(lambda x: F.normalize(x, dim=1)),
        "rms_norm": call(lambda x: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)),
        "pixel_norm": call(lambda x: x / torch.sqrt((x**2).mean(1, keepdim=True) + 1e-8)),
        "standardize": call(lambda x: (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-5)),
        "softmax_channels": nn.Softmax(1),
        "softmax_space": call(lambda x: x * torch.softmax(x.flatten(2), -1).view_as(x) * 50),
        "log_softmax_channels": nn.LogSoftmax(1),
        "frn": call(
            lambda x: torch.maximum(x * torch.rsqrt((x * x).mean((2, 3), keepdim=True) + 1e-6), torch.tensor(0.1))
        ),
        "adain": call(
            lambda x: (
                F.instance_norm(x[:, :8]) * x[:, 8:].std((2, 3), keepdim=True) + x[:, 8:].mean((2, 3), keepdim=True)
            )
        ),
    }
    pools = {
        "lp_pool": nn.LPPool2d(2, 2),
        "adaptive_max": nn.AdaptiveMaxPool2d(4),
        "adaptive_avg_uneven": nn.AdaptiveAvgPool2d(5),
        "avg_pool_ceil": nn.AvgPool2d(3, 2, ceil_mode=True),
        "avg_pool_no_pad_count": nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        "max_pool_ceil": nn.MaxPool2d(3, 2, ceil_mode=True),
        "max_pool_dilated": nn.MaxPool2d(3, 1, 1, dilation=2),
        "gem_pool": call(lambda x: F.avg_pool2d(x.clamp(min=1e-3) ** 3, 4) ** (1 / 3)),
        "soft_pool": call(lambda x: F.avg_pool2d(torch.exp(x) * x, 2) / F.avg_pool2d(torch.exp(x), 2)),
        "blur_pool": call(
            lambda m, x: F.conv2d(F.pad(x, (1, 1, 1, 1), "reflect"), m.k.expand(16, 1, 3, 3), stride=2, groups=16),
            k=torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]])[None, None] / 16,
        ),
        "spatial_pyramid": call(
            lambda x: torch.cat([F.interpolate(F.adaptive_avg_pool2d(x, s), (16, 16)) for s in (1, 2, 4)], 1)
        ),
        "std_pool": call(
            lambda x: torch.cat([x.mean((2, 3)), x.std((2, 3))], 1)[:, :, None, None].expand(-1, -1, 4, 4)
        ),
    }
    moves = {
        "pixel_shuffle": nn.PixelShuffle(2),
        "pixel_unshuffle": nn.PixelUnshuffle(2),
        "channel_shuffle": nn.ChannelShuffle(4),
        "reflection_pad": nn.ReflectionPad2d(2),
        "replication_pad": nn.ReplicationPad2d(1),
        "circular_pad": nn.CircularPad2d(1),
        "constant_pad": nn.ConstantPad2d(1, 0.5),
        "roll": call(lambda x: torch.roll(x, (2, 3), (2, 3))),
        "flip": call(lambda x: x.flip(3)),
        "rotate": call(lambda x: torch.rot90(x, 1, (2, 3))),
        "transpose_space": call(lambda x: x.transpose(2, 3)),
        "unfold": call(lambda x: F.unfold(x, 2, stride=2).view(x.shape[0], 64, 8, 8)),
        "fold": call(lambda x: F.fold(x.reshape(x.shape[0], 64, 64), (16, 16), 2, stride=2)),
        "focus": call(
            lambda x: torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
        ),
        "shift": call(
            lambda x: torch.cat([F.pad(x[:, :4, :, 1:], (0, 1)), F.pad(x[:, 4:8, :, :-1], (1, 0)), x[:, 8:]], 1)
        ),
        "index_select": call(lambda x: x[:, torch.tensor([3, 1, 1, 15, 8, 2, 0, 7])]),
        "repeat": call(lambda x: x.repeat(1, 2, 1, 1)),
        "repeat_interleave": call(lambda x: x.repeat_interleave(2, 1)),
        "strided": call(lambda x: x[:, ::2, 1::2, ::3]),
        "crop": call(lambda x: x[:, :, 2:-3, 1:12]),
        "stack_mean": call(lambda x: torch.stack([x, x * 2, x.abs()], 1).mean(1)),
        "split_swap": call(lambda x: torch.cat(x.chunk(4, 1)[::-1], 1)),
        "where": call(lambda x: torch.where(x > 0, x, x * 0.1 - 0.2)),
        "masked_fill": call(lambda x: x.masked_fill(x < -0.3, 0.25)),
        "cumsum": call(lambda x: x.cumsum(3) / 8),
        "window_partition": call(lambda x: x.view(-1, 16, 2, 8, 2, 8).permute(0, 2, 4, 1, 3, 5).reshape(-1, 64, 8, 8)),
    }
    resizes = {
        "bilinear": call(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
        "bilinear_aligned": call(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)),
        "bicubic": call(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic")),
        "nearest_3": call(lambda x: F.interpolate(x, scale_factor=3)),
        "nearest_uneven": call(lambda x: F.interpolate(x, size=(23, 27))),
        "bilinear_uneven": call(lambda x: F.interpolate(x, size=(23, 27), mode="bilinear")),
        "bilinear_down": call(lambda x: F.interpolate(x, size=(7, 7), mode="bilinear")),
        "area": call(lambda x: F.interpolate(x, size=(8, 8), mode="area")),
        "nearest_exact": call(lambda x: F.interpolate(x, size=(24, 24), mode="nearest-exact")),
        "antialias": call(lambda x: F.interpolate(x, size=(9, 9), mode="bilinear", antialias=True)),
        "grid_sample": call(
            lambda m, x: F.grid_sample(x, m.grid.expand(x.shape[0], -1, -1, -1), align_corners=False),
            grid=F.affine_grid(
                torch.tensor([[[0.8, 0.2, 0.1], [-0.2, 0.9, 0.0]]]), [1, 16, 16, 16], align_corners=False
            ),
        ),
        "conv_transpose": nn.ConvTranspose2d(16, 16, 4, 2, 1),
        "conv_transpose_odd": nn.ConvTranspose2d(16, 16, 3, 2, 1, 1),
        "conv_transpose_groups": nn.ConvTranspose2d(16, 16, 2, 2, groups=4),
        "conv_transpose_depthwise": nn.ConvTranspose2d(16, 16, 4, 2, 1, groups=16, bias=False),
        "conv_transpose_dilated": nn.ConvTranspose2d(16, 16, 3, 1, 2, dilation=2),
        "conv_transpose_stride3": nn.ConvTranspose2d(16, 8, 5, 3, 1),
    }
    convolutions = {
        "conv_dilated": nn.Conv2d(16, 16, 3, 1, 4, dilation=4),
        "conv_uneven": nn.Conv2d(16, 16, (1, 7), (1, 2), (0, 3)),
        "conv_asymmetric_pad": nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(16, 16, 3, 2)),
        "conv_even": nn.Conv2d(16, 16, 2, 1, 1),
        "conv_large": nn.Conv2d(16, 16, 13, 1, 6),
        "depthwise_large": nn.Conv2d(16, 16, 11, 1, 5, groups=16),
        "depthwise_dilated": nn.Conv2d(16, 16, 3, 1, 3, groups=16, dilation=3),
        "depthwise_multiplier": nn.Conv2d(16, 48, 3, 1, 1, groups=16),
        "conv_groups": nn.Conv2d(16, 32, 3, 1, 1, groups=4),
        "conv_reflect": nn.Conv2d(16, 16, 3, 1, 1, padding_mode="reflect"),
        "conv_circular": nn.Conv2d(16, 16, 3, 1, 1, padding_mode="circular"),
        "conv_stride5": nn.Conv2d(16, 16, 5, 5),
        "conv_same": nn.Conv2d(16, 16, 4, padding="same"),
        "weight_standardized": call(
            lambda m, x: F.conv2d(
                x, (m.w - m.w.mean((1, 2, 3), keepdim=True)) / m.w.std((1, 2, 3), keepdim=True) * 0.1, padding=1
            ),
            w=torch.randn(16, 16, 3, 3),
        ),
        "dynamic_filter": call(
            lambda m, x: F.conv2d(
                x.reshape(1, -1, 16, 16),
                m.make(x.mean((2, 3))).reshape(-1, 1, 3, 3) * 0.3,
                padding=1,
                groups=16 * x.shape[0],
            ).view_as(x),
            make=nn.Linear(16, 144),
        ),
        "involution": call(
            lambda m, x: (
                (F.unfold(x, 3, padding=1).view(-1, 16, 9, 256) * m.make(x).view(-1, 1, 9, 256)).sum(2).view_as(x)
            ),
            make=nn.Conv2d(16, 9, 1),
        ),
        "bilinear_form": call(
            lambda x: torch.einsum("bchw,bdhw->bcd", x, x).view(-1, 1, 16, 16).expand(-1, 16, -1, -1) / 64
        ),
        "linear_last": call(lambda m, x: m.fc(x), fc=nn.Linear(16, 16)),
        "linear_channels": call(lambda m, x: m.fc(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), fc=nn.Linear(16, 24)),
    }
    gates = {
        "squeeze_excite": call(
            lambda m, x: x * m.b(m.a(x.mean((2, 3), keepdim=True)).relu()).sigmoid(),
            a=nn.Conv2d(16, 4, 1),
            b=nn.Conv2d(4, 16, 1),
        ),
        "cbam_space": call(
            lambda m, x: x * m.c(torch.cat([x.amax(1, keepdim=True), x.mean(1, keepdim=True)], 1)).sigmoid(),
            c=nn.Conv2d(2, 1, 7, padding=3),
        ),
        "eca": call(
            lambda m, x: x * m.c(x.mean((2, 3))[:, None])[:, 0, :, None, None].sigmoid(),
            c=nn.Conv1d(1, 1, 3, padding=1),
        ),
        "simam": call(
            lambda x: (
                x
                * torch.sigmoid(
                    (x - x.mean((2, 3), keepdim=True)) ** 2 / (4 * (x.var((2, 3), keepdim=True) + 1e-2)) + 0.5
                )
            )
        ),
        "coordinate": call(
            lambda m, x: x * m.h(x.mean(3, keepdim=True)).sigmoid() * m.w(x.mean(2, keepdim=True)).sigmoid(),
            h=nn.Conv2d(16, 16, 1),
            w=nn.Conv2d(16, 16, 1),
        ),
        "non_local": call(
            lambda m, x: (
                x
                + (
                    m.v(x).flatten(2)
                    @ (m.q(x).flatten(2).transpose(1, 2) @ m.k(x).flatten(2)).softmax(-1).transpose(1, 2)
                ).view_as(x)
            ),
            q=nn.Conv2d(16, 8, 1),
            k=nn.Conv2d(16, 8, 1),
            v=nn.Conv2d(16, 16, 1),
        ),
        "channel_attention": call(
            lambda x: (
                x + (torch.softmax(x.flatten(2) @ x.flatten(2).transpose(1, 2) / 64, -1) @ x.flatten(2)).view_as(x)
            )
        ),
        "linear_attention": call(
            lambda x: (
                x
                + torch.relu(x)
                .flatten(2)
                .transpose(1, 2)
                .matmul(torch.relu(x).flatten(2) @ x.flatten(2).transpose(1, 2) / 256)
                .transpose(1, 2)
                .view_as(x)
            )
        ),
        "mixture": call(
            lambda m, x: sum(
                g[:, None, None, None] * c(x) for g, c in zip(m.g(x.mean((2, 3))).softmax(-1).unbind(1), m.e)
            ),
            g=nn.Linear(16, 3),
            e=nn.ModuleList([nn.Conv2d(16, 16, 3, padding=1) for _ in range(3)]),
        ),
        "argmax_mask": call(lambda x: x * (x.argmax(1, keepdim=True) > 7).float()),
        "topk_mean": call(lambda x: x * x.flatten(2).topk(8, -1).values.mean(-1)[..., None, None]),
        "minimum_of": call(lambda x: torch.minimum(x, x.mean(1, keepdim=True))),
        "logsumexp": call(lambda x: x - x.logsumexp(1, keepdim=True)),
        "cosine": call(
            lambda m, x: F.conv2d(F.normalize(x, dim=1), F.normalize(m.w, dim=1)), w=torch.randn(16, 16, 1, 1)
        ),
        "distance": call(
            lambda m, x: ((x[:, :, None] - m.w[None, :, :, None, None]) ** 2).sum(1) * 0.1, w=torch.randn(16, 8)
        ),
        "variance": call(lambda x: torch.cat([x, x.var(1, keepdim=True)], 1)),
        "norm_of": call(lambda x: torch.cat([x, x.norm(dim=1, keepdim=True)], 1)),
    }
    return {
        f"layer_{n}": m
        for group in (activations, norms, pools, moves, resizes, convolutions, gates)
        for n, m in group.items()
    }


def build(name):
    """The layer between convolutions: 3 x 32 x 32 -> 10 numbers."""
    import torch
    from torch import nn

    middle = layers()[name]
    first = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16))
    with torch.no_grad():
        channels = middle.eval()(torch.zeros(1, 16, 16, 16) + 0.1).shape[1]
    return nn.Sequential(
        first,
        middle,
        nn.Conv2d(channels, 24, 3, 1, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 10),
    )
