#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`reef eval` on one core and on two: equal figures, how many times as fast, and what the workers cost.

    bench/cluster.py build/reef MODEL --data D --metric M [OPTIONS OF reef eval] [--schedulers local,ray] [--wall RUNS] [--repeat TIMES]

Without --wall, CPU time is counted, which means something on a machine with other work, too: of the command on one thread without --cluster,
of every shard, and of the driver with all else that it starts. "Cores" is how many times
as fast two free cores would be by that: the CPU time of one process over what the busiest worker needs when each shard goes to the worker
that is free first, and the driver's own steps before the first shard and behind the last one.

With --wall, each command runs RUNS times, and the shortest time is taken, on a machine that must have nothing else to do: on one core (all
processes of the run are bound to it), with one worker and free cores beside it, and with two workers. "running ray" is a cluster that was
started before, of one or two cores.

--repeat writes an .npz with the samples so many times, for evaluations that take longer. Run with PYTHONPATH=bindings/python and REEF_LIBRARY
set; REEF_PYTHON is this Python.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

from reef import cluster
from reef.cluster._program import run_json, value_of, without

FIGURE = ("metric", "value", "standard_error", "samples", "details")
PR_SET_CHILD_SUBREAPER = 36
SETTLE_S = 5  # until the servers of a cluster that starts are quiet, or of one that ends are gone


def cpu_seconds():
    """Of this process and of all descendants, once they have ended: orphans become children of this process."""
    end = time.monotonic() + SETTLE_S
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] or time.monotonic() < end:
            time.sleep(0.02)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def counted(action):
    before = cpu_seconds()
    result = action()
    return result, cpu_seconds() - before


def busiest(seconds, workers):
    """The time of the last worker when each takes the next shard as soon as it is free."""
    busy = [0.0] * workers
    for one in seconds:
        free = busy.index(min(busy))
        busy[free] += one
    return max(busy)


def is_equal(report, whole):
    return "yes" if all(report.get(key) == whole.get(key) for key in FIGURE) else "NO"


def driver_steps(reef, words):
    """CPU time of the driver's steps one by one: describing the samples, cutting them."""
    described, describing = counted(lambda: run_json(reef, ["eval", *words, "--describe-samples"]))
    _, cutting = counted(lambda: sum(1 for _ in cluster.split(value_of(words, "--data"), described)))
    return describing, cutting


def cpu_table(reef, words, schedulers):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    whole, alone = counted(lambda: run_json(reef, ["eval", *words, "--threads", "1"]))
    describing, cutting = driver_steps(reef, words)
    print(f"one process: {whole['metric']} {whole['value']!r}, {alone:.2f} s of CPU (measured); describing the samples {describing:.2f} s, "
          f"cutting them {cutting:.2f} s")
    print("| scheduler | workers | equal to one process | shards | CPU of shards, s | busiest worker, s | CPU of all else, s | cores |\n"
          "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in schedulers:
        for workers in (1, 2, 4):
            def run():
                with cluster.connect(f"{name}:{workers}") as scheduler:
                    return cluster.evaluate(scheduler, words, reef, quiet=True)
            report, total = counted(run)
            seconds = report["cpu_seconds_of_shards"]
            longest = busiest(seconds, workers)
            serial = 2 * describing  # merging opens the samples once more
            others = f"{total - sum(seconds):.2f}" if name == "local" else ""  # Ray's servers do not tell what their children used
            print(f"| {name} | {workers} | {is_equal(report, whole)} | {report['shards']} | {sum(seconds):.2f} | {longest:.2f} | "
                  f"{others} | {(alone + serial) / (longest + serial):.2f} |", flush=True)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def running_ray(cores):
    """The address of a Ray cluster of so many workers on this machine; on one core, where there is one."""
    port, folder = free_port(), tempfile.mkdtemp(prefix="ray_", dir="/tmp")  # sockets' paths must be short
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    os.environ["RAY_AUTH_MODE"] = "disabled"  # newer ones ask for a token else
    head = subprocess.Popen([*ray, "start", "--head", f"--port={port}", f"--num-cpus={cores}", "--include-dashboard=false", "--block",
                             f"--temp-dir={folder}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=bound_to(cores))
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            time.sleep(0.1)
        time.sleep(SETTLE_S)
        yield f"127.0.0.1:{port}"
    finally:
        head.terminate()
        head.wait()
        time.sleep(1)


def bound_to(cores):
    """For subprocess: the process and all that it starts run on one core, if it is one."""
    first = min(os.sched_getaffinity(0))
    return (lambda: os.sched_setaffinity(0, {first})) if cores == 1 else None


def wall(command, runs, cores=0):
    """The report, and the shortest time in seconds."""
    environment, best, report = dict(os.environ, REEF_PYTHON=sys.executable), float("inf"), None
    for _ in range(runs):
        begin = time.monotonic()
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, env=environment, preexec_fn=bound_to(cores))
        best = min(best, time.monotonic() - begin)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        report = json.loads(done.stdout)
    return report, best


def wall_table(reef, words, schedulers, runs):
    evaluate = [reef, "eval", *words]
    whole, single = wall([*evaluate, "--threads", "1"], runs, 1)
    _, threads = wall([*evaluate, "--threads", "2"], runs)
    print(f"{whole['samples']} samples, {whole['metric']} {whole['value']!r}; shortest of {runs} runs (measured)")
    print("| how | equal | on one core, s | one worker, s | two workers, s | two workers beside one core | two workers beside one |\n"
          "| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    print(f"| one process, `--threads 1` and `2` | | {single:.1f} | | {threads:.1f} | {single / threads:.2f} | |", flush=True)

    def row(name, equal, one_core, one_worker, two):
        print(f"| {name} | {equal} | {one_core:.1f} | {one_worker:.1f} | {two:.1f} | {one_core / two:.2f} | {one_worker / two:.2f} |", flush=True)

    for name in schedulers:
        times = [wall([*evaluate, "--cluster", f"{name}:{workers}"], runs, cores) for workers, cores in ((1, 1), (1, 0), (2, 0))]
        row(f"`--cluster {name}:N`", "yes" if all(is_equal(report, whole) == "yes" for report, _ in times) else "NO", *(t for _, t in times))
    if "ray" in schedulers:
        with running_ray(1) as address:
            first = wall([*evaluate, "--cluster", address], runs, 1)
        with running_ray(2) as address:
            second = wall([*evaluate, "--cluster", address], runs)
        row("running ray", is_equal(second[0], whole), first[1], float("nan"), second[1])


def repeated(words, times, folder):
    """The words, with an .npz that holds the samples so many times."""
    data = value_of(words, "--data")
    with np.load(data) as arrays:
        longest = max(len(array) for array in arrays.values() if array.ndim)
        np.savez(folder / "repeated.npz", **{name: np.concatenate([array] * times) if array.ndim and len(array) == longest else array
                                             for name, array in arrays.items()})
    return [*without(words, {"--data": 1}), "--data", str(folder / "repeated.npz")]


def main():
    reef, *words = sys.argv[1:]
    reef = os.path.abspath(reef)
    schedulers = (value_of(words, "--schedulers") or "local,ray").split(",")
    runs, times = int(value_of(words, "--wall") or 0), int(value_of(words, "--repeat") or 1)
    words = without(words, {"--schedulers": 1, "--wall": 1, "--repeat": 1})
    with tempfile.TemporaryDirectory() as folder:
        if times > 1:
            words = repeated(words, times, pathlib.Path(folder))
        if runs > 0:
            wall_table(reef, words, schedulers, runs)
        else:
            cpu_table(reef, words, schedulers)


if __name__ == "__main__":
    main()
