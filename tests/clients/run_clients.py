# SPDX-License-Identifier: Apache-2.0
"""Real TFLite runtimes load Reef's delegate, and compute what `reef run --device virtual` computes.

Clients: ai-edge-litert (newest), tflite-runtime 2.14 (both from PyPI, in virtual environments under the build folder) and
TFLite 2.9's C library (npm package tfjs-tflite-node, called with ctypes). A client that cannot be had is skipped, with a
message; if none can, the exit code is 77, which ctest takes for "skipped".

Models: those of the repository, compiled here; and where the collection of models is present, every file that Google's
compilers made. Outputs must be equal to the last byte. Where operators stay on the CPU the runtime's reference kernels
are used; TFLite 2.9's C library has none, so that it is given only models that run on the Edge TPU as a whole.

Scripts for Coral's devices, a classifier and a recorder's detector, run as they are, with another LD_LIBRARY_PATH alone.

Usage: run_clients.py BUILD_FOLDER [--all]      (--all: every model of the collection; else a few quick ones)
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from registry import environment, run

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
SKIPPED = 77
NPM_PACKAGE = "tfjs-tflite-node@0.0.2"
QUICK = ("mobilenet_v1_0.25_128_quant", "dense_256", "split_concat", "rl_mlp_tanh", "keras_lstm_mnist_ptq", "op_model_mat_Add")


def tflite_2_9(folder):
    """The folder of TFLite 2.9's C library; None where it cannot be had."""
    libraries = folder / "package" / "cc_deps" / ("linux_arm64" if os.uname().machine == "aarch64" else "linux_amd64")
    try:
        if not libraries.exists():
            folder.mkdir(parents=True, exist_ok=True)
            run("npm", "pack", NPM_PACKAGE, cwd=folder)
            run("tar", "xzf", *folder.glob("*.tgz"), cwd=folder)
        return libraries
    except (OSError, subprocess.SubprocessError) as error:
        print(f"skipped: {NPM_PACKAGE} cannot be had: {error}")
        return None


def collection(everything):
    zoo = pathlib.Path(os.environ.get("REEF_ZOO", SOURCE.parent / "shared" / "zoo")) / "pairs"
    files = sorted(zoo.glob("*/*_edgetpu.tflite"))
    if not files:
        print(f"note: {zoo} has no models: only those of the repository are run")
    return [file for file in files if everything or file.parent.name in QUICK]


def clients(build):
    """By name: how to call client.py."""
    found = {}
    python = environment(build / "clients" / "litert", "ai_edge_litert, numpy, PIL", "ai-edge-litert", "numpy", "pillow")
    if python:
        found["ai-edge-litert"] = [python, HERE / "client.py", "litert"]
    runtime = environment(build / "clients" / "tflite_runtime", "tflite_runtime, numpy, PIL", "tflite-runtime", "numpy<2", "pillow")
    if runtime:
        found["tflite-runtime"] = [runtime, HERE / "client.py", "tflite_runtime"]
    libraries = tflite_2_9(build / "clients" / "npm")
    if libraries and (python or runtime):
        found["TFLite 2.9"] = [python or runtime, HERE / "client.py", libraries]
    return found


def scripts_for_coral(python, build, folder):
    """Programs that know nothing of Reef find its libedgetpu where the dynamic linker looks. Empty: all is well."""
    found = {**os.environ, "LD_LIBRARY_PATH": str(build / "coral")}
    models = SOURCE / "models"
    classified = run(python, SOURCE / "examples" / "python" / "coral_classify.py", "-m",
                     folder / "reef_creatures_int8_edgetpu.tflite", "-i", models / "images" / "crab_1.jpg", "-l",
                     models / "reef_creatures_labels.txt", env=found).stdout.splitlines()[-1]
    if not classified.startswith("crab: 0.9"):
        return f"the classifier says '{classified}'"
    detector = [str(part) for part in (python, HERE / "camera_detector.py", folder / "reef_detector_int8_edgetpu.tflite",
                                       models / "scenes" / "scene_1.jpg")]
    plain, mirrored = json.loads(run(*detector, env=found).stdout)
    if not plain or [row[0] for row in plain] != [row[0] for row in mirrored]:
        return f"the detector finds {plain}, and in a mirror {mirrored}"
    for one, other in zip(plain, mirrored):
        if abs(one[3] - (1 - other[5])) > 0.08 or abs(one[2] - other[2]) > 0.08:
            return f"the detector's boxes move: {one}, and in a mirror {other}"
    none = subprocess.run(detector, env={**found, "REEF_DEVICES": "none"}, capture_output=True, text=True, timeout=600)
    if none.returncode == 0 or "no Edge TPU was found" not in none.stderr:
        return f"without a device the detector says '{none.stderr}'"
    return ""


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    reef = build / "reef"
    available = clients(build)
    if not available:
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        own = sorted((SOURCE / "models").glob("*_int8.tflite"))
        for model in own:
            run(reef, "compile", "--quiet", "-o", folder, model)
        models = [folder / f"{model.stem}_edgetpu.tflite" for model in own] + collection("--all" in sys.argv)
        failures = 0
        for name, command in available.items():
            jobs = json.dumps([str(model) for model in models])
            done = subprocess.run([str(part) for part in [*command, reef, build / "coral" / "libedgetpu.so.1", folder]],
                                  input=jobs, text=True, timeout=3000)
            print(f"{name}: {'passed' if done.returncode == 0 else f'FAILED ({done.returncode})'}", flush=True)
            failures += done.returncode != 0
            if name == "TFLite 2.9":  # not Python
                continue
            problem = scripts_for_coral(command[0], build, folder)
            print(f"{name}: scripts for Coral's devices: {problem or 'passed'}", flush=True)
            failures += bool(problem)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
