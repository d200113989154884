# SPDX-License-Identifier: Apache-2.0
"""reef.torch in float arithmetic: beside PyTorch's own modules, and as the first part of fine-tuning what was pruned."""

import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np

import reef

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from test_torch import IMAGE, NETWORKS, OPERATORS, TOKENS, ZOO, Attention, differing, network, prepared  # noqa: E402

import reef.torch  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

# Functions that the graph has as sums of ramps; their error in 256 codes is theirs in float arithmetic, too.
RAMPS = {"mish": 0.01, "softplus": 0.01, "divided number": 0.02, "number by sigmoid": 0.01}


def distance(wanted, outputs):
    """The largest difference relative to the largest value. A shape whose sizes are equal has no order of dimensions that could be told, so
    values are compared by size."""
    parts = [outputs] if torch.is_tensor(outputs) else list(outputs)
    ours = torch.cat([part.reshape(len(wanted), -1) for part in parts], 1).sort(1).values
    theirs = wanted.reshape(len(wanted), -1).sort(1).values
    return float((ours - theirs).abs().max() / theirs.abs().max())


class OperatorsTest(unittest.TestCase):
    """Every operator beside PyTorch's: rounding apart, both arithmetics compute what the module computes."""


def _operator_test(name):
    def test(self):
        build, shape, _ = OPERATORS[name]
        module, qat, samples = prepared(build, shape)
        with torch.no_grad():
            wanted = module(samples)
            self.assertLess(distance(wanted, qat(samples)), 0.05, "in the chip's arithmetic")
            qat.arithmetic = "float"
            self.assertLess(distance(wanted, qat(samples)), RAMPS.get(name, 0.004), "in float arithmetic")
    return test


for _name in OPERATORS:
    setattr(OperatorsTest, "test_" + _name.replace(" ", "_"), _operator_test(_name))


@unittest.skipUnless(ZOO.exists(), "the model collection is not beside the repository")
class NetworksTest(unittest.TestCase):
    """Whole networks beside ONNX Runtime."""


def _network_test(name):
    def test(self):
        try:
            import onnxruntime
        except ImportError as error:
            raise unittest.SkipTest("onnxruntime is not installed") from error
        pixels = np.load(ZOO / "data" / f"{NETWORKS[name]}.npz")["calib"][:8]
        samples = (pixels.astype(np.float32).transpose(0, 3, 1, 2) - 127.5) / 127.5
        session = onnxruntime.InferenceSession(str(ZOO / "onnx" / f"{name}.onnx"))
        wanted = np.concatenate([session.run(None, {session.get_inputs()[0].name: sample[None]})[0] for sample in samples])
        qat = network(name)
        qat.arithmetic = "float"
        with torch.no_grad():
            self.assertLess(distance(torch.from_numpy(wanted), qat(torch.from_numpy(samples))), 0.01)
    return test


for _name in NETWORKS:
    setattr(NetworksTest, "test_" + _name, _network_test(_name))


def scales_of(qat):
    weights = [getattr(qat.constants, f"scales_{tensor}") for tensor in qat.constants.origins if qat.constants.role(tensor) == "weights"]
    return [value.clone() for value in (qat.scales.base, qat.scales.zeros, *weights)]


