# SPDX-License-Identifier: Apache-2.0
"""Running Reef and other tools in the benches: whatever one of them does, the bench goes on and says what it did."""
import multiprocessing
import os
import subprocess

TIME_LIMIT_S = 1200


def reef(*arguments):
    """(exit code, standard output, last line of standard error, CPU seconds)"""
    before = os.times()
    try:
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return -1, "", f"stopped after {TIME_LIMIT_S} s", TIME_LIMIT_S
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return done.returncode, done.stdout, lines[-1] if lines else "", seconds


def attempt(function, *arguments):
    """A peer's figure, or why there is none."""
    try:
        return function(*arguments)
    except Exception as error:  # whatever another tool raises is its result
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"


def in_child(function, *arguments):
    """Its result, computed in a process of its own: a runtime that crashes takes only its model with it."""
    inherits = multiprocessing.get_context("fork")
    receive, send = inherits.Pipe(False)
    child = inherits.Process(target=lambda: send.send(attempt(function, *arguments)))
    child.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        child.join()
        return f"ended by signal {-child.exitcode}"
    finally:
        child.join()
