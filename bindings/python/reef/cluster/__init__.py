# SPDX-License-Identifier: Apache-2.0
"""Reef's work spread over processes: on Ray, or without it in processes of this machine (docs/cluster.md).

    from reef import cluster
    with cluster.connect("local:4") as scheduler:            # or "ray", "ray://host:10001", "host:6379"
        for result in cluster.sweep(scheduler, [["compile", "a.tflite", "-o", "{out}"], ["compile", "b.tflite", "-o", "{out}"]]):
            print(result.index, result.code, sorted(result.files))

Every piece of work is one run of the program `reef` with its own inputs and outputs. So the code is the same with and
without Ray, a worker that dies loses one piece, which is done again, and a result counts once: it is known by its piece.
"""

from __future__ import annotations

from ._evaluate import evaluate
from ._quantize import calibrate, quantize
from ._scheduler import ClusterError, Scheduler, connect
from ._shards import Shard, split
from ._sweep import sweep
from ._tune import tune
from ._work import Blob, Job, Outcome

__all__ = ["Blob", "ClusterError", "Job", "Outcome", "Scheduler", "Shard", "calibrate", "connect", "evaluate", "quantize", "split", "sweep", "tune"]
