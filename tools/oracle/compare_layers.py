# SPDX-License-Identifier: Apache-2.0
"""Compare Reef with a TFLite runtime's reference kernels, layer by layer.

    python tools/oracle/compare_layers.py MODEL.tflite --reef build/reef [--in FILE.bin]... [--golden-runtime litert]

Rewrites the model so that every operator output of its main subgraph is a graph output, runs both programs on
the same input, and prints one row per tensor. The first differing layer is marked: later ones may differ only
because it does. `--isolate` instead feeds every operator the reference's own inputs, one operator at a time, so that
each row stands for itself.

Inputs come from --in (raw little-endian files, one per graph input, in order) or from the generator in record.py.
Exit code: 0 equal, 1 an integer tensor differs (or a float one beyond --float-tolerance, if given), 2 could not compare.
Not compared: strings, resources, and what happens inside other subgraphs (their results are).
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import flatbuffers
import numpy as np

import record
from onemodel import AlignedBuffer, NUMPY_TYPES, enum_name, schema

COMPARABLE = set(NUMPY_TYPES)
REFERENCE_TIME_LIMIT_S = 600


class CannotCompare(Exception):
    """Why there is no table; ends the program with exit code 2."""


def type_name(tensor):
    return enum_name(schema.TensorType, tensor.type)


def short_name(tensor):
    """Converters join the names of all that was fused; the end is the telling part."""
    name = (tensor.name or b"").decode(errors="replace")
    return name if len(name) <= 60 else "..." + name[-57:]


def operator_name(model, operator):
    code = model.operatorCodes[operator.opcodeIndex]
    builtin = max(code.builtinCode, code.deprecatedBuiltinCode)
    if builtin == schema.BuiltinOperator.CUSTOM:
        return (code.customCode or b"?").decode()
    return enum_name(schema.BuiltinOperator, builtin)


def pack(model):
    model.buffers = [AlignedBuffer(data=None if b.data is None else bytes(bytearray(b.data))) for b in model.buffers]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def expose_all(model):
    """Makes every comparable operator output a graph output. Returns (bytes, [(operator index, tensor index)])."""
    graph = model.subgraphs[0]
    rows, seen = [], set()
    for index, operator in enumerate(graph.operators):
        for tensor in operator.outputs:
            if tensor >= 0 and tensor not in seen and type_name(graph.tensors[tensor]) in COMPARABLE:
                seen.add(tensor)
                rows.append((index, int(tensor)))
    graph.outputs = [tensor for _, tensor in rows]
    model.signatureDefs = None  # they name the old outputs
    return pack(model), rows


def run_reference(runtime, model, inputs):
    """Output arrays of the reference runtime, in the order of the graph's outputs."""
    if runtime == "tensorflow":
        import tensorflow as tf
        resolver = tf.lite.experimental.OpResolverType.BUILTIN_REF
        interpreter = tf.lite.Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=resolver)
    else:
        interpreter = record.make_interpreter(model, runtime)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    if len(details) != len(inputs):
        raise CannotCompare(f"{len(inputs)} inputs given, the model has {len(details)}")
    for detail, raw in zip(details, inputs):
        expected = int(np.prod(detail["shape"], dtype=np.int64)) * np.dtype(detail["dtype"]).itemsize
        if len(raw) != expected:
            raise CannotCompare(f"input {detail['index']} wants {expected} bytes, {len(raw)} given")
        interpreter.set_tensor(detail["index"], np.frombuffer(raw, detail["dtype"]).reshape(detail["shape"]))
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def reef_arguments(args):
    """Reef follows the release of the runtime it is compared with."""
    release = "2.9" if args.golden_runtime == "tflite29" else "current"
    return ["--tflite", release, *args.reef_arg]


def run_reef(program, arguments, model, inputs, count, folder):
    """The bytes of out0.bin, out1.bin ... that `reef run` leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_all_outputs.tflite").write_bytes(model)
    command = [str(program), "run", str(folder / "model_all_outputs.tflite")]
    for i, raw in enumerate(inputs):
        path = folder / f"in{i}.bin"
        path.write_bytes(raw)
        command += ["--in", str(path)]
    command += ["--out", str(folder / "out"), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CannotCompare(f"cannot start {program}: {error}") from error
    if done.returncode:
        raise CannotCompare(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    paths = [folder / "out" / f"out{i}.bin" for i in range(count)]
    missing = [p.name for p in paths if not p.exists()]
    if missing:
        raise CannotCompare(f"reef left no {', '.join(missing[:5])} ({len(missing)} of {count} outputs)")
    return [p.read_bytes() for p in paths]


def difference(expected, raw):
    """(number of differing elements, largest absolute difference) or (None, reason)."""
    if len(raw) != expected.nbytes:
        return None, f"{len(raw)} bytes, expected {expected.nbytes}"
    if expected.dtype.kind == "c":  # a complex number counts as two elements
        expected = np.ascontiguousarray(expected).reshape(-1).view(f"f{expected.itemsize // 2}")
    expected = np.ascontiguousarray(expected).reshape(-1)
    actual = np.frombuffer(raw, expected.dtype)
    if expected.dtype.kind != "f":
        differs = actual != expected
        gaps = [abs(int(a) - int(e)) for a, e in zip(actual[differs], expected[differs])]
    else:
        bits = f"u{expected.itemsize}"
        differs = (actual.view(bits) != expected.view(bits)) & ~(np.isnan(actual) & np.isnan(expected))
        gaps = np.abs(actual[differs].astype(np.float64) - expected[differs])
    return int(differs.sum()), float(max(gaps, default=0))


def isolate(model_bytes, rows, values, inputs, operator_index):
    """A model of one operator whose non-constant inputs are graph inputs, with the reference's values for them."""
    model = schema.ModelT.InitFromPackedBuf(model_bytes)
    graph = model.subgraphs[0]
    known = {int(t): v for t, v in zip(graph.inputs, inputs)}
    known.update({tensor: np.ascontiguousarray(v).tobytes() for (_, tensor), v in zip(rows, values)})
    operator = graph.operators[operator_index]
    fed = [t for t in dict.fromkeys(int(t) for t in operator.inputs) if t in known]
    for tensor, value in zip((t for _, t in rows), values):
        graph.tensors[tensor].shape = list(value.shape)  # what it was in this run, where the model leaves it open
    graph.operators, graph.inputs = [operator], fed
    graph.outputs = [tensor for index, tensor in rows if index == operator_index]
    return pack(model), [known[t] for t in fed]


