# SPDX-License-Identifier: Apache-2.0
"""Reef inside servers: the model of Triton's Python backend with a stand-in for the module that Triton gives it
(Triton itself is no package of PyPI: nothing here ran in a real one), and Ray Serve where it is installed."""

import importlib.util
import json
import pathlib
import sys
import tempfile
import types
import unittest

import numpy as np

import reef

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "models"
LABELS = (MODELS / "reef_creatures_labels.txt").read_text().split()


def stand_in_for_triton():
    """The part of triton_python_backend_utils that a model needs, as Triton's documentation describes it."""
    module = types.ModuleType("triton_python_backend_utils")

    class Tensor:
        def __init__(self, name, array):
            self._name, self._array = name, array

        def name(self):
            return self._name

        def as_numpy(self):
            return self._array

    class TritonError(Exception):
        def message(self):
            return str(self)

    class InferenceResponse:
        def __init__(self, output_tensors=(), error=None):
            self._tensors, self._error = list(output_tensors), error

        def output_tensors(self):
            return self._tensors

        def has_error(self):
            return self._error is not None

        def error(self):
            return self._error

    class InferenceRequest:
        def __init__(self, inputs):
            self.inputs_by_name = {tensor.name(): tensor for tensor in inputs}

    module.Tensor, module.TritonError = Tensor, TritonError
    module.InferenceResponse, module.InferenceRequest = InferenceResponse, InferenceRequest
    module.get_input_tensor_by_name = lambda request, name: request.inputs_by_name.get(name)
    return module


def pixels_of(name):
    return reef.load_image(MODELS / "images" / name, (96, 96))


class Triton(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = pathlib.Path(folder.name, "creatures")
        (self.repository / "1").mkdir(parents=True)
        reef.compile(MODELS / "reef_creatures_int8.tflite", self.repository / "1" / "model.tflite")
        self.utils = stand_in_for_triton()
        sys.modules["triton_python_backend_utils"] = self.utils
        self.addCleanup(sys.modules.pop, "triton_python_backend_utils")
        spec = importlib.util.spec_from_file_location("triton_model", HERE / "triton" / "creatures" / "1" / "model.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.model = module.TritonPythonModel()
        self.model.initialize({"model_config": json.dumps({"parameters": {"model": {"string_value": "model.tflite"}}}),
                               "model_repository": str(self.repository), "model_version": "1", "model_name": "creatures",
                               "model_instance_name": "creatures_0_1", "model_instance_kind": "CPU",
                               "model_instance_device_id": "0"})
        self.addCleanup(self.model.finalize)

    def request(self, array):
        return self.utils.InferenceRequest([self.utils.Tensor("pixels", array)])

    def test_answers_are_those_of_the_model(self):
        names = ("crab_1.jpg", "jellyfish_1.png", "starfish_2.bmp")
        batch = np.stack([pixels_of(name) for name in names])
        both = self.model.execute([self.request(batch), self.request(batch[1:2])])
        self.assertEqual(len(both), 2)
        scores = both[0].output_tensors()[0].as_numpy()
        self.assertEqual(scores.dtype, np.float32)
        self.assertEqual([LABELS[best] for best in scores.argmax(axis=1)], [name.split("_")[0] for name in names])
        np.testing.assert_array_equal(both[1].output_tensors()[0].as_numpy()[0], scores[1])

    def test_a_wrong_request_gets_an_error_and_the_others_answers(self):
        good, wrong = pixels_of("crab_1.jpg")[None], np.zeros((1, 8, 8, 3), np.uint8)
        answers = self.model.execute([self.request(wrong), self.request(good), self.request(good.astype(np.float32))])
        self.assertEqual([answer.has_error() for answer in answers], [True, False, True])
        self.assertIn("[1, 8, 8, 3]", answers[0].error().message())

    def test_the_configuration_names_what_the_model_has(self):
        text = (HERE / "triton" / "creatures" / "config.pbtxt").read_text()
        for word in ('"pixels"', '"scores"', '"model.tflite"', f"{len(LABELS)} ]", "96, 96, 3"):
            self.assertIn(word, text)


class RayServe(unittest.TestCase):
    def test_requests_are_answered_by_replicas(self):
        try:
            from ray import serve
            import ray
        except ImportError as error:
            self.skipTest(f"{error.name} is not installed (pip install 'ray[serve]')")
        sys.path.insert(0, str(HERE))
        self.addCleanup(sys.path.remove, str(HERE))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        self.addCleanup(serve.shutdown)
        import ray_serve
        handle = serve.run(ray_serve.app)
        names = ["crab_1.jpg", "jellyfish_1.png", "turtle_1.jpg", "fish_1.jpg"]
        waiting = [handle.classify.remote((MODELS / "images" / name).read_bytes()) for name in names]
        self.assertEqual([one.result()["label"] for one in waiting], [name.split("_")[0] for name in names])


if __name__ == "__main__":
    unittest.main()
