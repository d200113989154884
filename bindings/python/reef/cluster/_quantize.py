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
from ._work import Blob, Job, why

PARTS = 16  # whatever the number of workers, so that parts can be kept
_FOR_DRIVER = {"--json": 0, "--quiet": 0, "-o": 1, "--output": 1, "--threads": 1, "--report": 1}


def _file_blob(path: str) -> Blob:
    place = pathlib.Path(path)
    if place.is_dir():
        return Blob.of({str(file.relative_to(place)): file.read_bytes() for file in sorted(place.rglob("*")) if file.is_file()})
    return Blob.of({place.name: place.read_bytes()})


def calibrate(scheduler: Scheduler, words: Sequence[str], folder: str, program: Optional[str] = None, quiet: bool = False) -> List[str]:
    """Files in `folder` for `reef quantize WORDS --calibration-parts FILES`."""
    program = found_program(program)
    places, blobs = {}, []
    model = next((word for word in words if os.path.isfile(word)), None)
    for path in [model, *(value_of(words, option) for option in ("--data", "--labels", "--truth"))]:
        if path and os.path.exists(path) and path not in places:
            blob = _file_blob(path)
            places[path] = "{%d}" % len(blobs) + ("" if os.path.isdir(path) else "/" + pathlib.Path(path).name)
            blobs.append(scheduler.put(blob))
    sent = replaced(without(words, _FOR_DRIVER), places)
    jobs = [Job(("quantize", *sent, "--threads", "1", "--shard", f"{k}/{PARTS}", "--partial", "{out}/part.bin", "--json"), tuple(blobs),
                {}, program) for k in range(1, PARTS + 1)]
    files = [os.path.join(folder, f"part{k}.bin") for k in range(1, PARTS + 1)]
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
