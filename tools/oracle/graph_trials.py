# SPDX-License-Identifier: Apache-2.0
"""Runs many numbered trials, each range in a process of its own, and reports what went otherwise than well.

A trial is a function check(number, options) -> (outcome, detail). Outcomes in GOOD are Reef's success or the reference runtime's fault;
"different", "gap" (Reef refuses what the reference runs) and whatever ends the process are listed, grouped by the part of
their detail in front of the first colon. A trial calls options.enter("reference") and options.enter("Reef") before it runs either, so
that the end of a process is attributed.
"""

import argparse
import collections
import multiprocessing
import sys
from queue import Empty

import numpy as np

BOUND = 1e-4  # of floats, relative to max(1, |reference|); sums are in the reference's order, exp and its kind are not its own
SECONDS_PER_TRIAL = 60
GOOD = ("equal", "refused", "shared memory", "amplified", "ended in the reference")


def difference(expected, found, bound=BOUND):
    """A sentence, or None where two lists of results agree: integers to the bit, floats within the bound."""
    for i, (a, b) in enumerate(zip(expected, found)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} is {b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
        if a.dtype.kind == "f":
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.abs(a - b) <= bound * np.maximum(1, np.abs(a))
            wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        else:
            wrong = a != b
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"output {i}: {int(wrong.sum())} of {a.size} differ, first at {list(at)}: {b[at]} instead of {a[at]}"
    return None


def parser(description):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--count", type=int, default=1000, help="number of graphs")
    made.add_argument("--first", type=int, default=0, help="number of the first")
    made.add_argument("--failures", help="folder for the smallest graphs that differ")
    return made


def _work(check, first, last, options, queue, in_reference):
    def enter(where):  # shared memory, not a message: those that are under way are lost when the process ends
        in_reference.value = where == "reference"

    options.enter = enter
    for number in range(first, last):
        queue.put((number, "begun", ""))
        queue.put((number, *check(number, options)))
    queue.put((last, "end", ""))


def _next_message(queue, child):
    """None: the child died, or stands still."""
    for _ in range(SECONDS_PER_TRIAL):
        was_alive = child.is_alive()
        try:
            return queue.get(timeout=1)
        except Empty:
            if not was_alive:
                return None
    return None


def _run_range(check, first, last, options, tell):
    """Runs the range in a child process, and goes on after each trial that ends it."""
    context = multiprocessing.get_context("fork")
    while first < last:
        queue, in_reference = context.Queue(), context.Value("b", False)
        child = context.Process(target=_work, args=(check, first, last, options, queue, in_reference))
        child.start()
        current, over = first, False
        while not over:
            message = _next_message(queue, child)
            if message is None:
                child.kill()
                child.join()
                tell(current, "ended in the reference" if in_reference.value else "ended the process", f"exit code {child.exitcode}")
                break
            current, outcome, detail = message
            over = outcome == "end"
            if outcome not in ("begun", "end"):
                tell(current, outcome, detail)
        child.join(1)
        first = last if over else current + 1


def run(check, options):
    """All trials; prints the report and returns the exit code: 1 if anything went otherwise than well."""
    tally, reports = collections.Counter(), collections.defaultdict(list)

    def tell(number, outcome, detail):
        tally[outcome] += 1
        if outcome not in GOOD:
            reports[outcome].append((number, detail))
        done = sum(tally.values())
        if done % 200 == 0 and sys.stderr.isatty():
            print(f"\r{done} of {options.count}: {dict(tally)}", end="", file=sys.stderr, flush=True)

    _run_range(check, options.first, options.first + options.count, options, tell)
    for outcome, found in sorted(reports.items()):
        kinds = collections.Counter(detail.split(":")[0] for _, detail in found)
        print(f"{outcome}: {len(found)}")
        for text, count in kinds.most_common(30):
            number, detail = next((n, d) for n, d in found if d.startswith(text))
            print(f"  {count} x {detail} (graph {number})")
    print(", ".join(f"{count} {outcome}" for outcome, count in tally.most_common()))
    return 1 if reports else 0
