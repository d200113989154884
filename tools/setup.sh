#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing Reef needs, by package name. Quick when nothing is missing.
#   tools/setup.sh build     compiler, CMake and libraries
#   tools/setup.sh test      the same and what the tests need
#   tools/setup.sh format    clang-format
#   tools/setup.sh fuzz      clang with libFuzzer
#   tools/setup.sh arm64     cross compiler and emulator
# Debian and its derivatives are handled; elsewhere the missing packages are named.
set -euo pipefail

build=(g++ cmake ninja-build flatbuffers-compiler libflatbuffers-dev libfmt-dev nlohmann-json3-dev libcli11-dev libstb-dev
       libprotobuf-dev protobuf-compiler zlib1g-dev)
test=(libgtest-dev libonnx-testdata python3 python3-numpy python3-venv pkg-config libusb-1.0-0-dev libwebp7)
format=(clang-format)
fuzz=(clang libclang-rt-dev)
arm64=(g++-aarch64-linux-gnu qemu-user googletest)

case "${1:-build}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  format) wanted=("${format[@]}") ;;
  fuzz) wanted=("${build[@]}" "${fuzz[@]}") ;;
  arm64) wanted=("${arm64[@]}") ;;
  *) echo "usage: tools/setup.sh build|test|format|fuzz|arm64" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian-like system: please install the equivalents of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ "$status" == "install ok installed" ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

echo "Installing: ${missing[*]}"
as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
