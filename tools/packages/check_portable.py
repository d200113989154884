#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do programs and libraries run on every system that they are made for?

    check_portable.py [--glibc 2.28] FILE_OR_FOLDER...

Looks into every ELF file: which versions of the C library's functions it asks for, and which libraries it needs. Others than the
C library's own are errors, except libreef_delegate.so, which lies beside the library that needs it. Exit code 1 if anything is wrong.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ALLOWED = re.compile(r"^(lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-\S+|libreef\.so\.0)$")


def elf_files(paths):
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and not file.is_symlink():
                with file.open("rb") as stream:
                    if stream.read(4) == b"\x7fELF":
                        yield file


def number(version):
    return tuple(map(int, version.split(".")))


def problems_of(file, glibc):
    text = subprocess.run(["readelf", "--wide", "--dynamic", "--version-info", file], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", text)
    found = [f"needs {name}" for name in needed if not ALLOWED.match(name)]
    versions = {version for version in re.findall(r"Name: GLIBC_([0-9.]+)", text)}
    newest = max(versions, key=number, default="0")
    if number(newest) > number(glibc):
        found.append(f"needs glibc {newest}")
    if "Name: GLIBCXX" in text:
        found.append("needs the system's libstdc++")
    return found, newest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glibc", default="2.28")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    count, bad = 0, 0
    for file in elf_files(arguments.paths):
        found, newest = problems_of(file, arguments.glibc)
        count += 1
        bad += bool(found)
        print(f"{file}: {'; '.join(found) if found else f'runs from glibc {newest} on'}")
    if count == 0:
        sys.exit("check_portable.py: there is no program or library")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
