# SPDX-License-Identifier: Apache-2.0
"""The Python package. Results are compared with what TFLite's reference kernels answered (models/vectors.json)."""

import ctypes
import gc
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import reef
from reef.coral.adapters import classify, common, detect, segment
from reef.coral.pipeline.pipelined_model_runner import PipelinedModelRunner
from reef.coral.utils import dataset, edgetpu

MODELS = pathlib.Path(__file__).resolve().parents[3] / "models"
CREATURES = MODELS / "reef_creatures_int8.tflite"
FLOATS = MODELS / "reef_creatures_float.tflite"
DETECTOR = MODELS / "reef_detector_int8.tflite"
SEGMENTER = MODELS / "reef_segmenter_int8.tflite"


def generated(seed, shape):
    """The input that vectors.json describes."""
    values, s = np.empty(int(np.prod(shape)), dtype=np.uint8), seed
    for i in range(len(values)):
        s = (s * 1664525 + 1013904223) % 2**32
        values[i] = s >> 24
    return values.reshape(shape)


def started(path, **options):
    interpreter = reef.Interpreter(path, **options)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter, value):
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


class CompiledModels(unittest.TestCase):
    """Models compiled once for all tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.compiled = {m: reef.compile(m, cls.folder.name).files[0] for m in (CREATURES, DETECTOR, SEGMENTER)}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


class InterpreterTest(CompiledModels):
    def test_equals_tflites_reference_kernels(self):
        recorded = json.loads((MODELS / "vectors.json").read_text())["models"][CREATURES.name]
        interpreter = started(CREATURES)
        for case in recorded["generated"]:
            value = generated(case["lcg_seed"], (1, 96, 96, 3))
            self.assertEqual(hashlib.sha256(value.tobytes()).hexdigest(), case["input_sha256"])
            self.assertEqual(hashlib.sha256(run(interpreter, value).tobytes()).hexdigest(), case["output_sha256"])

    def test_all_tensors_equal_tflites_where_they_are_preserved(self):
        case = json.loads((MODELS / "vectors.json").read_text())["models"][CREATURES.name]["generated"][0]
        interpreter = started(CREATURES, experimental_preserve_all_tensors=True)
        run(interpreter, generated(case["lcg_seed"], (1, 96, 96, 3)))
        seen = []
        for op in interpreter._get_ops_details():
            value = interpreter.get_tensor(int(op["outputs"][0]))
            self.assertIs(value.dtype.type, op["result_types"][0])
            seen.append(f"{op['op_name']} {hashlib.sha256(value.tobytes()).hexdigest()}")
        self.assertEqual(seen, case["op_output_sha256"])

    def test_inner_shapes_follow_the_input(self):
        interpreter = reef.Interpreter(FLOATS, experimental_preserve_all_tensors=True)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (2, 96, 96, 3))
        interpreter.allocate_tensors()
        first = interpreter._get_op_details(0)
        self.assertEqual(interpreter.get_tensor_details()[first["outputs"][0]]["shape"][0], 2)
        self.assertEqual(interpreter.num_subgraphs(), 1)
        with self.assertRaisesRegex(ValueError, "out of range"):
            interpreter.get_tensor_details(subgraph_index=1)

    def test_details_are_those_of_tflite(self):
        details = reef.Interpreter(CREATURES).get_input_details()[0]
        self.assertEqual(details["name"], "serving_default_picture:0")
        self.assertEqual(details["shape"].tolist(), [1, 96, 96, 3])
        self.assertEqual(details["shape"].dtype, np.int32)
        self.assertIs(details["dtype"], np.uint8)
        self.assertAlmostEqual(details["quantization"][0], 1 / 255, places=6)
        self.assertEqual(set(details), {"name", "index", "shape", "shape_signature", "dtype", "quantization",
                                        "quantization_parameters", "sparsity_parameters"})
        interpreter = reef.Interpreter(CREATURES)
        everything = interpreter.get_tensor_details()
        weights = next(d for d in everything if d["name"].endswith("logits_1/MatMul"))
        self.assertEqual(interpreter.get_tensor(weights["index"]).shape, (8, 96))  # constants are there from the start
        self.assertGreater(len(everything), 50)
        per_channel = [d for d in everything if len(d["quantization_parameters"]["scales"]) > 1]
        self.assertTrue(per_channel)
        self.assertEqual(per_channel[0]["quantization"], (0.0, 0))

    def test_runs_on_the_device_that_is_chosen(self):
        value = reef.load_image(MODELS / "images" / "crab_1.jpg", (96, 96))[None]
        right = run(started(CREATURES), value)
        for options in ({}, {"device": "usb:1"}, {"experimental_delegates": [reef.load_delegate(options={"device": "pci:0"})]}):
            interpreter = started(self.compiled[CREATURES], **options)
            self.assertLessEqual(int(np.abs(run(interpreter, value).astype(int) - right).max()), 3)
        self.assertEqual(interpreter.device(), "pci:0")
        self.assertIsNone(started(CREATURES).device())
        with self.assertRaisesRegex(reef.UnsupportedError, "compiled for the Edge TPU"):
            reef.Interpreter(self.compiled[CREATURES], device="cpu")
        with self.assertRaisesRegex(ValueError, "there is no Edge TPU 'usb:9'"):
            reef.load_delegate("libedgetpu.so.1", {"device": "usb:9"})

    def test_arrays_are_the_tensors_memory(self):
        interpreter = started(CREATURES)
        index = interpreter.get_input_details()[0]["index"]
        view = interpreter.tensor(index)
        view()[:] = 7
        self.assertEqual(view().ctypes.data, interpreter.tensor(index)().ctypes.data)
        self.assertTrue((interpreter.get_tensor(index) == 7).all())
        held = view()
        for change in (interpreter.allocate_tensors, lambda: interpreter.resize_tensor_input(index, [2, 96, 96, 3])):
            with self.assertRaisesRegex(RuntimeError, "reference to internal data"):
                change()
        del held
        gc.collect()
        interpreter.allocate_tensors()
        held = interpreter.tensor(index)()
        del interpreter
        gc.collect()
        held[:] = 1  # the memory lives as long as the array

    def test_resizes(self):
        interpreter = reef.Interpreter(FLOATS)
        index = interpreter.get_input_details()[0]["index"]
        interpreter.resize_tensor_input(index, (3, 96, 96, 3))
        with self.assertRaisesRegex(RuntimeError, "prepare must be called"):
            interpreter.invoke()
        interpreter.allocate_tensors()
        self.assertEqual(run(interpreter, np.zeros((3, 96, 96, 3), np.float32)).shape, (3, 8))
        with self.assertRaises(ValueError):
            interpreter.resize_tensor_input(index, (3, 90, 96, 3), strict=True)

    def test_wrong_use_is_an_exception_with_a_sentence(self):
        interpreter = reef.Interpreter(CREATURES)
        index = interpreter.get_input_details()[0]["index"]
        with self.assertRaisesRegex(ValueError, "allocate_tensors"):
            interpreter.set_tensor(index, np.zeros((1, 96, 96, 3), np.uint8))
        interpreter.allocate_tensors()
        with self.assertRaisesRegex(ValueError, "expected type uint8"):
            interpreter.set_tensor(index, np.zeros((1, 96, 96, 3), np.float32))
        with self.assertRaisesRegex(ValueError, "Dimension mismatch"):
            interpreter.set_tensor(index, np.zeros((96, 96, 3), np.uint8))
        with self.assertRaisesRegex(ValueError, "computed inside the model"):
            interpreter.get_tensor(next(d["index"] for d in interpreter.get_tensor_details()
                                        if d["shape"].tolist() == [1, 48, 48, 16]))
        with self.assertRaisesRegex(ValueError, "Invalid tensor index"):
            interpreter.get_tensor(10_000)
        with self.assertRaisesRegex(reef.Error, "nowhere.tflite"):
            reef.Interpreter("nowhere.tflite")
        with self.assertRaises(ValueError):
            reef.Interpreter(model_content=CREATURES.read_bytes()[:1000])
        with self.assertRaises(ValueError):
            reef.Interpreter()

    def test_signatures(self):
        runner = reef.Interpreter(CREATURES).get_signature_runner()
        value = reef.load_image(MODELS / "images" / "fish_1.jpg", (96, 96))[None]
        self.assertEqual(int(runner(picture=value)["output_0"].argmax()), 2)
        with self.assertRaisesRegex(ValueError, "takes"):
            runner(wrong=value)

    def test_profile(self):
        interpreter = started(CREATURES, profile=True)
        for _ in range(3):
            interpreter.invoke()
        profile = interpreter.profile()
        self.assertIn("CONV_2D", {entry.op for entry in profile})
        self.assertTrue(all(entry.calls == 3 for entry in profile))

    def test_fused_floats(self):
        shape = started(FLOATS).get_input_details()[0]["shape"]
        picture = generated(1, shape).astype(np.float32) / 255
        exact, fused = (run(started(FLOATS, fused_floats=f), picture).copy() for f in (False, True))
        np.testing.assert_allclose(fused, exact, atol=1e-5)
        np.testing.assert_array_equal(fused, run(started(FLOATS, fused_floats=True, num_threads=2), picture))

    def test_other_threads_run_meanwhile(self):
        interpreter, ticks, done = started(self.compiled[SEGMENTER]), [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.monotonic()
        interpreter.invoke()
        end = time.monotonic()
        done.set()
        thread.join()
        inside = [t for t in ticks if begin < t < end]
        self.assertGreater(len(inside), 3, f"in {end - begin:.3f} s")


class CoralTest(CompiledModels):
    def test_devices(self):
        self.assertEqual([d["type"] for d in edgetpu.list_edge_tpus()], ["usb", "usb", "pci", "pci"])
        self.assertIn("RuntimeVersion(14)", edgetpu.get_runtime_version())

    def test_classify(self):
        labels = dataset.read_label_file(str(MODELS / "reef_creatures_labels.txt"))
        interpreter = edgetpu.make_interpreter(self.compiled[CREATURES], device=":1")
        interpreter.allocate_tensors()
        self.assertEqual(common.input_size(interpreter), (96, 96))
        for name in ("crab_1.jpg", "turtle_1.jpg", "seahorse_1.bmp"):
            common.set_input(interpreter, reef.load_image(MODELS / "images" / name, (96, 96)))
            interpreter.invoke()
            best = classify.get_classes(interpreter, top_k=1, score_threshold=0.5)
            self.assertEqual([labels[c.id] for c in best], [name.split("_")[0]])

    def test_run_inference(self):
        interpreter = edgetpu.make_interpreter(str(self.compiled[CREATURES]), device=":1")
        interpreter.allocate_tensors()
        picture = reef.load_image(MODELS / "images" / "crab_1.jpg", (96, 96))
        memory = np.ascontiguousarray(picture)
        address = ctypes.c_void_p(memory.ctypes.data)
        for data in (picture.tobytes(), picture.flatten(), (address, memory.nbytes), picture.tobytes() + b"more"):
            common.set_input(interpreter, np.zeros((96, 96, 3), np.uint8))
            edgetpu.run_inference(interpreter, data)
            self.assertEqual(classify.get_classes(interpreter, top_k=1)[0].id, 1)
        with self.assertRaisesRegex(ValueError, "expected=27648"):
            edgetpu.run_inference(interpreter, picture.flatten()[:-1])
        with self.assertRaises(TypeError):
            edgetpu.run_inference(interpreter, "picture")
        self.assertFalse(edgetpu.supports_dmabuf(interpreter._native_handle()))
        with self.assertRaises(RuntimeError):
            edgetpu.invoke_with_dmabuffer(interpreter, 3, 27648)

    def test_classes_from_scores(self):
        found = classify.get_classes_from_scores(np.array([0.1, 0.5, 0.5, 0.2]), top_k=3, score_threshold=0.2)
        self.assertEqual([c.id for c in found], [1, 2, 3])

    def test_detect(self):
        plain, virtual = started(DETECTOR), started(self.compiled[DETECTOR])
        picture = MODELS / "scenes" / "scene_1.jpg"
        size = reef.load_image(picture).shape[1::-1]
        found = []
        for interpreter in (plain, virtual):
            resized, scale = common.set_resized_input(interpreter, size, lambda s: reef.load_image(picture, s))
            self.assertEqual(resized.shape[1::-1], tuple(int(side * scale[0]) for side in size))
            interpreter.invoke()
            found.append(detect.get_objects(interpreter, score_threshold=0.4, image_scale=scale))
        self.assertTrue(found[0])
        self.assertEqual([o.id for o in found[0]], [o.id for o in found[1]])
        for a, b in zip(*found):
            self.assertGreater(detect.BBox.iou(a.bbox, b.bbox), 0.8)

    def test_boxes(self):
        a, b = detect.BBox(0, 0, 10, 10), detect.BBox(5, 5, 15, 15)
        self.assertEqual(detect.BBox.intersect(a, b), (5, 5, 10, 10))
        self.assertEqual(detect.BBox.union(a, b), (0, 0, 15, 15))
        self.assertAlmostEqual(detect.BBox.iou(a, b), 25 / 175)
        self.assertEqual(detect.BBox.iou(a, detect.BBox(20, 20, 30, 30)), 0.0)
        self.assertEqual(a.scale(2, 3).translate(1, 1), (1, 1, 21, 31))

    def test_segment(self):
        interpreter = started(self.compiled[SEGMENTER])
        common.set_input(interpreter, reef.load_image(MODELS / "scenes" / "scene_1.jpg", (128, 128)))
        interpreter.invoke()
        scores = segment.get_output(interpreter)
        self.assertEqual(scores.shape, (32, 32, 9))
        self.assertGreater(len(np.unique(scores.argmax(2))), 1)

    def test_two_models_share_a_device(self):
        with tempfile.TemporaryDirectory() as folder:
            files = reef.compile([CREATURES, SEGMENTER], folder).files
            reef.set_devices(["usb"])
            first, second = started(files[0]), started(files[1])
            for _ in range(3):
                first.invoke()
                second.invoke()
            self.assertEqual((reef.devices()[0].runs, reef.devices()[0].parameter_loads), (6, 2))
            reef.set_devices(["usb", "usb", "pci", "pci"])

    def test_pipeline(self):
        with tempfile.TemporaryDirectory() as folder:
            files = reef.compile(CREATURES, folder, num_segments=3).files
            interpreters = [started(file, device=f":{i}") for i, file in enumerate(files)]
            name = interpreters[0].get_input_details()[0]["name"]
            pictures = [reef.load_image(MODELS / "images" / f"{c}_1.jpg", (96, 96))[None] for c in ("crab", "fish", "shell")]
            right = []
            for value in pictures:
                for interpreter in interpreters:
                    value = run(interpreter, value)
                right.append(value)
            runner = PipelinedModelRunner(interpreters)

            def feed():
                for value in pictures:
                    runner.push({name: value})
                runner.push({})

            thread = threading.Thread(target=feed)
            thread.start()
            results = []
            while (result := runner.pop()) is not None:
                results.append(next(iter(result.values())))
            thread.join()
            self.assertEqual(len(results), len(right))
            for a, b in zip(results, right):
                np.testing.assert_array_equal(a, b)
            self.assertTrue(all(stats.runs == 3 for stats in runner.segment_stats()))

            # As PyCoral's: everything may be pushed before anything is popped; also as a list.
            del runner
            gc.collect()
            runner = PipelinedModelRunner(interpreters)
            for value in pictures * 10:
                runner.push([value])
            runner.set_input_queue_size(1)
            runner.set_output_queue_size(0)
            runner.push([])
            count = 0
            while (result := runner.pop()) is not None:
                np.testing.assert_array_equal(next(iter(result.values())), right[count % 3])
                count += 1
            self.assertEqual(count, 30)
            with self.assertRaisesRegex(ValueError, "Expected input of length 1"):
                runner.push([pictures[0], pictures[0]])
            with self.assertRaisesRegex(RuntimeError, "turned off"):
                runner.push({name: pictures[0]})


class CompilerTest(unittest.TestCase):
    def test_progress_and_report(self):
        told = []
        with tempfile.TemporaryDirectory() as folder:
            result = reef.compile(CREATURES, folder, progress=lambda stage, file, done: told.append((stage, done)))
            self.assertTrue(pathlib.Path(result.files[0]).exists())
            self.assertTrue(result.report["has_all_code"])
        self.assertEqual([stage for stage, _ in told], ["plan", "generate", "emit", "verify", "done"])
        self.assertEqual([done for _, done in told], sorted(done for _, done in told))

    def test_an_exception_in_progress_reaches_the_caller(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(KeyboardInterrupt):
            reef.compile(CREATURES, folder, progress=interrupt)

    def test_refusals_say_why(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(reef.Error, "quantize"):
            reef.compile(FLOATS, folder)

    def test_a_float_model_compiles_in_one_call(self):
        pictures = sorted((MODELS / "images").iterdir())
        samples = np.stack([reef.load_image(p, (96, 96)) for p in pictures])
        with tempfile.TemporaryDirectory() as folder:
            told = []
            result = reef.compile(FLOATS, folder, data=samples, preprocess="unit", calibration="minmax",
                                  progress=lambda stage, file, done: told.append((stage, file)))
            self.assertEqual(sorted(os.listdir(folder)), sorted(pathlib.Path(FLOATS).stem + end for end in (
                "_int8.tflite", "_int8_edgetpu.tflite", "_int8_edgetpu.log")))
            self.assertTrue(result.report["quantized"][0]["usable"])
            self.assertIn("", [file for _, file in told])
            self.assertIn("verify", [stage for stage, _ in told])
            self.assertEqual(run(started(result.files[0]), np.zeros((1, 96, 96, 3), np.int8)).shape[0], 1)

    def test_quantize_then_compile_then_run(self):
        pictures = sorted((MODELS / "images").iterdir())
        with tempfile.TemporaryDirectory() as folder:
            small, phases = pathlib.Path(folder) / "creatures.tflite", []
            samples = np.stack([reef.load_image(p, (96, 96)) for p in pictures])
            report = reef.quantize(FLOATS, small, samples, preprocess="unit", io="uint8", held_back=4,
                                   progress=lambda phase, _, done: phases.append((phase, done)))
            self.assertEqual(report["output"], str(small))
            self.assertTrue(phases)
            interpreter = started(reef.compile(small, folder).files[0])
            right = 0
            for picture, pixels in zip(pictures, samples):
                label = run(interpreter, pixels[None]).argmax()
                right += (MODELS / "reef_creatures_labels.txt").read_text().split()[label] == picture.name.split("_")[0]
            self.assertGreaterEqual(right, len(pictures) - 1)
            with self.assertRaisesRegex(reef.Error, "there is no mode 'int3'"):
                reef.quantize(FLOATS, small, samples, mode="int3")
            with self.assertRaisesRegex(reef.Error, "nowhere.onnx"):
                reef.convert("nowhere.onnx", small)

    def test_convert_of_a_model_that_carries_scales(self):
        source = MODELS.parent / "tests" / "onnx_exports" / "test_quantized_conv" / "model.onnx"
        with tempfile.TemporaryDirectory() as folder:
            for keep, kind in ((False, "int8"), (True, "float32")):
                report = reef.convert(source, pathlib.Path(folder) / "converted.tflite", keep_qdq=keep)
                self.assertEqual(report["inputs"][0]["type"], kind)

    def test_check(self):
        self.assertTrue(reef.check(CREATURES).all_on_edge_tpu)
        result = reef.check(DETECTOR)
        self.assertFalse(result.all_on_edge_tpu)
        self.assertIn("TFLite_Detection_PostProcess", str(result))


class PlacesTest(unittest.TestCase):
    def test_the_delegate_is_found_beside_the_library(self):
        for path in (reef.delegate_path(), reef.libedgetpu_path()):
            library = ctypes.CDLL(path)
            self.assertTrue(library.tflite_plugin_create_delegate and library.edgetpu_version, path)


class ReadmeTest(unittest.TestCase):
    def test_the_example_prints_what_it_says(self):
        block = (MODELS.parent / "README.md").read_text().split("```python\n")[1].split("```")[0]
        said = block.rsplit("# ", 1)[1].strip()
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "models").symlink_to(MODELS)
            done = subprocess.run([sys.executable, "-c", block], cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), said, done.stderr)


class ImageTest(unittest.TestCase):
    def test_save_and_load(self):
        pixels = np.random.default_rng(0).integers(0, 256, (17, 23, 3), dtype=np.uint8)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.png"
            reef.save_image(path, pixels)
            np.testing.assert_array_equal(reef.load_image(path), pixels)
        with self.assertRaises(ValueError):
            reef.save_image("a.png", pixels.astype(np.float32))


if __name__ == "__main__":
    unittest.main()