class CalibrationTest(unittest.TestCase):
    """calibrate() chooses what the quantizer chose, where the weights are the same."""

    def assert_same(self, before, after):
        for a, b in zip(before, after):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)

    def test_the_quantizers_scales_come_out_again(self):
        build = lambda: nn.Sequential(nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 6, 3, stride=2), nn.Flatten(), nn.Linear(54, 4))  # noqa: E731
        _, qat, samples = prepared(build, IMAGE)
        before = scales_of(qat)
        qat.scales.base *= torch.where(qat.scales._learns > 0, 3.0, 1.0)
        for tensor in qat.constants.origins:
            if qat.constants.role(tensor) == "weights":
                getattr(qat.constants, f"scales_{tensor}").mul_(2.0)
        qat.calibrate([samples[:10], samples[10:]])
        self.assert_same(before, scales_of(qat))

    def test_room_that_the_quantizer_left_stays(self):
        """It widens the ranges of variances; LayerNorm has one."""
        _, qat, samples = prepared(Attention, TOKENS)
        before = scales_of(qat)
        qat.calibrate([samples], qat.observed([samples]))
        self.assert_same(before, scales_of(qat))

    def test_larger_weights_get_larger_scales(self):
        module, qat, samples = prepared(lambda: nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 1)), IMAGE)
        seen = qat.observed([samples])
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter *= 4.0 if name.startswith("0.") else 1.0
            layer = qat.graph.ops[0].inputs
            for tensor in layer[1:]:
                qat.constants.values[str(tensor)] *= 4.0
            qat.calibrate([samples], seen)
            self.assertLess(distance(module(samples), qat(samples)), 0.03)
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(differing(qat, folder, 16)[0], 0)


