# SPDX-License-Identifier: Apache-2.0
"""Run a model in LiteRT with TFLite's reference kernels and record what it computed.

One JSON-lines file per operator. The first line is a header; every further line is a case:
    {"case": name,
     "model": base64 of the .tflite,
     "inputs": [{"type", "shape", "lcg": seed | "base64": bytes}, ...],
     "runtime": name,                  only if it is not the header's
     "invocations": N,                 only if N > 1 (stateful operators)
     "outputs": [{"type", "shape", "base64"}, ...],
     "tolerance": 0 | "bits" | number}
or, where the runtime refuses the model,
    {"case", "model", "inputs", "error": true, "stage": "load"|"allocate"|"invoke"|"crash", "message"}

Rules a reader needs:
  * "type" is the schema's name (FLOAT32, INT8...). Bytes are little-endian, row-major; sub-byte types packed;
    STRING in TFLite's serialized form. An input whose "shape" differs from the model's is resized before allocation.
  * With N invocations, "outputs" lists those of the first, then of the second... "inputs" holds either one set, used
    every time, or N sets in the same order. State (variable tensors) persists between the invocations.
  * "tolerance" concerns floating-point outputs: "bits" means equal bit patterns (any NaN equals any NaN), a number r
    means |a-b| <= r*max(1,|b|). Outputs of any other type are always compared exactly.
  * "lcg": s=seed; per element s=(s*1664525+1013904223) mod 2^32; 8-bit types take s>>24, FLOAT32 takes
    (s>>8)/2^24, INT32 takes s>>24, other types are filled bytewise with s>>24.

Each case runs in a child process, so that a runtime that crashes on a hostile model costs one case, and runs
twice, the second time with freshly allocated memory poisoned: a result that depends on uninitialized memory
is nobody's truth and fails the recording.
"""

import base64
import ctypes
import importlib.metadata
import json
import multiprocessing
import os
import re

import numpy as np

from onemodel import NUMPY_TYPES, encode_elements, encode_strings, enum_name, schema

LCG_BASE_SEED = 12345  # input i of a model is filled from seed LCG_BASE_SEED + i by default
M_PERTURB = -6  # glibc's mallopt parameter
CASE_TIME_LIMIT_S = 60
FLOAT_TYPES = {"FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64", "COMPLEX64", "COMPLEX128"}


def runtime_name(runtime="litert"):
    if runtime == "tflite29":
        return "tflite 2.9.1 REF"
    if runtime == "tflm":
        import tflm
        return tflm.name()
    kernels = "XNNPACK" if runtime == "xnnpack" else "BUILTIN_REF"
    return f"ai-edge-litert {importlib.metadata.version('ai-edge-litert')} {kernels}"


def lcg_states(seed, count):
    """First `count` states after the seed, by doubling: s[n+k] = a^k s[n] + c_k (mod 2^32)."""
    mask = np.uint64(0xFFFFFFFF)
    states = np.array([(seed * 1664525 + 1013904223) & 0xFFFFFFFF], np.uint64)
    multiplier, increment = np.uint64(1664525), np.uint64(1013904223)
    while len(states) < count:
        states = np.concatenate([states, (states * multiplier + increment) & mask])
        increment = (increment * multiplier + increment) & mask
        multiplier = (multiplier * multiplier) & mask
    return states[:count]


def lcg_bytes(seed, dtype, shape):
    """Bytes of a tensor filled from the generator described above."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "FLOAT32":
        return ((lcg_states(seed, count) >> np.uint64(8)).astype(np.float32) / np.float32(1 << 24)).tobytes()
    if dtype == "INT32":
        return (lcg_states(seed, count) >> np.uint64(24)).astype(np.int32).tobytes()
    count *= np.dtype(NUMPY_TYPES[dtype]).itemsize
    return (lcg_states(seed, count) >> np.uint64(24)).astype(np.uint8).tobytes()


def make_interpreter(model, runtime="litert", keep_all=False):
    """`keep_all`: no tensor shares memory with another (LiteRT only)."""
    if runtime == "tflite29":
        import tflite29
        return tflite29.Interpreter(model)
    if runtime == "tflm":
        import tflm
        return tflm.Interpreter(model)
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    # XNNPACK knows some custom operators that TFLite's own kernels do not.
    resolver = OpResolverType.BUILTIN if runtime == "xnnpack" else OpResolverType.BUILTIN_REF
    return Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=resolver,
                       experimental_preserve_all_tensors=keep_all)


def delegate_applied(interpreter):
    """By node names: asking for the operators' full details fails on element types that numpy lacks."""
    wrapper = interpreter._interpreter
    return any("DELEGATE" in wrapper.NodeName(i).upper() for i in range(wrapper.NumNodes()))


def graph_inputs(model):
    """(type name, shape) of the inputs of subgraph 0, read from the model itself."""
    table = schema.ModelT.InitFromPackedBuf(model).subgraphs[0]
    tensors = [table.tensors[i] for i in (table.inputs if table.inputs is not None else [])]
    return [(enum_name(schema.TensorType, t.type), [int(d) for d in (t.shape if t.shape is not None else [])])
            for t in tensors]


def describe_inputs(model, inputs):
    """Turns what a case gives (None, seed, array, bytes, list of strings) into the file's form."""
    declared = graph_inputs(model)
    if inputs is None:
        inputs = [None] * len(declared)
    if declared and (not inputs or len(inputs) % len(declared)):
        raise ValueError(f"{len(inputs)} inputs given, the model has {len(declared)}")
    described = []
    for i, value in enumerate(inputs):
        dtype, shape = declared[i % len(declared)]
        if value is None or isinstance(value, int):
            described.append({"type": dtype, "shape": shape, "lcg": LCG_BASE_SEED + i if value is None else value})
            continue
        if not isinstance(value, bytes):
            value = np.asarray(value, dtype=object if dtype == "STRING" else None)
            shape = list(value.shape)
        raw = encode_elements(value, dtype)
        described.append({"type": dtype, "shape": shape, "base64": base64.b64encode(raw).decode()})
    return described


