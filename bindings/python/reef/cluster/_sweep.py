# SPDX-License-Identifier: Apache-2.0
"""Many runs of `reef` side by side: compile sweeps, several goals of pruning, whatever a list of commands says."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence

from ._scheduler import ClusterError, Scheduler
from ._work import Inputs, Job, Outcome


def sweep(scheduler: Scheduler, commands: Sequence[Sequence[str]], program: Optional[str] = None) -> Iterator[Outcome]:
    """The outcome of each command, as they end; Outcome.index says which it was.

    A word that names files or a folder that exist (also behind "=") is an input: it is sent to the workers once, however many
    commands name it. {out} is a folder of the command's own; what it makes there comes back as Outcome.files.
    """
    known: Dict[str, Any] = {}  # what was put for a word, and how it is spelled there; None: the word names no file
    jobs: List[Job] = []
    for words in commands:
        blobs: List[object] = []
        sent: List[str] = []
        places: Dict[str, str] = {}
        for number, word in enumerate(words):
            option, equals, value = word.partition("=") if word.startswith("--") and "=" in word else ("", "", word)
            if number == 0 or "{out}" in value or value in ("", "."):
                sent.append(word)
                continue
            if value not in known:
                inputs = Inputs.of(value)
                known[value] = None if inputs is None else (scheduler.put(inputs.blob), inputs)
            if known[value] is None:
                sent.append(word)
                continue
            blob, inputs = known[value]
            place = inputs.word("{%d}" % len(blobs))
            places[place] = value
            sent.append(option + equals + place)
            blobs.append(blob)
        jobs.append(Job(tuple(sent), tuple(blobs), {}, program, places))
    if not jobs:
        raise ClusterError("there are no commands to run")
    yield from scheduler.run(jobs)
