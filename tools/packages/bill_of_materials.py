#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What packages contain beside Reef itself: a software bill of materials (SPDX 2.3, JSON), and the licences of all of it.

    bill_of_materials.py BUILD FOLDER              writes FOLDER/sbom.spdx.json and FOLDER/licences/NAME.txt
    bill_of_materials.py --debian-copyright BUILD  prints paragraphs for debian/copyright

The build leaves the list in BUILD/dependencies.txt ("name version licence origin"); the compiler's own libraries and zig's are added
here. A licence is copied from the sources that were compiled, or from Debian's copyright file of the package; one that cannot be
found is an error.
"""

import datetime
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Who wrote them, Debian's packages that have the copyright file, and where they come from.
ABOUT = {
    "fmt": ("2012 - present, Victor Zverovich and {fmt} contributors", ["libfmt-dev"], "https://fmt.dev"),
    "nlohmann-json": ("2013-2022 Niels Lohmann", ["nlohmann-json3-dev"], "https://json.nlohmann.me"),
    "CLI11": ("2017-2021 University of Cincinnati, developed by Henry Schreiner", ["libcli11-dev"], "https://github.com/CLIUtils/CLI11"),
    "zlib": ("1995-2022 Jean-loup Gailly and Mark Adler", ["zlib1g-dev", "zlib1g"], "https://zlib.net"),
    "flatbuffers": ("2014 Google Inc.", ["libflatbuffers-dev"], "https://flatbuffers.dev"),
    "stb": ("2017 Sean Barrett", ["libstb-dev"], "https://github.com/nothings/stb"),
    "libstdc++": ("Free Software Foundation, Inc.", ["libstdc++6", "gcc-12-base"], "https://gcc.gnu.org"),
    "zig-runtime": ("the LLVM project's and Zig's contributors", [], "https://ziglang.org"),
}


def dependencies(build):
    """(name, version, licence, folder of the sources or None)."""
    for line in (build / "dependencies.txt").read_text().splitlines():
        name, version, licence, origin = line.split(" ", 3)
        yield name, version, licence, None if origin == "system" else pathlib.Path(origin)
    cache = (build / "CMakeCache.txt").read_text()
    if not re.search(r"^REEF_GLIBC:STRING=.+", cache, re.M):
        return  # the C++ library is the system's
    compiler = next(build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake")).read_text()
    version = re.search(r'CMAKE_CXX_COMPILER_VERSION "([^"]+)"', compiler)[1]
    yield "libstdc++", version, "GPL-3.0-or-later WITH GCC-exception-3.1", None
    zig = next(ROOT.glob("build-tools/packages/lib/python3*/site-packages/ziglang"))
    version = next(zig.parent.glob("ziglang-*.dist-info")).name.split("-")[1].removesuffix(".dist")
    yield "zig-runtime", version, "MIT AND Apache-2.0 WITH LLVM-exception", zig


def licence_text(name, sources):
    if name == "zig-runtime":  # start-up code and compiler-rt are Zig's, the unwinder is LLVM's
        return (sources / "LICENSE").read_text() + "\n" + (sources / "lib/libunwind/LICENSE.TXT").read_text()
    if sources is not None:
        for pattern in ("LICENSE*", "COPYING*"):
            for file in sorted(sources.glob(pattern)):
                if file.is_file():
                    return file.read_text()
    for package in ABOUT[name][1]:
        file = pathlib.Path("/usr/share/doc") / package / "copyright"
        if file.exists():
            return file.read_text(errors="replace")
    sys.exit(f"bill_of_materials.py: the licence of {name} was not found")


def reef_version():
    return re.search(r"project\(reef VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def spdx(parts):
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    version = reef_version()
    packages = [{"SPDXID": "SPDXRef-reef", "name": "reef", "versionInfo": version, "downloadLocation": "NOASSERTION",
                 "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "Reef's contributors"}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-reef")]
    for name, part_version, licence, _ in parts:
        identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        packages.append({"SPDXID": identifier, "name": name, "versionInfo": part_version, "downloadLocation": ABOUT[name][2],
                         "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": ABOUT[name][0]})
        relations.append(("SPDXRef-reef", "CONTAINS", identifier))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"reef-{version}",
            "documentNamespace": f"https://reef.invalid/sbom/{version}",
            "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: tools/packages/bill_of_materials.py"]},
            "packages": packages,
            "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                              for one, kind, other in relations]}


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    if arguments[0] == "--debian-copyright":
        for name, version, licence, _ in dependencies(pathlib.Path(arguments[1])):
            print(f"\nFiles: bundled/{name}/*\nCopyright: {ABOUT[name][0]}\nLicense: {licence.replace(' ', '-')}\n"
                  f" {name} {version} is linked into the program and the libraries. Its licence is in the folder\n"
                  f" licences beside this file.")
        return
    build, folder = map(pathlib.Path, arguments)
    parts = list(dependencies(build))
    (folder / "licences").mkdir(parents=True, exist_ok=True)
    (folder / "sbom.spdx.json").write_text(json.dumps(spdx(parts), indent=1) + "\n")
    for name, _, _, sources in parts:
        (folder / "licences" / f"{name}.txt").write_text(licence_text(name, sources))


if __name__ == "__main__":
    main(sys.argv[1:])
