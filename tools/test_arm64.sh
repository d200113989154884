#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make arm64: builds the kernels and their tests for 64-bit ARM and runs them in an emulator (qemu-user): with dot
# products, with the vectors that every ARM has alone, and on a CPU without dot products, which must find that out.
# Arguments go to the tests, as in: tools/test_arm64.sh --gtest_filter='Byte*'
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-arm64
mkdir -p "$build"
gtest=/usr/src/googletest/googletest
mapfile -t sources < <(find src/kernels src/numeric src/base/thread_pool.cpp src/base/fork.cpp -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' ! -name '*_fuzz.cpp' | sort)
mapfile -t tests < <(find src/kernels -name '*_test.cpp' | sort)
compile() { aarch64-linux-gnu-g++ -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -DFMT_HEADER_ONLY -Isrc -isystem "$gtest" -isystem "$gtest/include" -MMD -c "$1" -o "$2"; }
export -f compile
export gtest
# Whether an object is older than anything that it was made from; the compiler leaves a list of that beside it.
is_stale() {
  local list="${1%.o}.d"
  [[ -f "$1" && -f "$list" ]] || return 0
  local files
  mapfile -t files < <(sed -e 's/^[^:]*://' -e 's/\\$//' "$list" | tr -s ' ' '\n' | sed '/^$/d')
  [[ -n "$(find "${files[@]}" -newer "$1" -print -quit 2>&1)" ]]
}
objects=()
for source in "${sources[@]}" "${tests[@]}" "$gtest/src/gtest-all.cc" "$gtest/src/gtest_main.cc"; do
  object="$build/$(echo "$source" | tr '/' '_').o"
  objects+=("$object")
  ! is_stale "$object" || printf '%s\0%s\0' "$source" "$object"
done > "$build/stale"
xargs -0 -r -n2 -P"$(nproc)" bash -c 'compile "$0" "$1"' < "$build/stale"
aarch64-linux-gnu-g++ -static "${objects[@]}" -lpthread -o "$build/kernel_tests" 2>/dev/null
run_on() {  # CPU, what REEF_SIMD asks for (empty: nothing), what must come of it, arguments of the tests
  local cpu="$1" asked="$2" expected="$3"
  shift 3
  echo "$cpu, REEF_SIMD=$asked: $expected"
  env ${asked:+REEF_SIMD="$asked"} REEF_EXPECTED_TARGET="$expected" qemu-aarch64 -cpu "$cpu" "$build/kernel_tests" --gtest_brief=1 "$@"
}
run_on max "" dotprod "$@"
run_on max neon neon "$@"
run_on cortex-a53 dotprod neon "$@"
