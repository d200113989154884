# SPDX-License-Identifier: Apache-2.0
"""Ultralytics as a client: its exports, judged, compiled and run by Reef; its export(format="edgetpu") with Reef as the compiler;
its predict() with Reef as the Edge TPU; and the export for Frigate that docs/frigate.md shows.

No weights are downloaded. Each model is trained on six drawn pictures (models/shapes) until it knows them by heart, which takes less than
a minute of CPU time. Its compiled form must find what Ultralytics' predict finds with the same int8 model in LiteRT: the same boxes,
masks, keypoints and classes. Truth is not asked for: what a network finds after so short a training depends on the machine's rounding.
The interpreter that has ultralytics is $REEF_PYTHON, or the one that runs this. A part whose packages are missing
(onnx2tf and TensorFlow for export(format="edgetpu"); a checkout of Frigate, named by REEF_FRIGATE) is left out, and the test says so.

Usage: run_ultralytics.py BUILD_FOLDER SOURCE_FOLDER [PART...]         exit code 77: there is no ultralytics
Parts: exports, frigate, edgetpu; these run unless some are named. Only if named: all, which is edgetpu with every family,
or names of families (yolov8n-seg yolo12n).
"""

import json
import math
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
FAMILIES = ("yolov8n", "yolov8n-seg", "yolo11n-pose", "yolov8n-obb", "yolo11n-cls")
ALL_FAMILIES = ("yolov5n", "yolov9t", "yolov10n",
                *(f"{version}{task}" for version in ("yolov8n", "yolo11n", "yolo12n") for task in ("", "-seg", "-pose", "-obb", "-cls")))
TASKS = {"seg": "segment", "pose": "pose", "obb": "obb", "cls": "classify", "": "detect"}
MODELS = {"yolov8n": "detect", "yolo11n": "detect", "yolov8n-seg": "segment", "yolov8n-pose": "pose", "yolov10n": "detect"}
EXPORT = """
import sys
from ultralytics import YOLO
YOLO(sys.argv[1] + '.yaml').export(format='onnx', imgsz=64)
"""

# Trains a family on the pictures of data/TASK. Its own loop, because YOLO.train spends most of so short a training on other things.
TRAIN = """
import sys
import torch
from ultralytics import YOLO
from ultralytics.cfg import get_cfg
name, task, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
size, rate = 128, 0.003
torch.manual_seed(0)
model = YOLO(name + '.yaml')
if task == 'classify':
    from ultralytics.data.dataset import ClassificationDataset
    cfg = get_cfg(overrides=dict(task=task, imgsz=size))
    dataset = ClassificationDataset('classify/train', args=cfg, augment=False)
    batch = torch.utils.data.default_collate([dataset[i] for i in range(len(dataset))])
    names, more = dict(enumerate(dataset.base.classes)), {}
else:
    from ultralytics.data.build import build_yolo_dataset
    from ultralytics.data.utils import check_det_dataset
    cfg = get_cfg(overrides=dict(task=task, imgsz=size))
    data = check_det_dataset(task + '.yaml', autodownload=False)
    dataset = build_yolo_dataset(cfg, data['train'], 6, data, mode='val')
    batch = dataset.collate_fn([dataset[i] for i in range(len(dataset))])
    batch['img'] = batch['img'].float() / 255
    names, more = data['names'], {'data_kpt_shape': data['kpt_shape']} if task == 'pose' else {}
network = type(model.model)(name + '.yaml', nc=len(names), verbose=False, **more)
network.args, network.names, network.task = cfg, names, task
model.model = network
optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0)
rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps)
network.train()
for step in range(steps):
    loss, parts = network.loss(batch)
    optimizer.zero_grad()
    loss.sum().backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
    optimizer.step()
    rates.step()
# Batch norms lag behind so short a training: their statistics are taken from the pictures at the end.
for module in network.modules():
    if isinstance(module, torch.nn.BatchNorm2d):
        module.reset_running_stats()
        module.momentum = None
with torch.no_grad():
    network(batch['img'])
network.eval()
# Under the model's own name Ultralytics would look for weights to download.
model.save('best.pt')
"""

# onnx2tf wants this file of samples, and would download it.
EXPORT_EDGETPU = """
import sys
import numpy
numpy.save('calibration_image_sample_data_20x128x128x3_float32.npy', numpy.random.default_rng(0).random((20, 128, 128, 3), numpy.float32))
from ultralytics import YOLO
YOLO('best.pt').export(format='edgetpu', imgsz=128, data=sys.argv[1], int8=True)
"""

# What predict() finds in each picture: class, score, corners, then the points of a pose or the mask in 32 x 32 squares.
PREDICT = """
import json, sys
import torch
from ultralytics import YOLO
model, task, pictures, device = sys.argv[1:]
answers = []
for result in YOLO(model, task=task).predict(pictures, imgsz=128, conf=0.25, device=device, verbose=False):
    if task == 'classify':
        answers.append([[int(result.probs.top1), float(result.probs.top1conf), 0, 0, 1, 1, []]])
        continue
    boxes = result.obb if task == 'obb' else result.boxes
    details = [[] for _ in range(len(boxes))]
    if task == 'pose':
        details = result.keypoints.xy.flatten(1).tolist()
    if task == 'segment' and len(boxes):
        details = (torch.nn.functional.adaptive_avg_pool2d(result.masks.data.float()[:, None], 32) > 0.5).int().flatten(1).tolist()
    answers.append([[int(box.cls), float(box.conf), *box.xyxy[0].tolist(), detail] for box, detail in zip(boxes, details)])
print(json.dumps(answers))
"""

