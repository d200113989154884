#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/run_fuzzers.sh FOLDER SECONDS: runs every fuzz_* program in FOLDER for SECONDS each, seeded with our own models.
set -euo pipefail
folder=${1:?folder with fuzz_* programs}
seconds=${2:?seconds for each}
root=$(cd "$(dirname "$0")/.." && pwd)
for fuzzer in "$folder"/fuzz_*; do
  [[ -x "$fuzzer" && -f "$fuzzer" ]] || continue
  name=$(basename "$fuzzer")
  corpus="$folder/corpus_$name"
  mkdir -p "$corpus"
  if [[ "$name" == *reader* ]]; then cp "$root"/models/*.tflite "$corpus"/; fi
  echo "== $name, $seconds s"
  "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 "$corpus" 2>&1 | tail -n 12
done
