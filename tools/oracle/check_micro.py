# SPDX-License-Identifier: Apache-2.0
"""What `reef check --target tflm|micro` says of models against what TFLite Micro itself does with them.

    pip install --pre tflite-micro
    python tools/oracle/check_micro.py build/reef MODEL.tflite|FOLDER ... [--cpu-parts] [--program COMMAND] [--coral COMMAND]
    python tools/oracle/check_micro.py build/reef --random 1000 [--first 0] ...

For every model that is accepted, TFLite Micro (the package `tflite-micro`) must prepare it in an arena of the predicted size;
that size must be at most 10 % above the smallest one; and it must compute the bits that `reef run` computes, where results
are integers (floats: within 1e-5): of the whole model, or operator by operator with TFLite Micro's own operands, each as in
the release of TFLite that `check` names for it. Kernels that `check` says to round in a way of their own are exempt; how far
they are is shown. A model that is refused must be refused by TFLite Micro, too, or give other numbers, and for that reason: the
operator that it names as missing or failing, or whose numbers are others, must be one that `check` refuses.

--cpu-parts takes compiled models and checks what the CPU runs of them, before and behind their Edge TPU operators.
--random makes models by random_micro_layers.py, --graphs by random_micro_graphs.py; those that `reef run` does not take are not
counted.
--program runs models in a build with 32-bit pointers, as make_micro_ops.py describes; the prediction for such boards is
then checked as well. --coral does the same with the release in Coral's SDK: there the model stands beside an Edge TPU
operator that does nothing, so that `check --target micro` judges the rest of it.
Exit code: 0 all as promised, 1 not.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import make_micro_ops as asked  # noqa: E402
import record  # noqa: E402
from micro_models import EDGE_TPU, beside_edge_tpu, cpu_part, decoded, has_data, indices, with_all_results, with_operators  # noqa: E402
from onemodel import schema  # noqa: E402
from random_micro_graphs import random_graph  # noqa: E402
from random_micro_layers import random_model  # noqa: E402

LARGEST_EXCESS = 1.10
PLENTY = 1 << 26
DRAWS = 8
RELEASES = ("current", "2.9")


# ---- Running ----

def random_inputs(model, draw=0):
    """One array for each input; None for those that have a value in the file, which nobody may write."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    made = []
    for seed, (dtype, shape) in enumerate(record.graph_inputs(model)):
        rng = np.random.RandomState(seed + 1 + 1000 * draw)
        kind = np.dtype(record.NUMPY_TYPES[dtype])
        if has_data(table, graph.tensors[int(graph.inputs[seed])]):
            made.append(None)
        elif kind.kind == "f":
            made.append(rng.uniform(-1, 1, shape).astype(kind))
        elif kind.kind == "b":
            made.append(rng.randint(0, 2, shape).astype(kind))
        else:
            wide = -4 * (draw > 0) * (kind.kind == "i")  # the first draw may be places in a tensor
            low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.itemsize < 4 else (wide, 4)
            made.append(rng.randint(low, high + 1, shape).astype(kind))
    return made


def runs(model, inputs, arena):
    """(outputs or None, what was said) of TFLite Micro."""
    def attempt():
        interpreter = asked.tflm.runtime.Interpreter.from_bytes(model, arena_size=arena)
        for i, value in enumerate(inputs):
            if value is not None:
                interpreter.set_input(np.array(value, order="C"), i)
        interpreter.invoke()
        return {"outputs": [np.array(interpreter.get_output(i)) for i in range(len(record.output_types(model)))]}
    result, said = asked.narrated(attempt)
    return result.get("outputs"), said or result.get("message", "")


def stored_input(model, index):
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    return bytes(bytearray(table.buffers[graph.tensors[int(graph.inputs[index])].buffer].data))


