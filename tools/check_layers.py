#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes point down the folder order of src/layers.txt.

A file in src/<folder>/ may include headers of its own folder and of folders on earlier lines. Folders on one line are
stages and do not include each other. src/README.md describes the folders in the same order. Narrower walls are listed
below. Exit 1 with one line per violation.
"""
import pathlib
import re
import sys

# Folders that may see less than their place in the order allows, and why.
WALLS = {
    "kernels": {"base", "numeric"},  # arithmetic on spans knows no graph
    "execute/device": {"base", "numeric", "chip", "isa", "formats/darwinn", "host"},  # the device reads bytes, never our structures
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_layers(path):
    layers = []
    for line in path.read_text().splitlines():
        line = line.split("#")[0].split()
        if line:
            layers.append(line)
    return layers


def layer_of(path, rank):
    """The folder of layers.txt that a path below src/ lies in: the longest that matches, or None."""
    parts = path.split("/")
    for length in (2, 1):
        if "/".join(parts[:length]) in rank:
            return "/".join(parts[:length])
    return None


def check_readme(src, layers):
    """src/README.md has a row for each folder, in the order of layers.txt."""
    rows = re.findall(r"^\| `([a-z_/]+)/` \|", (src / "README.md").read_text(), re.M)
    order = [name for line in layers for name in line]
    if rows == order:
        return []
    first = next((i for i, pair in enumerate(zip(rows, order)) if pair[0] != pair[1]), min(len(rows), len(order)))
    return [f"src/README.md: row {first + 1} is not that of layers.txt: {rows[first:first + 1]}, {order[first:first + 1]}"]


def allowed_by_wall(folder_path, included):
    for wall, allowed in WALLS.items():
        if folder_path == wall or folder_path.startswith(wall + "/"):
            inside = included == wall or included.startswith(wall + "/")
            return inside or any(included == a or included.startswith(a + "/") for a in allowed)
    return True


def check(root):
    src = root / "src"
    layers = read_layers(src / "layers.txt")
    rank = {name: i for i, line in enumerate(layers) for name in line}
    problems = check_readme(src, layers)
    files = sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cpp"))
    for file in files:
        relative = file.relative_to(src)
        folder = layer_of(relative.parent.as_posix(), rank)
        if folder is None:
            problems.append(f"src/{relative}: its folder is not in src/layers.txt")
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or "/" not in match.group(1):
                continue
            target = match.group(1)
            target_folder = layer_of(pathlib.PurePosixPath(target).parent.as_posix(), rank)
            where = f"src/{relative}:{number}"
            if target_folder is None:
                problems.append(f"{where}: '{target}' is in no folder of src/layers.txt")
            elif target_folder != folder and rank[target_folder] >= rank[folder]:
                problems.append(f"{where}: {folder} may not include {target_folder} ('{target}')")
            elif not allowed_by_wall(str(relative.parent), str(pathlib.PurePosixPath(target).parent)):
                problems.append(f"{where}: a wall keeps {relative.parent} from including '{target}'")
    return problems, len(files)


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found, count = check(root)
    if count == 0:
        found.append(f"no sources under {root}/src")
    print("\n".join(found) if found else f"{count} files keep the folder order")
    sys.exit(1 if found else 0)
