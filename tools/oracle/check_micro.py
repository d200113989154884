# SPDX-License-Identifier: Apache-2.0
"""What `reef check --target tflm` says of models against what TFLite Micro itself does with them.

    pip install --pre tflite-micro
    python tools/oracle/check_micro.py build/reef MODEL.tflite|FOLDER ... [--cpu-parts] [--program COMMAND] [--verbose]

For every model that is accepted, TFLite Micro (the package `tflite-micro`) must prepare it in an arena of the predicted size;
that size must be at most 10 % above the smallest one; and it must compute the bits that `reef run` computes (of the current
release of TFLite, or of 2.9, as whose dense layers TFLite Micro's round), where results are integers (floats: within 1e-5). A model that is refused must be refused by TFLite Micro, too, or give other numbers.
--cpu-parts takes compiled models and checks what is behind their Edge TPU operators. COMMAND runs models in a build with
32-bit pointers, as make_micro_ops.py describes; the prediction for such boards is then checked as well.
Exit code: 0 all as promised, 1 not.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import flatbuffers
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import make_micro_ops as asked  # noqa: E402
import record  # noqa: E402
from onemodel import schema  # noqa: E402

LARGEST_EXCESS = 1.10
EDGE_TPU = b"edgetpu-custom-op"
PLENTY = 1 << 26


def behind_edge_tpu(model):
    """The operators of a compiled model that the CPU runs, with what the Edge TPU gives as inputs; None if there are none."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph = table.subgraphs[0]
    code = [i for i, c in enumerate(table.operatorCodes) if c.customCode == EDGE_TPU]
    chip = [op for op in graph.operators if op.opcodeIndex in code]
    rest = [op for op in graph.operators if op.opcodeIndex not in code]
    if not chip or not rest:
        return None
    made = {int(t) for op in rest for t in op.outputs}
    read = {int(t) for op in rest for t in op.inputs}
    given = [int(t) for op in chip for t in op.outputs] + [int(t) for t in graph.inputs]
    graph.operators = rest
    graph.inputs = [t for t in given if t in read]
    graph.outputs = [int(t) for t in graph.outputs if int(t) in made]
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def random_inputs(model):
    made = []
    for seed, (dtype, shape) in enumerate(record.graph_inputs(model)):
        rng = np.random.RandomState(seed + 1)
        kind = np.dtype(record.NUMPY_TYPES[dtype])
        if kind.kind == "f":
            made.append(rng.uniform(-1, 1, shape).astype(kind))
        elif kind.kind == "b":
            made.append(rng.randint(0, 2, shape).astype(kind))
        else:
            low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.itemsize < 4 else (0, 4)
            made.append(rng.randint(low, high + 1, shape).astype(kind))
    return made


def runs(model, inputs, arena):
    """(outputs or None, what was said) of TFLite Micro."""
    def attempt():
        interpreter = asked.tflm.runtime.Interpreter.from_bytes(model, arena_size=arena)
        for i, value in enumerate(inputs):
            interpreter.set_input(np.array(value, order="C"), i)
        interpreter.invoke()
        return {"outputs": [np.array(interpreter.get_output(i)) for i in range(len(record.output_types(model)))]}
    result, said = asked.narrated(attempt)
    return result.get("outputs"), asked.first_words(said) or result.get("message", "")


def reef_outputs(reef, path, model, inputs, folder, release="current"):
    command = [reef, "run", str(path), "--tflite", release, "--out", str(folder / "out")]
    for i, value in enumerate(inputs):
        (folder / f"in{i}.bin").write_bytes(np.ascontiguousarray(value).tobytes())
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


def same(ours, theirs):
    for a, b in zip(ours, theirs):
        b = b.reshape(-1)
        if a.dtype.kind == "f":
            if not np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True):
                return False
        elif not np.array_equal(a, b):
            return False
    return True


def smallest_32(command, path):
    done = subprocess.run([*command.split(), str(path), "--min"], capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r"MIN (\d+)", done.stdout)
    return int(found.group(1)) if found else 0


def judge(args, path, model, folder):
    """A line of words and whether the promise holds."""
    done = subprocess.run([args.reef, "check", "--target", "tflm", "--no-rewrites", "--json", str(path)], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        return f"reef check: {done.stderr.strip()[:100]}", False
    found = json.loads(done.stdout)["micro"]
    try:
        inputs = random_inputs(model)
    except (KeyError, ValueError) as error:
        return f"no inputs can be made: {error}", not found["accepted"]
    if not found["accepted"]:
        reason = found["refusals"][0]
        if reason["rule"] == "dynamic-shape":
            return f"refused [{reason['rule']}] {reason['reason'][:90]}", True
        outputs, said = runs(model, inputs, PLENTY)
        if outputs is None:
            return f"both refuse: [{reason['rule']}] {reason['reason'][:90]} | {said[:90]}", True
        differs = not same(reef_outputs(args.reef, path, model, inputs, folder), outputs)
        return f"refused [{reason['rule']}] {reason['reason'][:90]} | runs, {'other' if differs else 'the same'} numbers", differs
    size = found["arena"]["tflm_64"]
    predicted = size["bytes"] if size else PLENTY  # nothing is promised for kernels whose memory is not known
    outputs, said = runs(model, inputs, predicted)
    if outputs is None:
        smallest = asked.smallest_arena(model)
        return f"accepted, but does not run in {predicted} bytes (smallest {smallest}): {said[:120]}", False
    smallest = asked.smallest_arena(model) if size else predicted
    holds = smallest <= predicted <= smallest * LARGEST_EXCESS
    words = f"arena {predicted} of {smallest} ({predicted / smallest:.3f})"
    if not size:
        words = "no arena predicted"
    elif args.program:
        board, wanted = smallest_32(args.program, path), found["arena"]["tflm_32"]["bytes"]
        holds = holds and board <= wanted <= board * LARGEST_EXCESS
        words += f", 32 bits {wanted} of {board} ({wanted / max(board, 1):.3f})"
    # Dense layers with one scale round as in TFLite 2.9; `reef check` says so.
    equal = [r for r in ("current", "2.9") if same(reef_outputs(args.reef, path, model, inputs, folder, r), outputs)]
    verdict = f"the same bits as reef run --tflite {equal[0]}" if equal else "OTHER NUMBERS"
    return f"accepted, {words}, {verdict}", holds and bool(equal)


def models_of(paths):
    for path in map(pathlib.Path, paths):
        yield from sorted(path.rglob("*.tflite")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description="Is what `reef check --target tflm` says what TFLite Micro does?")
    parser.add_argument("reef")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--cpu-parts", action="store_true")
    parser.add_argument("--program", help="a build of TFLite Micro with 32-bit pointers")
    args = parser.parse_args()
    broken = checked = 0
    for path in models_of(args.models):
        model = path.read_bytes()
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if (EDGE_TPU in model) != args.cpu_parts:
                continue
            subject = path
            if args.cpu_parts:
                model = behind_edge_tpu(model)
                if model is None:
                    continue
                subject = folder / "part.tflite"
                subject.write_bytes(model)
            try:
                words, holds = judge(args, subject, model, folder)
            except (RuntimeError, ValueError, IndexError, KeyError) as error:
                words, holds = f"{type(error).__name__}: {error}", False
            checked += 1
            broken += not holds
            print(f"{'ok ' if holds else 'NOT'} {path}: {words}", flush=True)
    print(f"{checked} models, {broken} not as promised")
    return 1 if broken or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
