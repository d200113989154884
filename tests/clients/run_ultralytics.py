# SPDX-License-Identifier: Apache-2.0
"""Ultralytics as a client: its exports, judged, compiled and run by Reef; its export(format="edgetpu") with Reef as the compiler;
its predict() with Reef as the Edge TPU; and the export for Frigate that docs/frigate.md shows.

No weights are downloaded. A YOLO is trained on the dozen pictures in models/shapes, which takes about a minute, to see that boxes survive.
The other families are untrained: their compiled models must be as close to the exported float model as the exported int8 model is in
LiteRT. The interpreter that has ultralytics is $REEF_PYTHON, or the one that runs this. A part whose packages are missing
(onnx2tf and TensorFlow for export(format="edgetpu")) is left out, and the test says so.

Usage: run_ultralytics.py BUILD_FOLDER SOURCE_FOLDER [PART...]         exit code 77: there is no ultralytics
Parts: exports, frigate, edgetpu; these run unless some are named. Only if named: families, or the names of some (yolov8n yolo11n-pose).
yolov8n-seg fails there: it finds no boxes although its outputs are as close as those of LiteRT. Why is not known; missing training may be the cause.
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
FAMILIES = ("yolov5n", "yolov8n", "yolo11n", "yolo12n", "yolov8n-seg", "yolo11n-pose", "yolov8n-cls")
MODELS = {"yolov8n": "detect", "yolo11n": "detect", "yolov8n-seg": "segment", "yolov8n-pose": "pose", "yolov10n": "detect"}
EXPORT = """
import sys
from ultralytics import YOLO
YOLO(sys.argv[1] + '.yaml').export(format='onnx', imgsz=64)
"""

# Batch norms lag behind so short a training: their statistics are taken from the pictures at the end.
TAKE_STATISTICS = """
import glob
import numpy, torch
from PIL import Image

def take_statistics(network, size):
    files = sorted(glob.glob('data/images/*.jpg'))
    pixels = numpy.stack([numpy.asarray(Image.open(file).convert('RGB').resize((size, size))) for file in files])
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    network.train()
    with torch.no_grad():
        network(torch.tensor(pixels).permute(0, 3, 1, 2) / 255)
    network.eval()
"""

TRAIN = TAKE_STATISTICS + """
import sys
from ultralytics import YOLO
YOLO(sys.argv[1]).train(data='data.yaml', epochs=70, imgsz=128, batch=12, nbs=12, workers=0, device='cpu', plots=False, val=False,
                        optimizer='AdamW', lr0=0.002, mosaic=0, amp=False, hsv_h=0, fliplr=0, scale=0, translate=0,
                        project='runs', name='shapes', exist_ok=True)
model = YOLO(glob.glob('**/last.pt', recursive=True)[0])
take_statistics(model.model.float(), 128)
model.save('best.pt')
"""

EXPORT_FAMILY = TAKE_STATISTICS + """
import sys
numpy.save('calibration_image_sample_data_20x128x128x3_float32.npy', numpy.random.default_rng(0).random((20, 128, 128, 3), numpy.float32))
from ultralytics import YOLO
name, data = sys.argv[1:]
torch.manual_seed(0)
model = YOLO(name + '.yaml')
if name.endswith('-cls'):
    # Untrained scores of the usual 1,000 classes would all round to zero.
    from ultralytics.nn.tasks import ClassificationModel
    few = ClassificationModel(name + '.yaml', nc=4, verbose=False)
    few.task, few.args, few.names = model.model.task, model.model.args, {i: str(i) for i in range(4)}
    model.model = few
take_statistics(model.model, 64)
# Under the model's own name Ultralytics would look for weights to download.
model.save('family.pt')
YOLO('family.pt').export(format='edgetpu', imgsz=64, data=data, int8=True)
"""

# Untrained scores are nearly equal: a low threshold lets some boxes through.
PREDICT_FAMILY = """
import json, sys
import numpy
from ultralytics import YOLO
model = YOLO(sys.argv[1], task=sys.argv[2])
results = model.predict('data/images', imgsz=64, conf=0.001, device='tpu:0', verbose=False)
print(json.dumps({'pictures': len(results), 'boxes': sum(len(each.boxes) for each in results if each.boxes is not None),
                  'has_masks': any(each.masks is not None for each in results),
                  'has_keypoints': any(each.keypoints is not None for each in results),
                  'has_classes': all(each.probs is not None for each in results)}))
