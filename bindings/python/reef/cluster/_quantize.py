# SPDX-License-Identifier: Apache-2.0
"""`reef quantize --cluster`: workers calibrate with parts of the samples, the driver puts the parts together and goes on. The model has
the bits of one that was quantized in one process."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import List, Optional, Sequence

from ._program import Progress, found_program, replaced, value_of, without
from ._scheduler import ClusterError, Scheduler
from ._work import Inputs, Job, why

PARTS = 16  # whatever the number of workers, so that parts can be kept
_FOR_DRIVER = {"--json": 0, "--quiet": 0, "-o": 1, "--output": 1, "--threads": 1, "--report": 1}


def calibrate(scheduler: Scheduler, words: Sequence[str], folder: str, program: Optional[str] = None, quiet: bool = False) -> List[str]:
    """Files in `folder` for `reef quantize WORDS --calibration-parts FILES`."""
    program = found_program(program)
    if value_of(words, "--shard") is not None:
        raise ClusterError("--cluster cuts the samples into parts itself; --shard is for runs by hand")
    places, blobs = {}, []
    model = next((word for word in words if os.path.isfile(word)), None)
    for path in [model, *(value_of(words, option) for option in ("--data", "--labels", "--truth"))]:
        inputs = Inputs.of(path or "") if path not in places else None
        if inputs is not None:
            places[path] = inputs.word("{%d}" % len(blobs))
            blobs.append(scheduler.put(inputs.blob))
    sent = replaced(without(words, _FOR_DRIVER), places)
    jobs = [Job(("quantize", *sent, "--threads", "1", "--shard", f"{k}/{PARTS}", "--partial", "{out}/part.bin", "--json"), tuple(blobs),
                {}, program, {place: word for word, place in places.items()}) for k in range(PARTS)]
    files = [os.path.join(folder, f"part{k}.bin") for k in range(PARTS)]
    progress, done = Progress("parts of the calibration", quiet), 0
    for outcome in scheduler.run(jobs):
        if outcome.code != 0:
            raise ClusterError(why(outcome))
        pathlib.Path(files[outcome.index]).write_bytes(outcome.files["part.bin"])
        done += 1
        progress.show(done, PARTS)
    progress.end()
    return files


def quantize(scheduler: Scheduler, words: Sequence[str], program: Optional[str] = None, quiet: bool = False) -> int:
    """`reef quantize WORDS`, calibrated by the scheduler's workers; prints what it prints. Its exit code."""
    import subprocess
    with tempfile.TemporaryDirectory() as folder:
        files = calibrate(scheduler, words, folder, program, quiet)
        return subprocess.run([found_program(program), "quantize", *words, "--calibration-parts", *files], check=False).returncode