def reef_outputs(reef, model, inputs, folder, release="current"):
    path = folder / "run.tflite"
    path.write_bytes(model)
    command = [reef, "run", str(path), "--tflite", release, "--out", str(folder / "out")]
    for i, value in enumerate(inputs):
        raw = stored_input(model, i) if value is None else np.ascontiguousarray(value).tobytes()
        (folder / f"in{i}.bin").write_bytes(raw)
        command += ["--in", str(folder / f"in{i}.bin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    unread = re.search(r"in(\d+)\.bin' has \d+ bytes, but input .* takes 0", done.stderr)
    if unread:  # an operand that nothing reads, such as RESHAPE's where the attribute counts
        (folder / f"in{unread.group(1)}.bin").write_bytes(b"")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"reef run: {done.stderr.strip()}")
    types = record.output_types(model)
    return [np.fromfile(folder / "out" / f"out{i}.bin", record.NUMPY_TYPES[t]) for i, t in enumerate(types)]


def runs_in_reef(args, model, inputs, folder):
    """Some kernels refuse values: the root of a negative number."""
    try:
        reef_outputs(args.reef, model, inputs, folder)
    except RuntimeError:
        return False
    return True


def same(ours, theirs):
    return len(ours) == len(theirs) and all(map(same_values, ours, theirs))


def same_values(a, b):
    b = b.reshape(-1)
    if a.size != b.size:
        return False
    return np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True) if a.dtype.kind == "f" else np.array_equal(a, b)


def checked(reef, path, target):
    """What `reef check` says of the file as it is, or a sentence."""
    done = subprocess.run([reef, "check", "--target", target, "--no-rewrites", "--json", str(path)], capture_output=True, text=True,
                          check=False)
    return json.loads(done.stdout)["micro"] if done.returncode == 0 else f"reef check: {done.stderr.strip()[:100]}"


class Behind:
    """Another build of TFLite Micro, behind a command."""

    def __init__(self, command):
        self.command = command.split()

    def smallest(self, path):
        """(smallest arena or 0, what was said), from preparing the model alone."""
        done = subprocess.run([*self.command, str(path), "--min"], capture_output=True, text=True, errors="replace", check=False)
        found = re.search(r"MIN (\d+)", done.stdout)
        return int(found.group(1)) if found else 0, asked.first_words(done.stderr)

    def run(self, path, model, inputs, folder):
        """(outputs or None, what was said)."""
        raw = [stored_input(model, i) if v is None else np.ascontiguousarray(v).tobytes() for i, v in enumerate(inputs)]
        (folder / "all.bin").write_bytes(b"".join(raw))
        done = subprocess.run([*self.command, str(path), "--run", str(folder / "all.bin"), str(folder / "all.out")],
                              capture_output=True, text=True, errors="replace", check=False)
        if "RC 0" not in done.stdout:
            return None, done.stderr or "it died"
        given, outputs = (folder / "all.out").read_bytes(), []
        graph = schema.ModelT.InitFromPackedBuf(model).subgraphs[0]
        for index, name in zip(graph.outputs, record.output_types(model)):
            kind = np.dtype(record.NUMPY_TYPES[name])
            size = int(np.prod(indices(graph.tensors[int(index)].shape))) * kind.itemsize
            outputs.append(np.frombuffer(given[:size], kind))
            given = given[size:]
        return outputs, ""


# ---- Numbers ----

def as_a_whole(args, model, inputs, outputs, folder):
    theirs = decoded(model, outputs)
    return next((r for r in RELEASES if same(decoded(model, reef_outputs(args.reef, model, inputs, folder, r)), theirs)), None)


def operator_results(args, model, inputs, release_of, folder):
    """(number, Reef's results, TFLite Micro's) of each operator, with the operands that TFLite Micro gives it."""
    whole, results = with_all_results(model)
    outputs, said = runs(whole, inputs, PLENTY)
    if outputs is None:
        raise RuntimeError(f"its tensors cannot be seen: {asked.first_words(said)}")
    graph = schema.ModelT.InitFromPackedBuf(model).subgraphs[0]
    known = dict(zip(indices(graph.inputs), inputs)) | dict(zip(results, outputs))
    for i, op in enumerate(graph.operators):
        part = with_operators(model, [i], keep_outputs=False)
        if part is None:
            continue
        operands = [known[t] for t in indices(schema.ModelT.InitFromPackedBuf(part).subgraphs[0].inputs)]
        yield i, reef_outputs(args.reef, part, operands, folder, release_of(i)), [known[t] for t in indices(op.outputs)]


def by_operator(args, model, inputs, rounding, folder):
    """(words, whether each operator computes as `check` says)."""
    told = {r["op"]: r["as"] for r in rounding}
    seen, farthest = collections.Counter(), 0
    release_of = lambda i: told.get(i, "current").replace("own", "current")
    try:
        for i, ours, theirs in operator_results(args, model, inputs, release_of, folder):
            wanted = told.get(i, "current")
            if wanted == "own":
                farthest = max([farthest] + [int(np.abs(a.astype(int) - b.reshape(-1).astype(int)).max()) for a, b in zip(ours, theirs)])
            elif not same(ours, theirs):
                return f"OTHER NUMBERS from operator {i}", False
            seen[wanted] += 1
    except RuntimeError as error:
        return str(error), False
    words = ", ".join(f"{count} as {'in a way of its own' if name == 'own' else 'TFLite ' + name}" for name, count in sorted(seen.items()))
    return f"operator by operator: {words}" + (f" (at most {farthest} steps away)" if "own" in seen else ""), True


