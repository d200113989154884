# SPDX-License-Identifier: Apache-2.0
"""Netron's reader (PyPI: netron) opens every kind of file that Reef writes, and finds in it what `reef inspect` finds.

Its JavaScript runs under Node.js: converted, quantized, compiled, cut and learned models are read, all constants included.

Usage: run_netron.py BUILD_FOLDER SOURCE_FOLDER         exit code 77: Netron or Node.js cannot be had
"""

import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from registry import environment, run

HERE = pathlib.Path(__file__).resolve().parent
build, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def netron_modules(folder):
    """Netron's JavaScript as modules for Node.js; None where it cannot be had."""
    python = environment(folder / "netron", "netron", "netron")
    if python is None:
        return None
    modules = folder / "netron_modules"
    if not (modules / "package.json").exists():
        package = pathlib.Path(run(python, "-c", "import netron; print(netron.__path__[0])").stdout.strip())
        modules.mkdir(parents=True, exist_ok=True)
        for file in [*package.glob("*.js"), *package.glob("*.json")]:
            shutil.copy(file, modules)
        (modules / "package.json").write_text('{"type": "module"}')
    return modules


def make_files(folder):
    """One file of every kind that Reef writes."""
    models = source / "models"
    reef = build / "reef"
    run(reef, "convert", models / "cifar_resnet8.onnx", "-o", folder / "converted.tflite")
    run(reef, "quantize", models / "reef_creatures_float.tflite", "--data", models / "images", "--preprocess", "unit", "-o",
        folder / "quantized.tflite")
    for model in ("reef_creatures_int8", "reef_detector_int8", "reef_segmenter_int8"):
        run(reef, "compile", models / f"{model}.tflite", "-o", folder)
    run(reef, "compile", models / "reef_creatures_int8.tflite", "--num_segments", "2", "-o", folder)
    for name in ("crab", "fish"):
        (folder / "photos" / name).mkdir(parents=True)
        for picture in (models / "images").glob(f"{name}*"):
            shutil.copy(picture, folder / "photos" / name)
    run(reef, "learn", "imprint", models / "reef_creatures_float.tflite", "--data", folder / "photos", "--preprocess", "unit",
        "-o", folder / "learned.tflite")
    return sorted(folder.glob("*.tflite"))


def plain(name):
    """CONV_2D and Conv2D are one operator."""
    return name.replace("_", "").lower()


def difference(seen, file):
    """What Netron finds and Reef does not, or the other way round; empty: nothing."""
    known = json.loads(run(build / "reef", "inspect", "--json", file).stdout)
    graph = known["subgraphs"][0]
    for side in ("inputs", "outputs"):
        wanted = [graph["tensors"][index]["name"] for index in graph[side]]
        # Netron appends a tensor's number to its name.
        found = [name.split("\n")[0] for name in seen[side]]
        if found != wanted:
            return f"{side} {found} instead of {wanted}"
    wanted = collections.Counter(plain(op["type"]) for op in graph["operators"])
    found = collections.Counter({plain(name): count for name, count in seen["operators"].items()})
    return "" if found == wanted else f"operators {dict(found)} instead of {dict(wanted)}"


def main():
    if shutil.which("node") is None:
        print("skipped: there is no Node.js (Debian: nodejs)")
        return 77
    modules = netron_modules(build / "clients")
    if modules is None:
        return 77
    problems = 0
    with tempfile.TemporaryDirectory() as name:
        files = make_files(pathlib.Path(name))
        done = subprocess.run(["node", HERE / "netron_client.mjs", modules, *files], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        for file, line in zip(files, done.stdout.splitlines(), strict=True):
            seen = json.loads(line)
            problem = difference(seen, file)
            problems += 1 if problem else 0
            print(f"{file.name}: {problem or str(sum(seen['operators'].values())) + ' operators, as reef inspect says'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