def pruned_network(folder):
    """A trained network, what it learned from, and its float file with two thirds of the weights set to zero."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.SiLU(), nn.Flatten(), nn.Linear(64, 4))
    directions = torch.randn(4, 3, 8, 8)
    labels = torch.randint(0, 4, (512,))
    samples = torch.randn(512, 3, 8, 8) + 0.7 * directions[labels]
    optimizer = torch.optim.Adam(module.parameters(), 2e-3)
    for _ in range(15):
        for x, y in zip(samples.split(64), labels.split(64)):
            optimizer.zero_grad()
            F.cross_entropy(module(x), y).backward()
            optimizer.step()
    with torch.no_grad():
        for layer in module:
            if hasattr(layer, "weight"):
                limit = layer.weight.abs().flatten().kthvalue(int(layer.weight.numel() * 0.66)).values
                layer.weight *= layer.weight.abs() > limit
    path = os.path.join(folder, "pruned.onnx")
    torch.onnx.export(module.eval(), (samples[:1],), path, dynamo=False)
    return path, samples, labels, module


class RecoverTest(unittest.TestCase):
    def test_a_pruned_network_recovers_and_its_zeros_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            path, samples, labels, _ = pruned_network(folder)
            qat = reef.torch.prepare_qat(path, samples[:1], samples[:128], keep_zeros=True)
            names = {str(t): o.name for t, o in qat.constants.origins.items()}
            zeros = {key: value == 0 for key, value in qat.constants.values.items() if qat.constants.role(int(key)) == "weights"}
            with torch.no_grad():
                before = float(F.cross_entropy(qat(samples), labels))
            told = []
            losses = reef.torch.finetune(qat, list(zip(samples.split(64), labels.split(64))), float_epochs=8, float_rate=3e-3, epochs=2, rate=3e-4,
                                         progress=lambda epoch, loss: told.append(epoch))
            self.assertEqual(told, list(range(1, 11)))
            self.assertEqual(len(losses), 10)
            self.assertEqual(qat.arithmetic, "chip")
            with torch.no_grad():
                after = float(F.cross_entropy(qat(samples), labels))
            self.assertLess(after, 0.6 * before)
            for key, was_zero in zeros.items():
                codes = qat.constants.weights(int(key)).detach()
                self.assertGreater(int(was_zero.sum()), 0.5 * was_zero.numel(), names[key])
                self.assertEqual(int((codes[was_zero] != 0).sum()), 0, names[key])
            self.assertEqual(differing(qat, folder, 32)[0], 0)

    def test_recovering_alone_leaves_scales_that_fit(self):
        """Weights that became much larger or smaller would saturate in the scales of before."""
        with tempfile.TemporaryDirectory() as folder:
            path, samples, labels, _ = pruned_network(folder)
            qat = reef.torch.prepare_qat(path, samples[:1], samples[:128], keep_zeros=True)
            reef.torch.recover(qat, list(zip(samples.split(64), labels.split(64))), epochs=12, rate=1e-2)
            with torch.no_grad():
                chip = qat(samples)
                qat.arithmetic = "float"
                self.assertLess(distance(qat(samples), chip), 0.05)

    def test_time_ends_training(self):
        _, qat, samples = prepared(lambda: nn.Sequential(nn.Conv2d(8, 4, 3), nn.Flatten()), IMAGE)
        for train in (reef.torch.recover, reef.torch.finetune):
            losses = train(qat, [samples] * 4, teacher=lambda x: torch.zeros(len(x), 144), epochs=10000, seconds=0.5)
            self.assertLess(len(losses), 10000)
            self.assertGreater(len(losses), 0)

    def test_sentences(self):
        _, qat, samples = prepared(lambda: nn.Conv2d(8, 4, 3), IMAGE)
        with self.assertRaisesRegex(reef.Error, "no arithmetic 'exact'; there are chip, float"):
            qat.arithmetic = "exact"
        with self.assertRaisesRegex(reef.Error, "this one holds 0"):
            reef.torch.recover(nn.Linear(2, 2), [samples])
        with self.assertRaisesRegex(reef.Error, "holds no batch"):
            reef.torch.finetune(qat, [])
        with self.assertRaisesRegex(reef.Error, "float_epochs"):
            reef.torch.finetune(qat, [samples], float_epochs=-1)
        codes = qat.codes(samples)[0]
        qat.arithmetic = "float"
        np.testing.assert_array_equal(qat.codes(samples)[0], codes)
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(reef.Error, "float arithmetic, whose weights have no codes"):
            reef.torch.convert(qat, os.path.join(folder, "model.tflite"))


class PicturesTest(unittest.TestCase):
    def test_every_picture_once_an_epoch(self):
        images = np.arange(10 * 4 * 5 * 3, dtype=np.int64).reshape(10, 4, 5, 3).astype(np.uint8)
        batches = reef.torch.PictureBatches(images, np.arange(10), batch=5, mirror=False, move=0, mean=0, deviation=1)
        self.assertEqual(len(batches), 2)
        orders = []
        for _ in range(2):
            inputs, labels = (torch.cat(parts) for parts in zip(*batches))
            np.testing.assert_array_equal(inputs.permute(0, 2, 3, 1).numpy(), images[labels.numpy()])
            self.assertEqual(sorted(labels.tolist()), list(range(10)))
            orders.append(labels.tolist())
        self.assertNotEqual(*orders)

    def test_moved_and_mirrored(self):
        """Every picture is one of the 2 * 5 * 5 variants made by NumPy."""
        images = np.random.default_rng(0).integers(0, 256, (64, 6, 7, 3), dtype=np.uint8)
        batches = reef.torch.PictureBatches(images, np.arange(64), batch=64, move=2, mean=0, deviation=1)
        inputs, labels = next(iter(batches))
        seen = set()
        for picture, label in zip(inputs.permute(0, 2, 3, 1).numpy().astype(np.uint8), labels.tolist()):
            padded = np.pad(images[label], ((2, 2), (2, 2), (0, 0)), mode="reflect")
            variants = {(y, x, flip): padded[y:y + 6, x:x + 7][:, ::flip] for y in range(5) for x in range(5) for flip in (1, -1)}
            found = [place for place, variant in variants.items() if np.array_equal(variant, picture)]
            self.assertEqual(len(found), 1)
            seen.add(found[0])
        self.assertGreater(len(seen), 25)

    def test_sentences(self):
        images = np.zeros((4, 8, 8, 3), np.uint8)
        for sentence, arguments, options in (("must be bytes", (images.astype(np.float32),), {}), ("have 3 labels", (images, [0, 1, 2]), {}),
                                             ("cannot be moved by 8", (images,), {"move": 8})):
            with self.assertRaisesRegex(reef.Error, sentence):
                reef.torch.PictureBatches(*arguments, **options)


if __name__ == "__main__":
    unittest.main()
