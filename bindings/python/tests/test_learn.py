# SPDX-License-Identifier: Apache-2.0
"""reef.learn and PyCoral's learning classes, against NumPy's evaluation of their definitions."""

import pathlib
import sys
import tempfile
import unittest

import numpy as np

import reef
from reef.coral.learn.backprop.softmax_regression import SoftmaxRegression
from reef.coral.learn.imprinting.engine import ImprintingEngine

ROOT = pathlib.Path(__file__).resolve().parents[3]
CREATURES = ROOT / "models" / "reef_creatures_int8.tflite"
sys.path.insert(0, str(ROOT / "examples" / "python"))
import learn_three_classes as drawn  # noqa: E402


def picture(name, seed):
    """48 x 48 pixels, each twice as wide and high."""
    pixels = np.frombuffer(drawn.draw(name, seed).split(b"255\n", 1)[1], np.uint8).reshape(48, 48, 3)
    return pixels.repeat(2, axis=0).repeat(2, axis=1)[None]


class Model:
    """Runs a model on pictures; results as real numbers."""

    def __init__(self, content):
        self.interpreter = reef.Interpreter(model_content=content)
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.output = self.interpreter.get_output_details()[0]

    def __call__(self, pixels):
        self.interpreter.set_tensor(self.input["index"], pixels)
        self.interpreter.invoke()
        scale, zero = self.output["quantization"]
        return (self.interpreter.get_tensor(self.output["index"]).astype(np.float32).ravel() - zero) * np.float32(scale)


class Learning(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.names = sorted(drawn.SHAPES)
        cls.extractor = ImprintingEngine(CREATURES).serialize_extractor_model()
        embed = Model(cls.extractor)
        cls.train = [[embed(picture(name, seed)) for seed in range(20)] for name in cls.names]
        cls.test = [[embed(picture(name, 500 + seed)) for seed in range(10)] for name in cls.names]

    def test_imprinting_engine(self):
        engine = ImprintingEngine(str(CREATURES), keep_classes=False)
        self.assertEqual(engine.embedding_dim, 96)
        self.assertEqual(engine.num_classes, 0)
        for number, rows in enumerate(self.train):
            for row in rows:
                engine.train(row, number)
        self.assertEqual(engine.num_classes, 3)
        with self.assertRaises(reef.Error):
            engine.train(self.train[0][0], 5)
        unit = [np.stack([row / np.linalg.norm(row) for row in rows]).sum(0) for rows in self.train]
        weights = np.stack([total / np.linalg.norm(total) for total in unit])
        learned = Model(engine.serialize_model())
        agree = 0
        for name in self.names:
            for seed in range(500, 510):
                expected = self.test[self.names.index(name)][seed - 500] @ weights.T
                agree += learned(picture(name, seed)).argmax() == expected.argmax()
        self.assertGreaterEqual(agree, 28)
        kept = ImprintingEngine(engine.serialize_model(), keep_classes=True)
        self.assertEqual(kept.num_classes, 3)
        kept.set_class_name(1, "boat")
        self.assertEqual(kept.class_names[1], "boat")

    def test_softmax_regression(self):
        rows = np.concatenate([np.stack(each) for each in self.train])
        labels = np.repeat(np.arange(3), 20)
        layer = SoftmaxRegression(96, 3, reg=1e-4, seed=1)
        # As PyCoral's own test does it: before anything is trained.
        self.assertEqual(Model(layer.serialize_model(CREATURES))(picture("boat", 1)).shape, (3,))
        layer.train_with_sgd({"data_train": rows, "labels_train": labels}, 1500, 0.05, batch_size=20, print_every=0)
        self.assertGreater(layer.get_accuracy(rows, labels), 0.85)
        learned = Model(layer.serialize_model(CREATURES))
        weights, biases = reef.learn.train_softmax(rows, labels, 3)
        agree = right = 0
        for number, name in enumerate(self.names):
            for seed in range(10):
                row = self.test[number][seed]
                agree += learned(picture(name, 500 + seed)).argmax() == layer.run_inference(row[None])[0]
                right += (weights @ row + biases).argmax() == number
        self.assertGreaterEqual(agree, 28)
        self.assertGreaterEqual(right, 18)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn.write_pictures(folder + "/train", 0, 6)
            told = []
            result = reef.learn.imprint(CREATURES, folder + "/train", folder + "/m.tflite",
                                        progress=lambda done, total: told.append((done, total)))
            self.assertEqual(result.class_names, self.names)
            self.assertEqual(told[-1], (18, 18))
            self.assertIsNotNone(result.accuracy)
            again = reef.learn.softmax(CREATURES, pathlib.Path(folder) / "train", folder + "/s.tflite", hold_back=0)
            self.assertIsNone(again.accuracy)
            with self.assertRaises(reef.Error):
                reef.learn.imprint(CREATURES, folder + "/train", folder + "/m.tflite", speed=3)


if __name__ == "__main__":
    unittest.main()