# ---- Verdicts ----

FAILED = re.compile(r"Node (\S+) \(number (\d+)\S*\) failed to (?:prepare|invoke)")
MISSING = re.compile(r"Didn't find op for builtin opcode '(\w+)'|Failed to get registration from op code (\w+)")


def names_reason(found, said):
    """Whether what the runtime said is about something that `check` refuses; None where it names no operator."""
    refusals = found["refusals"]
    failed, missing = FAILED.search(said), MISSING.search(said)
    if missing:
        name = next(g for g in missing.groups() if g)
        absent = [r["place"] for r in refusals if r["rule"] == "operator"]
        return any(name in place or name == "CUSTOM" for place in absent)
    if failed:
        return any(r["op"] < 0 or (r["op"] == int(failed.group(2)) and failed.group(1) in r["place"]) for r in refusals)
    return None


def differing(args, model, inputs, found, folder):
    """Whether an operator that `check` refuses computes something else; None where single operators cannot be run."""
    rejected = {r["op"] for r in found["refusals"]}
    if rejected <= {-1} or len(schema.ModelT.InitFromPackedBuf(model).subgraphs) > 1:
        return None
    try:
        return any(i in rejected and not same(ours, theirs)
                   for i, ours, theirs in operator_results(args, model, inputs, lambda i: "current", folder))
    except (RuntimeError, KeyError, ValueError):
        return None


def refused(args, found, model, folder, run, can_look_inside):
    """What a refusal is worth. Numbers may be the same by chance: several inputs are tried."""
    reason = found["refusals"][0]
    words = f"[{reason['rule']}] {reason['reason'][:110]}"
    if reason["rule"] == "dynamic-shape":
        return "both refuse", words
    for draw in range(DRAWS):
        inputs = random_inputs(model, draw)
        outputs, said = run(inputs)
        if outputs is None:
            agrees = names_reason(found, said)
            return ("refused for another reason" if agrees is False else "both refuse"), f"{words} | {asked.first_words(said)[:90]}"
        try:
            equal = as_a_whole(args, model, inputs, outputs[:len(record.output_types(model))], folder)
        except RuntimeError as error:
            return "no model", str(error)
        if not equal:
            agrees = differing(args, model, inputs, found, folder) if can_look_inside else None
            return ("refused for another reason" if agrees is False else "both refuse"), f"{words} | runs, other numbers"
    return "refused needlessly", f"{words} | runs, the same numbers"


def fits(words, predicted, smallest):
    """(words, whether the arena is enough and not too much)."""
    share = predicted / max(smallest, 1)
    return f"{words} {predicted} of {smallest} ({share:.3f})", smallest <= predicted <= smallest * LARGEST_EXCESS


def judge(args, path, model, folder):
    """(verdict, words) for the package and, where it is given, the 32-bit build."""
    found = checked(args.reef, path, "tflm")
    if isinstance(found, str):
        return "no model", found
    try:
        inputs = random_inputs(model)
    except (KeyError, ValueError) as error:
        return ("accepted wrongly" if found["accepted"] else "both refuse"), f"no inputs can be made: {error}"
    if not found["accepted"]:
        return refused(args, found, model, folder, lambda values: runs(model, values, PLENTY), True)
    size = found["arena"]["tflm_64"]
    predicted = size["bytes"] if size else PLENTY  # nothing is promised for kernels whose memory is not known
    outputs, said = runs(model, inputs, predicted)
    if outputs is None:
        if not runs_in_reef(args, model, inputs, folder):
            return "no model", f"neither runs with these inputs: {asked.first_words(said)[:90]}"
        return "accepted wrongly", f"does not run in {predicted} bytes (smallest {asked.smallest_arena(model)}): {asked.first_words(said)[:120]}"
    words, holds = fits("arena", predicted, asked.smallest_arena(model, predicted)) if size else ("no arena predicted", True)
    if size and args.program:
        more, holds_32 = fits(", 32 bits", found["arena"]["tflm_32"]["bytes"], Behind(args.program).smallest(path)[0])
        words, holds = words + more, holds and holds_32
    if not holds:
        return "wrong arena", words
    try:
        release = as_a_whole(args, model, inputs, outputs, folder)
    except RuntimeError as error:
        return "no model", str(error)
    if release:
        return "runs as promised", f"{words}, the bits of reef run --tflite {release}"
    numbers, holds = by_operator(args, model, inputs, found["rounding"], folder)
    return ("runs as promised" if holds else "other numbers"), f"{words}, {numbers}"


