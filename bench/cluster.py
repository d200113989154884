#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`reef eval` on 1, 2 and 4 workers: equal figures, and what the workers cost.

    bench/cluster.py build/reef MODEL --data D --metric M [OPTIONS OF reef eval] [--schedulers local,ray]

Wall-clock time says nothing on a machine with other work, so CPU time is counted: of the command without --cluster on one thread, and of
every shard. "Cores" is how many times as fast N free cores would be by that: the CPU time of the whole command over that of the busiest worker when each shard
goes to the worker that is free first. What the driver does (cutting, merging) comes on top and is shown, too. Run with PYTHONPATH=bindings/python and REEF_LIBRARY set.
"""
import json
import os
import resource
import subprocess
import sys

from reef import cluster


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def busiest(seconds, workers):
    """The time of the last worker when each takes the next shard as soon as it is free."""
    busy = [0.0] * workers
    for one in seconds:
        free = busy.index(min(busy))
        busy[free] += one
    return max(busy)


def main():
    reef, *words = sys.argv[1:]
    schedulers = ["local"]
    if "--schedulers" in words:
        at = words.index("--schedulers")
        schedulers = words[at + 1].split(",")
        del words[at:at + 2]
    before = cpu_seconds()
    whole = json.loads(subprocess.run([reef, "eval", *words, "--threads", "1", "--json"], capture_output=True, text=True, check=True).stdout)
    alone = cpu_seconds() - before
    figure = ("metric", "value", "standard_error", "samples", "details")
    print(f"one process: {whole['metric']} {whole['value']!r}, {alone:.2f} s of CPU (measured)")
    print("| scheduler | workers | equal to one process | shards | CPU of shards, s | busiest worker, s | cores |\n| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for name in schedulers:
        for workers in (1, 2, 4):
            with cluster.connect(f"{name}:{workers}") as scheduler:
                report = cluster.evaluate(scheduler, words, os.path.abspath(reef), quiet=True)
            seconds = report["cpu_seconds_of_shards"]
            longest = busiest(seconds, workers)
            equal = "yes" if all(report.get(key) == whole.get(key) for key in figure) else "NO"
            print(f"| {name} | {workers} | {equal} | {report['shards']} | {sum(seconds):.2f} | {longest:.2f} | {alone / longest:.2f} |", flush=True)


if __name__ == "__main__":
    main()
