#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what ONNX Runtime computes for models of a collection: record_onnx_outputs.py ZOO > tests/onnx_outputs.json

Inputs are made by a formula that tests/onnx_zoo_test.cpp repeats: element i is (i * 7919 % 1009) / 504.5 - 1, or
i * 37 % 199 for integers. Of outputs with more than 256 elements every 61st is kept.
"""
import glob, json, os, sys
import numpy as np
import onnxruntime as ort

result = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "onnx", "*.onnx"))):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    spec = session.get_inputs()[0]
    count = np.arange(int(np.prod(spec.shape)), dtype=np.int64)
    if "float" in spec.type:
        x = ((count * 7919 % 1009).astype(np.float32) / np.float32(504.5) - np.float32(1)).reshape(spec.shape)
    else:
        x = (count * 37 % 199).reshape(spec.shape)
    rows = {}
    for info, y in zip(session.get_outputs(), session.run(None, {spec.name: x})):
        step = 61 if y.size > 256 else 1
        rows[info.name] = {"shape": list(y.shape), "step": step, "values": [float("%.7g" % v) for v in y.ravel()[::step]]}
    result[os.path.basename(path)] = rows
json.dump(result, sys.stdout, indent=0, sort_keys=True)
print()
