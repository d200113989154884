# SPDX-License-Identifier: Apache-2.0
"""What TFLite Micro takes and refuses, asked of the runtime itself.

    pip install --pre tflite-micro
    python tools/oracle/make_micro_ops.py --resolver HEADER --coral-resolver HEADER [--program NAME=COMMAND ...]

Problem: TFLite Micro has fewer operators than TFLite, and fewer types and parameters of those. Its sources say so in
hundreds of conditions. Approach: run every recorded one-operator model of tests/vectors in the real runtime (the package
`tflite-micro`) and write down what it said. (Types that none of them has are tried with random models, of which a whole one
must run.) Two files come of it:

  src/micro/operators.def    operators, the functions that register them, and the types of operands that were accepted
  tests/micro/verdicts.tsv   one line for each case: what the runtime did with it, whether the result has the recorded bits,
                             and the smallest arena that it ran in

HEADER is `micro_mutable_op_resolver.h` of the release that the package was built from, and of the one that Coral's SDK
for the Dev Board Micro contains: the names of the functions stand nowhere else. A header is only read.
COMMAND (asked only for what the package runs) is a program that runs models in another build of TFLite Micro (another release, another size of pointers). It is
called as `COMMAND MODEL --min --run INPUTS OUTPUTS`, gets all inputs one behind the other in one file, writes outputs in
the same way, and prints "RC n" (0: it ran) and "MIN n", the smallest arena in bytes. NAME is `tflm32` or `coral`.

Shapes: TFLite Micro allocates what the file declares. Recorded models may leave shapes of results open; they are filled in
from the recorded results first, as `reef` does with a model that it reads.
"""

import argparse
import base64
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import flatbuffers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]

import record  # noqa: E402
import tflm  # noqa: E402
from onemodel import Model, enum_name, schema  # noqa: E402
from random_micro_graphs import random_graph  # noqa: E402
from random_micro_layers import random_model  # noqa: E402

ALIGNMENT = 16  # of the arena
# An old kernel says so, leaves its result as it was, and reports success.
UNSAID = re.compile(r"not (currently )?supported")
ABSENT = re.compile(r"Didn't find op for builtin opcode|Failed to get registration from op code|Didn't find custom op")


def with_settled_shapes(model, outputs):
    """The model with the shapes of its results as they were recorded."""
    table = schema.ModelT.InitFromPackedBuf(model)
    graph, changed = table.subgraphs[0], False
    for tensor, output in zip(graph.outputs, outputs):
        declared = graph.tensors[tensor].shape
        if [int(d) for d in (declared if declared is not None else [])] != output["shape"]:
            graph.tensors[tensor].shape = output["shape"]
            changed = True
    if not changed:
        return model
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def type_names(graph, tensors):
    """Types in order, absent ones left out, runs of one type written once with a plus: int8+,int32."""
    found = []
    for index in tensors if tensors is not None else []:
        if index < 0:
            continue
        name = enum_name(schema.TensorType, graph.tensors[index].type).lower()
        if found and found[-1].rstrip("+") == name:
            found[-1] = name + "+"
        else:
            found.append(name)
    return ",".join(found)


def operators_of(model, subgraphs=None):
    """(name, version, operand types "int8+,int32>int8") of every operator in all subgraphs, or in the first ones."""
    table = schema.ModelT.InitFromPackedBuf(model)
    for graph in table.subgraphs[:subgraphs]:
        for op in graph.operators or []:
            code = table.operatorCodes[op.opcodeIndex]
            name = enum_name(schema.BuiltinOperator, max(code.builtinCode, code.deprecatedBuiltinCode))
            if name == "CUSTOM":
                name = code.customCode.decode() if isinstance(code.customCode, bytes) else code.customCode
            yield name, code.version, type_names(graph, op.inputs) + ">" + type_names(graph, op.outputs)


def first_words(text):
    """The first sentence of what a runtime narrates, without places in its sources."""
    for line in text.splitlines():
        line = line.strip()
        if line and "resource variables" not in line:
            return re.sub(r"\S*/([a-z0-9_]+\.cc)(:\d+)? ?", r"\1: ", line)[:160]
    return ""


