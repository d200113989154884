#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small PyTorch models written as ONNX by every way in which people write them.

    bench/onnx_ways.py FOLDER [--models PATTERN,...] [--ways N]

Each network becomes NAME.onnx (TorchScript exporter, opset 17) and NAME_WAY.onnx for some of WAYS, which take turns: opsets 9 to
22, PyTorch's newer exporter, open sizes, half precision, weights in a file beside the model, names without letters, models of
ONNX Runtime's quantizers (QDQ, QOperator, dynamic; per tensor, uint8) and of its optimizer. NAME.samples.npz has samples. bench/ways.py
takes the folder through Reef.
"""
import argparse
import fnmatch
import pathlib
import tempfile

import numpy as np

SAMPLES = 12


def networks():
    import torch
    from torch import nn
    from torch.nn import functional as F
    made = {}

    def network(*shapes):
        def keep(function):
            made[function.__name__] = (shapes, function)
            return function
        return keep

    class Call(nn.Module):
        def __init__(self, function, **modules):
            super().__init__()
            self.function = function
            for name, module in modules.items():
                setattr(self, name, module)

        def forward(self, *x):
            return self.function(self, *x)

    def conv(a, b, k=3, s=1, act=nn.ReLU, **more):
        return nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False, **more), nn.BatchNorm2d(b), act())

    def pooled(c, n):
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, n))

    @network((3, 45, 61))
    def classifier():
        return nn.Sequential(conv(3, 12, 3, 2), conv(12, 20, 3, 2, nn.ReLU6), nn.MaxPool2d(3, 2, 1), nn.Dropout(), pooled(20, 7))

    @network((3, 40, 48))
    def mobile():
        block = nn.Sequential(conv(16, 48, 1, act=nn.Hardswish), conv(48, 48, 5, 1, nn.Hardswish, groups=48))
        gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(48, 12, 1), nn.ReLU(), nn.Conv2d(12, 48, 1), nn.Hardsigmoid())

        def forward(m, x):
            x = m.start(x)
            y = m.block(x)
            return m.end(x + m.last(y * m.gate(y)))
        return Call(forward, start=conv(3, 16, 3, 2, nn.SiLU), block=block, gate=gate, last=nn.Conv2d(48, 16, 1), end=pooled(16, 5))

    @network((3, 33, 47))
    def unet():
        def forward(m, x):
            a = m.a(x)
            b = m.b(a)
            c = m.c(b)
            b = m.d(torch.cat([F.interpolate(c, size=b.shape[2:], mode="bilinear", align_corners=True), b], 1))
            a = m.e(torch.cat([F.interpolate(b, size=a.shape[2:], mode="nearest"), a], 1))
            return torch.softmax(m.f(a), 1)
        return Call(forward, a=conv(3, 8), b=conv(8, 16, 3, 2), c=conv(16, 24, 3, 2), d=conv(40, 16), e=conv(24, 8), f=nn.Conv2d(8, 4, 1))

    @network((3, 32, 32))
    def generator():
        return nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, 8, 7), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                             nn.Conv2d(8, 16, 3, 2, 1), nn.InstanceNorm2d(16), nn.LeakyReLU(0.2),
                             nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.GroupNorm(4, 8), nn.PReLU(8),
                             nn.Conv2d(8, 12, 3, 1, 1), nn.PixelShuffle(2), nn.Tanh())

    @network((3, 48, 48))
    def yolo_head():
        def forward(m, x):
            a = m.a(x)
            b = m.b(a)
            rows, scores = [], []
            for y, cut in ((a, m.h1), (b, m.h2)):
                y = cut(y)
                n, c, h, w = y.shape
                box, score = y.view(n, c, h * w).split((16, 3), 1)
                box = (torch.softmax(box.view(n, 4, 4, h * w).transpose(1, 2), 1) * torch.arange(4.).view(1, 4, 1, 1)).sum(1)
                rows.append(box)
                scores.append(score)
            return torch.cat([torch.cat(rows, 2), torch.cat(scores, 2).sigmoid()], 1)
        return Call(forward, a=nn.Sequential(conv(3, 8, 3, 2, nn.SiLU), conv(8, 16, 3, 2, nn.SiLU)), b=conv(16, 24, 3, 2, nn.SiLU),
                    h1=nn.Conv2d(16, 19, 1), h2=nn.Conv2d(24, 19, 1))

    @network((3, 32, 48))
    def vit():
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu")
        for p in layer.parameters():
            p.requires_grad_(False)

        def forward(m, x):
            x = m.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([m.token.expand(x.shape[0], -1, -1), x], 1)
            return m.head(m.norm(m.body(x))[:, 0])
        module = Call(forward, patch=nn.Conv2d(3, 32, 8, 8), body=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                      norm=nn.LayerNorm(32), head=nn.Linear(32, 5))
        module.token = nn.Parameter(torch.randn(1, 1, 32) * 0.1)
        return module

    @network((1, 16, 25))
    def recurrent():
        return Call(lambda m, x: m.end(m.gru(m.lstm(x[:, 0].transpose(1, 2))[0])[0]), lstm=nn.LSTM(16, 12, 2, bidirectional=True,
                    batch_first=True), gru=nn.GRU(24, 10, batch_first=True), end=nn.Linear(10, 4))

    @network((4, 60))
    def temporal():
        def forward(m, x):
            for layer, skip in zip(m.layers, m.skips):
                x = F.relu(skip(x) + layer(F.pad(x, (layer.dilation[0] * 2, 0))))
            return m.end(F.max_pool1d(x, 3, 2)).squeeze(-1)
        return Call(forward, layers=nn.ModuleList([nn.Conv1d(4 if i == 0 else 12, 12, 3, dilation=2 ** i) for i in range(3)]),
                    skips=nn.ModuleList([nn.Conv1d(4 if i == 0 else 12, 12, 1) for i in range(3)]),
                    end=nn.Sequential(nn.Conv1d(12, 6, 3), nn.AdaptiveAvgPool1d(1)))

    @network((30,), (12,))
    def two_inputs():
        return Call(lambda m, a, b: torch.sigmoid(m.c(torch.cat([F.elu(m.a(a)), torch.tanh(m.b(b)), a[:, :3] * b[:, :3]], 1))),
                    a=nn.Linear(30, 16), b=nn.Linear(12, 16), c=nn.Linear(35, 3))

    @network((3, 6, 20, 20))
    def video():
        return nn.Sequential(nn.Conv3d(3, 8, 3, 1, 1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d((1, 2, 2)),
                             nn.Conv3d(8, 8, (3, 1, 1)), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 4))

    @network((8, 20, 20))
    def moves():
        def forward(m, x):
            y = torch.roll(x, (1, -2), (2, 3)).flip(3)
            y = F.unfold(y, 4, stride=4).view(-1, 8, 16, 25).mean(2).reshape(-1, 8, 5, 5)
            z = F.pad(F.pixel_unshuffle(x, 2), (1, 2, 0, 1), "replicate").chunk(4, 1)
            z = torch.stack([z[0] * z[1], z[2] - z[3]], 2).permute(0, 2, 1, 3, 4).flatten(1, 2)
            return m.a(y), m.b(z[:, :, ::2, 1:]), torch.where(x > 0, x, x * x).amax((1, 3)), x.argmax(1)
        return Call(forward, a=nn.Conv2d(8, 6, 3), b=nn.Conv2d(16, 6, 3))

    @network((6, 14, 18))
    def functions():
        def forward(m, x):
            y = F.softplus(x) + F.gelu(x, approximate="tanh") + F.selu(x) * F.mish(x)
            y = y / (1 + x.abs()) + torch.clamp(x, -0.5, 0.7) + torch.erf(x) + torch.sqrt(x * x + 1) + F.hardtanh(x, -0.3, 2) + F.celu(x)
            y = F.logsigmoid(y) + F.softsign(x) + torch.exp(-x.abs()) + torch.log1p(x * x) + torch.sin(x) + F.hardshrink(x) + x.pow(3)
            y = F.normalize(m.a(y), dim=1) + torch.std(y, (2, 3), keepdim=True) + y.var(1, keepdim=True) + torch.logsumexp(y, 1, True)
            return F.log_softmax(m.b(y), 1), torch.norm(y, dim=1), y.prod(3), torch.cumsum(y, 2), torch.topk(y.flatten(1), 4)[0]
        return Call(forward, a=nn.Conv2d(6, 6, 1), b=nn.Conv2d(6, 5, 1))

    @network((3, 26, 26))
    def pools():
        def forward(m, x):
            x = m.a(x)
            rows = [F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
                    F.avg_pool2d(x, 3, 2, 1, count_include_pad=True), F.lp_pool2d(F.pad(x, (1, 1, 1, 1)).abs() + 0.1, 2, 3, 2)]
            size = rows[2].shape[2:]
            x = torch.cat([r[:, :, :size[0], :size[1]] for r in rows], 1)
            return m.b(F.adaptive_avg_pool2d(x, (1, 13))) + x.amax(2, keepdim=True)[:, :4], F.max_pool2d(x, 2, dilation=2)
        return Call(forward, a=conv(3, 8), b=nn.Conv2d(32, 4, 1))

    @network((8, 16, 16))
    def grouped():
        return nn.Sequential(nn.Conv2d(8, 24, 3, 1, 1, groups=4), nn.ReLU(), nn.ChannelShuffle(4), nn.Conv2d(24, 24, 3, 2, 2, 2, 8), nn.SiLU(),
                             nn.ConvTranspose2d(24, 12, 4, 2, 1, groups=4), nn.Conv2d(12, 24, 3, groups=12), nn.CELU(), nn.Conv2d(24, 3, (1, 5)))

    @network((20, 16))
    def gpt():
        def forward(m, x):
            n, t, c = x.shape
            q, k, v = m.qkv(m.norm(x)).view(n, t, 3, 2, 8).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + m.out(y.transpose(1, 2).reshape(n, t, c))
            return m.head(x)
        return Call(forward, norm=nn.LayerNorm(16), qkv=nn.Linear(16, 48), out=nn.Linear(16, 16), head=nn.Linear(16, 9))

    @network((40,))
    def tokens():
        def forward(m, x):
            ids = (x.abs() * 20).clamp(0, 49).long()
            return m.end(F.relu(m.conv(m.table(ids).transpose(1, 2))).amax(-1))
        return Call(forward, table=nn.Embedding(50, 16), conv=nn.Conv1d(16, 12, 3), end=nn.Linear(12, 4))

    @network((3, 24, 24))
    def spatial_transformer():
        def forward(m, x):
            theta = m.place(x).view(-1, 2, 3) * 0.1 + torch.tensor([[1., 0, 0], [0, 1, 0]])
            return m.end(F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False))
        return Call(forward, place=nn.Sequential(conv(3, 8, 3, 2), pooled(8, 6)), end=nn.Sequential(conv(3, 8, 3, 2), pooled(8, 4)))

    return made


def export(module, samples, path, opset=17, dynamo=False, dynamic=False):
    import torch
    arguments = tuple(torch.from_numpy(s[0]) for s in samples)
    names = [f"input_{i}" for i in range(len(arguments))]
    with torch.no_grad():
        module(*arguments)
    if dynamo:
        shapes = None
        if dynamic:
            shapes = (tuple({0: torch.export.Dim("batch")} for _ in arguments),)
        torch.onnx.export(module, arguments, str(path), dynamo=True, external_data=False, input_names=names, opset_version=opset,
                          dynamic_shapes=shapes[0] if shapes else None, verbose=False)
        return
    axes = {name: {i: f"d{i}" for i in range(a.ndim)} if dynamic == "all" else {0: "batch"} for name, a in zip(names, arguments)}
    torch.onnx.export(module, arguments, str(path), dynamo=False, opset_version=opset, input_names=names,
                      dynamic_axes=axes if dynamic else None)


def quantized(source, samples, path, form, **options):
    from onnxruntime import quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self):
            self.rows = iter([{f"input_{i}": s[k] for i, s in enumerate(samples)} for k in range(8)])

        def get_next(self):
            return next(self.rows, None)
    if form == "dynamic":
        q.quantize_dynamic(str(source), str(path), **options)
        return
    with tempfile.TemporaryDirectory() as folder:
        prepared = pathlib.Path(folder) / "prepared.onnx"
        q.shape_inference.quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
        q.quantize_static(str(prepared), str(path), Reader(), quant_format=getattr(q.QuantFormat, form), **options)


def half(source, path, keep_io):
    import onnx
    from onnxconverter_common import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=keep_io), path)


def outside(source, path):
    import onnx
    onnx.save_model(onnx.load(source), str(path), save_as_external_data=True, all_tensors_to_one_file=True,
                    location=path.name + ".data", size_threshold=0)


def nameless(source, path):
    """Nodes and values without names of use: numbers, slashes, spaces, letters beyond ASCII."""
    import onnx
    model = onnx.load(source)
    kept = {v.name for v in [*model.graph.input, *model.graph.output]}
    new = {}
    for node in model.graph.node:
        node.name = ""
        for i, name in enumerate(node.output):
            if name and name not in kept:
                new[name] = ("{}", "a b {}", "größe/{}:0", "//{}")[len(new) % 4].format(len(new))
                node.output[i] = new[name]
    if any(a.HasField("g") for n in model.graph.node for a in n.attribute):
        raise ValueError("has inner graphs")
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = new.get(name, name)
    del model.graph.value_info[:]
    onnx.save(model, path)


def optimized(source, path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def ways():
    from onnxruntime.quantization import CalibrationMethod, QuantType as T
    int8 = dict(activation_type=T.QInt8, weight_type=T.QInt8)
    uint8 = dict(activation_type=T.QUInt8, weight_type=T.QUInt8)
    result = {f"opset{n}": lambda m, s, source, path, n=n: export(m, s, path, n) for n in (9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20)}
    result |= {f"dynamo{n}": lambda m, s, source, path, n=n: export(m, s, path, n, True) for n in (18, 20, 21, 22, 23)}
    return result | {
        "dynamic_batch": lambda m, s, source, path: export(m, s, path, dynamic="batch"),
        "dynamic_all": lambda m, s, source, path: export(m, s, path, dynamic="all"),
        "dynamo_dynamic": lambda m, s, source, path: export(m, s, path, 18, True, True),
        "half": lambda m, s, source, path: half(source, path, False),
        "half_float_io": lambda m, s, source, path: half(source, path, True),
        "outside": lambda m, s, source, path: outside(source, path),
        "nameless": lambda m, s, source, path: nameless(source, path),
        "optimized": lambda m, s, source, path: optimized(source, path),
        "qdq": lambda m, s, source, path: quantized(source, s, path, "QDQ", per_channel=True, **int8),
        "qdq_uint8": lambda m, s, source, path: quantized(source, s, path, "QDQ", **uint8),
        "qdq_mixed": lambda m, s, source, path: quantized(source, s, path, "QDQ", per_channel=True, activation_type=T.QUInt8,
                                                          weight_type=T.QInt8, calibrate_method=CalibrationMethod.Entropy),
        "qdq_16": lambda m, s, source, path: quantized(source, s, path, "QDQ", activation_type=T.QInt16, weight_type=T.QInt8),
        "qoperator": lambda m, s, source, path: quantized(source, s, path, "QOperator", **int8),
        "qoperator_uint8": lambda m, s, source, path: quantized(source, s, path, "QOperator", per_channel=True, activation_type=T.QUInt8,
                                                                weight_type=T.QInt8),
        "dynamic_int8": lambda m, s, source, path: quantized(source, s, path, "dynamic", weight_type=T.QInt8, per_channel=True),
        "dynamic_uint8": lambda m, s, source, path: quantized(source, s, path, "dynamic", weight_type=T.QUInt8),
    }


def waves(seed, shape):
    random = np.random.default_rng(seed)
    slow = np.sin(np.linspace(0, random.uniform(1, 9), shape[-1]) + random.uniform(0, 6))
    return ((slow + random.normal(0, 0.5, shape)) * random.uniform(0.4, 1.2)).astype(np.float32)


def settle(module, samples):
    """Batch norms see the samples once, so that they do not leave values as they are."""
    import torch
    module.train()
    for m in module.modules():
        if isinstance(m, torch.nn.Dropout):
            m.eval()
    with torch.no_grad():
        for k in range(8):
            module(*[torch.from_numpy(np.concatenate([s[k], s[(k + 1) % 8]])) for s in samples])
    module.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default="*", help="patterns with *, separated by commas")
    parser.add_argument("--ways", type=int, default=6, help="of how many besides the plain one each network is written; 0: of all")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    import torch
    made = ways()
    for number, (name, (shapes, make)) in enumerate(networks().items()):
        if not any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models.split(",")):
            continue
        torch.manual_seed(number)
        samples = [np.stack([waves(1000 * i + k, shape) for k in range(SAMPLES)])[:, None] for i, shape in enumerate(shapes)]
        np.savez(arguments.folder / f"{name}.samples.npz", **{f"input_{i}": s for i, s in enumerate(samples)})
        module = make()
        settle(module, samples)
        source = arguments.folder / f"{name}.onnx"
        if not source.exists():
            try:
                export(module, samples, source)
            except Exception:  # the newer exporter has operators that the older one lacks
                export(module, samples, source, 20, True)
        chosen = list(made) if not arguments.ways else [list(made)[(number * 7 + 5 * k) % len(made)] for k in range(arguments.ways)]
        for way in dict.fromkeys(chosen):
            path = arguments.folder / f"{name}_{way}.onnx"
            if path.exists():
                continue
            try:
                with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                    part = pathlib.Path(folder) / path.name
                    made[way](module, samples, source, part)
                    for file in pathlib.Path(folder).iterdir():
                        file.rename(arguments.folder / file.name)
            except Exception as error:
                print(f"{path.name}: not written: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}", flush=True)


if __name__ == "__main__":
    main()
