# SPDX-License-Identifier: Apache-2.0
"""A compiled file as a model of Triton's Python backend. Triton imports this, makes a TritonPythonModel for each instance of
config.pbtxt, and hands it requests; nothing here is about HTTP, batching or queues, which Triton has."""

import json
import pathlib

import numpy as np
import reef
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        file = config["parameters"]["model"]["string_value"]
        place = pathlib.Path(args["model_repository"]) / args["model_version"] / file
        # "creatures_0_1" is the second instance: it gets the second device.
        number = int(args["model_instance_name"].rsplit("_", 1)[-1])
        self.interpreter = reef.Interpreter(str(place), device=f":{number}")
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.output = self.interpreter.get_output_details()[0]

    def execute(self, requests):
        """One response for each request, an error for one that does not fit: the others are answered all the same."""
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        pixels = pb_utils.get_input_tensor_by_name(request, "pixels").as_numpy()
        wanted = tuple(self.input["shape"][1:])
        if pixels.ndim != 4 or pixels.shape[1:] != wanted or pixels.dtype != np.uint8:
            text = f"pixels are {pixels.dtype} {list(pixels.shape)}; the model takes uint8 [pictures, {', '.join(map(str, wanted))}]"
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(text))
        scores = [self._scores(picture) for picture in pixels]
        tensor = pb_utils.Tensor("scores", np.asarray(scores, np.float32).reshape(len(pixels), -1))
        return pb_utils.InferenceResponse(output_tensors=[tensor])

    def _scores(self, picture):
        # An int8 input stores a pixel less 128.
        shift = 128 if self.input["dtype"] == np.int8 else 0
        self.interpreter.set_tensor(self.input["index"], (picture.astype(np.int16) - shift).astype(self.input["dtype"])[None])
        self.interpreter.invoke()
        scale, zero = self.output["quantization"]
        codes = self.interpreter.get_tensor(self.output["index"]).astype(np.float32).reshape(-1)
        return (codes - zero) * (scale or 1)

    def finalize(self):
        del self.interpreter
