# SPDX-License-Identifier: Apache-2.0
"""Run models before and after rewriting in a TFLite runtime and compare.

    mkdir pairs
    REEF_REWRITE_PAIRS=pairs build/tests/reef_tests --gtest_filter='*Rewrite*:YoloHead*'
    python tools/oracle/check_rewrites.py pairs [--kernels reference|default] [--runs 3]

The folder holds NNNN_TEST_D_before.tflite and NNNN_TEST_D_after.tflite, where D is the largest difference, in steps of
the output's scale, that Reef's own interpreter saw or that the rewrite allows. Inputs are random bytes that begin with all 256 values; float
inputs are normal. Both files must load and run; outputs may differ by D and no more (with the default kernels, which
round differently, by one step more). One row for each test; exit code 0 if all agree, 1 if not.
"""

import argparse
import collections
import pathlib
import sys

import numpy as np
from ai_edge_litert import interpreter as litert

KERNELS = {
    "reference": litert.OpResolverType.BUILTIN_REF,
    "default": litert.OpResolverType.AUTO,
}


def load(path, kernels):
    try:
        runner = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=KERNELS[kernels])
        runner.allocate_tensors()
    except ValueError as error:
        # Some ops (ELU) have one kernel only, which the reference set leaves out.
        if kernels == "default" or "Didn't find op" not in str(error):
            raise
        return load(path, "default")
    return runner


def random_inputs(runner, generator):
    values = []
    for detail in runner.get_input_details():
        shape, dtype = detail["shape"], detail["dtype"]
        if np.issubdtype(dtype, np.floating):
            values.append(generator.normal(0, 2, shape).astype(dtype))
            continue
        info = np.iinfo(dtype)
        flat = generator.integers(info.min, info.max + 1, int(np.prod(shape))).astype(dtype)
        every = np.arange(info.min, info.max + 1) if info.bits == 8 else np.zeros(0)
        flat[: min(len(every), len(flat))] = every[: len(flat)]
        values.append(flat.reshape(shape))
    return values


def run(runner, inputs):
    for detail, value in zip(runner.get_input_details(), inputs):
        # Stripping a float input or output changes its type; such pairs are not comparable here.
        runner.set_tensor(detail["index"], value)
    runner.invoke()
    return [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]


def largest_difference(first, second):
    if len(first) != len(second) or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(first, second)):
        return None
    return max(float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0)) for a, b in zip(first, second))


def check(before, allowed, kernels, runs, generator):
    """The largest difference, or why there is none."""
    after = before.with_name(before.name.replace("_before", "_after"))
    try:
        old, new = load(before, kernels), load(after, kernels)
        largest = 0.0
        for _ in range(runs):
            inputs = random_inputs(old, generator)
            difference = largest_difference(run(old, inputs), run(new, inputs))
            if difference is None:
                return None, "outputs of other shapes or types"
            largest = max(largest, difference)
    except (RuntimeError, ValueError) as error:
        return None, str(error).splitlines()[0]
    return largest, "" if largest <= allowed else f"more than {allowed}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kernels", choices=KERNELS, default="reference")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    generator = np.random.default_rng(1)
    rows = collections.OrderedDict()
    failures = []
    for before in sorted(arguments.folder.glob("*_before.tflite")):
        _, test, seen, _ = before.name.split("_")
        allowed = int(seen) + (1 if arguments.kernels == "default" else 0)
        largest, problem = check(before, allowed, arguments.kernels, arguments.runs, generator)
        row = rows.setdefault(test, [0, 0, 0.0])
        row[0] += 1
        if problem:
            row[1] += 1
            failures.append(f"{before.name}: {problem}")
        if largest is not None:
            row[2] = max(row[2], largest)
    print(f"{'test':50} {'pairs':>6} {'bad':>4} {'largest difference':>19}")
    for test, (count, bad, largest) in rows.items():
        print(f"{test:50} {count:6} {bad:4} {largest:19g}")
    for failure in failures[:20]:
        print(failure)
    if not rows:
        print("no pairs found", file=sys.stderr)
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
