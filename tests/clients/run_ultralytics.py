# SPDX-License-Identifier: Apache-2.0
"""Ultralytics as a client: its exports, judged, compiled and run by Reef; its export(format="edgetpu") with Reef as the compiler;
its predict() with Reef as the Edge TPU; and the export for Frigate that docs/frigate.md shows.

No weights are downloaded. Most models are untrained, because what is tested is the way; for export and predict a YOLO is trained on the
dozen pictures in models/shapes, which takes about a minute. The interpreter that has ultralytics is $REEF_PYTHON, or the one that runs
this. A part whose packages are missing (onnx2tf and TensorFlow for export(format="edgetpu")) is left out, and said so.

Usage: run_ultralytics.py BUILD_FOLDER SOURCE_FOLDER [PART...]         exit code 77: there is no ultralytics
Parts: exports, frigate, edgetpu; all of them unless some are named.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
build, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
python = os.environ.get("REEF_PYTHON", sys.executable)
MODELS = {"yolov8n": "detect", "yolo11n": "detect", "yolov8n-seg": "segment", "yolov8n-pose": "pose", "yolov10n": "detect"}
EXPORT = """
import sys
from ultralytics import YOLO
YOLO(sys.argv[1] + '.yaml').export(format='onnx', imgsz=64)
"""

# Batch norms lag behind so short a training: their statistics are taken from the pictures at the end.
TRAIN = """
import glob
import numpy, torch
from PIL import Image
from ultralytics import YOLO
YOLO('yolov8n.yaml').train(data='data.yaml', epochs=70, imgsz=128, batch=12, nbs=12, workers=0, device='cpu', plots=False, val=False,
                           optimizer='AdamW', lr0=0.002, mosaic=0, amp=False, hsv_h=0, fliplr=0, scale=0, translate=0,
                           project='runs', name='shapes', exist_ok=True)
model = YOLO(glob.glob('**/last.pt', recursive=True)[0])
network = model.model.float()
files = sorted(glob.glob('data/images/*.jpg'))
pixels = numpy.stack([numpy.asarray(Image.open(file).convert('RGB').resize((128, 128))) for file in files])
for module in network.modules():
    if isinstance(module, torch.nn.BatchNorm2d):
        module.reset_running_stats()
        module.momentum = None
network.train()
with torch.no_grad():
    network(torch.tensor(pixels).permute(0, 3, 1, 2) / 255)
