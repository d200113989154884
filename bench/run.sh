#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make bench: Reef's CPU runtime against TFLite (LiteRT) and ONNX Runtime, its virtual device against TFLite, interleaved in
# one run, peers from PyPI by package name; each op beside what the CPU could do at most; what the interpreter adds; then the time of `reef check`,
# which has no peer, generated code beside Google's (REEF_ZOO: folder of the model collection), learning, and what an
# invocation costs beside the arithmetic.
# Peers that cannot be installed are skipped with a message. Arguments: those of cpu_inference.py.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/bench-venv
benches() {
  "$1" bench/cpu_inference.py "${@:2}"
  echo
  cmake --build --preset release --target layer_bench >/dev/null && build/layer_bench models/reef_creatures_int8.tflite
  echo
  cmake --build --preset release --target op_overhead >/dev/null && build/op_overhead
  echo
  cmake --build --preset release --target driver_overhead >/dev/null && build/driver_overhead ${REEF_ZOO:+"$REEF_ZOO"/pairs/mobilenet_v*/*_edgetpu.tflite}
  echo
  "$1" bench/device_inference.py
  echo
  cmake --build --preset release --target check_bench code_bench learn_bench >/dev/null && build/tests/check_bench
  echo
  build/tests/code_bench ${REEF_ZOO:-}
  echo
  build/tests/learn_bench
  cmake --build --preset release --target libreef invoke_bench >/dev/null && "$1" bench/invoke_overhead.py
}
if [[ ! -x $venv/bin/python ]]; then
  python3 -m venv "$venv" 2>/dev/null || { echo "bench: python3-venv is missing, peers are skipped"; benches python3 "$@"; exit; }
fi
"$venv/bin/python" -c 'import ai_edge_litert, numpy' 2>/dev/null ||
  "$venv/bin/pip" install -q ai-edge-litert numpy || echo "bench: ai-edge-litert cannot be installed, it is skipped"
"$venv/bin/python" -c 'import onnx, onnxruntime' 2>/dev/null ||
  "$venv/bin/pip" install -q onnx onnxruntime || echo "bench: onnxruntime cannot be installed, it is skipped"
benches "$venv/bin/python" "$@"
