#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make site: the documents as a searchable site, build-site/site/VERSION, with a list of the versions beside it.

    build-tools/site/bin/python tools/make_site.py

Pages keep their places (docs/check.md is VERSION/docs/check/), so the links of the repository are those of the site. MkDocs fails on a
link or a section that does not exist, and on a page that mkdocs.yml does not list. Versions that were built before stay: a server that
keeps build-site/site has them all.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["README.md", "HACKING.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "LICENSE", "src/README.md", "examples/README.md",
         "models/README.md", "docs"]


def main():
    version = re.search(r"project\(reef VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    pages, site = ROOT / "build-site/pages", ROOT / "build-site/site"
    shutil.rmtree(pages, ignore_errors=True)
    for name in PAGES:
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, pages / name)
        else:
            shutil.copy(ROOT / name, pages / name)
    shutil.rmtree(site / version, ignore_errors=True)
    build = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", site / version])
    if build.returncode:
        sys.exit(build.returncode)
    versions = sorted((path.name for path in site.iterdir() if path.is_dir()), key=lambda name: [int(part) for part in name.split(".")])
    (site / "versions.json").write_text(json.dumps([{"version": name, "title": name, "aliases": []} for name in reversed(versions)]) + "\n")
    (site / "index.html").write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={versions[-1]}/"><a href="{versions[-1]}/">Reef</a>\n')
    print((site / version / "index.html").relative_to(ROOT))


if __name__ == "__main__":
    main()