"""

# Prints the outputs of a model for one picture, by LiteRT (argument cpu) or by Reef's modules (argument tpu).
RAW_OUTPUTS = """
import json, sys
import numpy
from PIL import Image
if sys.argv[2] == 'tpu':
    from tflite_runtime.interpreter import Interpreter, load_delegate
    interpreter = Interpreter(sys.argv[1], experimental_delegates=[load_delegate('libedgetpu.so.1')])
else:
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
details = interpreter.get_input_details()[0]
pixels = numpy.asarray(Image.open('data/images/shapes_01.jpg').convert('RGB').resize((64, 64)))[None] / 255
if details['dtype'] != numpy.float32:
    scale, zero = details['quantization']
    pixels = numpy.clip(numpy.round(pixels / scale + zero), -128, 127)
interpreter.set_tensor(details['index'], pixels.astype(details['dtype']))
interpreter.invoke()
values = []
for output in sorted(interpreter.get_output_details(), key=lambda each: list(each['shape'])):
    scale, zero = output['quantization']
    codes = interpreter.get_tensor(output['index']).astype(float)
    values.append((codes if output['dtype'] == numpy.float32 else (codes - zero) * scale).ravel().tolist())
print(json.dumps(values))
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


def make_data(folder):
    """Puts data.yaml and the pictures with their boxes into the folder."""
    for kind, ending in (("images", "jpg"), ("labels", "txt")):
        (folder / "data" / kind).mkdir(parents=True)
        for file in (source / "models/shapes").glob(f"*.{ending}"):
            shutil.copy(file, folder / "data" / kind)
    names = (source / "models/shapes_yolo_labels.txt").read_text().split()
    (folder / "data.yaml").write_text(f"path: {folder}/data\ntrain: images\nval: images\nnames: {names}\n")


def make_trained(folder):
    """Trains best.pt, a YOLO, on the folder's pictures, and returns the boxes that it finds. $REEF_YOLO names one that is there already."""
    ready = os.environ.get("REEF_YOLO")
    if ready:
        shutil.copy(ready, folder / "best.pt")
    # How fast a training gets there depends on the machine's rounding, so it goes on until the model finds most things.
    enough, most_rounds = 25, 4
    for turn in range(most_rounds):
        if not ready:
            run_python(folder, TRAIN, "best.pt" if turn else "yolov8n.yaml")
        wanted = json.loads(run_python(folder, PREDICT, "best.pt", "cpu").splitlines()[-1])
        count = sum(map(len, wanted))
        if count >= enough:
            return wanted, count
        print(f"{count} boxes in pictures with 34 things; training goes on", flush=True)
    sys.exit(f"the training failed: {count} boxes in pictures with 34 things")


def has_exporter():
    if has("tensorflow", "onnx2tf", "sng4onnx", "onnx_graphsurgeon"):
        return True
    print("export(format='edgetpu'): left out, TensorFlow or onnx2tf with its packages is missing")
    return False


def signal_to_noise(wanted, found):
    """Decibels between what an output should be and what it is; 99 where they are equal."""
    signal, noise = sum(value * value for value in wanted), sum((a - b) ** 2 for a, b in zip(wanted, found, strict=True))
    return 99 if noise == 0 else 10 * math.log10(max(signal, 1e-30) / noise)


