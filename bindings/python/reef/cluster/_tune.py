# SPDX-License-Identifier: Apache-2.0
"""`reef tune --cluster`: the search asks for tasks, workers do them, the output folder has what is done.

The search itself is the one of `reef tune` (src/tune/search.h): a function of the results in the folder. A driver that is
killed has lost the tasks that were under way, and no more."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Dict, List, Optional, Sequence

from ._program import Progress, found_program, replaced, run_json, value_of, without
from ._scheduler import ClusterError, Scheduler
from ._work import Blob, Inputs, Job, why, write_whole

_FOR_DRIVER = {"--json": 0, "-o": 1, "--output": 1, "--time-limit": 1, "--threads": 1}


def _common_folder(files: Sequence[str], root: str) -> Dict[str, bytes]:
    """Contents by path below `root`; a file beside it by its name."""
    contents = {}
    for file in files:
        path = pathlib.Path(file)
        name = os.path.relpath(file, root) if os.path.isdir(root) else path.name
        contents[path.name if name.startswith("..") else name] = path.read_bytes()
    return contents


def _inputs(scheduler: Scheduler, words: Sequence[str], pending: dict):
    """Model and samples, put where workers can read them, and the words with the places that they get there."""
    model = next(word for word in words if os.path.exists(word) and word in pending["model_files"])
    data = value_of(words, "--data")
    places, files = {model: "{0}/" + pathlib.Path(model).name}, pending["data_files"]
    beside = [file for file in (value_of(words, option) for option in ("--truth", "--labels")) if file and os.path.isfile(file)]
    if os.path.exists(data):
        contents = _common_folder(files, data)
        places[data] = "{1}" if os.path.isdir(data) else "{1}/" + pathlib.Path(data).name
    else:  # shards with commas between them
        listed = Inputs.of(data)
        if listed is None:
            raise ClusterError(f"{data} names files that are not there")
        places[data] = listed.word("{2}")
        contents = _common_folder(beside, "")
    for file in beside:
        is_inside = os.path.isdir(data) and not os.path.relpath(file, data).startswith("..")
        places[file] = "{1}/" + (os.path.relpath(file, data) if is_inside else pathlib.Path(file).name)
    blobs = [scheduler.put(Blob.of(_common_folder(pending["model_files"], ""))), scheduler.put(Blob.of(contents))]
    if not os.path.exists(data):
        blobs.append(scheduler.put(listed.blob))
    return replaced(without(words, _FOR_DRIVER), places), tuple(blobs), {place: word for word, place in places.items()}


def _write(folder: pathlib.Path, files: Dict[str, bytes], last: str) -> None:
    """Whole files, the record of the task behind all others: what it names is there."""
    for name in sorted(files, key=lambda name: name == last):
        write_whole(folder / name, files[name])


def tune(scheduler: Scheduler, words: Sequence[str], program: Optional[str] = None, quiet: bool = False) -> int:
    """Does the tasks of `reef tune WORDS`. Afterwards the command itself finds everything done. Returns how many tasks were done."""
    program, progress, begin, count = found_program(program), Progress("pieces of work", quiet), time.monotonic(), 0
    limit = float(value_of(words, "--time-limit") or 0)
    sent: Optional[tuple] = None
    while True:
        is_late = limit > 0 and time.monotonic() - begin >= limit
        pending = run_json(program, ["tune", *without(words, {"--json": 0}), "--pending", "reports" if is_late else "all"])
        if not pending["pending"]:
            progress.end()
            return count
        if sent is None:
            sent = _inputs(scheduler, words, pending)
        folder, jobs = pathlib.Path(pending["output"]), []
        for task in pending["pending"]:
            files = {f"out/{name}": (folder / name).read_bytes() for name in task["needs"]}
            jobs.append(Job(("tune", *sent[0], "--threads", "1", "-o", "{out}/out", "--task", task["task"], "--json"), sent[1], files,
                            program, sent[2]))
        done = pending["done"]
        for outcome in scheduler.run(jobs):
            task = pending["pending"][outcome.index]
            if outcome.code != 0:
                raise ClusterError(why(outcome))
            files = {name[4:]: content for name, content in outcome.files.items()
                     if name.startswith("out/") and not name.endswith("hashes.json")}
            if task["record"] not in files:
                raise ClusterError("a worker has another version of Reef than this machine, or got other bytes: its results do not count. "
                                   "Install the same version everywhere")
            _write(folder, files, task["record"])
            count, done = count + 1, done + 1
            progress.show(done, max(pending["expected"], done + 1))

