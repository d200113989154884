# SPDX-License-Identifier: Apache-2.0
"""Where jobs run. Two schedulers with one interface: Ray, and threads that start processes on this machine."""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.util
import logging
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile
import threading
from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, Optional

from . import _work
from ._work import Blob, Job, Outcome

CONNECT_SECONDS = 10
ANSWER_SECONDS = 60  # for a cluster to let a driver in
START_SECONDS = 300  # Ray gives up after a minute, which is little on a machine with much to do
TRIES = 4  # a job whose worker dies so often is at fault itself


class ClusterError(RuntimeError):
    """What the user can do something about: no cluster, no Ray, a worker without Reef, a job that failed."""


class Scheduler:
    """put() makes files known to all workers, run() does jobs and gives what they made, as they end."""

    workers: int

    def put(self, blob: Blob) -> Any:
        raise NotImplementedError

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """The outcome of every job, once each, in the order in which they end. A job whose worker dies is done again. Jobs begin as they
        are made: a generator prepares later ones while earlier ones are done."""
        begun: List[Job] = []
        pending: Dict[Any, int] = {}
        try:
            for job in jobs:
                pending[self._start(job)] = len(begun)
                begun.append(job)
            tries = [0] * len(begun)
            while pending:
                for handle in self._wait(list(pending)):
                    index = pending.pop(handle)
                    outcome, why = self._finish(handle)
                    if outcome is not None and outcome.code == _work.NO_REEF:
                        raise ClusterError(outcome.errors)
                    if outcome is None or outcome.code < 0:
                        tries[index] += 1
                        if tries[index] >= TRIES:
                            raise ClusterError(f"the worker of `reef {' '.join(begun[index].words)}` died {TRIES} times: "
                                               f"{why or f'signal {-outcome.code}'}")
                        pending[self._start(begun[index])] = index
                        continue
                    yield replace(outcome, index=index)
        finally:
            self._cancel(list(pending))

    def leave(self, code: int) -> None:
        """The process ends with this code, all of it done and said. May return: then close() is left to do."""

    def close(self) -> None:
        pass

    def __enter__(self) -> "Scheduler":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _start(self, job: Job) -> Any:
        raise NotImplementedError

    def _wait(self, handles: List[Any]) -> List[Any]:
        raise NotImplementedError

    def _finish(self, handle: Any) -> "tuple[Optional[Outcome], str]":
        """What a job made, or why there is nothing."""
        raise NotImplementedError

    def _cancel(self, handles: List[Any]) -> None:
        raise NotImplementedError


class LocalScheduler(Scheduler):
    """Processes of this machine, started by as many threads."""

    def __init__(self, workers: int):
        self.workers = workers
        self._pool = concurrent.futures.ThreadPoolExecutor(workers)
        self._folder = tempfile.TemporaryDirectory(prefix="local-", dir=_work.work_folder())

    def put(self, blob: Blob) -> Any:
        blob.unpack(pathlib.Path(self._folder.name))
        return replace(blob, content=b"")  # it is on the disk

    def _start(self, job: Job) -> Any:
        return self._pool.submit(_work.do, job, job.blobs, self._folder.name)

    def _wait(self, handles: List[Any]) -> List[Any]:
        return list(concurrent.futures.wait(handles, return_when=concurrent.futures.FIRST_COMPLETED).done)

    def _finish(self, handle: Any) -> "tuple[Optional[Outcome], str]":
        return handle.result(), ""

    def _cancel(self, handles: List[Any]) -> None:
        for handle in handles:
            handle.cancel()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._folder.cleanup()


def _no_cluster(address: Optional[str], why: str) -> str:
    place = f"there is no Ray cluster at {address}, or it lets nobody in" if address else "Ray does not start here"
    token = " If it asks for a token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN as for its head." if address else ""
    return f"{place}: {why}. `ray start --head` starts one; --cluster local:N needs none.{token}"


def _require_listener(address: str) -> None:
    """Ray itself waits for minutes for a machine that does not answer."""
    if address == "auto":
        return
    host, _, port = address.rpartition("//")[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError, ValueError) as error:
        raise ClusterError(_no_cluster(address, str(error))) from error