def family_passes(folder, name):
    data = {"cls": folder / "classes", "pose": folder / "pose.yaml", "seg": folder / "seg.yaml"}.get(name.partition("-")[2], folder / "data.yaml")
    shutil.rmtree(folder / "family_saved_model", ignore_errors=True)
    run_python(folder, EXPORT_FAMILY, name, data)
    exported = folder / "family_saved_model" / "family_full_integer_quant.tflite"
    compiled = exported.with_name(f"{exported.stem}_edgetpu.tflite")
    if not compiled.exists():
        sys.exit(f"{name}: export(format='edgetpu') left no compiled model")
    task = {"seg": "segment", "pose": "pose", "cls": "classify"}.get(name.partition("-")[2], "detect")
    in_reef = (build / "reef", "exec", "--")
    seen = json.loads(run_python(folder, PREDICT_FAMILY, compiled, task, before=in_reef).splitlines()[-1])
    exact, litert, chip = (json.loads(run_python(folder, RAW_OUTPUTS, file, where, before=before).splitlines()[-1]) for file, where, before in
                           ((exported.with_name("family_float32.tflite"), "cpu", ()), (exported, "cpu", ()), (compiled, "tpu", in_reef)))
    # Each output's distance from the float model, in dB: by LiteRT on the CPU and by the Edge TPU.
    errors = [(signal_to_noise(a, b), signal_to_noise(a, c)) for a, b, c in zip(exact, litert, chip, strict=True)]
    log = compiled.with_suffix(".log").read_text()
    rows = re.findall(r"^\S+ +(\d+) +(\S.*)$", log, re.M)
    mapped = sum(int(count) for count, status in rows if status.strip() == "Mapped to Edge TPU")
    has_kind = {"segment": seen["has_masks"], "pose": seen["has_keypoints"], "classify": seen["has_classes"]}.get(task, seen["boxes"] > 0)
    margin = 3  # the chip rounds otherwise than TFLite, which may cost little beside what quantization costs
    passes = all(on_chip > on_cpu - margin for on_cpu, on_chip in errors) and seen["pictures"] == 12 and has_kind
    # An untrained classifier of 1,000 classes has scores below one step of int8: then its outputs say nothing.
    figures = ", ".join(f"{on_chip:.1f} dB (LiteRT's CPU {on_cpu:.1f}{', too little to compare' if on_cpu < margin else ''})"
                        for on_cpu, on_chip in errors)
    print(f"{name}: export and predict {'pass' if passes else 'FAIL'}: outputs against the float model {figures}; "
          f"{mapped} of {sum(int(count) for count, _ in rows)} operators on the Edge TPU; {seen}", flush=True)
    return passes


def families(folder, wanted):
    """export(format="edgetpu") and predict(device="tpu:0") of every family, by Ultralytics' own code."""
    if not has_exporter():
        return
    for kind in ("train", "val"):
        for name in ("disc", "ring"):
            (folder / "classes" / kind / name).mkdir(parents=True)
    for at, picture in enumerate(sorted((folder / "data/images").glob("*.jpg"))):
        for kind in ("train", "val"):
            shutil.copy(picture, folder / "classes" / kind / ("disc", "ring")[at % 2])
    # The same things, with 17 points in the middle of each, and with their outlines.
    def middle(box):
        return [box[0], box[1], 2]

    def corners(box):
        return [box[i] + sign * box[i + 2] / 2 for across, down in ((-1, -1), (1, -1), (1, 1), (-1, 1)) for i, sign in ((0, across), (1, down))]

    for kind, row_of in (("pose", lambda box: [*box, *middle(box) * 17]), ("seg", corners)):
        shutil.copytree(folder / "data/images", folder / kind / "images")
        (folder / kind / "labels").mkdir()
        for file in (folder / "data/labels").glob("*.txt"):
            things = [line.split() for line in file.read_text().splitlines()]
            rows = [" ".join([thing[0], *map(str, row_of(list(map(float, thing[1:]))))]) for thing in things]
            (folder / kind / "labels" / file.name).write_text("\n".join(rows) + "\n")
        (folder / f"{kind}.yaml").write_text((folder / "data.yaml").read_text().replace("/data\n", f"/{kind}\n") + "kpt_shape: [17, 3]\n")
    wrong = sum(not family_passes(folder, name) for name in wanted)
    if wrong:
        sys.exit(f"{wrong} of {len(wanted)} families fail")


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
    if not has_exporter():
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
    if wanted := FAMILIES if "families" in parts else [part for part in parts if part.startswith("yolo")]:
        with tempfile.TemporaryDirectory() as name:
            make_data(pathlib.Path(name))
            families(pathlib.Path(name), wanted)
    if {"frigate", "edgetpu"} & set(parts):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            make_data(folder)
            wanted, count = make_trained(folder)
            if "frigate" in parts:
                frigate(folder, wanted, count)
            if "edgetpu" in parts:
                edgetpu(folder, wanted, count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