def narrated(function, *arguments):
    """(what in_child returns, what was written to standard output and error meanwhile)."""
    with tempfile.NamedTemporaryFile() as log:
        def run():
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
            return function(*arguments)
        try:
            result = record.in_child(run)
        except record.RuntimeDied as death:
            result = {"error": True, "stage": "crash", "message": str(death)}
        except Exception as error:  # what the package itself cannot express, such as types of NumPy
            result = {"error": True, "stage": "package", "message": str(error)}
        with open(log.name, errors="replace") as file:
            return result, file.read()


def prepares(model, arena):
    """Whether the model is prepared in so many bytes."""
    def attempt():
        tflm.runtime.Interpreter.from_bytes(model, arena_size=arena)
        return {"ok": True}
    return "ok" in narrated(attempt)[0]


def used_bytes(model):
    """As the recording allocator counts them."""
    def attempt():
        tflm.runtime.Interpreter.from_bytes(model, arena_size=1 << 26).print_allocations()
        return {}
    found = re.search(r"Arena allocation total (\d+) bytes", narrated(attempt)[1])
    return int(found.group(1)) if found else None


def smallest_arena(model, guess=0, fits=prepares):
    """In bytes, a multiple of 16. The planner needs memory before tensors do: more than what is used in the end."""
    if guess > ALIGNMENT and fits(model, guess) and not fits(model, guess - ALIGNMENT):
        return guess
    used = used_bytes(model)
    if used is None:
        return 0
    low = (used + ALIGNMENT - 1) // ALIGNMENT
    if fits(model, low * ALIGNMENT):
        while low > 1 and fits(model, (low - 1) * ALIGNMENT):
            low -= 1
        return low * ALIGNMENT
    high = low * 4 + 4096
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(model, middle * ALIGNMENT) else (middle, high)
    return high * ALIGNMENT


class Package:
    """The package `tflite-micro`, with pointers of 64 bits and its recording allocator."""
    name = "tflm"

    def __init__(self, arena_stride):
        self.arena_stride, self.count = arena_stride, 0  # the search takes several times as long as the run

    def takes(self, model):
        """Whether it runs the model with some inputs."""
        inputs = [{"type": t, "shape": s, "lcg": 1} for t, s in record.graph_inputs(model)]
        return "error" not in narrated(record.run_once, model, inputs, 1, "tflm")[0]

    def run(self, model, case):
        result, said = narrated(record.run_once, model, case["inputs"], case.get("invocations", 1), "tflm")
        if "error" in result:
            return ("absent" if ABSENT.search(said) else "refused"), first_words(said) or result["message"], 0, None
        self.count += 1
        return "ok", "", smallest_arena(model) if self.count % self.arena_stride == 0 else 0, result["outputs"]


class Program:
    """Another build, behind a command."""

    def __init__(self, text):
        self.name, self.command = text.split("=", 1)

    def takes(self, model):
        with tempfile.TemporaryDirectory() as folder:
            path, zeros = os.path.join(folder, "model"), os.path.join(folder, "zeros")
            pathlib.Path(path).write_bytes(model)
            pathlib.Path(zeros).write_bytes(bytes(1 << 16))
            done = subprocess.run([*self.command.split(), path, "--run", zeros, os.devnull], capture_output=True, text=True,
                                  errors="replace", check=False)
            return "RC 0" in done.stdout and not UNSAID.search(done.stdout + done.stderr)

    def run(self, model, case):
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, name) for name in ("model", "in", "out")}
            pathlib.Path(paths["model"]).write_bytes(model)
            inputs = case["inputs"][:len(record.graph_inputs(model))]
            pathlib.Path(paths["in"]).write_bytes(b"".join(record.input_bytes(i) for i in inputs))
            done = subprocess.run([*self.command.split(), paths["model"], "--min", "--run", paths["in"], paths["out"]],
                                  capture_output=True, text=True, errors="replace", check=False)
            said = done.stdout + done.stderr
            if "RC 0" not in said or UNSAID.search(said):
                lines = "\n".join(l for l in said.splitlines() if not l.startswith("RC "))
                return ("absent" if ABSENT.search(said) else "refused"), first_words(lines) or "crash", 0, None
            arena = re.search(r"MIN (\d+)", said)
            raw, outputs = pathlib.Path(paths["out"]).read_bytes(), []
            for recorded in case["outputs"][:len(record.output_types(model))]:
                size = len(base64.b64decode(recorded["base64"]))
                outputs.append({"base64": base64.b64encode(raw[:size]).decode()})
                raw = raw[size:]
            return "ok", "", int(arena.group(1)) if arena else 0, outputs


