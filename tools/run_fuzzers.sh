#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/run_fuzzers.sh FOLDER SECONDS [NAME...]: runs every fuzz_* program in FOLDER (or those named) for SECONDS each, as many at a
# time as there are cores ($JOBS), and prints for each: executions, edges covered, inputs in its corpus and how many of them are
# new. The corpus stays in FOLDER/corpus_NAME for the next time. Exit code 1 if one found a fault; the input is beside it.
set -euo pipefail
folder=$(cd "${1:?folder with fuzz_* programs}" && pwd)
seconds=${2:?seconds for each}
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
jobs=${JOBS:-$(nproc)}
export folder seconds root

run_one() {
  local fuzzer=$1 name corpus before after log options=()
  name=$(basename "$fuzzer")
  corpus="$folder/corpus_$name"
  log="$folder/$name.log"
  mkdir -p "$corpus"
  python3 "$root/fuzz/make_seeds.py" "$name" "$corpus"
  before=$(find "$corpus" -type f | wc -l)
  [[ -f "$root/fuzz/${name#fuzz_}.dict" ]] && options=("-dict=$root/fuzz/${name#fuzz_}.dict")
  local state=ok
  (cd "$folder" && "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="$folder/fault_${name}_" "${options[@]}" "$corpus") >"$log" 2>&1 || state=FAULT
  after=$(find "$corpus" -type f | wc -l)
  local runs edges
  runs=$(grep -o 'stat::number_of_executed_units: *[0-9]*' "$log" | grep -o '[0-9]*$' || true)
  [[ -n "$runs" ]] || runs=$(grep -o '^#[0-9]*' "$log" | tail -1 | tr -d '#')
  edges=$(grep -o 'cov: [0-9]*' "$log" | tail -1 | grep -o '[0-9]*' || true)
  printf '%-28s %12s executions %8s edges %7s inputs (%s new)  %s\n' "${name#fuzz_}" "${runs:-0}" "${edges:-?}" "$after" \
    "$((after - before))" "$state" | tee "$folder/$name.summary"
}
export -f run_one

wanted=()
for fuzzer in "$folder"/fuzz_*; do
  [[ -x "$fuzzer" && -f "$fuzzer" ]] || continue
  if [[ $# -gt 0 ]] && [[ " $* " != *" $(basename "$fuzzer" | sed s/^fuzz_//) "* ]]; then continue; fi
  wanted+=("$fuzzer")
done
[[ ${#wanted[@]} -gt 0 ]] || { echo "there is no such fuzz_* program in $folder" >&2; exit 2; }
rm -f "$folder"/*.summary
printf '%s\0' "${wanted[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'run_one "$0"'
total=$(cat "$folder"/*.summary | awk '{sum += $2} END {print sum}')
echo "$total executions in all"
if grep -l 'FAULT$' "$folder"/*.summary >/dev/null; then
  echo "Faults were found; the inputs are $folder/fault_*, the reports $folder/fuzz_*.log" >&2
  exit 1
fi