def judge_coral(args, model, folder):
    """The same for the release in Coral's SDK."""
    wrapped, path = beside_edge_tpu(model), folder / "coral.tflite"
    path.write_bytes(wrapped)
    found = checked(args.reef, path, "micro")
    if isinstance(found, str):
        return "no model", found
    inputs, program = random_inputs(wrapped), Behind(args.coral)
    count = len(record.output_types(model))
    if not found["accepted"]:
        return refused(args, found, model, folder, lambda values: program.run(path, wrapped, [*values, inputs[-1]], folder), False)
    outputs, said = program.run(path, wrapped, inputs, folder)
    if outputs is None:
        if not runs_in_reef(args, model, inputs[:-1], folder):
            return "no model", f"neither runs with these inputs: {asked.first_words(said)[:90]}"
        return "accepted wrongly", asked.first_words(said)[:120]
    size = found["arena"]["coral"]
    words, holds = fits("arena", size["bytes"], program.smallest(path)[0]) if size else ("no arena predicted", True)
    if not holds:
        return "wrong arena", words
    try:
        release = as_a_whole(args, model, inputs[:-1], outputs[:count], folder)
    except RuntimeError as error:
        return "no model", str(error)
    own = any(r["as"] == "own" for r in found["rounding"])
    words += f", the bits of reef run --tflite {release}" if release else ", other bits, as `check` says" if own else ", OTHER NUMBERS"
    return ("runs as promised" if release or own else "other numbers"), words


def subjects(args):
    """(name, bytes) of everything to be judged."""
    for number in range(args.first, args.first + args.random):
        model, kind = random_model(number)
        yield f"{number} {kind}", model
    for number in range(args.first, args.first + args.graphs):
        model, kind = random_graph(number)
        yield f"graph {number} {kind}", model
    for path in map(pathlib.Path, args.models):
        for file in sorted(path.rglob("*.tflite")) if path.is_dir() else [path]:
            model = file.read_bytes()
            if (EDGE_TPU in model) == args.cpu_parts:
                model = cpu_part(model) if args.cpu_parts else model
                if model is not None:
                    yield str(file), model


def judged(args, name, model, counts):
    for runtime in ("tflm", "coral") if args.coral else ("tflm",):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            path = folder / "model.tflite"
            path.write_bytes(model)
            try:
                verdict, words = judge(args, path, model, folder) if runtime == "tflm" else judge_coral(args, model, folder)
            except (RuntimeError, ValueError, IndexError, KeyError) as error:
                verdict, words = "no verdict", f"{type(error).__name__}: {error}"
        counts[runtime][verdict] += 1
        operators = ",".join(dict.fromkeys(op for op, _, _ in asked.operators_of(model)))[:60]
        good = verdict in ("runs as promised", "both refuse", "no model")
        print(f"{'ok ' if good else 'NOT'} {runtime} {name} {operators}: {verdict}: {words}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Is what `reef check --target tflm|micro` says what TFLite Micro does?")
    parser.add_argument("reef")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--cpu-parts", action="store_true")
    parser.add_argument("--random", type=int, default=0, metavar="COUNT")
    parser.add_argument("--graphs", type=int, default=0, metavar="COUNT")
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="of the random models")
    parser.add_argument("--program", help="a build of TFLite Micro with 32-bit pointers")
    parser.add_argument("--coral", help="a build of the release in Coral's SDK")
    args = parser.parse_intermixed_args()
    counts = collections.defaultdict(collections.Counter)
    for name, model in subjects(args):
        judged(args, name, model, counts)
    for runtime, found in counts.items():
        print(f"{runtime}: {sum(found.values())} models: " + ", ".join(f"{n} {v}" for v, n in sorted(found.items())))
    broken = sum(n for found in counts.values() for v, n in found.items() if v not in ("runs as promised", "both refuse", "no model"))
    return 1 if broken or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
