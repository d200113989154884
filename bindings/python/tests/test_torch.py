# SPDX-License-Identifier: Apache-2.0
"""reef.torch: codes in PyTorch beside those of the virtual Edge TPU, which executes the compiled file's machine code.

REEF_QAT_INPUTS sets how many random inputs are compared for each operator and network (64 and 4 unless given; 1000 for a
record).
"""

import os
import pathlib
import tempfile
import unittest

import numpy as np

import reef

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

import reef.torch

COUNT = os.environ.get("REEF_QAT_INPUTS")
ZOO = pathlib.Path(__file__).resolve().parents[4] / "shared" / "zoo"
torch.set_num_threads(1)


class Apply(nn.Module):
    """A function as a module, behind a layer, so that its operand is a computed tensor of all signs."""

    def __init__(self, function, channels=8, before=None):
        super().__init__()
        self.function = function
        self.before = nn.Conv2d(channels, channels, 1) if before is None else before

    def forward(self, x):
        return self.function(self.before(x))


class Twice(nn.Module):
    """A function of two computed tensors."""

    def __init__(self, function, channels=8):
        super().__init__()
        self.function, self.a, self.b = function, nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return self.function(F.relu(self.a(x)), self.b(x))  # the activation keeps the simplifier from joining the layers


class Attention(nn.Module):
    """Multi-head attention with LayerNorm, as transformers have it."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm, self.qkv, self.out, self.heads = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        n, tokens, width = x.shape
        q, k, v = (t.reshape(n, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(n, tokens, width))


class Normalized(nn.Module):
    """Batch norm behind a layer, with statistics of its own."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2.0)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


IMAGE = (1, 8, 8, 8)
TOKENS = (1, 8, 16)
CONSTANT = torch.linspace(-1.5, 1.0, 8).reshape(1, 8, 1, 1)
MATRIX = torch.linspace(-2.0, 2.0, 8 * 8 * 8).reshape(1, 8, 8, 8)

