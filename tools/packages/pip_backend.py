# SPDX-License-Identifier: Apache-2.0
"""What `pip install .` calls: scikit-build-core, and a line of progress on the terminal, from which pip hides what a build prints."""

import contextlib
import json
import pathlib
import threading
import time

from scikit_build_core import build as _backend
from scikit_build_core.build import *  # noqa: F401,F403: the other hooks as they are

_BUILD = pathlib.Path("build-wheel")  # pyproject.toml's build-dir
_SECONDS = 2


def _done():
    log = _BUILD / ".ninja_log"
    return len({line.split("\t")[3] for line in log.read_text().splitlines()[1:] if line.count("\t") == 4}) if log.exists() else 0


def _total():
    commands = _BUILD / "compile_commands.json"
    if not commands.exists():
        return 0
    ours = ("/src/", "/apps/", "/bindings/")
    return sum(any(part in entry["file"] for part in ours) for entry in json.loads(commands.read_text()))


def _report(terminal, finished):
    start, before = time.time(), _done()
    while not finished.wait(_SECONDS):
        with contextlib.suppress(OSError, ValueError):
            done, total = _done(), _total()
            if total == 0 or done == 0:
                terminal.write("\r\033[KReef: preparing the build")
            else:
                left = max(total - done, 0) * (time.time() - start) / max(done - before, 1)
                terminal.write(f"\r\033[KReef: {min(done, total)} of {total} files compiled, about {left / 60:.0f} min left")
            terminal.flush()
    terminal.write("\r\033[K")


@contextlib.contextmanager
def _progress():
    try:
        terminal = open("/dev/tty", "w")
    except OSError:  # no terminal: a script, CI
        yield
        return
    finished = threading.Event()
    thread = threading.Thread(target=_report, args=(terminal, finished), daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
        terminal.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with _progress():
        return _backend.build_wheel(wheel_directory, config_settings, metadata_directory)
