# SPDX-License-Identifier: Apache-2.0
"""One piece of work: a run of the program `reef`. Nothing but Python's own library is needed here, because this is what
runs on workers."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

NO_REEF = 127  # the shell's exit code for a program that is not there


@dataclass(frozen=True)
class Blob:
    """Files that jobs read, as one piece of memory: it travels once and is shared."""
    key: str                           # a hash of names and contents
    names: Tuple[str, ...]             # relative paths
    sizes: Tuple[int, ...]
    content: Any                       # bytes, or a NumPy array of uint8: the files, one behind the other

    @staticmethod
    def of(files: Mapping[str, bytes]) -> "Blob":
        names = tuple(sorted(files))
        digest = hashlib.sha256()
        for name in names:
            digest.update(f"{name}\0{len(files[name])}\0".encode("utf-8", "surrogateescape"))
            digest.update(files[name])
        return Blob(digest.hexdigest()[:32], names, tuple(len(files[name]) for name in names),
                    b"".join(bytes(files[name]) for name in names))

    def unpack(self, folder: pathlib.Path) -> pathlib.Path:
        """The files in a folder of their own below `folder`, written by whoever needs them first."""
        place = folder / self.key
        if place.is_dir():
            return place
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            view, begin = memoryview(self.content).cast("B"), 0
            for name, size in zip(self.names, self.sizes):
                path = pathlib.Path(made, "files", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(view[begin:begin + size])
                begin += size
            pathlib.Path(made, "files").mkdir(exist_ok=True)
            try:
                os.rename(pathlib.Path(made, "files"), place)
            except OSError:  # somebody else was first
                if not place.is_dir():
                    raise
        return place


@dataclass(frozen=True)
class Inputs:
    """Files that a word of a command names."""
    blob: Blob
    names: Tuple[str, ...]  # in the blob, of what the word lists; none: the word is a folder

    @staticmethod
    def of(word: str) -> "Optional[Inputs]":
        """Of a file, a folder, or files with commas between them, as shards are listed; None where the word names no file."""
        if not word:
            return None
        path = pathlib.Path(word)
        if path.is_dir():
            return Inputs(Blob.of({str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}), ())
        listed = [path] if path.exists() else [pathlib.Path(part) for part in word.split(",")]
        if not all(part.is_file() for part in listed):
            return None
        # Files of one name from several folders get numbers before their names.
        names = tuple(part.name if len(listed) == 1 else f"{number:06}/{part.name}" for number, part in enumerate(listed))
        return Inputs(Blob.of({name: part.read_bytes() for name, part in zip(names, listed)}), names)

    def word(self, place: str) -> str:
        """The word where the blob is unpacked at `place`."""
        return ",".join(f"{place}/{name}" for name in self.names) if self.names else place


@dataclass(frozen=True)
class Job:
    """Words for `reef`. {out} in them stands for a folder of the job's own, {0}, {1}, ... for its blobs' folders."""
    words: Tuple[str, ...]
    blobs: Tuple[Any, ...] = ()                       # what Scheduler.put() returned
    files: Mapping[str, bytes] = field(default_factory=dict)  # small ones, put into {out} before
    program: Optional[str] = None                     # where the driver's `reef` is
    places: Mapping[str, str] = field(default_factory=dict)  # what the user calls files, by their places: for messages


@dataclass(frozen=True)
class Outcome:
    code: int                          # of the program; negative: the signal that ended it
    output: str
    errors: str
    files: Dict[str, bytes]            # what the job made in {out}
    index: int = -1                    # of the job
    cpu_seconds: float = 0             # of the program, measured; waiting for a core does not count


def _ends_with_parent() -> None:
    """In the child: a worker that is killed takes the program that it runs with it (Linux)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass


def find_program(hint: Optional[str]) -> Optional[str]:
    """Where the driver has it, $REEF_PROGRAM, then PATH."""
    for candidate in (hint, os.environ.get("REEF_PROGRAM"), shutil.which("reef")):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    return None


def work_folder() -> pathlib.Path:
    """Where this machine keeps blobs that jobs read: nobody else's, and gone with the machine's temporary files."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"reef-cluster-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; set TMPDIR to another folder")
    return folder


def _run(words: Sequence[str]) -> Tuple[int, str, str, float]:
    """Exit code, output, messages, and the CPU time of this child alone, which is why files take the place of pipes."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, preexec_fn=_ends_with_parent)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return process.returncode, texts[0], texts[1], usage.ru_utime + usage.ru_stime


def do(job: Job, blobs: Sequence[Blob], folder: Optional[str] = None) -> Outcome:
    """folder: where blobs are unpacked; None: where all jobs of this machine find them."""
    program = find_program(job.program)
    if program is None:
        return Outcome(NO_REEF, "", f"the worker on {os.uname().nodename} has no program `reef`: install Reef there (pip install "
                       "reef-tpu), or set REEF_PROGRAM to it", {})
    place = pathlib.Path(folder) if folder else work_folder() / "blobs"
    folders = [blob.unpack(place) for blob in blobs]
    with tempfile.TemporaryDirectory(prefix="job-", dir=work_folder()) as out:
        before = {}
        for name, content in job.files.items():
            path = pathlib.Path(out, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            before[path] = content
        def here(word: str) -> str:
            word = word.replace("{out}", out)
            for number, unpacked in enumerate(folders):
                word = word.replace("{%d}" % number, str(unpacked))
            return word

        code, output, errors, seconds = _run([program, *map(here, job.words)])
        for place, name in sorted(job.places.items(), key=lambda both: -len(both[0])):
            output, errors = output.replace(here(place), name), errors.replace(here(place), name)
        made = {}
        for path in sorted(pathlib.Path(out).rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                if before.get(path) != content:
                    made[str(path.relative_to(out))] = content
        return Outcome(code, output, errors, made, cpu_seconds=seconds)


def why(outcome: Outcome) -> str:
    """The sentence with which a job ended."""
    try:
        return json.loads(outcome.output)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return outcome.errors.strip() or f"reef ended with exit code {outcome.code}"


def write_whole(path: pathlib.Path, content: bytes) -> None:
    """The file has all of it or what it had before, whenever this process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".reef-", delete=False) as part:
        part.write(content)
    os.chmod(part.name, 0o644)
    os.replace(part.name, path)
