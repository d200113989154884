# SPDX-License-Identifier: Apache-2.0
"""Programs written for Coral, run as they are by `reef exec`: no import and no path is changed.

The programs below use the interfaces as PyCoral's examples, tflite_runtime's users and TensorFlow's Raspberry Pi examples use
them. PyCoral's own unit tests run too where they are: set REEF_PYCORAL to a checkout of google-coral/pycoral
(they need Pillow and, most of them, the files of google-coral/test_data in its folder test_data; pycoral_files.py makes stand-ins for
those that are not there, some with $REEF_PYTHON's PyTorch and LiteRT).

Frigate's detector plugin runs where REEF_FRIGATE names a checkout of blakeblackshear/frigate.

Usage: run_coral_programs.py BUILD_FOLDER SOURCE_FOLDER        exit code 77: nothing could be run (no NumPy)
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pycoral_files

HERE = pathlib.Path(__file__).resolve().parent
build, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

CLASSIFY = """
import sys
from pycoral.utils.edgetpu import make_interpreter, list_edge_tpus, get_runtime_version
from pycoral.utils.dataset import read_label_file
from pycoral.adapters import classify, common
import pycoral.pybind._pywrap_coral
from reef import load_image
interpreter = make_interpreter(*sys.argv[1].split('@'))
interpreter.allocate_tensors()
common.set_input(interpreter, load_image(sys.argv[3], common.input_size(interpreter)))
interpreter.invoke()
labels = read_label_file(sys.argv[2])
for c in classify.get_classes(interpreter, top_k=1):
    print(labels.get(c.id, c.id), round(c.score, 3), len(list_edge_tpus()) > 0, 'RuntimeVersion' in get_runtime_version())
"""

DETECT = """
import sys
import numpy as np
from pycoral.adapters import common, detect
from pycoral.utils.edgetpu import make_interpreter
from reef import load_image
interpreter = make_interpreter(sys.argv[1])
interpreter.allocate_tensors()
picture = load_image(sys.argv[2])
_, scale = common.set_resized_input(interpreter, picture.shape[1::-1], lambda size: load_image(sys.argv[2], size))
interpreter.invoke()
print(len(detect.get_objects(interpreter, 0.4, scale)), 'objects')
"""

RUNTIME = """
import sys
import numpy as np
from tflite_runtime.interpreter import Interpreter, load_delegate
for name in ('libedgetpu.so.1', 'libedgetpu.so.1.0'):
    interpreter = Interpreter(sys.argv[1], experimental_delegates=[load_delegate(name, {'device': 'usb:0'})])
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    interpreter.set_tensor(details['index'], np.zeros(details['shape'], details['dtype']))
    interpreter.invoke()
    print(interpreter.get_tensor(interpreter.get_output_details()[0]['index']).shape)
"""

SUPPORT = """
import sys
from tflite_support.task import core, processor, vision
base = core.BaseOptions(file_name=sys.argv[1], use_coral=True, num_threads=1)
options = vision.ObjectDetectorOptions(base_options=base, detection_options=processor.DetectionOptions(max_results=3, score_threshold=0.4))
detector = vision.ObjectDetector.create_from_options(options)
result = detector.detect(vision.TensorImage.create_from_file(sys.argv[2]))
print(len(result.detections) > 0, all(0 <= d.bounding_box.origin_x < 4000 for d in result.detections))
base = core.BaseOptions(file_name=sys.argv[3])
classifier = vision.ImageClassifier.create_from_options(vision.ImageClassifierOptions(base, processor.ClassificationOptions(max_results=1)))
print(classifier.classify(vision.TensorImage.create_from_file(sys.argv[4])).classifications[0].categories[0].index)
"""

LIBRARY = """
import ctypes
for name in ('libedgetpu.so.1', 'libedgetpu.so.1.0', 'libedgetpu.so'):
    library = ctypes.CDLL(name)
    library.edgetpu_version.restype = ctypes.c_char_p
    print(library.edgetpu_version() is not None)
