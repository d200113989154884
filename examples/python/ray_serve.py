# SPDX-License-Identifier: Apache-2.0
"""A compiled model behind Ray Serve, one replica for each Edge TPU. Needs `pip install "ray[serve]"`.

    serve run ray_serve:app          then  curl --data-binary @picture.jpg http://127.0.0.1:8000
"""

import pathlib
import tempfile

import reef
from reef.coral.adapters import classify, common
from reef.coral.utils.dataset import read_label_file
from ray import serve
from starlette.responses import JSONResponse  # comes with Ray Serve

from _shared import MODELS, for_edge_tpu

DEVICES = 2  # Edge TPUs of the machine, real or virtual


@serve.deployment(num_replicas=DEVICES, ray_actor_options={"num_cpus": 0.5}, max_ongoing_requests=4)
class Classifier:
    """A replica has a device to itself; Serve deals out requests and answers when all replicas are busy."""

    def __init__(self, model, labels, devices=DEVICES):
        replica = serve.get_replica_context().rank
        rank = getattr(replica, "rank", replica) or 0
        self.labels = read_label_file(labels)
        self.interpreter = reef.Interpreter(model_content=model, device=f":{rank % devices}")
        self.interpreter.allocate_tensors()

    def classify(self, picture):
        """The file's bytes -> the best class and its score."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(picture)
            file.flush()
            common.set_input(self.interpreter, reef.load_image(file.name, common.input_size(self.interpreter)))
        self.interpreter.invoke()
        best = classify.get_classes(self.interpreter, top_k=1)[0]
        return {"label": self.labels.get(best.id, str(best.id)), "score": float(best.score)}

    async def __call__(self, request):
        try:
            return self.classify(await request.body())
        except (ValueError, RuntimeError) as error:  # the file is no picture, or not of a kind that is read
            return JSONResponse({"error": str(error)}, status_code=400)


app = Classifier.bind(for_edge_tpu(pathlib.Path(MODELS / "reef_creatures_int8.tflite")), MODELS / "reef_creatures_labels.txt")
