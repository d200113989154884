# SPDX-License-Identifier: Apache-2.0
"""Samples cut into shards: each has the part of every array, or the pictures with what stands beside them, that its samples
need, and nothing else."""

from __future__ import annotations

import io
import os
import pathlib
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence

import numpy as np

from ._scheduler import ClusterError
from ._work import Blob


@dataclass(frozen=True)
class Shard:
    blob: Blob
    data: str                  # name of the file or folder in the blob that --data is to name; "": the blob itself
    truth: Optional[str]       # the same for --truth, where that is a file
    first: int                 # where its samples begin among those of the whole set
    names: Optional[str] = None  # of arrays: a file with the samples' places in the whole arrays


def _array_file(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _load(path: str):
    try:
        return np.load(path, allow_pickle=False, mmap_mode="r" if path.endswith(".npy") else None)
    except (OSError, ValueError) as error:
        raise ClusterError(f"{path} cannot be read: {error}") from error


def _of_arrays(path: str, truth: Optional[str], order: Sequence[int], total: int, count: int) -> List[Shard]:
    file, shards = _load(path), []
    arrays = {name: file[name] for name in file.files} if path.endswith(".npz") else {"": file}
    of_samples = {name: array for name, array in arrays.items() if array.ndim > 0 and len(array) == total}
    beside = _load(truth) if truth and os.path.exists(truth) and truth.endswith(".npy") else None
    name = pathlib.Path(path).name
    for begin, end in _ranges(len(order), count):
        rows, files = np.asarray(order[begin:end]), {}
        if path.endswith(".npz"):
            out = io.BytesIO()
            np.savez(out, **{key: array[rows] for key, array in of_samples.items()})
            files[name] = out.getvalue()
        else:
            files[name] = _array_file(of_samples[""][rows])
        files["names.txt"] = "".join(f"{row}\n" for row in order[begin:end]).encode()
        if beside is not None:
            files["truth.npy"] = _array_file(beside[rows])
        shards.append(Shard(Blob.of(files), name, "truth.npy" if beside is not None else None, begin, "names.txt"))
    return shards


def _of_pictures(folder: str, truth: Optional[str], names: Sequence[str], count: int) -> List[Shard]:
    # The first folder of a name is its class, whose number depends on which there are: all are made known.
    labels = pathlib.Path(truth).read_bytes() if truth else None
    shards = []
    for begin, end in _ranges(len(names), count):
        files: Dict[str, bytes] = {}
        for name in names[begin:end]:
            picture = pathlib.Path(folder, name)
            files["pictures/" + name] = picture.read_bytes()
            boxes = picture.with_suffix(".txt")
            if boxes.exists():
                files["pictures/" + str(pathlib.PurePosixPath(name).with_suffix(".txt"))] = boxes.read_bytes()
        if labels is not None:
            files["truth.txt"] = labels
        shards.append(Shard(Blob.of(files), "pictures", "truth.txt" if labels is not None else None, begin))
    return shards


def _ranges(samples: int, count: int):
    count = max(1, min(count, samples))
    return [(samples * i // count, samples * (i + 1) // count) for i in range(count)]


def shard_count(samples: int) -> int:
    """So many that workers share the work evenly, and so few that starting the program does not count. It depends on the
    samples alone: a run that goes on with other workers finds the shards that are done."""
    return max(1, min(samples, max(16, samples // 512), 1024))


def split(data: str, described: dict, truth: Optional[str] = None, count: Optional[int] = None) -> List[Shard]:
    """Shards of what `reef eval --describe-samples` described."""
    names, samples = described["names"], described["samples"]
    count = count or shard_count(samples)
    if described["pictures_in_files"]:
        return _of_pictures(data, truth, names, count)
    return _of_arrays(data, truth, [int(name) for name in names], described["stored_samples"], count)
