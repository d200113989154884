#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the command blocks of README.md and docs/, and compares what they print with what the page says they print.

A block that is run begins with ```console. Lines that begin with "$ " are commands (a backslash at the end continues
them); what follows, up to the next command, is what they print, standard output and error together: these lines must occur
in what is printed, in this order, with anything between them. A line "..." says so to the reader. Numbers, which differ from
machine to machine, and spaces are not compared. A command must end with exit code 0 unless its line ends with
"# exit code N". All blocks of a page run one after the other in one new folder, which has Reef's models in "models".

```console skip=REASON blocks are not run, because of what the reason says (a real device, a program that is not here);
`make test` lists them. Other blocks (```sh, ```yaml, ```python ...) are not commands to be typed here.

Usage: run_documents.py REEF SOURCE_FOLDER [PAGE...]      exit code 1 if a block does something else than its page says
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS = 600


def blocks(text):
    """(line, info string, lines) of every fenced block."""
    found, lines = None, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if found is None:
                found, lines = (number, line[3:].strip()), []
            else:
                yield *found, lines
                found = None
        elif found is not None:
            lines.append(line)


def steps(lines):
    """(command, exit code, what it prints) of a block."""
    result, command = [], None
    for line in lines:
        if command is not None and command.endswith("\\"):
            command = command[:-1] + line.strip()
        elif line.startswith("$ "):
            command = line[2:]
            result.append([None, 0, []])
        elif result:
            result[-1][2].append(line)
            continue
        else:
            continue
        if not command.endswith("\\"):
            code = re.search(r"\s+# exit code (\d+)$", command)
            result[-1][0] = command[:code.start()] if code else command
            result[-1][1] = int(code[1]) if code else 0
    return result


def plain(line):
    """Without what differs from machine to machine."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,]*", "#", line)).strip()


def difference(expected, printed):
    """The first line that is not printed where it should be, or None."""
    lines = iter([plain(line) for line in printed.splitlines()])
    for line in expected:
        if line.strip() in ("", "..."):
            continue
        if not any(plain(line) == other for other in lines):
            return line
    return None


def run_page(reef, source, page):
    problems, ran, skipped = [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(source / "models", pathlib.Path(folder) / "models")
        environment = dict(os.environ, PATH=f"{reef.parent}:{os.environ['PATH']}", NO_COLOR="1", COLUMNS="100",
                           LC_ALL="C.UTF-8")
        for line, info, lines in blocks(page.read_text()):
            words = info.split(None, 1)
            if not words or words[0] != "console":
                continue
            if len(words) > 1 and words[1].startswith("skip="):
                skipped.append(f"{page.name}:{line}: {words[1][5:]}")
                continue
            for command, code, expected in steps(lines):
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, errors="replace",
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
                ran += 1
                where = f"{page.name}:{line}: $ {command}\n"
                if done.returncode != code:
                    problems.append(f"{where}exit code {done.returncode} instead of {code}\n{done.stdout}")
                elif (missing := difference(expected, done.stdout)) is not None:
                    problems.append(f"{where}the page says: {missing}\nprinted is:\n{done.stdout}")
    return problems, ran, skipped


def main():
    reef, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    pages = [source / page for page in sys.argv[3:]] or [source / "README.md", *sorted((source / "docs").glob("*.md"))]
    problems, ran, skipped = [], 0, []
    for page in pages:
        found, count, left = run_page(reef, source, page)
        problems, ran, skipped = problems + found, ran + count, skipped + left
    for line in skipped:
        print(f"not run: {line}")
    for problem in problems:
        print(problem)
    print(f"{ran} commands of {len(pages)} pages run, {len(problems)} differ")
    return 1 if problems or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