"""


def python_with(*modules):
    for python in filter(None, (os.environ.get("REEF_PYTHON"), sys.executable, "/usr/bin/python3")):
        if subprocess.run([python, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0:
            return python
    return None


def run(folder, python, program, *arguments):
    path = folder / "program.py"
    path.write_text(program)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH", "REEF_LIBRARY")}
    environment["REEF_DEVICES"] = environment.get("REEF_DEVICES", "usb,usb,pci")
    done = subprocess.run([build / "reef", "exec", "--", python, path, *map(str, arguments)], capture_output=True, text=True,
                          env=environment, cwd=folder, timeout=600)
    if done.returncode != 0:
        sys.exit(f"a program ended with {done.returncode}:\n{program}\n{done.stdout}{done.stderr}")
    return done.stdout


# imprinting_evaluation_test wants pictures that it downloads.
PYCORAL_TESTS = ("classify", "detect", "segment", "multiple_tpus", "pipelined_model_runner", "edgetpu_utils", "softmax_regression",
                 "imprinting_engine")
MISSING_FILE = re.compile(r"No such file or directory: '[^']*'|Could not open '[^']*'|Failed to open file: \S*/\S+")


def pycoral_tests(folder, checkout):
    """PyCoral's own unit tests, with Reef's modules in the place of PyCoral's. A test may fail for want of a file alone."""
    (folder / "tests").symlink_to(checkout / "tests")
    python, wrong = python_with("numpy", "PIL"), 0
    if python is None:
        print("no Python with NumPy and Pillow: PyCoral's tests were not run")
        return
    data = folder / "test_data"
    data.mkdir()
    made = pycoral_files.complete(build / "reef", python, checkout / "test_data", data)
    print(f"stand-ins for files that the checkout lacks: {', '.join(made) or 'none'}")
    for name in PYCORAL_TESTS:
        done = subprocess.run([build / "reef", "exec", "--", python, "-m", f"tests.{name}_test", "--test_data_dir", data], cwd=folder,
                              capture_output=True, text=True, timeout=900, env=dict(os.environ, REEF_DEVICES="pci,pci,usb,usb"))
        count = re.search(r"Ran (\d+) tests?", done.stderr)
        parts = re.split(r"^=+$", done.stderr, flags=re.M)[1:]
        failed = [part for part in parts if not MISSING_FILE.search(part)]
        # A test with several cases has a part for each of them.
        without_file = {re.search(r"(?:ERROR|FAIL): (\w+)", part)[1] for part in parts if MISSING_FILE.search(part)}
        absent = sorted({pathlib.Path(path).name for part in parts for path in re.findall(r"'([^']*\.tflite)'", part)})
        wrong += len(failed) if count else 1
        print(f"PyCoral's {name}_test: {count[1] if count else 'no'} tests, {len(without_file)} want files that are not there, "
              f"{len(failed)} fail otherwise{'; not there: ' + ', '.join(absent) if without_file else ''}")
        for part in failed if count else [done.stdout + done.stderr]:
            print(part)
    if wrong:
        sys.exit(f"{wrong} of PyCoral's tests fail")


def frigate(folder, checkout, detector, scene):
    """Frigate's own plugin finds with each kind of device what `reef run` finds."""
    python = python_with("numpy", "cv2", "pydantic")
    if python is None:
        print("no Python with NumPy, OpenCV and pydantic: Frigate's plugin was not run")
        return
    said = subprocess.run([build / "reef", "run", "--json", detector, "--image", scene, "--min-score", "0.4"], check=True,
                          capture_output=True, text=True).stdout
    wanted = [thing["class"] for thing in json.loads(said)["found"]["things"]]
    for device in ("", "usb", "pci:0", ":1"):
        done = subprocess.run([build / "reef", "exec", "--", python, HERE / "frigate_plugin.py", checkout, detector, scene, "ssd",
                               *([device] if device else [])], capture_output=True, text=True, cwd=folder, timeout=600,
                              env=dict(os.environ, REEF_DEVICES="usb,usb,pci"))
        found = [int(row[0]) for row in json.loads(done.stdout.splitlines()[-1])] if done.returncode == 0 else done.stderr
        if found != wanted or not wanted:
            sys.exit(f"Frigate's plugin with device '{device}' finds {found} instead of {wanted}")
    print(f"Frigate's edgetpu_tfl.py: {len(wanted)} things as reef run, on four selectors of devices")


def expect(printed, wanted):
    if not re.fullmatch(wanted, printed.strip(), re.S):
        sys.exit(f"printed {printed!r} instead of {wanted!r}")


def main():
    python = python_with("numpy")
    if python is None:
        print("no Python with NumPy: programs for Coral were not run")
        return 77
    models = source / "models"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in ("reef_creatures_int8", "reef_detector_int8"):
            subprocess.run([build / "reef", "compile", models / f"{model}.tflite", "-o", folder, "--quiet"], check=True)
        creatures, detector = folder / "reef_creatures_int8_edgetpu.tflite", folder / "reef_detector_int8_edgetpu.tflite"
        labels, crab, scene = models / "reef_creatures_labels.txt", models / "images/crab_1.jpg", models / "scenes/scene_1.jpg"
        for selector in ("", "@usb", "@:0", "@pci:0"):
            expect(run(folder, python, CLASSIFY, f"{creatures}{selector}", labels, crab), r"crab 0\.9\d+ True True")
        expect(run(folder, python, DETECT, detector, scene), r"[1-9] objects")
        expect(run(folder, python, RUNTIME, creatures), r"\(1, 8\)\n\(1, 8\)")
        expect(run(folder, python, SUPPORT, detector, scene, creatures, crab), r"True True\n1")
        expect(run(folder, python, LIBRARY), r"True\nTrue\nTrue")
        if checkout := os.environ.get("REEF_FRIGATE"):
            frigate(folder, pathlib.Path(checkout).resolve(), detector, scene)
        if checkout := os.environ.get("REEF_PYCORAL"):
            (folder / "pycoral").mkdir()
            pycoral_tests(folder / "pycoral", pathlib.Path(checkout).resolve())
        print("programs for pycoral, tflite_runtime, tflite_support and libedgetpu: all run unchanged")
    return 0


if __name__ == "__main__":
    sys.exit(main())
