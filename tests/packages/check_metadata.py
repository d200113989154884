#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the files that describe packages agree with each other and with the sources? Builds no package; takes a second.

    check_metadata.py SOURCE_FOLDER       exit code 1, with one line per problem, if not
"""

import pathlib
import re
import subprocess
import sys


class Checker:
    def __init__(self, root):
        self.root, self.problems = root, []
        self.version = re.search(r"project\(reef VERSION ([0-9.]+)", self.text("CMakeLists.txt"))[1]

    def text(self, name):
        return (self.root / name).read_text()

    def require(self, condition, problem):
        if not condition:
            self.problems.append(problem)

    def versions(self):
        """CMakeLists.txt has the version; what must repeat it has the same."""
        debian = re.match(r"reef \(([0-9.]+)\)", self.text("debian/changelog"))
        self.require(debian and debian[1] == self.version, f"debian/changelog is not of version {self.version}")
        self.require(f"## {self.version}" in self.text("CHANGELOG.md"), f"CHANGELOG.md has no section {self.version}")
        for page in ("README.md", "docs/install.md"):
            named = re.findall(r"\breef(?:_tpu)?[-_](\d+\.\d+\.\d+)", self.text(page))
            self.require(named and set(named) == {self.version}, f"{page} names packages of {sorted(set(named))}, not of {self.version}")
        major = self.version.split(".")[0]
        for file in ("bindings/python/reef/_library.py", "apps/reef/parts.cpp"):
            self.require(f'"libreef.so.{major}"' in self.text(file), f"{file} does not look for libreef.so.{major}")
        self.require(f"\nPackage: libreef{major}\n" in self.text("debian/control"), f"debian/control has no package libreef{major}")

    def debian(self):
        control = self.text("debian/control")
        packages = re.findall(r"^Package: (\S+)$", control, re.M)
        for package in packages:
            self.require((self.root / f"debian/{package}.install").exists(), f"debian/{package}.install is missing")
        for file in (self.root / "debian").glob("*.install"):
            self.require(file.stem in packages, f"debian/control has no package for {file.name}")
        needed = re.search(r"^build=\((.*?)\)", self.text("tools/setup.sh"), re.S | re.M)[1].split()
        wanted = re.search(r"^Build-Depends: (.*?)^\S", control, re.S | re.M)[1]
        for name in set(needed) - {"g++"}:  # every Debian build has it
            self.require(re.search(rf"(^|[\s,]){re.escape(name)}\b", wanted), f"debian/control does not build-depend on {name}, which tools/setup.sh installs")

    def dependencies(self):
        cmake = self.text("cmake/dependencies.cmake")
        bill = self.text("tools/packages/bill_of_materials.py")
        for name in set(re.findall(r"reef_depends_on\((\S+) ", cmake)) - {"name"}:
            self.require(f'"{name}": (' in bill, f"tools/packages/bill_of_materials.py knows nothing of {name}")
        for name in set(re.findall(r"^  reef_fetch\((\w+)\)", cmake, re.M)):
            self.require(re.search(rf"^set\({name}_source \S+\.tar\.\w+ [0-9a-f]{{64}}\)", cmake, re.M), f"{name} is downloaded without a SHA-256 sum")
        for package in re.findall(r"REEF_MISSING ([a-z0-9 -]+)\)", cmake):
            for name in package.split():
                self.require(name in self.text("docs/dependencies.md"), f"docs/dependencies.md does not name {name}")

    def site(self):
        listed = set(re.findall(r"[\w/]+\.md", self.text("mkdocs.yml")))
        pages = {path.relative_to(self.root).as_posix() for path in (self.root / "docs").rglob("*.md")}
        for page in sorted(pages - listed):
            self.require(False, f"mkdocs.yml does not list {page}")
        for page in sorted(listed):
            self.require((self.root / page).exists(), f"mkdocs.yml lists {page}, which does not exist")

    def workflows(self):
        targets = set(re.findall(r"^([a-z0-9-]+(?: [a-z0-9-]+)*):", self.text("Makefile"), re.M))
        targets = {name for line in targets for name in line.split()}
        for file in (self.root / ".github/workflows").glob("*.yml"):
            text = file.read_text()
            matrix = re.findall(r"target: \[(.*?)\]", text)
            named = set(re.findall(r"run: make ([a-z0-9-]+)", text)) | {name.strip() for line in matrix for name in line.split(",")}
            for name in sorted(named):
                self.require(name in targets, f"{file.name} runs `make {name}`, which the Makefile does not have")

    def scripts(self):
        for file in [*self.root.glob("tools/*.sh"), *self.root.glob("tools/packages/*.sh"), self.root / "tools/packages/link_portable",
                     self.root / "debian/rules"]:
            self.require(file.stat().st_mode & 0o111 or file.name == "common.sh", f"{file.name} is not executable")
            if file.name != "rules":
                done = subprocess.run(["bash", "-n", file], capture_output=True, text=True)
                self.require(done.returncode == 0, f"{file.name}: {done.stderr.strip()}")


def main():
    checker = Checker(pathlib.Path(sys.argv[1]).resolve())
    for check in (checker.versions, checker.debian, checker.dependencies, checker.site, checker.workflows, checker.scripts):
        check()
    for problem in checker.problems:
        print(problem)
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