def verdict_of(runner, model, case):
    """(ok, differs, refused or absent; what was said; smallest arena)."""
    verdict, said, arena, outputs = runner.run(model, case)
    if verdict == "ok" and case.get("invocations", 1) == 1:
        same = all(a["base64"] == b["base64"] for a, b in zip(outputs, case["outputs"]))
        exact = case.get("tolerance") in (0, "bits") or all(o["type"] not in record.FLOAT_TYPES for o in case["outputs"])
        if not same and exact:
            return "differs", "", arena
    return verdict, said, arena


def recorded_cases(wanted=()):
    """(operator, case, model with its shapes) of everything recorded that TFLite runs."""
    for path in sorted((ROOT / "tests" / "vectors").glob("*.jsonl")):
        head, cases = record.read_vectors(path)
        operator = head["operator"].replace("custom:", "")
        for case in cases if not wanted or operator in wanted else []:
            if "error" not in case:
                yield operator, case, with_settled_shapes(base64.b64decode(case["model"]), case["outputs"])


CAST_TYPES = ("float32", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool")
RANDOM_MODELS = 1500


def extra_models(known):
    """([(operator, types)], model): types that no recorded case has, in models of one operator or of a few."""
    made = []
    for source in CAST_TYPES:
        for target in CAST_TYPES:
            cast = Model()
            cast.op("CAST", [cast.input("x", source, [4])], [cast.output("y", target, [4])], version=1)
            made.append(cast.build())
    made += [random_model(number)[0] for number in range(RANDOM_MODELS)]
    made += [random_graph(number)[0] for number in range(RANDOM_MODELS)]
    for model in made:
        found = {(name, types) for name, _, types in operators_of(model, subgraphs=1)}
        if found - known:
            if len(found) == 1:  # of several, another may be the one that is refused
                known |= found
            yield found, model


def ask(runner, wanted, stride, only=None):
    """{(operator, case): (verdict, said, arena)}, if `only` is given, for those cases."""
    verdicts = {}
    for number, (operator, case, model) in enumerate(recorded_cases(wanted)):
        if number % stride == 0 and (only is None or (operator, case["case"]) in only):
            verdicts[operator, case["case"]] = verdict_of(runner, model, case)
            print(runner.name, operator, case["case"], *verdicts[operator, case["case"]], flush=True)
    return verdicts


def registrations(header):
    """{operator: function} of a resolver's header."""
    text = pathlib.Path(header).read_text(encoding="utf-8")
    found = {}
    for name, body in re.findall(r"TfLiteStatus (Add\w+)\([^{;]*\{(.*?)\n  \}", text, re.S):
        builtin = re.search(r"BuiltinOperator_(\w+)", body)
        custom = re.search(r'AddCustom\(\s*"([^"]+)"', body)
        if name in ("AddBuiltin", "AddCustom") or not (builtin or custom):
            continue
        found[(builtin or custom).group(1)] = name
    return found


def release_lines(resolver, coral):
    lines = []
    for operator in sorted(set(resolver) | set(coral)):
        where = [name for name, have in (("kTflm", resolver), ("kCoral", coral)) if operator in have]
        function = resolver.get(operator) or coral[operator]
        lines.append(f'MICRO_OP("{operator}", "{function}", {" | ".join(where)})')
    return lines


def type_lines(results, runners):
    """One line for each operator and operand types that some release ran."""
    accepted = collections.defaultdict(lambda: collections.defaultdict(set))
    versions = collections.defaultdict(set)
    for operator, case, model in recorded_cases():
        ran = {release for release, verdicts in results.items()
               if verdicts.get((operator, case["case"]), ("",))[0] in ("ok", "differs")}
        for name, version, types in operators_of(model, subgraphs=1) if ran else []:  # others may be prepared and not run
            accepted[name][types] |= ran
            versions[name].add(version)
    for found, model in extra_models({(name, types) for name in accepted for types in accepted[name]}):
        taken = {runner.name for runner in runners if runner.takes(model)}
        for name, types in found if "tflm" in taken else []:  # an old kernel that does not look at types runs them all
            accepted[name][types] |= taken
    flags = {"tflm": "kTflm", "coral": "kCoral"}
    lines = [f'MICRO_TYPES("{op}", "{signature}", {" | ".join(flags[r] for r in ("tflm", "coral") if r in where)})'
             for op in sorted(accepted) for signature, where in sorted(accepted[op].items()) if where & set(flags)]
    lines += [f'MICRO_VERSIONS("{op}", {min(found)}, {max(found)})' for op, found in sorted(versions.items())]
    return lines


HEAD = """// SPDX-License-Identifier: Apache-2.0
// Generated by tools/oracle/make_micro_ops.py from {release}; do not edit.
// MICRO_OP(operator, function of the resolver, releases that have it)
// MICRO_TYPES(operator, operands "inputs>outputs" that ran, releases)
// MICRO_VERSIONS(operator, lowest and highest version that ran; TFLite Micro does not look at versions)
MICRO_RELEASE("{release}")
"""


def write_verdicts(results, path):
    names = [n for n in ("tflm", "tflm32", "coral") if n in results]
    with open(path, "w", encoding="utf-8") as file:
        file.write("# operator, case" + "".join(f", {n} verdict, {n} arena" for n in names) + ", what tflm said\n")
        for key in results["tflm"]:
            row = list(key)
            for name in names:
                verdict, _, arena = results[name].get(key, ("", "", 0))
                row += [verdict, str(arena) if arena else ""]
            file.write("\t".join([*row, results["tflm"][key][1]]) + "\n")


def main():
    parser = argparse.ArgumentParser(description="What TFLite Micro takes and refuses, asked of the runtime itself.")
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--resolver", required=True, metavar="HEADER")
    parser.add_argument("--coral-resolver", required=True, metavar="HEADER")
    parser.add_argument("--program", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--stride", type=int, default=1, help="ask programs for every so-manieth case only")
    parser.add_argument("--arena-stride", type=int, default=12, help="search arenas for every so-manieth case that runs")
    parser.add_argument("--cache", type=pathlib.Path, help="folder that keeps answers, one file for each runtime")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT)
    args = parser.parse_args()
    results = {}
    runners = [Package(args.arena_stride), *map(Program, args.program)]
    for runner in runners:
        kept = args.cache / f"{runner.name}.json" if args.cache else None
        if kept and kept.exists():
            results[runner.name] = {tuple(k.split("\t")): tuple(v) for k, v in json.loads(kept.read_text()).items()}
            continue
        ran = {key for key, found in results.get("tflm", {}).items() if found[0] in ("ok", "differs")}
        is_package = runner.name == "tflm"
        results[runner.name] = ask(runner, set(args.operators), 1 if is_package else args.stride, None if is_package else ran)
        if kept:
            args.cache.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({"\t".join(k): v for k, v in results[runner.name].items()}))
    lines = release_lines(registrations(args.resolver), registrations(args.coral_resolver)) + type_lines(results, runners)
    (args.out / "src" / "micro" / "operators.def").write_text(HEAD.format(release=tflm.name()) + "\n".join(lines) + "\n")
    write_verdicts(results, args.out / "tests" / "micro" / "verdicts.tsv")
    return 0


if __name__ == "__main__":
    sys.exit(main())