# The module through which Ultralytics reaches an Edge TPU, with LiteRT on the CPU behind it: the reference for int8 models.
LITERT = """
from ai_edge_litert import interpreter as litert
def load_delegate(name, options=None):
    return None
class Interpreter(litert.Interpreter):
    def __init__(self, model_path, experimental_delegates=None):
        super().__init__(model_path=model_path)
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


def same_thing(task, box, other):
    """Class, place and, where the task has them, points or mask. The points may be off by a tenth of the box."""
    if box[0] != other[0] or overlap(box[2:6], other[2:6]) <= 0.5:
        return False
    if task == "pose":
        off = [math.dist(a, b) for a, b in zip(zip(box[6][::2], box[6][1::2]), zip(other[6][::2], other[6][1::2]), strict=True)]
        return sum(off) / len(off) < 0.1 * max(box[4] - box[2], box[5] - box[3])
    if task == "segment":
        both, either = (sum(map(join, box[6], other[6])) for join in (min, max))
        return both > 0.5 * either or either < 4  # things of a few squares say little
    return True


def kept(task, wanted, found):
    """How many of the wanted things are among those found, picture by picture."""
    return sum(any(same_thing(task, box, other) for other in others)
               for boxes, others in zip(wanted, found, strict=True) for box in boxes)


def make_data(folder):
    """Puts the pictures and what is in them into the folder, once for each task, beside a .yaml that describes it."""
    def corners(box):
        return [box[i] + sign * box[i + 2] / 2 for across, down in ((-1, -1), (1, -1), (1, 1), (-1, 1)) for i, sign in ((0, across), (1, down))]

    def points(box):  # the middle and the corners, each of them visible
        at = [*box[:2], *corners(box)]
        return [*box, *(value for i in range(0, 10, 2) for value in (*at[i:i + 2], 2))]

    names = (source / "models/shapes_yolo_labels.txt").read_text().split()
    pictures = sorted((source / "models/shapes").glob("*.jpg"))[:6]
    for task, row_of in (("detect", list), ("segment", corners), ("obb", corners), ("pose", points)):
        for kind in ("images", "labels"):
            (folder / task / kind).mkdir(parents=True)
        for picture in pictures:
            shutil.copy(picture, folder / task / "images")
            things = [line.split() for line in picture.with_suffix(".txt").read_text().splitlines()]
            rows = [" ".join([thing[0], *map(str, row_of(list(map(float, thing[1:]))))]) for thing in things]
            (folder / task / "labels" / f"{picture.stem}.txt").write_text("\n".join(rows) + "\n")
        (folder / f"{task}.yaml").write_text(f"path: {folder}/{task}\ntrain: images\nval: images\nnames: {names}\n" +
                                             "kpt_shape: [5, 3]\n" * (task == "pose"))
    (folder / "classify" / "images").mkdir(parents=True)
    for at, picture in enumerate(pictures):
        shutil.copy(picture, folder / "classify" / "images")
        for kind in ("train", "val"):
            (folder / "classify" / kind / ("even", "odd")[at % 2]).mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, folder / "classify" / kind / ("even", "odd")[at % 2])
    modules = folder / "litert_modules" / "tflite_runtime"
    modules.mkdir(parents=True)
    (modules / "__init__.py").write_text("")
    (modules / "interpreter.py").write_text(LITERT)


def predict(folder, task, model, device, **more):
    return json.loads(run_python(folder, PREDICT, model, task, folder / task / "images", device, **more).splitlines()[-1])


def make_trained(folder, name, task):
    """Trains best.pt, a model of the family, and returns what it finds and how much that is."""
    steps, enough = 60, 6
    # One thread: several wait for each other actively, which multiplies the time on a machine that is busy.
    run_python(folder, TRAIN, name, task, steps, OMP_NUM_THREADS="1")
    wanted = predict(folder, task, "best.pt", "cpu")
    count = sum(map(len, wanted))
    if count < enough:
        sys.exit(f"the training of {name} failed: after {steps} steps it finds {count} things in six pictures it has seen")
    return wanted, count


def has_exporter():
    if has("tensorflow", "onnx2tf", "sng4onnx", "onnx_graphsurgeon"):
        return True
    print("export(format='edgetpu'): left out, TensorFlow or onnx2tf with its packages is missing")
    return False


def family_passes(folder, name):
    """export(format="edgetpu") and predict(device="tpu:0") of a family, by Ultralytics' own code."""
    task = TASKS[name.partition("-")[2]]
    shutil.rmtree(folder / "best_saved_model", ignore_errors=True)
    wanted, count = make_trained(folder, name, task)
    run_python(folder, EXPORT_EDGETPU, folder / "classify" if task == "classify" else f"{task}.yaml", REEF_COMPILE_FLAGS="-a")
    exported = folder / "best_saved_model" / "best_full_integer_quant.tflite"
    compiled = exported.with_name(f"{exported.stem}_edgetpu.tflite")
    if not compiled.exists():
        sys.exit(f"{name}: export(format='edgetpu') left no compiled model")
    reference = exported.with_name("in_litert_edgetpu.tflite")  # the int8 model as it is, named so that Ultralytics takes it
    shutil.copy(exported, reference)
    expected = predict(folder, task, reference, "tpu:0", PYTHONPATH=str(folder / "litert_modules"))
    found = predict(folder, task, compiled, "tpu:0", before=(build / "reef", "exec", "--"))
    by_reef = json.loads(reef("run", "--json", compiled, "--image", folder / task / "images/shapes_01.jpg", "--preprocess", "yolo"))
    rows = re.findall(r"^\S+ +(\d+) +(\S.*)$", compiled.with_suffix(".log").read_text(), re.M)
    mapped = sum(int(count) for count, status in rows if status.strip() == "Mapped to Edge TPU")
    total, same = sum(map(len, expected)), kept(task, expected, found)
    # The chip rounds otherwise than TFLite's kernels, so that a thing near the threshold may come or go.
    passes = total > 0 and same >= 0.85 * total and sum(map(len, found)) <= 1.2 * total + 1
    understood = by_reef.get("labels_from") is not None and (task == "classify" or "found" in by_reef)
    print(f"{name}: export and predict {'pass' if passes and understood else 'FAIL'}: {same} of the {total} things that LiteRT's CPU finds with the "
          f"int8 model, {kept(task, wanted, found)} of the {count} of PyTorch's (LiteRT {kept(task, wanted, expected)}); {mapped} of "
          f"{sum(int(count) for count, _ in rows)} operators on the Edge TPU{'' if understood else '; reef run does not understand the file'}", flush=True)
    return passes and understood


