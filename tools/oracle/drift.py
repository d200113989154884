# SPDX-License-Identifier: Apache-2.0
"""Say which recorded cases TFLite 2.9.1's reference kernels compute differently.

    python tools/oracle/drift.py [OPERATOR ...]

A case that both runtimes agree on rests on two versions; one that drifts must say which version Reef follows. Prints
one row per operator, and the drifting cases below it. Cases that LiteRT refused are left out. Exit code: 0 no
drift, 1 drift.
"""

import argparse
import base64
import pathlib
import sys

import record

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "vectors"


def drift_of(case):
    """None if equal, else a sentence. The case must have outputs."""
    found = record.run_case(base64.b64decode(case["model"]), case["inputs"], case.get("invocations", 1), "tflite29")
    if "error" in found:
        return f"refused ({found['stage']})"
    for i, (ours, theirs) in enumerate(zip(case["outputs"], found["outputs"])):
        if ours["shape"] != theirs["shape"] or ours["type"] != theirs["type"]:
            return f"output {i} is {theirs['type']}{theirs['shape']}, not {ours['type']}{ours['shape']}"
        if ours["base64"] != theirs["base64"]:
            a, b = (record.as_array(base64.b64decode(o["base64"]), o["type"], o["shape"]) for o in (ours, theirs))
            return f"output {i} differs in {int((a != b).sum())} of {a.size} elements"
    return None


def main():
    parser = argparse.ArgumentParser(description="Which recorded cases does TFLite 2.9.1 compute differently?")
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--vectors", type=pathlib.Path, default=VECTORS)
    args = parser.parse_args()
    drifting = 0
    for path in sorted(args.vectors.glob("*.jsonl")):
        head, cases = record.read_vectors(path)
        if args.operators and head["operator"] not in args.operators:
            continue
        found = {}
        for case in cases:
            if "error" not in case and "runtime" not in case:
                try:
                    found[case["case"]] = drift_of(case)
                except AssertionError as error:  # depends on uninitialized memory there
                    found[case["case"]] = str(error)
        refused = sum(text is not None and text.startswith("refused") for text in found.values())
        differ = {name: text for name, text in found.items() if text is not None and not text.startswith("refused")}
        drifting += len(differ)
        print(f"{head['operator']}: {len(found) - refused - len(differ)} same, {len(differ)} differ, {refused} refused by 2.9.1")
        for name, text in differ.items():
            print(f"    {name}: {text}")
    return 1 if drifting else 0


if __name__ == "__main__":
    sys.exit(main())
