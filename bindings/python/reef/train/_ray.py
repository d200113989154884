# SPDX-License-Identifier: Apache-2.0
"""The same training by Ray Train's workers, on one machine or many.

Ray starts the workers, joins them to one process group, and starts all of them again when one ends (`retries`); they then go on from the
last checkpoint. What a worker does is what a process of `torchrun` does. Every worker reads the pictures and the first one writes the
results, so the folders must be the same for all of them: a shared file system where they run on several machines.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import tempfile
import threading
from dataclasses import asdict
from typing import Any, Dict, Iterator, Optional

import torch

from .._library import Error
from ._loop import Phase, Tell, print_on_first, world
from ._session import TrainRequest


def _after_epoch(phase: Phase) -> None:
    """What Ray shows of an epoch. Every worker must report."""
    import ray.train
    ray.train.report({"phase": phase.name, "epoch": phase.epoch, "loss": phase.history.losses[-1], "score": phase.history.scores[-1]})


def _work(config: Dict[str, Any]) -> None:
    """One worker, from the beginning or, after another one ended, from the checkpoint."""
    from ._classifier import ClassifierTask
    from ._detector import DetectorTask
    from ._session import Session
    request, tell = TrainRequest(**config["request"]), config["tell"]
    request.resume = request.resume or any(os.path.exists(os.path.join(request.output, name)) for name in ("checkpoint.pt", "float.pt"))
    if os.path.exists(os.path.join(request.output, "report.json")):
        return  # all was done when a worker ended
    torch.set_num_threads(config["threads"])
    task = {"classifier": ClassifierTask, "detector": DetectorTask}[config["kind"]](request, tell)
    Session(request, task, tell, _after_epoch).run()


class _Lines:
    """Lines of progress on their way from the first worker to the process that asked for the training. Ray's own way, workers' standard error,
    shows each several times between lines of Ray's."""

    def __init__(self) -> None:
        from ray.util.queue import Queue
        self._queue = Queue(actor_options={"num_cpus": 0})

    def __call__(self, text: str) -> None:
        if world()[0] == 0:
            self._queue.put(text)

    @contextlib.contextmanager
    def shown_by(self, tell: Tell) -> Iterator[None]:
        end = threading.Event()

        def show() -> None:
            while not (end.is_set() and self._queue.empty()):
                with contextlib.suppress(queue.Empty):
                    tell(self._queue.get(timeout=0.5))

        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
            self._queue.shutdown()


def train_with_ray(kind: str, request: TrainRequest, workers: int, *, tell: Optional[Tell] = None, retries: int = 3,
                   threads: int = 1) -> Dict[str, Any]:
    """Trains a "classifier" or a "detector" by `workers` workers of Ray Train, and returns the report.

    Args:
      tell: gets the lines of progress, in the first worker; None: they are printed here.
      retries: how often the workers are started again after one of them ended.
      threads: of each worker on a CPU.
    Uses the Ray cluster that this process is connected to, or one of its own on this machine.
    """
    try:
        import ray
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer
    except ImportError as error:
        raise Error("training by Ray's workers needs Ray Train, which is not installed: pip install 'ray[train]'") from error
    request.data, request.output = os.path.abspath(request.data), os.path.abspath(request.output)
    if request.checkpoint is not None and os.path.exists(request.checkpoint):
        request.checkpoint = os.path.abspath(request.checkpoint)
    request.check()
    finished = os.path.join(request.output, "report.json")
    if os.path.exists(finished):
        raise Error(f"{finished} is left from a finished run; name another folder with -o, or remove it")
    own_cluster = not ray.is_initialized()
    if own_cluster:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    lines = _Lines() if tell is None else None
    try:
        with tempfile.TemporaryDirectory(prefix="reef_ray_") as folder:
            trainer = TorchTrainer(
                _work, train_loop_config={"kind": kind, "request": asdict(request), "tell": lines or tell, "threads": threads},
                scaling_config=ScalingConfig(num_workers=workers, use_gpu=torch.cuda.is_available()),
                run_config=RunConfig(storage_path=folder, failure_config=FailureConfig(max_failures=retries)))
            try:
                with lines.shown_by(print_on_first) if lines else contextlib.nullcontext():
                    trainer.fit()
            except Exception as error:  # Ray wraps what a worker raised in errors of its own
                raise Error(f"Ray's workers did not end: {_cause(error)}") from error
    finally:
        if own_cluster:
            ray.shutdown()
    with open(finished, encoding="utf-8") as file:
        return json.load(file)


def _cause(error: BaseException) -> str:
    """The last line of the innermost error."""
    inner = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    return (str(inner).strip().splitlines() or [type(inner).__name__])[-1]
