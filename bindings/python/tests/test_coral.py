# SPDX-License-Identifier: Apache-2.0
"""What PyCoral's functions return and raise, which programs written for it rely on."""

import pathlib
import tempfile
import threading
import unittest

import numpy as np

import reef
from reef.coral.adapters import classify, common, detect
from reef.coral.learn.imprinting import engine
from reef.coral.pipeline.pipelined_model_runner import PipelinedModelRunner
from reef.coral.utils import dataset, edgetpu

MODELS = pathlib.Path(__file__).resolve().parents[3] / "models"
CREATURES = MODELS / "reef_creatures_int8.tflite"
DETECTOR = MODELS / "reef_detector_int8.tflite"


class Labels(unittest.TestCase):
    # What PyCoral 2.0's read_label_file gave for these files.
    CASES = [
        ("0\n1\n2\n", {0: "0", 1: "1", 2: "2"}),
        ("7\n3\n", {0: "7", 1: "3"}),
        ("3,three\n", {0: "3,three"}),
        ("0 background\n1  cat\n", {0: "background", 1: "cat"}),
        ("0:background\n5: a dog\n", {0: "background", 5: "a dog"}),
        ("10\tten\n", {10: "ten"}),
        ("cat\n\ndog\n", {0: "cat", 1: "", 2: "dog"}),
        ("0 cat\r\n1 dog\r\n", {0: "cat", 1: "dog"}),
        ("cat\r\ndog", {0: "cat", 1: "dog"}),
        ("  4 four  \n", {4: "four"}),
        ("-1 nothing\n", {0: "-1 nothing"}),
        ("12:\n", {12: ""}),
        ("\ufeff0 cat\n1 dog\n", {0: "\ufeff0 cat", 1: "dog"}),
        ("3D printer\n", {0: "3D printer"}),
    ]

    def test_as_pycoral_reads_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "labels.txt"
            for text, expected in self.CASES:
                path.write_bytes(text.encode())
                self.assertEqual(dataset.read_label_file(str(path)), expected, repr(text))


class FakeDetector:
    """Outputs of a detector, by signature or in one of two orders."""

    def __init__(self, tensors, signature=None):
        self._tensors, self._signature = tensors, signature

    def _get_full_signature_list(self):
        return {"serving_default": {"inputs": {}, "outputs": self._signature}} if self._signature else {}

    def get_input_details(self):
        return [{"shape": np.array([1, 100, 200, 3])}]

    def get_output_details(self):
        return [{"index": i} for i in range(4)]

    def tensor(self, index):
        return lambda: self._tensors[index]


class Adapters(unittest.TestCase):
    BOXES = np.array([[[0.0, 0.1, 0.5, 0.6], [0.2, 0.2, 0.4, 0.4], [0, 0, 1, 1]]], np.float32)
    CLASSES = np.array([[7, 2, 0]], np.float32)
    SCORES = np.array([[0.75, 0.5, 0.25]], np.float32)
    COUNT = np.array([2], np.float32)

    def test_set_resized_input_gives_the_picture_and_the_scale(self):
        interpreter = reef.Interpreter(CREATURES)
        interpreter.allocate_tensors()
        asked = []

        def resize(size):
            asked.append(size)
            return np.full((size[1], size[0], 3), 9, np.uint8)

        result, scale = common.set_resized_input(interpreter, (192, 48), resize)
        self.assertEqual((asked, scale), ([(96, 24)], (0.5, 0.5)))
        self.assertEqual(result.shape, (24, 96, 3))
        self.assertEqual(int(common.input_tensor(interpreter)[:24].min()), 9)
        self.assertEqual(int(np.abs(common.input_tensor(interpreter)[24:]).max()), 0)

    def test_objects_in_every_order_of_outputs(self):
        old = FakeDetector([self.BOXES, self.CLASSES, self.SCORES, self.COUNT])
        new = FakeDetector([self.SCORES, self.BOXES, self.COUNT, self.CLASSES])
        named = FakeDetector([self.CLASSES, self.BOXES, self.COUNT, self.SCORES],
                             {"output_0": 2, "output_1": 3, "output_2": 0, "output_3": 1})
        for interpreter in (old, new, named):
            found = detect.get_objects(interpreter, 0.4, image_scale=(0.5, 0.5))
            self.assertEqual([(o.id, o.score) for o in found], [(7, 0.75), (2, 0.5)])
            self.assertEqual(found[0].bbox, (40, 0, 240, 100))
            # As in PyCoral, all rows that the outputs have, whatever the count says.
            self.assertEqual(len(detect.get_objects(interpreter)), 3)

    def test_several_signatures_are_refused(self):
        interpreter = FakeDetector([], None)
        interpreter._get_full_signature_list = lambda: {"a": {}, "b": {}}
        with self.assertRaisesRegex(ValueError, "Only support model with one signature"):
            detect.get_objects(interpreter)

    def test_scores_may_be_a_list(self):
        self.assertEqual(classify.get_classes_from_scores([0.1, 0.9], top_k=1), [classify.Class(1, 0.9)])


