#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the program and the libraries of all packages for one CPU, to run with glibc 2.28 and newer: build-portable-CPU.
#   tools/packages/build.sh x86_64|aarch64 [JOBS]
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/packages/common.sh
source tools/packages/common.sh
check_cpu "${1:-}"
options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DREEF_TESTS=OFF -DREEF_FETCH=ON -DREEF_STATIC=ON -DREEF_IN_LIBRARY=ON -DREEF_GLIBC="$oldest_glibc")
[[ "$1" == "$(uname -m)" ]] || options+=(-DCMAKE_TOOLCHAIN_FILE="cmake/$1.cmake")
cmake -S . -B "$(build_folder "$1")" "${options[@]}" ${REEF_CMAKE_OPTIONS:-} >"$(build_folder "$1").log" || { cat "$(build_folder "$1").log"; exit 1; }
rm -f "$(build_folder "$1").log"
cmake --build "$(build_folder "$1")" --target reef_wheel -j "${2:-$(nproc)}"
