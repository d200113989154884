# SPDX-License-Identifier: Apache-2.0
"""Runs every example on the shipped models and looks at what it says and draws. With $REEF_EXAMPLES, the C++ ones too."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import reef

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "models"
LABELS = MODELS / "reef_creatures_labels.txt"
# What is drawn in scene 1, as the detector's training script drew it.
SCENE = MODELS / "scenes" / "scene_1.jpg"


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def python(name, *options):
    return run(sys.executable, HERE / name, *options)


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_drawn(self, path):
        before, after = reef.load_image(SCENE), reef.load_image(path)
        self.assertEqual(before.shape, after.shape)
        share = np.mean(np.any(before != after, axis=2))
        self.assertTrue(0.005 < share < 0.6, f"{share:.1%} of the pixels have changed")


class PythonExamples(Examples):
    def test_classify(self):
        for name in ("crab_1.jpg", "jellyfish_1.png", "starfish_2.bmp"):
            first = python("classify.py", "--picture", MODELS / "images" / name).split()
            self.assertEqual(first[0], name.split("_")[0])
            self.assertGreater(float(first[1]), 0.5)

    def test_detect(self):
        lines = python("detect.py", "--picture", SCENE, "--out", self.folder / "boxes.png").splitlines()
        self.assertGreaterEqual(len(lines), 2)
        self.assertTrue(all(line.split()[0] in LABELS.read_text().split() for line in lines))
        self.assert_drawn(self.folder / "boxes.png")

    def test_segment(self):
        text = python("segment.py", "--picture", SCENE, "--out", self.folder / "mask.png")
        self.assertIn("water", text)
        self.assertGreaterEqual(len(text.splitlines()), 3)
        self.assert_drawn(self.folder / "mask.png")

    def test_two_models(self):
        together, apart = python("two_models.py").splitlines()
        self.assertEqual(together.split()[2], "2")
        self.assertEqual(apart.split()[2], "10")

    def test_pipeline(self):
        lines = [line.split() for line in python("pipeline.py").splitlines()]
        shown = [words for words in lines if words[0] != "segment"]
        self.assertEqual(len(shown), 8)
        for name, seen in shown:
            self.assertEqual(name.split("_")[0], seen)


@unittest.skipUnless("REEF_EXAMPLES" in os.environ, "the C++ examples are not built")
class CppExamples(Examples):
    def cpp(self, name, *arguments):
        return run(pathlib.Path(os.environ["REEF_EXAMPLES"]) / name, *arguments)

    def compiled(self, *names, **options):
        return reef.compile([MODELS / f"reef_{name}_int8.tflite" for name in names], self.folder, **options).files

    def test_classify(self):
        model = self.compiled("creatures")[0]
        self.assertEqual(self.cpp("classify", model, LABELS, MODELS / "images" / "turtle_1.jpg").split()[0], "turtle")

    def test_detect_finds_what_the_python_example_finds(self):
        text = self.cpp("detect", self.compiled("detector")[0], LABELS, SCENE, self.folder / "boxes.png")
        other = python("detect.py", "--picture", SCENE, "--out", self.folder / "other.png")
        self.assertEqual([line.split()[0] for line in text.splitlines()], [line.split()[0] for line in other.splitlines()])
        self.assert_drawn(self.folder / "boxes.png")

    def test_segment(self):
        text = self.cpp("segment", self.compiled("segmenter")[0], SCENE, self.folder / "mask.png")
        self.assertGreaterEqual(len(text.splitlines()), 3)
        self.assert_drawn(self.folder / "mask.png")

    def test_two_models(self):
        files = self.compiled("creatures", "segmenter")
        self.assertEqual(self.cpp("two_models", *files, SCENE), "usb:0: 10 runs, parameters brought 2 times\n")

    def test_pipeline(self):
        files = self.compiled("creatures", num_segments=3)
        text = self.cpp("pipeline", MODELS / "images" / "fish_1.jpg", *files)
        self.assertEqual(text, "8 results, best class 2\n")


if __name__ == "__main__":
    unittest.main()