class Errors(unittest.TestCase):
    def test_devices(self):
        for device in (":1000", "foo", "usb:77"):
            with self.assertRaisesRegex(ValueError, "Failed to load delegate"):
                edgetpu.make_interpreter(str(CREATURES), device=device)
        with self.assertRaisesRegex(ValueError, "there is no Edge TPU ':1000'; there are"):
            edgetpu.load_edgetpu_delegate({"device": ":1000"})

    def test_files(self):
        with self.assertRaisesRegex(ValueError, r"Could not open 'absent\.tflite'\."):
            edgetpu.make_interpreter("absent.tflite")
        with self.assertRaisesRegex(ValueError, r"Failed to open file: absent\.tflite"):
            engine.ImprintingEngine("absent.tflite")

    def test_not_ready(self):
        interpreter = edgetpu.make_interpreter(str(CREATURES))
        data = np.zeros(96 * 96 * 3, np.uint8)
        for call in (lambda: edgetpu.invoke_with_membuffer(interpreter, data.ctypes.data, data.size),
                     lambda: edgetpu.invoke_with_bytes(interpreter, data.tobytes()),
                     lambda: edgetpu.invoke_with_dmabuffer(interpreter, 0, data.size)):
            with self.assertRaisesRegex(RuntimeError, "Invoke called on model that is not ready"):
                call()

    def test_pipeline(self):
        with self.assertRaisesRegex(ValueError, "At least one interpreter expected"):
            PipelinedModelRunner([])
        with tempfile.TemporaryDirectory() as folder:
            files = reef.compile(CREATURES, folder, num_segments=2).files
            segments = [edgetpu.make_interpreter(file, device=f":{i}") for i, file in enumerate(files)]
            for segment in segments:
                segment.allocate_tensors()
            with self.assertRaisesRegex(ValueError, r"Interpreter \d+ can not get its input tensors"):
                PipelinedModelRunner(segments[::-1])
            runner = PipelinedModelRunner(segments)
            details = segments[0].get_input_details()[0]
            good = np.zeros(details["shape"], details["dtype"])
            with self.assertRaisesRegex(ValueError, "Input should be a list of numpy array of type"):
                runner.push({details["name"]: good.astype(np.float64)})
            with self.assertRaisesRegex(ValueError, "Expected input of length 1, but got 2"):
                runner.push({details["name"]: good, "more": good})
            self.assertIsNone(runner.push({details["name"]: good}))
            self.assertEqual(len(runner.pop()), 1)
            runner.push({})
            with self.assertRaisesRegex(RuntimeError, "Pipeline was turned off before"):
                runner.push({details["name"]: good})
            self.assertIsNone(runner.pop())

    def test_pipeline_of_segments_that_are_not_ready(self):
        with tempfile.TemporaryDirectory() as folder:
            files = reef.compile(CREATURES, folder, num_segments=2).files
            segments = [edgetpu.make_interpreter(file, device=f":{i}") for i, file in enumerate(files)]
            runner = PipelinedModelRunner(segments)
            details = segments[0].get_input_details()[0]
            picture = {details["name"]: np.zeros(details["shape"], details["dtype"])}
            runner.push(picture)
            for call in (runner.pop, lambda: runner.push(picture)):
                with self.assertRaisesRegex(RuntimeError, "Segment 0 runner error: Invoke called on model that is not ready"):
                    call()

    def test_pipeline_holds_what_its_queues_hold(self):
        with tempfile.TemporaryDirectory() as folder:
            files = reef.compile(CREATURES, folder, num_segments=2).files
            segments = [edgetpu.make_interpreter(file, device=f":{i}") for i, file in enumerate(files)]
            for segment in segments:
                segment.allocate_tensors()
            runner = PipelinedModelRunner(segments)
            runner.set_input_queue_size(1)
            runner.set_output_queue_size(1)
            details = segments[0].get_input_details()[0]
            picture = {details["name"]: np.zeros(details["shape"], details["dtype"])}
            most = 2 * len(segments) + 1  # a place in each segment and in each queue between, before and behind them
            for _ in range(most):
                runner.push(picture)
            more = threading.Thread(target=lambda: (runner.push(picture), runner.push({})))
            more.start()
            more.join(0.5)
            self.assertTrue(more.is_alive())  # until somebody takes a result
            count = 0
            while runner.pop():
                count += 1
            self.assertEqual(count, most + 1)
            more.join(5)
            self.assertFalse(more.is_alive())

    def test_imprinting_without_training(self):
        with self.assertRaisesRegex(RuntimeError, "Model is not trained"):
            engine.ImprintingEngine(str(CREATURES)).serialize_model()


class Layout(unittest.TestCase):
    def test_the_library_has_both_of_its_names(self):
        library = pathlib.Path(reef.libedgetpu_path())
        if not library.exists():
            self.skipTest("the delegate is not built")
        self.assertTrue((library.parent / "libedgetpu.so.1.0").exists())  # which Frigate asks for


if __name__ == "__main__":
    unittest.main()