class RayScheduler(Scheduler):
    """Tasks of a Ray cluster. Blobs are in its object store: a worker reads them in place.

    Ray takes seconds to start, most of which it waits for its own servers; that happens beside what the driver does first.
    """

    def __init__(self, address: Optional[str], workers: Optional[int]):
        if importlib.util.find_spec("ray") is None:
            raise ClusterError("--cluster ray needs Ray, and Python does not have it: pip install 'reef-tpu[ray]'; --cluster local:N "
                               "needs nothing")
        if address is not None:
            _require_listener(address)
        self._address = address
        self._is_own = address is None
        self._connected: "concurrent.futures.Future[tuple[Any, Any, int]]" = concurrent.futures.Future()
        self._is_closed = threading.Event()
        # A daemon: what listens at the address may be no Ray and never answer, and Ray waits for it.
        threading.Thread(target=self._keep_connection, args=(workers,), daemon=True).start()

    def _keep_connection(self, workers: Optional[int]) -> None:
        try:
            self._connected.set_result(self._connect(self._address, workers))
        except BaseException as error:
            self._connected.set_exception(error)
        self._is_closed.wait()  # Ray's servers end with the thread that started them

    def _connection(self) -> "tuple[Any, Any, int]":
        try:
            return self._connected.result(None if self._is_own else ANSWER_SECONDS)
        except concurrent.futures.TimeoutError:
            why = f"what listens there has not answered as Ray does for {ANSWER_SECONDS} s"
            raise ClusterError(_no_cluster(self._address, why)) from None

    @staticmethod
    def _connect(address: Optional[str], workers: Optional[int]) -> "tuple[Any, Any, int]":
        """Ray, the task that does a job, and the number of workers."""
        os.environ.setdefault("RAY_raylet_start_wait_time_s", str(START_SECONDS))
        import ray
        logging.getLogger("ray").setLevel(logging.ERROR)  # it would say that only a main thread can handle signals
        # Workers of a Ray that starts here have this process's environment, and with it REEF_PROGRAM and REEF_LIBRARY. (A runtime_env
        # would do that, too, but throws away the workers that Ray starts with.)
        try:
            ray.init(address=address, num_cpus=workers, log_to_driver=False, logging_level="ERROR", include_dashboard=False if address is None else None,
                     configure_logging=False, ignore_reinit_error=True)
        except Exception as error:  # Ray raises Exception itself where a node does not start
            raise ClusterError(_no_cluster(address, str(error).splitlines()[0] if str(error) else type(error).__name__)) from error
        # The code that workers run travels with the jobs, so that they need not have this package; an installed one is not used.
        ray.cloudpickle.register_pickle_by_value(_work)
        # Ray starts a worker that died again by itself; what ends too often is told.
        task = ray.remote(num_cpus=1, max_retries=TRIES)(_do_with_blobs)
        return ray, task, workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    @property
    def _ray(self) -> Any:
        return self._connection()[0]

    @property
    def workers(self) -> int:  # type: ignore[override]
        return self._connection()[2]

    def put(self, blob: Blob) -> Any:
        import numpy as np
        return self._ray.put(replace(blob, content=np.frombuffer(blob.content, np.uint8)))

    def _start(self, job: Job) -> Any:
        # Top-level arguments that are references are resolved by Ray, in place where the object is on the node.
        return self._connection()[1].remote(_work, replace(job, blobs=()), *job.blobs)

    def _wait(self, handles: List[Any]) -> List[Any]:
        return self._ray.wait(handles, num_returns=1)[0]

    def _finish(self, handle: Any) -> "tuple[Optional[Outcome], str]":
        try:
            return self._ray.get(handle), ""
        except self._ray.exceptions.RayTaskError as error:
            raise ClusterError(f"a worker failed: {error.cause if hasattr(error, 'cause') else error}") from error
        except self._ray.exceptions.RayError as error:
            return None, str(error).splitlines()[0] if str(error) else type(error).__name__

    def _cancel(self, handles: List[Any]) -> None:
        for handle in handles:
            self._ray.cancel(handle, force=True)

    def leave(self, code: int) -> None:
        # Everything of a Ray that was started here is a descendant of this process. Asking its servers one by one to end takes a second.
        if self._is_own and (there := _descendants(os.getpid())):
            sys.stdout.flush()
            sys.stderr.flush()
            for process in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os._exit(code)

    def close(self) -> None:
        if self._is_own:
            concurrent.futures.wait([self._connected])  # else servers that start now would stay
        if self._connected.done() and self._connected.exception() is None:
            self._ray.shutdown()
        self._is_closed.set()


def _descendants(process: int) -> List[int]:
    """Children of a process, their children and so on (Linux; elsewhere none)."""
    parents: Dict[int, List[int]] = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # "PID (NAME) STATE PARENT ...", where the name may hold anything.
            parents.setdefault(int(status.read_text().rpartition(")")[2].split()[1]), []).append(int(status.parent.name))
    found = list(parents.get(process, []))
    for child in found:  # grows while it is walked
        found += parents.get(child, [])
    return found


def _do_with_blobs(work: Any, job: Job, *blobs: Blob) -> Outcome:
    return work.do(job, blobs)


def connect(address: str) -> Scheduler:
    """The scheduler for "local", "local:N", "ray", "ray:N" (Ray on this machine with N workers), "ray://HOST:PORT" or "HOST:PORT"."""
    match = re.fullmatch(r"(local|ray)(?::(\d+))?", address)
    if match:
        workers = int(match[2]) if match[2] else None
        if workers is not None and not 1 <= workers <= 1024:
            raise ClusterError(f"--cluster {address}: the number of workers is 1 to 1024")
        if match[1] == "local":
            return LocalScheduler(workers or len(os.sched_getaffinity(0)))
        return RayScheduler(None, workers)
    if not re.fullmatch(r"(ray://)?[\w.\-\[\]:]+:\d+|auto", address):
        raise ClusterError(f"--cluster {address}: give local, local:N, ray, ray:N, ray://HOST:PORT or HOST:PORT")
    return RayScheduler(address, None)
