#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make tidy: clang-tidy with the checks of .clang-tidy over the program and the libraries. Needs a configured build folder and its
# generated headers. Half an hour on four cores; with FILES (or REEF_TIDY_SINCE=main, a commit) only these, or what changed since.
#   tools/tidy.sh JOBS [FILE...]
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
cmake --build build --target generated_headers >/dev/null
if [[ $# -gt 0 ]]; then
  files=("$@")
elif [[ -n "${REEF_TIDY_SINCE:-}" ]]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d "$REEF_TIDY_SINCE" -- 'src/*.cpp' 'apps/*.cpp' 'bindings/*.cpp' | grep -v -E '_(test|bench|fuzz)\.cpp$')
else
  mapfile -t files < <(git ls-files 'src/*.cpp' 'apps/*.cpp' 'bindings/*.cpp' | grep -v -E '_(test|bench|fuzz)\.cpp$')
fi
echo "${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -r -n4 -P"$jobs" build-tools/tidy/bin/clang-tidy -p build --quiet 2> >(grep -v 'warnings generated' >&2)
