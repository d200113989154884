# SPDX-License-Identifier: Apache-2.0
"""Runs transformer.py in its short form with $REEF_PROGRAM: training, compiling, accuracy on the virtual device, and answers to text.

Takes some minutes, and needs PyTorch and onnx: skipped where these are missing."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MISSING = [name for name in ("torch", "onnx") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
@unittest.skipUnless("REEF_PROGRAM" in os.environ, "$REEF_PROGRAM does not name the program reef")
class Transformer(unittest.TestCase):
    def test_from_training_to_answers(self):
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run([sys.executable, str(HERE / "transformer.py"), "--quick", "--work", folder, "--reef",
                                   os.environ["REEF_PROGRAM"]], check=True, capture_output=True, text=True).stdout
        figures = re.findall(r"PyTorch +([\d.]+)% +Edge TPU +([\d.]+)% +on chip (\d+) of (\d+) +([\d.]+) ms", said)
        self.assertEqual(len(figures), 2, said)
        for (in_torch, on_chip, chip_ops, ops, ms), left in zip(figures, (0, 1)):  # words are looked up on the CPU
            self.assertGreater(float(in_torch), 50, said)
            self.assertGreaterEqual(float(on_chip), float(in_torch) - 5, said)
            self.assertEqual(int(chip_ops), int(ops) - left, said)
            self.assertLess(float(ms), 5, said)
        self.assertRegex(said, r"The sea is very calm today +calm")
        self.assertRegex(said, r"The wind was not gentle +rough")


if __name__ == "__main__":
    unittest.main()