def edgetpu(wanted):
    if not has_exporter():
        return
    wrong = 0
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            make_data(pathlib.Path(folder))
            try:
                wrong += not family_passes(pathlib.Path(folder), name)
            except SystemExit as end:  # the others are tried all the same
                print(f"{name}: FAIL: {end}", flush=True)
                wrong += 1
    if wrong:
        sys.exit(f"{wrong} of {len(wanted)} families fail")


def frigate(folder):
    """The export of docs/frigate.md, as it stands there; with REEF_FRIGATE, a checkout of blakeblackshear/frigate, in its own plugin too."""
    wanted, count = make_trained(folder, "yolov8n", "detect")
    page = (source / "docs/frigate.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.S)[1].replace("320, 320", "128, 128")
    run_python(folder, program)
    reef("compile", "yolo_frigate.onnx", "--data", folder / "detect/images", "--preprocess", "yolo", "--io", "uint8",
         "--join-outputs", cwd=folder)
    compiled = folder / "yolo_frigate_int8_edgetpu.tflite"
    pictures = sorted((folder / "detect/images").glob("*.jpg"))
    programs = {"a recorder's detector": lambda picture: [HERE / "camera_yolo.py", compiled, picture]}
    if (checkout := os.environ.get("REEF_FRIGATE")) and has("cv2", "pydantic"):
        programs["Frigate's own plugin"] = lambda picture: [HERE / "frigate_plugin.py", checkout, compiled, picture, "yolo-generic"]
    found_by = {name: [] for name in ("reef run", *programs)}
    for picture in pictures:
        found = json.loads(reef("run", "--json", compiled, "--image", picture))["found"]["things"]
        found_by["reef run"].append([[thing["class"], thing["score"], *thing["box"]] for thing in found])
        for name, command in programs.items():
            rows = json.loads(subprocess.run([build / "reef", "exec", "--", python, *command(picture)], check=True,
                                             capture_output=True, text=True, timeout=600).stdout.splitlines()[-1])
            found_by[name].append([[row[0], row[1], *(128 * row[i] for i in (3, 2, 5, 4))] for row in rows])
    for name, found in found_by.items():
        right = kept("detect", wanted, found)
        print(f"the export for Frigate, {name}: {right} of {count} boxes of PyTorch's")
        if right < 0.75 * count:
            sys.exit("too few")


def main():
    if not has("ultralytics", "onnx"):
        print(f"{python} has no ultralytics and onnx; REEF_PYTHON names one that has")
        return 77
    parts = sys.argv[3:] or ["exports", "frigate", "edgetpu"]
    if "exports" in parts:
        exports()
    if "frigate" in parts:
        with tempfile.TemporaryDirectory() as name:
            make_data(pathlib.Path(name))
            frigate(pathlib.Path(name))
    named = [part for part in parts if part.startswith("yolo")]
    if families := named or (ALL_FAMILIES if "all" in parts else FAMILIES if "edgetpu" in parts else ()):
        edgetpu(families)
    return 0


if __name__ == "__main__":
    sys.exit(main())
