# SPDX-License-Identifier: Apache-2.0
"""Models of Ultralytics: exported by it, judged, compiled and run by Reef. Weights are untrained: what is tested is the way.

The interpreter that has ultralytics is $REEF_PYTHON, or the one that runs this. With REEF_ULTRALYTICS_EXPORT=1 also its own
export(format="edgetpu"), which takes minutes and TensorFlow, with Reef as edgetpu_compiler.

Usage: run_ultralytics.py BUILD_FOLDER SOURCE_FOLDER         exit code 77: there is no ultralytics
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

build, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
python = os.environ.get("REEF_PYTHON", sys.executable)
MODELS = {"yolov8n": "detect", "yolo11n": "detect", "yolov8n-seg": "segment", "yolov8n-pose": "pose", "yolov10n": "detect"}
EXPORT = """
import sys
from ultralytics import YOLO
YOLO(sys.argv[1] + '.yaml').export(format=sys.argv[2], imgsz=64, **({'int8': True} if sys.argv[2] == 'edgetpu' else {}))
"""


def reef(*arguments, code=0):
    done = subprocess.run([build / "reef", *map(str, arguments)], capture_output=True, text=True, timeout=900)
    if done.returncode != code:
        sys.exit(f"reef {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    if subprocess.run([python, "-c", "import ultralytics, onnx"], capture_output=True).returncode != 0:
        print(f"{python} has no ultralytics and onnx; REEF_PYTHON names one that has")
        return 77
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", YOLO_OFFLINE="true")
    picture = source / "models/scenes/scene_1.jpg"
    for name, task in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, "-c", EXPORT, name, "onnx"], cwd=folder, env=environment, check=True, capture_output=True)
            model = pathlib.Path(folder) / f"{name}.onnx"
            judged = json.loads(reef("check", "--json", model))
            if not judged["judged_as_quantized"] or judged["operators_on_edgetpu"] == 0:
                sys.exit(f"{name}: {judged['verdict']}")
            # Untrained scores are all alike: everything is a thing from a low score on.
            found = json.loads(reef("run", "--json", model, "--image", picture, "--preprocess", "yolo", "--min-score", "0.001"))
            if "found" not in found or found.get("labels_from") != "the model":
                sys.exit(f"{name}: not taken for a detector, or without names: {found.keys()}")
            things = found["found"]["things"]
            kinds = {"segment": "mask", "pose": "keypoints"}
            if things and task in kinds and kinds[task] not in things[0]:
                sys.exit(f"{name}: a thing without {kinds[task]}: {things[0]}")
            print(f"{name}: {judged['operators_on_edgetpu']} of {judged['operators']} operators, {len(things)} things, "
                  f"{things[0].get('label', '') if things else ''}")
    if os.environ.get("REEF_ULTRALYTICS_EXPORT"):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, "-c", EXPORT, "yolov8n", "edgetpu"], cwd=folder, env=environment, check=True)
            compiled = list(pathlib.Path(folder).rglob("*_edgetpu.tflite"))
            if not compiled:
                sys.exit("export(format='edgetpu') left no compiled model")
            reef("run", compiled[0], "--image", picture)
            print(f"export(format='edgetpu'): {compiled[0].name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
