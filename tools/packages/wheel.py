#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dist/reef_tpu-VERSION-py3-none-manylinux_2_28_CPU.whl from the portable build of a CPU (tools/packages/build.sh).

    build-tools/packages/bin/python tools/packages/wheel.py x86_64|aarch64

Holds what `pip install .` would build: the package with its libraries, the commands reef and edgetpu_compiler, models, licences.
Metadata are pyproject.toml's. Entries are sorted and as old as SOURCE_DATE_EPOCH: two builds give the same bytes.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile

import pyproject_metadata

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPUS = ("x86_64", "aarch64")


def metadata(version):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project["project"]["version"] = version
    project["project"]["dynamic"].remove("version")
    return bytes(pyproject_metadata.StandardMetadata.from_pyproject(project, project_dir=ROOT).as_rfc822())


def collect(cpu, version, tag, work):
    """{name in the wheel: (content, is it a program)}"""
    build = ROOT / f"build-portable-{cpu}"
    subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", work, "--strip"], check=True, stdout=subprocess.DEVNULL)
    info = f"reef_tpu-{version}.dist-info"
    subprocess.run([sys.executable, ROOT / "tools/packages/bill_of_materials.py", build, work / info / "sboms"], check=True)
    (work / info / "sboms" / "licences").rename(work / info / "licenses")
    (work / info / "licenses" / "LICENSE").write_bytes((ROOT / "LICENSE").read_bytes())
    files = {}
    for file in sorted(path for path in work.rglob("*") if path.is_file()):
        name = file.relative_to(work).as_posix()
        is_program = name.startswith("scripts/")
        files[f"reef_tpu-{version}.data/{name}" if is_program else name] = (file.read_bytes(), is_program)
    package = ROOT / "bindings/python/reef"
    for file in sorted(package.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            files["reef/" + file.relative_to(package).as_posix()] = (file.read_bytes(), False)
    files[f"{info}/METADATA"] = (metadata(version), False)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: reef {version}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False)
    return files, info


def record(files, info):
    lines = []
    for name, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"


def write(path, files, info):
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]  # zip knows no time before 1980
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        # Metadata come last, as the format recommends.
        for name in sorted(files, key=lambda each: (each.startswith(info), each)):
            content, is_program = files[name]
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            wheel.writestr(entry, content)
    part.replace(path)


def main(arguments):
    if len(arguments) != 1 or arguments[0] not in CPUS:
        sys.exit(__doc__)
    version = re.search(r"project\(reef VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    tag = f"py3-none-manylinux_2_28_{arguments[0]}"
    with tempfile.TemporaryDirectory() as folder:
        files, info = collect(arguments[0], version, tag, pathlib.Path(folder))
    files[f"{info}/RECORD"] = (record(files, info).encode(), False)
    (ROOT / "dist").mkdir(exist_ok=True)
    path = ROOT / "dist" / f"reef_tpu-{version}-{tag}.whl"
    write(path, files, info)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
