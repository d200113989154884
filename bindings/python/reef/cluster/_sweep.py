# SPDX-License-Identifier: Apache-2.0
"""Many runs of `reef` side by side: compile sweeps, several goals of pruning, whatever a list of commands says."""

from __future__ import annotations

import os
import pathlib
from typing import Dict, Iterator, List, Optional, Sequence

from ._scheduler import ClusterError, Scheduler
from ._work import Blob, Job, Outcome


def _blob_of(path: pathlib.Path) -> Blob:
    if path.is_dir():
        return Blob.of({str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()})
    return Blob.of({path.name: path.read_bytes()})


def sweep(scheduler: Scheduler, commands: Sequence[Sequence[str]], program: Optional[str] = None) -> Iterator[Outcome]:
    """The outcome of each command, as they end; Outcome.index says which it was.

    A word that names a file or folder that exists (also behind "=") is an input: it is sent to the workers once, however many
    commands name it. {out} is a folder of the command's own; what it makes there comes back as Outcome.files.
    """
    known: Dict[str, object] = {}
    jobs: List[Job] = []
    for words in commands:
        blobs: List[object] = []
        sent: List[str] = []
        for number, word in enumerate(words):
            option, equals, value = word.partition("=") if word.startswith("--") and "=" in word else ("", "", word)
            path = pathlib.Path(value)
            if number == 0 or "{out}" in value or value in ("", ".") or not os.path.exists(path):
                sent.append(word)
                continue
            key = str(path.resolve())
            if key not in known:
                known[key] = scheduler.put(_blob_of(path))
            blobs.append(known[key])
            place = "{%d}" % (len(blobs) - 1)
            sent.append(option + equals + (place if path.is_dir() else f"{place}/{path.name}"))
        jobs.append(Job(tuple(sent), tuple(blobs), {}, program))
    if not jobs:
        raise ClusterError("there are no commands to run")
    yield from scheduler.run(jobs)
