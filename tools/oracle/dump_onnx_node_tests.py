#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the operator tests of the installed onnx package to a folder, as libonnx-testdata has those of an older release.

  dump_onnx_node_tests.py DIR
  REEF_ONNX_TESTDATA=DIR build/tests/onnx_node_report
"""
import pathlib, sys, warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases


def tensor_bytes(value, info):
    """A tensor file; None for sequences, optionals and maps, which are not compared."""
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    if info.type.WhichOneof("value") != "tensor_type" or isinstance(value, (list, dict)) or value is None:
        return None
    return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString()


def main():
    root = pathlib.Path(sys.argv[1]) / "node"
    warnings.simplefilter("ignore")
    written = 0
    for case in collect_testcases(None):
        if case.model is None:
            continue
        folder = root / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / f"test_data_set_{i}"
            data.mkdir(exist_ok=True)
            for role, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
                for k, (value, info) in enumerate(zip(values, infos)):
                    content = tensor_bytes(value, info)
                    if content is not None:
                        (data / f"{role}_{k}.pb").write_bytes(content)
        written += 1
    print(f"{written} tests of onnx {onnx.__version__} in {root}")


if __name__ == "__main__":
    main()
