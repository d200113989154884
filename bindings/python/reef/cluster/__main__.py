# SPDX-License-Identifier: Apache-2.0
"""What `reef COMMAND ... --cluster ADDRESS` becomes:  python3 -m reef.cluster COMMAND ADDRESS PROGRAM WORDS..."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import signal
import sys
from typing import Any, List, Optional

from ._evaluate import evaluate
from ._program import ProgramFailed, value_of, without
from ._quantize import quantize
from ._scheduler import ClusterError, Scheduler, connect
from ._sweep import sweep
from ._tune import tune
from ._work import why, write_whole

EXIT_ERROR = 1
EXIT_NOT_MET = 3


def _fail(message: str, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"schema_version": 1, "error": {"kind": "invalid_input", "message": message, "exit_code": EXIT_ERROR}}, indent=2))
    print(f"reef: {message}", file=sys.stderr)
    return EXIT_ERROR


def _figure(report: dict) -> str:
    unit = report.get("unit", "%")
    factor, digits = (100, 2) if unit == "%" else (1, 3)
    return (f"{report['metric']} {factor * report['value']:.{digits}f} {unit} (standard error {factor * report['standard_error']:.{digits}f} {unit}, "
            f"{report['samples']} samples, measured)\n{report['shards']} shards on {report['workers']} workers, "
            f"{report['shards_found']} of them done before")


def _run(command: str, address: str, program: str, words: List[str]) -> int:
    as_json = "--json" in words
    with connect(address) as scheduler:
        if command == "eval":
            report = evaluate(scheduler, without(words, {"--keep": 1}), program, value_of(words, "--keep"), quiet=as_json)
            print(json.dumps(report, indent=2) if as_json else _figure(report))
            scheduler.leave(0)
            return 0
        if command == "tune":
            tune(scheduler, words, program, quiet=as_json)
        elif command == "quantize":
            return quantize(scheduler, words, program, quiet=as_json)
        elif command == "prune":
            return _prune(scheduler, words, program)
        elif command == "sweep":
            return _sweep(scheduler, words, program)
        else:
            raise ClusterError(f"reef {command} does not know --cluster")
    sys.stdout.flush()
    os.execv(program, [program, command, *words])  # finds everything done, writes the table and the plot
    return EXIT_ERROR


def _prune(scheduler: Scheduler, words: List[str], program: str) -> int:
    """--sweep params=0.7,0.5,0.3: one job for each value of the goal; each result gets the value in its name."""
    goal, _, values = (value_of(words, "--sweep") or "").partition("=")
    if goal not in ("params", "zeros", "latency", "drop") or not values:
        raise ClusterError("reef prune --cluster makes several models at once: --sweep params=0.7,0.5 (or zeros=, latency=, drop=) says which")
    output = pathlib.Path(value_of(words, "-o", "--output") or "pruned.tflite")
    common = without(words, {"--sweep": 1, "-o": 1, "--output": 1, "--json": 0})
    wanted = values.split(",")
    commands = [["prune", *common, f"--{goal}", value, "-o", "{out}/pruned.tflite", "--json"] for value in wanted]
    reports: List[Any] = [None] * len(wanted)
    code = 0
    for outcome in sweep(scheduler, commands, program):
        value = wanted[outcome.index]
        if outcome.code not in (0, EXIT_NOT_MET):
            raise ClusterError(f"--{goal} {value}: {why(outcome)}")
        code = max(code, outcome.code)
        report = json.loads(outcome.output)
        report["output"] = ""
        if "pruned.tflite" in outcome.files:
            report["output"] = str(output.with_name(f"{output.stem}_{goal}_{value.replace('%', '')}.tflite"))
            write_whole(pathlib.Path(report["output"]), outcome.files["pruned.tflite"])
        reports[outcome.index] = report
    if "--json" in words:
        print(json.dumps({"schema_version": 1, "pruned": reports}, indent=2))
        return code
    for value, report in zip(wanted, reports):
        last = report["points"][-1]
        accuracy = f", {report['metric']} {last['accuracy']:.4f} (measured)" if "accuracy" in last else ""
        print(f"{goal} {value}: {report['output'] or 'not met: ' + report['nearest']}, {last['parameters']} parameters{accuracy}")
    return code


def _sweep(scheduler: Scheduler, words: List[str], program: str) -> int:
    """A file with a command a line ("compile model.tflite -O 2 -o {out}"), and a folder that gets what each makes."""
    if len(words) != 2:
        raise ClusterError("sweep takes a file with a command on each line, and a folder for the results")
    commands = [shlex.split(line) for line in pathlib.Path(words[0]).read_text().splitlines() if line.strip() and not line.startswith("#")]
    failed = 0
    for outcome in sweep(scheduler, commands, program):
        for name, content in outcome.files.items():
            write_whole(pathlib.Path(words[1], f"{outcome.index + 1:03}", name), content)
        failed += outcome.code != 0
        state = "done" if outcome.code == 0 else f"exit code {outcome.code}: {why(outcome)}"
        print(f"{outcome.index + 1:03} {' '.join(commands[outcome.index])}: {state}", flush=True)
    return EXIT_ERROR if failed else 0


def main(arguments: Optional[List[str]] = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) < 3:
        return _fail("python3 -m reef.cluster COMMAND ADDRESS PROGRAM WORDS...: `reef tune --cluster` and `reef eval --cluster` call this", False)
    command, address, program, *words = given
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # a Ray that was started here ends with the driver
    try:
        return _run(command, address, program, words)
    except ProgramFailed as error:
        if "--json" in words:
            print(error.report, end="")
        print(f"reef: {error}", file=sys.stderr)
        return error.code or EXIT_ERROR
    except ClusterError as error:
        return _fail(str(error), "--json" in words)
    except KeyboardInterrupt:
        return _fail("stopped; the same command goes on with what is done", "--json" in words)


if __name__ == "__main__":
    sys.exit(main())