def input_bytes(described):
    if "lcg" in described:
        return lcg_bytes(described["lcg"], described["type"], described["shape"])
    return base64.b64decode(described["base64"])


def as_array(raw, dtype, shape):
    """The numpy array that set_tensor wants for these bytes."""
    if dtype == "STRING":
        count = int(np.frombuffer(raw[:4], "<i4")[0])
        offsets = np.frombuffer(raw[4:4 * (count + 2)], "<i4")
        return np.array([raw[a:b] for a, b in zip(offsets, offsets[1:])], dtype=object).reshape(shape)
    return np.frombuffer(raw, NUMPY_TYPES[dtype]).reshape(shape)


def read_output(interpreter, index, dtype):
    value = interpreter.get_tensor(index)
    raw = encode_strings(value) if dtype == "STRING" else np.ascontiguousarray(value).tobytes()
    return {"type": dtype, "shape": [int(d) for d in np.shape(value)], "base64": base64.b64encode(raw).decode()}


def output_types(model):
    table = schema.ModelT.InitFromPackedBuf(model).subgraphs[0]
    return [enum_name(schema.TensorType, table.tensors[i].type) for i in table.outputs]


def plain_message(error):
    """The first line, without positions in the runtime's own sources, which say nothing to our reader."""
    return re.sub(r"\S+\.(cc|h):\d+:? ?", "", str(error).strip().splitlines()[0])


def run_once(model, described, invocations, runtime="litert"):
    """All outputs of all invocations, or the refusal as {"error": true...}."""
    stage = "load"
    try:
        interpreter = make_interpreter(model, runtime)
        stage = "allocate"
        details = interpreter.get_input_details()
        for detail, given in zip(details, described):
            if [int(d) for d in detail["shape"]] != given["shape"]:
                interpreter.resize_tensor_input(detail["index"], given["shape"])
        interpreter.allocate_tensors()
        if runtime == "litert" and delegate_applied(interpreter):
            raise AssertionError("a delegate was applied: this is not the reference runtime")
        stage, outputs = "invoke", []
        for n in range(invocations):
            start = n * len(details) if len(described) > len(details) else 0
            for detail, given in zip(details, described[start:]):
                interpreter.set_tensor(detail["index"], as_array(input_bytes(given), given["type"], given["shape"]))
            interpreter.invoke()
            for detail, dtype in zip(interpreter.get_output_details(), output_types(model)):
                outputs.append(read_output(interpreter, detail["index"], dtype))
        return {"outputs": outputs}
    except (ValueError, RuntimeError) as error:
        return {"error": True, "stage": stage, "message": plain_message(error)}


class RuntimeDied(Exception):
    """The runtime crashed or hung instead of reporting an error."""


def _send_result(connection, function, arguments):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the runtime narrates refusals on stderr
    try:
        connection.send((True, function(*arguments)))
    except Exception as error:  # handed on to the parent, whatever it is
        connection.send((False, error))


def in_child(function, *arguments, time_limit_s=CASE_TIME_LIMIT_S):
    """Result of the function, called in a child process that may die without taking us with it."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_result, args=(sender, function, arguments))
    child.start()
    sender.close()
    try:
        if not receiver.poll(time_limit_s):
            raise RuntimeDied(f"no result within {time_limit_s} s")
        succeeded, result = receiver.recv()
    except EOFError:
        child.join()
        raise RuntimeDied(f"the runtime died with exit code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
    if not succeeded:
        raise result
    return result


def _run_twice(*arguments):
    first = run_once(*arguments)
    ctypes.CDLL(None).mallopt(M_PERTURB, 0x5A)
    return first, run_once(*arguments)


def run_case(model, described, invocations=1, runtime="litert"):
    """run_once in a child process; a crash becomes an error."""
    try:
        first, second = in_child(_run_twice, model, described, invocations, runtime)
    except RuntimeDied as death:
        return {"error": True, "stage": "crash", "message": str(death)}
    if first != second:
        raise AssertionError("the runtime's result depends on uninitialized memory: drop or change this case")
    return first


def record_case(name, model, inputs=None, *, invocations=1, tolerance=None, runtime="litert"):
    """One line of a vector file, as a dict. `model` is a onemodel.Model or bytes."""
    raw = model if isinstance(model, (bytes, bytearray)) else model.build()
    raw = bytes(raw)
    described = describe_inputs(raw, inputs)
    result = run_case(raw, described, invocations, runtime)
    case = {"case": name, "model": base64.b64encode(raw).decode(), "inputs": described}
    if runtime != "litert":
        case["runtime"] = runtime_name(runtime)
    if invocations > 1:
        case["invocations"] = invocations
    case.update(result)
    if "error" not in result:
        has_float = any(o["type"] in FLOAT_TYPES for o in result["outputs"])
        case["tolerance"] = 0 if not has_float else "bits" if tolerance is None else tolerance
    return case


def header(operator):
    return {"runtime": runtime_name(), "operator": operator, "threads": 1, "format": 1}


def write_vectors(path, operator, cases):
    """Writes header and cases aside, then renames, so that the file is whole or absent."""
    aside = f"{path}.partial"
    with open(aside, "w", encoding="ascii") as file:
        for line in [header(operator), *cases]:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    os.replace(aside, path)


def read_vectors(path):
    """(header, list of cases) of a vector file."""
    with open(path, encoding="ascii") as file:
        lines = [json.loads(line) for line in file]
    return lines[0], lines[1:]