def compare(args, folder):
    """Yields (operator index, operator name, tensor, expected array, differing or None, gap or reason)."""
    original = pathlib.Path(args.model).read_bytes()
    model = schema.ModelT.InitFromPackedBuf(original)
    names = [operator_name(model, o) for o in model.subgraphs[0].operators]
    rewritten, rows = expose_all(model)
    tensors = schema.ModelT.InitFromPackedBuf(rewritten).subgraphs[0].tensors
    inputs = [pathlib.Path(p).read_bytes() for p in args.inputs]
    if not inputs:
        inputs = [record.lcg_bytes(args.seed + i, t, s) for i, (t, s) in enumerate(record.graph_inputs(original))]
    try:
        values = record.in_child(run_reference, args.golden_runtime, rewritten, inputs, time_limit_s=REFERENCE_TIME_LIMIT_S)
    except (ValueError, RuntimeError, record.RuntimeDied) as error:
        raise CannotCompare(f"the reference runtime does not run this model: {error}") from error
    if not args.isolate:
        outputs = run_reef(args.reef, reef_arguments(args), rewritten, inputs, len(rows), folder)
        for (index, tensor), expected, raw in zip(rows, values, outputs):
            yield index, names[index], tensors[tensor], expected, *difference(expected, raw)
        return
    for index, name in enumerate(names):
        own = [(tensor, v) for (i, tensor), v in zip(rows, values) if i == index]
        if not own:
            continue
        try:
            single, fed = isolate(rewritten, rows, values, inputs, index)
            outputs = run_reef(args.reef, reef_arguments(args), single, fed, len(own), folder / f"op{index}")
        except CannotCompare as error:
            yield index, name, tensors[own[0][0]], own[0][1], None, str(error).strip().splitlines()[-1]
            continue
        for (tensor, expected), raw in zip(own, outputs):
            yield index, name, tensors[tensor], expected, *difference(expected, raw)


def print_table(results, args):
    """Prints the rows and returns the exit code."""
    print(f"{'op':>4} {'operator':<24} {'type':<8} {'shape':<18} {'differ':>12} {'max gap':>12}  tensor")
    highlight = ("\033[1;31m", "\033[0m") if sys.stdout.isatty() else ("", "")
    exit_code, first, count, differing = 0, True, 0, 0
    for index, name, tensor, expected, differ, gap in results:
        count += 1
        bad = differ is None or differ > 0
        differing += bad
        if bad and not (expected.dtype.kind in "fc" and differ is not None):
            exit_code = 1
        elif bad and args.float_tolerance is not None and not gap <= args.float_tolerance:
            exit_code = 1
        if not bad and args.only_differences:
            continue
        shape = "x".join(map(str, expected.shape)) or "scalar"
        shown = "failed" if differ is None else f"{differ}/{expected.size}"
        row = (f"{index:>4} {name:<24} {type_name(tensor):<8} {shape:<18} {shown:>12} "
               f"{gap if differ is None else format(gap, '.6g'):>12}  {short_name(tensor)}")
        mark = bad and (first or args.isolate)
        print(f"{highlight[0]}{row}   <== {'differs' if args.isolate else 'first difference'}{highlight[1]}" if mark else row)
        first = first and not bad
    print(f"{count} tensors compared, {differing} differ")
    return exit_code


def main():
    parser = argparse.ArgumentParser(description="Compare Reef with TFLite's reference kernels layer by layer.")
    parser.add_argument("model")
    parser.add_argument("--reef", default="build/reef", help="the program to test")
    parser.add_argument("--in", dest="inputs", action="append", default=[], metavar="FILE")
    parser.add_argument("--seed", type=int, default=record.LCG_BASE_SEED, help="input i is generated from seed+i")
    parser.add_argument("--golden-runtime", choices=["litert", "tflite29", "tensorflow"], default="litert")
    parser.add_argument("--isolate", action="store_true", help="test each operator on the reference's own inputs")
    parser.add_argument("--only-differences", action="store_true", help="leave equal rows out of the table")
    parser.add_argument("--float-tolerance", type=float, help="largest absolute difference allowed in float tensors")
    parser.add_argument("--keep", metavar="DIR", help="keep the rewritten model, inputs and outputs here")
    parser.add_argument("--reef-arg", action="append", default=[], help="further argument for `reef run`, repeatable")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        try:
            return print_table(compare(args, pathlib.Path(args.keep or temporary)), args)
        except (CannotCompare, OSError) as error:
            print(f"compare_layers: {error}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