# Trials by name: the module, its input, and an operator that the chip must get.
OPERATORS = {
    "conv": (lambda: nn.Conv2d(8, 12, 3, padding=1), IMAGE, "CONV_2D"),
    "conv stride": (lambda: nn.Conv2d(8, 12, 3, stride=2, padding=1), IMAGE, "PAD"),
    "conv dilation": (lambda: nn.Conv2d(8, 8, 3, padding=2, dilation=2), IMAGE, "CONV_2D"),
    "conv valid relu": (lambda: nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU()), IMAGE, "CONV_2D"),
    "conv relu6": (lambda: nn.Sequential(nn.Conv2d(8, 8, 1), nn.ReLU6()), IMAGE, "CONV_2D"),
    "conv long sums": (lambda: nn.Conv2d(256, 16, 3, padding=1), (1, 256, 4, 4), "CONV_2D"),
    "batch norm": (Normalized, IMAGE, "CONV_2D"),
    "depthwise": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), IMAGE, "DEPTHWISE_CONV_2D"),
    "depthwise stride": (lambda: nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=8), IMAGE, "DEPTHWISE_CONV_2D"),
    "linear": (lambda: nn.Linear(16, 10), (1, 16), "FULLY_CONNECTED"),
    "linear rows": (lambda: nn.Linear(16, 24), TOKENS, "RESHAPE"),
    "transposed conv": (lambda: nn.ConvTranspose2d(8, 6, 2, stride=2), IMAGE, "TRANSPOSE_CONV"),
    "transposed conv 3": (lambda: nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1), IMAGE, "SLICE"),
    "matrix product": (lambda: Twice(lambda a, b: a @ b.transpose(-1, -2)), IMAGE, "BATCH_MATMUL"),
    "average pool": (lambda: Apply(lambda x: F.avg_pool2d(x, 2)), IMAGE, "AVERAGE_POOL_2D"),
    "global average": (lambda: Apply(lambda x: F.adaptive_avg_pool2d(x, 1)), IMAGE, "MEAN"),
    "max pool": (lambda: Apply(lambda x: F.max_pool2d(x, 3, 2, 1)), IMAGE, "MAX_POOL_2D"),
    "add": (lambda: Twice(torch.add), IMAGE, "ADD"),
    "add relu": (lambda: Twice(lambda a, b: F.relu(a + b)), IMAGE, "ADD"),
    "sub": (lambda: Twice(torch.sub), IMAGE, "SUB"),
    "mul": (lambda: Twice(torch.mul), IMAGE, "MUL"),
    "maximum": (lambda: Twice(torch.maximum), IMAGE, "MAXIMUM"),
    "minimum": (lambda: Twice(torch.minimum), IMAGE, "MINIMUM"),
    "squared difference": (lambda: Twice(lambda a, b: (a - b) ** 2), IMAGE, "SQUARED_DIFFERENCE"),
    "add channel constant": (lambda: Apply(lambda x: F.relu(x) + CONSTANT), IMAGE, "ADD"),
    "constant minus": (lambda: Apply(lambda x: CONSTANT - F.relu(x)), IMAGE, "SUB"),
    "mul channel constant": (lambda: Apply(lambda x: F.relu(x) * CONSTANT), IMAGE, "MUL"),
    "add tensor constant": (lambda: Apply(lambda x: x + MATRIX), IMAGE, "ADD"),
    "mul tensor constant": (lambda: Apply(lambda x: x * MATRIX), IMAGE, "MUL"),
    "broadcast": (lambda: Apply(lambda x: x * x.mean((2, 3), keepdim=True)), IMAGE, "MUL"),
    "sigmoid": (lambda: Apply(torch.sigmoid), IMAGE, "LOGISTIC"),
    "tanh": (lambda: Apply(torch.tanh), IMAGE, "TANH"),
    "gelu": (lambda: Apply(F.gelu), IMAGE, "GELU"),
    "silu": (lambda: Apply(F.silu), IMAGE, "MUL"),
    "hard swish": (lambda: Apply(F.hardswish), IMAGE, "HARD_SWISH"),
    "hard sigmoid": (lambda: Apply(F.hardsigmoid), IMAGE, "RELU_0_TO_1"),
    "leaky relu": (lambda: Apply(lambda x: F.leaky_relu(x, 0.1)), IMAGE, "LEAKY_RELU"),
    "prelu": (lambda: nn.Sequential(nn.Conv2d(8, 8, 1), nn.PReLU(8)), IMAGE, "PRELU"),
    "elu": (lambda: Apply(F.elu), IMAGE, "ELU"),
    "mish": (lambda: Apply(F.mish), IMAGE, "DEPTHWISE_CONV_2D"),
    "exp": (lambda: Apply(torch.exp), IMAGE, "EXP"),
    "abs": (lambda: Apply(torch.abs), IMAGE, "ABS"),
    "log": (lambda: Apply(lambda x: torch.log(F.relu(x) + 0.3)), IMAGE, "LOG"),
    "softplus": (lambda: Apply(F.softplus), IMAGE, "CONV_2D"),
    "quick gelu": (lambda: Apply(lambda x: x * torch.sigmoid(1.702 * x)), IMAGE, "CONV_2D"),
    "rsqrt": (lambda: Apply(lambda x: torch.rsqrt(F.relu(x) + 0.5)), IMAGE, "RSQRT"),
    "divided number": (lambda: Apply(lambda x: 1.5 / (F.relu(x) + 0.5)), IMAGE, "ADD"),
    "softmax": (lambda: Apply(lambda x: torch.softmax(x * 4, -1)), IMAGE, "SOFTMAX"),
    "l2 normalize": (lambda: Apply(lambda x: F.normalize(x, dim=1)), IMAGE, "L2_NORMALIZATION"),
    "layer norm": (lambda: nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)), TOKENS, "RSQRT"),
    "attention": (Attention, TOKENS, "SPLIT"),
    "mean": (lambda: Apply(lambda x: x.mean(1)), IMAGE, "MEAN"),
    "mean of map": (lambda: Apply(lambda x: x.mean((2, 3))), IMAGE, "MEAN"),
    "sum": (lambda: Apply(lambda x: x.sum(1)), IMAGE, "SUM"),
    "largest": (lambda: Apply(lambda x: x.amax(1)), IMAGE, "REDUCE_MAX"),
    "smallest": (lambda: Apply(lambda x: x.amin((2, 3))), IMAGE, "REDUCE_MIN"),
    "reshape": (lambda: Apply(lambda x: x.reshape(x.shape[0], -1)), IMAGE, "RESHAPE"),
    "pad": (lambda: Apply(lambda x: F.pad(x, (1, 2, 0, 1))), IMAGE, "PAD"),
    "transpose": (lambda: Apply(lambda x: x.transpose(1, 2) + 1), IMAGE, "TRANSPOSE"),
    "slice": (lambda: Apply(lambda x: x[:, :, 1:5, 2:]), IMAGE, "SLICE"),
    "strided slice": (lambda: Apply(lambda x: x[:, :, ::2, 1::2]), IMAGE, "STRIDED_SLICE"),
    "split": (lambda: Apply(lambda x: torch.cat([x[:, 4:], x[:, :4] * 2], 1)), IMAGE, "SPLIT"),
    "tile": (lambda: Apply(lambda x: x.repeat(1, 2, 1, 1)), IMAGE, "TILE"),
    "concatenation": (lambda: Twice(lambda a, b: torch.cat([a, b], 1)), IMAGE, "CONCATENATION"),
    "stack": (lambda: Twice(lambda a, b: torch.stack([a.mean(1), b.mean(1)], 1)), IMAGE, "CONCATENATION"),
    "pixel shuffle": (lambda: Apply(lambda x: F.pixel_shuffle(x, 2)), IMAGE, "STRIDED_SLICE"),
    "pixel unshuffle": (lambda: Apply(lambda x: F.pixel_unshuffle(x, 2)), IMAGE, "STRIDED_SLICE"),
    "bilinear": (lambda: Apply(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")), IMAGE, "RESIZE_BILINEAR"),
    "bilinear corners": (lambda: Apply(lambda x: F.interpolate(x, (15, 15), mode="bilinear", align_corners=True)), IMAGE, "RESIZE_BILINEAR"),
    "nearest": (lambda: Apply(lambda x: F.interpolate(x, scale_factor=2)), IMAGE, "RESIZE_NEAREST_NEIGHBOR"),
    "grouped conv": (lambda: nn.Conv2d(16, 16, 3, padding=1, groups=4), (1, 16, 8, 8), "CONV_2D"),
    "relu": (lambda: Apply(lambda x: F.relu(x) + x), IMAGE, "RELU"),
    "relu6": (lambda: Apply(lambda x: F.relu6(x * 4) + x * 4), IMAGE, "RELU6"),
    "relu from -1 to 1": (lambda: Apply(lambda x: F.hardtanh(x * 2) + x * 2), IMAGE, "RELU_N1_TO_1"),
    "concatenated scales": (lambda: Apply(lambda x: F.avg_pool2d(torch.cat([torch.sigmoid(x), F.relu(x * 6)], 1), 2)), IMAGE,
                            "CONCATENATION"),
    "number by sigmoid": (lambda: Apply(lambda x: 2.0 / (torch.sigmoid(x) + 1.0)), IMAGE, "DEPTHWISE_CONV_2D"),
}


def prepared(build, shape, seed=0, **options):
    torch.manual_seed(seed)
    module = build().eval()
    samples = torch.randn(32, *shape[1:])
    return module, reef.torch.prepare_qat(module, torch.zeros(shape), samples, **options), samples


def shaken(qat, seed=1):
    """Scales and weights as after some training: nothing is as it was calibrated."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in qat.parameters():
        if parameter.requires_grad:
            size = 0.15 if parameter is qat.scales.log_steps else 0.05
            noise = torch.rand(parameter.shape, generator=generator) - 0.5
            parameter.data += 2 * size * noise * (1 if parameter is qat.scales.log_steps else parameter.abs().mean() + 0.1)
    return qat


def differing(qat, folder, count, name="model"):
    """How many codes differ between PyTorch and the virtual device, and of how many."""
    path = os.path.join(folder, name + ".tflite")
    written = reef.torch.convert(qat, path, verify=0)
    compiled = reef.compile(path, folder, verify=False)
    twin = reef.torch.from_quantized(path) if written.notes else qat
    inputs = reef.torch.random_codes(qat, count)
    here = twin.eval().codes(*[torch.from_numpy(values) for values in inputs])
    there = reef.torch.device_codes(compiled.files[0], inputs)
    total = sum(codes.size for codes in here)
    return sum(int((a.reshape(-1) != b.reshape(-1)).sum()) for a, b in zip(here, there)), total


class OperatorsTest(unittest.TestCase):
    """Every operator of the chip, as PyTorch's exporter writes it."""


def _operator_test(build, shape, operator):
    def test(self):
        with tempfile.TemporaryDirectory() as folder:
            _, qat, _ = prepared(build, shape)
            self.assertIn(operator, [op.type for op in qat.graph.ops])
            wrong, total = differing(shaken(qat), folder, int(COUNT or 64))
            self.assertEqual(wrong, 0, f"of {total} codes")
    return test


for _name, (_build, _shape, _operator) in OPERATORS.items():
    setattr(OperatorsTest, "test_" + _name.replace(" ", "_").replace("-", "minus_"), _operator_test(_build, _shape, _operator))

# Network: samples in the collection, and how they become numbers.
NETWORKS = {"cifar_resnet8": "cifar10_eval", "cifar_mobilenetv2": "cifar10_eval", "cifar_effnet_silu": "cifar10_eval",
            "cifar_vit_tiny": "cifar10_eval", "cifar_unet_denoise": "denoise_eval", "shapes_yolo": "shapes_eval"}


def network(name, **options):
    pixels = np.load(ZOO / "data" / f"{NETWORKS[name]}.npz")["calib"][:64]
    samples = (pixels.astype(np.float32).transpose(0, 3, 1, 2) - 127.5) / 127.5
    example = torch.zeros(1, *samples.shape[1:])
    return reef.torch.prepare_qat(ZOO / "onnx" / f"{name}.onnx", example, samples, **options)


@unittest.skipUnless(ZOO.exists(), "the model collection is not beside the repository")
class NetworksTest(unittest.TestCase):
    """Whole networks of the collection."""


def _network_test(name):
    def test(self):
        with tempfile.TemporaryDirectory() as folder:
            qat = shaken(network(name))
            wrong, total = differing(qat, folder, int(COUNT or 4), name)
            self.assertEqual(wrong, 0, f"of {total} codes")
    return test


for _name in NETWORKS:
    setattr(NetworksTest, "test_" + _name, _network_test(_name))


class TrainingTest(unittest.TestCase):
    """Gradients, ranges, the way back to the module."""

    def test_scale_gradient_is_that_of_lsq(self):
        _, qat, samples = prepared(lambda: nn.Conv2d(8, 12, 1), IMAGE)
        output = qat.graph.outputs[0]
        row = qat.scales._row[qat.scales.group_of[output]]
        upstream = torch.randn(4, 12, 8, 8)
        (qat(samples[:4]) * upstream).sum().backward()
        scale, zero = float(qat.scales.base[row]), int(qat.scales.zeros[row])
        info = qat.graph.ops[-1]
        weights, source = qat.constants.weights(info.inputs[1]), qat.scales.group_of[info.inputs[0]]
        x = torch.floor(samples[:4].double() / float(qat.scales.base[qat.scales._row[source]]) + 0.5 + 1e-4)
        x = x.clamp(-int(qat.scales.zeros[qat.scales._row[source]]), 255 - int(qat.scales.zeros[qat.scales._row[source]]))
        unit = float(qat.scales.base[qat.scales._row[source]]) * qat.constants.weight_scales(info.inputs[1]).double()
        bias = torch.round(qat.constants.values[str(info.inputs[2])].double() / unit)
        total = F.conv2d(x, weights.double().permute(0, 3, 1, 2), bias)
        real = total * unit.reshape(1, -1, 1, 1) / scale
        low, high = -zero, 255 - zero
        lsq = torch.where(real < low, torch.full_like(real, low),
                          torch.where(real > high, torch.full_like(real, high), torch.round(real) - real))
        expected = float((upstream * lsq).sum().detach()) * scale / (255 * 12 * 8 * 8) ** 0.5  # with regard to log_steps
        self.assertAlmostEqual(float(qat.scales.log_steps.grad[row]), expected, delta=2e-3 * abs(expected) + 1e-3)

    def test_training_lowers_the_loss_and_stays_exact(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.SiLU(),
                               nn.Flatten(), nn.Linear(8 * 16, 4)).eval()
        samples, labels = torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,))
        for ranges in ("learned", "moving"):
            qat = reef.torch.prepare_qat(module, torch.zeros(1, 3, 8, 8), samples, ranges=ranges)
            optimizer = torch.optim.Adam(qat.parameters(), 3e-3)
            losses = []
            for _ in range(30):
                optimizer.zero_grad()
                loss = F.cross_entropy(qat(samples), labels)
                loss.backward()
                optimizer.step()
                losses.append(float(loss.detach()))
            self.assertLess(losses[-1], 0.85 * losses[0], ranges)
            with tempfile.TemporaryDirectory() as folder:
                self.assertEqual(differing(qat, folder, 32)[0], 0, ranges)

    def test_outputs_are_near_the_float_model(self):
        module, qat, samples = prepared(Normalized, IMAGE)
        with torch.no_grad():
            wanted, got = module(samples), qat(samples)
        self.assertEqual(got.shape, wanted.shape)
        self.assertLess(float((got - wanted).abs().mean()), 0.02 * float(wanted.abs().max()))

    def test_constants_of_one_element_for_each_channel_are_their_own(self):
        """Their codes are 127 throughout, so other constants of their size must not be taken for them: biases, the ramps of functions."""
        for name in ("softplus", "mish", "number by sigmoid"):
            module, qat, samples = prepared(*OPERATORS[name][:2])
            with torch.no_grad():
                wanted, got = module(samples), qat(samples)
            self.assertLess(float((got - wanted).abs().max()), 0.05 * float(wanted.abs().max()), name)

    def test_weights_go_back_into_the_module(self):
        module, qat, samples = prepared(lambda: nn.Sequential(Normalized(), nn.Conv2d(12, 4, 1)), IMAGE)
        shaken(qat)
        with torch.no_grad():
            before = module(samples)
            self.assertEqual(reef.torch.write_back(qat, module), [])
            after, quantized = module(samples), qat(samples)
        self.assertGreater(float((after - before).abs().mean()), 0.01)
        self.assertLess(float((after - quantized).abs().mean()), 0.25 * float((after - before).abs().mean()))

    def test_weights_go_back_behind_a_flatten_and_in_one_dimension(self):
        """The graph has the channels of a picture last, so the columns of the layer behind are in another order."""
        modules = ((lambda: nn.Sequential(nn.Conv2d(8, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 4)), IMAGE),
                   (lambda: nn.Sequential(nn.Conv1d(8, 12, 3, padding=1), nn.BatchNorm1d(12), nn.ReLU(), nn.Conv1d(12, 12, 3, groups=12),
                                          nn.Flatten(), nn.Linear(12 * 8, 4)), (1, 8, 10)))
        for build, shape in modules:
            module, qat, samples = prepared(build, shape)
            shaken(qat)
            with torch.no_grad():
                before = module(samples)
                self.assertEqual(reef.torch.write_back(qat, module), [])
                after, quantized = module(samples), qat(samples)
            self.assertGreater(float((after - before).abs().mean()), 0.01)
            self.assertLess(float((after - quantized).abs().mean()), 0.25 * float((after - before).abs().mean()))

    def test_what_one_exporter_does_not_know_another_one_does(self):
        try:
            import onnxscript  # noqa: F401
        except ImportError as error:
            raise unittest.SkipTest("onnxscript is not installed") from error
        module, qat, samples = prepared(lambda: nn.Sequential(nn.Conv2d(8, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Conv2d(6, 4, 1)), IMAGE)
        with torch.no_grad():
            self.assertLess(float((module(samples) - qat(samples)).abs().mean()), 0.05)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(differing(qat, folder, 16)[0], 0)

    def test_a_teacher_takes_back_what_was_lost(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
                               nn.Linear(8 * 16, 4)).eval()
        with torch.no_grad():
            module[-1].weight *= 20  # scores that differ
        samples, others = torch.randn(256, 3, 8, 8), torch.randn(128, 3, 8, 8)
        qat = shaken(reef.torch.prepare_qat(module, torch.zeros(1, 3, 8, 8), samples))

        def distance():
            return float(reef.torch.distillation_loss(qat(others), module(others)).detach())

        before = distance()
        losses = reef.torch.finetune(qat, list(samples.split(16)), teacher=module, epochs=5, rate=1e-3)
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertLess(distance(), 0.6 * before)  # on samples that were not trained with
        with self.assertRaisesRegex(reef.Error, "need a teacher"):
            reef.torch.finetune(qat, [samples])

    def test_pruned_weights_stay_zero(self):
        torch.manual_seed(0)
        module = nn.Conv2d(8, 8, 3)
        with torch.no_grad():
            module.weight *= (torch.rand_like(module.weight) < 0.4)
        samples = torch.randn(32, *IMAGE[1:])
        qat = reef.torch.prepare_qat(module, torch.zeros(IMAGE), samples, keep_zeros=True)
        optimizer = torch.optim.Adam(qat.parameters(), 1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            qat(samples).square().mean().backward()
            optimizer.step()
        qat.constants.begin()
        codes = qat.constants.weights(qat.graph.ops[0].inputs[1]).detach().permute(0, 3, 1, 2)
        self.assertEqual(int((codes[module.weight == 0] != 0).sum()), 0)
        self.assertGreater(int((codes != 0).sum()), 100)

    def test_a_batch_is_samples_one_by_one(self):
        _, qat, samples = prepared(Attention, TOKENS)
        whole = qat.codes(samples[:5])[0]
        for i in range(5):
            np.testing.assert_array_equal(qat.codes(samples[i:i + 1])[0][0], whole[i])


class RefusalsTest(unittest.TestCase):
    """A sentence for each mistake."""

    def refused(self, sentence, *arguments, **options):
        with self.assertRaisesRegex(reef.Error, sentence):
            reef.torch.prepare_qat(*arguments, **options)

    def test_sentences(self):
        module, samples = nn.Conv2d(3, 4, 1), torch.randn(8, 3, 8, 8)
        self.refused("needs samples", module, samples[:1])
        self.refused("batch of one", module, samples, samples)
        self.refused("needs example_input", module, None, samples)
        self.refused("do not fit", module, samples[:1], torch.randn(8, 5, 8, 8))
        self.refused("no way 'often'", module, samples[:1], samples, ranges="often")
        self.refused("holds no samples", module, samples[:1], [])

    def test_an_operator_without_a_twin_is_named(self):
        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(8, 8, batch_first=True)

            def forward(self, x):
                return self.lstm(x)[0]

        self.refused("twin|leaves to the CPU", Recurrent(), torch.zeros(1, 4, 8), torch.randn(32, 4, 8))

    def test_an_operator_without_code_is_named_before_training(self):
        """The chip's rules allow it, but its scratch does not fit: known only when code is made."""
        module = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.Conv2d(8, 8, 31, padding=15, groups=8))
        self.refused("leaves to the CPU.*DEPTHWISE_CONV_2D.*does not fit", module, torch.zeros(1, 3, 32, 32), torch.randn(8, 3, 32, 32))

    def test_nothing_is_written_where_there_is_no_folder(self):
        _, qat, _ = prepared(lambda: nn.Conv2d(8, 8, 1), IMAGE)
        with self.assertRaisesRegex(reef.Error, "there is no folder"):
            reef.torch.convert(qat, "/nowhere/model.tflite")

if __name__ == "__main__":
    unittest.main()
