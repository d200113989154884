# SPDX-License-Identifier: Apache-2.0
"""Run models before and after simplification in a TFLite runtime and compare.

    mkdir pairs
    REEF_SIMPLIFY_PAIRS=pairs build/tests/reef_tests --gtest_filter='Simplify*:*/Simplify*'
    python tools/oracle/check_simplify.py pairs [--kernels reference|default]

The folder holds NAME_before.tflite and NAME_after.tflite. What runs before must run after, with integer outputs equal
and float outputs within 1e-4 of the largest value. Models that the runtime refuses before (it has no kernel for some
types that Reef has) are counted and left out. Exit code 0 if all others agree.
"""

import argparse
import collections
import pathlib
import sys

import numpy as np
from ai_edge_litert import interpreter as litert

KERNELS = {"reference": litert.OpResolverType.BUILTIN_REF, "default": litert.OpResolverType.AUTO}


def load(path, kernels):
    runner = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=KERNELS[kernels])
    runner.allocate_tensors()
    return runner


def run(runner, generator):
    for detail in runner.get_input_details():
        shape, dtype = detail["shape"], detail["dtype"]
        if np.issubdtype(dtype, np.floating):
            value = generator.uniform(-2, 2, shape).astype(dtype)
        else:
            value = generator.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)
        runner.set_tensor(detail["index"], value)
    runner.invoke()
    return [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]


def differs(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return "shapes %s and %s" % (a.shape, b.shape)
    if not np.issubdtype(a.dtype, np.floating):
        return None if np.array_equal(a, b) else "integers differ"
    largest, difference = np.abs(a).max(initial=0), np.abs(a - b).max(initial=0)
    return None if difference <= 1e-4 * largest or largest == 0 else "%g of %g" % (difference, largest)


def check(before, kernels):
    """None: equal. A sentence otherwise; 'refused' if the runtime does not take the model as it was."""
    try:
        expected = run(load(before, kernels), np.random.default_rng(1))
    except (ValueError, RuntimeError):
        return "refused"
    try:
        actual = run(load(before.with_name(before.name.replace("_before", "_after")), kernels), np.random.default_rng(1))
    except (ValueError, RuntimeError) as error:
        return "does not run after: %s" % error
    for a, b in zip(expected, actual):
        if what := differs(a, b):
            return what
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--kernels", choices=KERNELS, default="reference")
    arguments = parser.parse_args()
    counts, failures = collections.Counter(), 0
    for before in sorted(pathlib.Path(arguments.folder).glob("*_before.tflite")):
        what = check(before, arguments.kernels)
        counts["equal" if what is None else "refused before" if what == "refused" else "different"] += 1
        if what not in (None, "refused"):
            failures += 1
            print("%s: %s" % (before.name, what))
    print(", ".join("%d %s" % (number, name) for name, number in sorted(counts.items())))
    return 1 if failures or not counts["equal"] else 0


sys.exit(main())