network.eval()
model.save('best.pt')
"""

# onnx2tf wants this file of samples, and would download it.
EXPORT_EDGETPU = """
import numpy
numpy.save('calibration_image_sample_data_20x128x128x3_float32.npy', numpy.random.default_rng(0).random((20, 128, 128, 3), numpy.float32))
from ultralytics import YOLO
YOLO('best.pt').export(format='edgetpu', imgsz=128, data='data.yaml', int8=True)
"""

PREDICT = """
import json, sys
from ultralytics import YOLO
found = YOLO(sys.argv[1], task='detect').predict('data/images', imgsz=128, conf=0.25, device=sys.argv[2], verbose=False)
print(json.dumps([[[int(box.cls), float(box.conf), *box.xyxy[0].tolist()] for box in each.boxes] for each in found]))
"""


def environment():
    return dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", YOLO_OFFLINE="true", YOLO_AUTOINSTALL="false", TF_CPP_MIN_LOG_LEVEL="3")


def has(*modules):
    return subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0


def run_python(folder, program, *arguments, before=(), **more):
    done = subprocess.run([*before, python, "-c", program, *map(str, arguments)], cwd=folder, env=dict(environment(), **more),
                          capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        sys.exit(f"a program ended with {done.returncode}:\n{program}\n{done.stdout}{done.stderr}")
    return done.stdout


def reef(*arguments, code=0, cwd=None):
    done = subprocess.run([build / "reef", *map(str, arguments)], capture_output=True, text=True, timeout=900, cwd=cwd)
    if done.returncode != code:
        sys.exit(f"reef {' '.join(map(str, arguments))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def exports():
    picture = source / "models/scenes/scene_1.jpg"
    for name, task in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            run_python(folder, EXPORT, name)
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


def overlap(a, b):
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(wide, 0) * max(high, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def kept(wanted, found):
    """How many of the wanted boxes (class, score, corners) are among those found, picture by picture."""
    return sum(any(box[0] == other[0] and overlap(box[2:], other[2:]) > 0.5 for other in others)
               for boxes, others in zip(wanted, found, strict=True) for box in boxes)


def make_trained(folder):
    """A folder with data.yaml, the pictures, and best.pt, a YOLO trained on them. $REEF_YOLO names one that is there already."""
    for kind, ending in (("images", "jpg"), ("labels", "txt")):
        (folder / "data" / kind).mkdir(parents=True)
        for file in (source / "models/shapes").glob(f"*.{ending}"):
            shutil.copy(file, folder / "data" / kind)
    names = (source / "models/shapes_yolo_labels.txt").read_text().split()
    (folder / "data.yaml").write_text(f"path: {folder}/data\ntrain: images\nval: images\nnames: {names}\n")
    if ready := os.environ.get("REEF_YOLO"):
        shutil.copy(ready, folder / "best.pt")
    else:
        run_python(folder, TRAIN)
    wanted = json.loads(run_python(folder, PREDICT, "best.pt", "cpu").splitlines()[-1])
    count = sum(map(len, wanted))
    if count < 25:
        sys.exit(f"the training failed: {count} boxes in pictures with 34 things")
    return wanted, count


def frigate(folder, wanted, count):
    """The export of docs/frigate.md, as it stands there."""
    page = (source / "docs/frigate.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.S)[1].replace("320, 320", "128, 128")
    run_python(folder, program)
    reef("compile", "yolo_frigate.onnx", "--data", folder / "data/images", "--preprocess", "yolo", "--io", "uint8",
         "--join-outputs", cwd=folder)
    compiled = folder / "yolo_frigate_int8_edgetpu.tflite"
    pictures = sorted((folder / "data/images").glob("*.jpg"))
    ours, theirs = [], []
    for picture in pictures:
        found = json.loads(reef("run", "--json", compiled, "--image", picture))["found"]["things"]
        ours.append([[thing["class"], thing["score"], *thing["box"]] for thing in found])
        rows = json.loads(subprocess.run([build / "reef", "exec", "--", python, HERE / "camera_yolo.py", compiled, picture], check=True,
                                         capture_output=True, text=True, timeout=600).stdout)
        theirs.append([[row[0], row[1], *(128 * row[i] for i in (3, 2, 5, 4))] for row in rows])
    for name, found in (("reef run", ours), ("a recorder's detector", theirs)):
        right = kept(wanted, found)
        print(f"the export for Frigate, {name}: {right} of {count} boxes of PyTorch's")
        if right < 0.75 * count:
            sys.exit("too few")


def edgetpu(folder, wanted, count):
    if not has("tensorflow", "onnx2tf", "sng4onnx", "onnx_graphsurgeon"):
        print("export(format='edgetpu'): left out, TensorFlow or onnx2tf with its packages is missing")
        return
    run_python(folder, EXPORT_EDGETPU, REEF_COMPILE_FLAGS="-a")
    compiled = list(folder.glob("best_saved_model/*_edgetpu.tflite"))
    if not compiled:
        sys.exit("export(format='edgetpu') left no compiled model")
    # With reef exec the module tflite_runtime is Reef's, and TensorFlow is not needed.
    found = json.loads(run_python(folder, PREDICT, compiled[0], "tpu:0", before=(build / "reef", "exec", "--")).splitlines()[-1])
    right = kept(wanted, found)
    print(f"export(format='edgetpu') and predict(device='tpu:0'): {right} of {count} boxes of PyTorch's")
    seen = json.loads(reef("run", "--json", compiled[0], "--image", folder / "data/images/shapes_01.jpg", "--preprocess", "yolo"))
    if right < 0.75 * count or seen.get("labels_from") is None or not seen["found"]["things"]:
        sys.exit(f"too few, or reef run does not understand the file: {seen.get('found')}")


def main():
    if not has("ultralytics", "onnx"):
        print(f"{python} has no ultralytics and onnx; REEF_PYTHON names one that has")
        return 77
    parts = sys.argv[3:] or ["exports", "frigate", "edgetpu"]
    if "exports" in parts:
        exports()
    if {"frigate", "edgetpu"} & set(parts):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            wanted, count = make_trained(folder)
            if "frigate" in parts:
                frigate(folder, wanted, count)
            if "edgetpu" in parts:
                edgetpu(folder, wanted, count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
