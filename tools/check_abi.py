#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is libreef's binary interface still the recorded one?

    check_abi.py LIBRARY SOURCE_FOLDER            compares with include/reef/abi.txt; exit code 1 if they differ
    check_abi.py LIBRARY SOURCE_FOLDER --record   writes that file anew

The interface is what programs are compiled against: the functions that the library exports, and the sizes, fields, offsets and
constants of include/reef/reef.h, as the C compiler lays them out. What is added has to be recorded, so that a later version cannot
lose it; what is lost or moved breaks programs, and needs a new major version. Until the first release it may also be recorded.
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in text.splitlines() if " T " in line}
    return sorted(name for name in names if name != "reef_program" and "reef_private_" not in name)  # packages' own, see libreef.map


def layout(header):
    """Lines "struct size", "struct.field offset size", "CONSTANT value", computed by a program that the compiler makes."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    prints = []
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\}", text, re.S):
        prints.append(f'printf("{name} size %zu\\n", sizeof({name}));')
        for field in re.findall(r"[\s*(](\w+)(?:\[\w+\])?(?:\)\([^;]*\))?;", body):
            prints.append(f'printf("{name}.{field} offset %zu size %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));')
    for body in re.findall(r"typedef enum \w+ \{(.*?)\n\}", text, re.S):
        prints += [f'printf("{name} %d\\n", (int){name});' for name in re.findall(r"\b(REEF_\w+)", body)]
    program = "#include <stddef.h>\n#include <stdio.h>\n#include <reef/reef.h>\nint main(void) {\n" + "\n".join(prints) + "\nreturn 0;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder) / "layout.c", pathlib.Path(folder) / "layout"
        source.write_text(program)
        subprocess.run(["cc", "-I", header.parents[1], source, "-o", binary], check=True)
        return subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()


def main(arguments):
    if len(arguments) not in (2, 3) or arguments[2:] not in ([], ["--record"]):
        sys.exit(__doc__)
    library, source = map(pathlib.Path, arguments[:2])
    record = source / "include/reef/abi.txt"
    now = [f"function {name}" for name in exported(library)] + layout(source / "include/reef/reef.h")
    if arguments[2:]:
        record.write_text("\n".join(now) + "\n")
        return
    before = record.read_text().splitlines()
    lost = [line for line in before if line not in set(now)]
    added = [line for line in now if line not in set(before)]
    for line in lost:
        print(f"libreef.so: programs that were compiled before rely on this, and it is gone or has changed: {line}")
    for line in added:
        print(f"libreef.so: this is new and not recorded: {line}")
    if lost or added:
        sys.exit("Run `python3 tools/check_abi.py build/libreef.so . --record`" +
                 (" after raising the major version, which names the library (SOVERSION)" if lost else "") + ", and say it in CHANGELOG.md.")


if __name__ == "__main__":
    main(sys.argv[1:])
