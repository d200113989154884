# SPDX-License-Identifier: Apache-2.0
"""The driver's own runs of `reef`, and the words that users give it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from . import _work
from ._scheduler import ClusterError


class ProgramFailed(ClusterError):
    """`reef` ended with an error; its own words say why."""

    def __init__(self, code: int, message: str, report: str):
        super().__init__(message)
        self.code, self.report = code, report


def found_program(hint: "str | None") -> str:
    program = _work.find_program(hint)
    if program is None:
        raise ClusterError("there is no program `reef`: put it on PATH, or set REEF_PROGRAM to it")
    return program


def run_json(program: str, words: Sequence[str]) -> Dict[str, Any]:
    """What a run of `reef ... --json` says. Exit code 3 is an answer, too."""
    done = subprocess.run([program, *words, *([] if "--json" in words else ["--json"])], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError as error:
        raise ProgramFailed(done.returncode, done.stderr.strip() or f"reef {words[0]} said nothing", done.stdout) from error
    if "error" in answer:
        raise ProgramFailed(done.returncode, answer["error"]["message"], done.stdout)
    return answer


def without(words: Iterable[str], options: "Dict[str, int]") -> List[str]:
    """The words without these options: names, with the number of values that follow."""
    left, skip = [], 0
    for word in words:
        if skip > 0:
            skip -= 1
        elif word in options:
            skip = options[word]
        elif word.split("=", 1)[0] not in options:
            left.append(word)
    return left


def value_of(words: Sequence[str], *names: str) -> "str | None":
    """The value of an option, by any of its names."""
    for number, word in enumerate(words):
        if word in names and number + 1 < len(words):
            return words[number + 1]
        name, equals, value = word.partition("=")
        if equals and name in names:
            return value
    return None


def replaced(words: Sequence[str], places: "Dict[str, str]") -> Tuple[str, ...]:
    """The words, with paths replaced where a word, or what stands behind its "=", is one."""
    result = []
    for word in words:
        name, equals, value = word.partition("=")
        if word in places:
            word = places[word]
        elif equals and value in places:
            word = f"{name}={places[value]}"
        result.append(word)
    return tuple(result)


class Progress:
    """One line on standard error: how much is done, and how long the rest takes."""

    def __init__(self, what: str, quiet: bool):
        import time
        self._what, self._quiet, self._clock = what, quiet, time.monotonic
        self._start = self._last = time.monotonic()
        self._first = None

    def show(self, done: int, total: int) -> None:
        now = self._clock()
        if self._first is None:
            self._first = done
        interval = 0.2 if sys.stderr.isatty() else 10
        if self._quiet or done <= self._first or done >= total or now - self._last < interval:
            return
        self._last = now
        left = (now - self._start) / (done - self._first) * (total - done)
        line = f"reef: {done} of {total} {self._what}, about {left:.0f} s left (estimated)"
        sys.stderr.write(f"\r{line}\033[K" if sys.stderr.isatty() else line + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        if sys.stderr.isatty() and not self._quiet:
            sys.stderr.write("\r\033[K")
