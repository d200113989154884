# SPDX-License-Identifier: Apache-2.0
"""Samples cut into shards: each has the part of every array, the pictures with what stands beside them, or the records and members of
archives that its samples need, and nothing else.

Shard k of n has the samples that `--shard k/n` has: every n-th of the order that was asked for, from the k-th on.
"""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import tarfile
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Sequence

import numpy as np

from ._scheduler import ClusterError
from ._work import Blob


@dataclass(frozen=True)
class Shard:
    blob: Blob
    data: str                    # name of the file or folder in the blob that --data is to name
    truth: Optional[str]         # the same for --truth, where that is a file
    number: int                  # k of k/n
    names: Optional[str] = None  # of samples without names of their own: a file with their places in the whole set


def _array_file(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _load(path: str):
    try:
        return np.load(path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise ClusterError(f"{path} cannot be read: {error}") from error


def _places(names: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _labels(names: Sequence[str], classes: Sequence[int]) -> bytes:
    """A file for --truth. The numbers are those of the whole set: a folder's number depends on which other folders there are."""
    return "".join(f"{name} {label}\n" for name, label in zip(names, classes)).encode("utf-8", "surrogateescape")


def _of_arrays(path: str, truth: Optional[str], described: dict, count: int) -> Iterator[Shard]:
    file, total = _load(path), described["stored_samples"]
    is_archive = hasattr(file, "files")  # .npz
    arrays = {name: file[name] for name in file.files} if is_archive else {"": file}
    of_samples = {name: array for name, array in arrays.items() if array.ndim > 0 and len(array) == total}
    beside = _load(truth) if truth and os.path.exists(truth) and truth.endswith(".npy") else None
    name = pathlib.Path(path).name
    for k in range(count):
        own = described["names"][k::count]
        rows, files = np.asarray([int(place) for place in own]), {"names.txt": _places(own)}
        if is_archive:
            out = io.BytesIO()
            np.savez(out, **{key: array[rows] for key, array in of_samples.items()})
            files[name] = out.getvalue()
        else:
            files[name] = _array_file(of_samples[""][rows])
        if beside is not None:
            files["truth.npy"] = _array_file(beside[rows])
        yield Shard(Blob.of(files), name, "truth.npy" if beside is not None else None, k, "names.txt")


def _of_pictures(folder: str, described: dict, count: int) -> Iterator[Shard]:
    for k in range(count):
        names, classes = described["names"][k::count], described["classes"][k::count]
        files: Dict[str, bytes] = {}
        for name in names:
            picture = pathlib.Path(folder, name)
            files["pictures/" + name] = picture.read_bytes()
            boxes = picture.with_suffix(".txt")
            if not classes and boxes.exists():
                files["pictures/" + str(pathlib.PurePosixPath(name).with_suffix(".txt"))] = boxes.read_bytes()
        if classes:
            files["truth.txt"] = _labels(names, classes)
        yield Shard(Blob.of(files), "pictures", "truth.txt" if classes else None, k)


class _Files:
    """Files of shards, unpacked where they are packed, as Reef reads them."""

    def __init__(self) -> None:
        self._open: Dict[str, np.ndarray] = {}

    def bytes_of(self, path: str, at: int, count: int) -> bytes:
        if path not in self._open:
            content = np.memmap(path, np.uint8, "r")
            is_packed = content[:2].tobytes() == b"\x1f\x8b"
            self._open[path] = np.frombuffer(gzip.decompress(content.tobytes()), np.uint8) if is_packed else content
        return self._open[path][at:at + count].tobytes()


def _archive(numbers: Sequence[str], samples: Sequence[list], files: _Files) -> "tuple[bytes, List[str]]":
    """A tar archive of some samples, and the names of a member of each. Each has a folder of its own: archives of one set may have samples
    of the same name."""
    out, names = io.BytesIO(), []
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, pieces in zip(numbers, samples):
            for path, name, at, count in pieces:
                member = tarfile.TarInfo(f"{number}/{name.rpartition('/')[2]}")
                member.size = count
                archive.addfile(member, io.BytesIO(files.bytes_of(path, at, count)))
            names.append([f"{number}/{piece[1].rpartition('/')[2]}" for piece in pieces])
    return out.getvalue(), names


def _of_shards(described: dict, count: int) -> Iterator[Shard]:
    files, form, samples = _Files(), described["shards"]["form"], described["shards"]["samples"]
    for k in range(count):
        numbers, own, classes = described["names"][k::count], samples[k::count], described.get("classes", [])[k::count]
        made = {"names.txt": _places(numbers)}
        if form == "tar":
            made["samples.tar"], members = _archive(numbers, own, files)
            if classes:  # any member may be the one that the model is given
                made["truth.txt"] = _labels([name for names in members for name in names],
                                            [label for names, label in zip(members, classes) for _ in names])
        else:
            made["samples.tfrecord"] = b"".join(files.bytes_of(path, at, size) for pieces in own for path, _, at, size in pieces)
        yield Shard(Blob.of(made), f"samples.{form}", "truth.txt" if "truth.txt" in made else None, k, "names.txt")


def shard_count(samples: int) -> int:
    """So many that workers end at about the same time, also where something else takes a part of a core, and so few that starting the
    program, which takes 11 ms of CPU, does not count. It depends on the samples alone: a run that goes on with other workers finds the
    shards that are done."""
    return max(1, min(samples, max(8, min(32, samples // 48), samples // 512), 1024))


def split(data: str, described: dict, truth: Optional[str] = None, count: Optional[int] = None) -> Iterator[Shard]:
    """Shards of what `reef eval --describe-samples` described, one after the other: work on the first begins before the last is cut."""
    count = max(1, min(count or shard_count(described["samples"]), described["samples"]))
    if described["pictures_in_files"]:
        return _of_pictures(data, described, count)
    if "shards" in described:
        return _of_shards(described, count)
    return _of_arrays(data, truth, described, count)
