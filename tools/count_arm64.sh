#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Instructions that 8-bit layers execute on 64-bit ARM, per target: counted in an emulator (qemu-user), which cannot tell
# how long they take. Printed per product of a layer (per element for add and table), without packing of weights.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh arm64
build=build-arm64/counts
mkdir -p "$build"
mapfile -t sources < <(find src/kernels/simd src/kernels/matmul src/kernels/conv src/kernels/elementwise src/numeric -name '*.cpp' ! -name '*_test.cpp' ! -name '*_bench.cpp' ! -name '*_fuzz.cpp' | sort)
compile() { aarch64-linux-gnu-g++ -std=c++20 -O3 -DNDEBUG -ffp-contract=off -Isrc -c "$1" -o "$2"; }
export -f compile
objects=()
for source in "${sources[@]}" tools/arm64_counts/layers.cpp; do
  object="$build/$(echo "$source" | tr '/' '_').o"
  objects+=("$object")
  printf '%s\0%s\0' "$source" "$object"
done > "$build/all"
xargs -0 -n2 -P"$(nproc)" bash -c 'compile "$0" "$1"' < "$build/all"
aarch64-linux-gnu-g++ -static "${objects[@]}" -lpthread -o "$build/layers" 2>/dev/null
gcc -O2 -shared -fPIC tools/arm64_counts/instructions.c -o "$build/instructions.so"

executed() { REEF_SIMD="$1" qemu-aarch64 -cpu max -plugin "$build/instructions.so" "$build/layers" "$2" "$3" 2>&1; }
printf '%-14s %10s %10s %10s   instructions per product\n' layer baseline neon dotprod
while read -r layer products; do
  printf '%-14s' "$layer"
  for target in baseline neon dotprod; do
    once=$(executed "$target" "$layer" 1)
    twice=$(executed "$target" "$layer" 2)
    awk -v n=$((twice - once)) -v p="$products" 'BEGIN { printf " %10.3f", n / p }'
  done
  echo
done <<LAYERS
conv1x1 $((14 * 14 * 96 * 96))
conv3x3 $((14 * 14 * 32 * 48 * 9))
dense $((1024 * 1000))
depthwise3x3 $((28 * 28 * 96 * 9))
depthwise5x5 $((14 * 14 * 96 * 25))
add 100000
table 100000
LAYERS
