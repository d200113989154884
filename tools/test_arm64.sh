#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make arm64: builds the kernels and their tests for 64-bit ARM and runs them in an emulator (qemu-user).
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-arm64
mkdir -p "$build"
gtest=/usr/src/googletest/googletest
mapfile -t sources < <(find src/kernels src/numeric src/base/thread_pool.cpp -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' ! -name '*_fuzz.cpp' | sort)
mapfile -t tests < <(find src/kernels -name '*_test.cpp' | sort)
compile() { aarch64-linux-gnu-g++ -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -DFMT_HEADER_ONLY -Isrc -I"$gtest" -I"$gtest/include" -c "$1" -o "$2"; }
export -f compile
export gtest
objects=()
for source in "${sources[@]}" "${tests[@]}" "$gtest/src/gtest-all.cc" "$gtest/src/gtest_main.cc"; do
  object="$build/$(echo "$source" | tr '/' '_').o"
  objects+=("$object")
  [[ "$object" -nt "$source" ]] || printf '%s\0%s\0' "$source" "$object"
done > "$build/stale"
xargs -0 -n2 -P"$(nproc)" bash -c 'compile "$0" "$1"' < "$build/stale"
aarch64-linux-gnu-g++ -static "${objects[@]}" -lpthread -o "$build/kernel_tests" 2>/dev/null
qemu-aarch64 "$build/kernel_tests" --gtest_brief=1
