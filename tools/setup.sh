#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing Reef needs, by package name. Quick when nothing is missing.
#   tools/setup.sh build     compiler, CMake and libraries
#   tools/setup.sh test      the same and what the tests need
#   tools/setup.sh format    clang-format
#   tools/setup.sh fuzz      clang with libFuzzer
#   tools/setup.sh clang     clang as the compiler
#   tools/setup.sh arm64     cross compiler and emulator
#   tools/setup.sh packages  what `make packages` needs beside the cross compiler: zig from PyPI, debhelper, lintian
#   tools/setup.sh roots     what checking packages on other systems needs: debootstrap
#   tools/setup.sh tidy      clang-tidy from PyPI
#   tools/setup.sh site      MkDocs from PyPI
# Debian and its derivatives are handled; elsewhere the missing packages are named.
set -euo pipefail

build=(g++ cmake ninja-build flatbuffers-compiler libflatbuffers-dev libfmt-dev nlohmann-json3-dev libcli11-dev libstb-dev
       zlib1g-dev)
test=(libgtest-dev libonnx-testdata python3 python3-numpy python3-venv pkg-config libusb-1.0-0-dev libwebp7)
format=(clang-format)
fuzz=(clang libclang-rt-dev libgtest-dev)
clang=(clang)
arm64=(g++-aarch64-linux-gnu qemu-user googletest)
packages=(python3-venv debhelper dh-python lintian dpkg-dev xz-utils binutils)
roots=(debootstrap)
python=(python3-venv)
# From PyPI, into build-tools/GROUP, a virtual environment; versions are fixed, so that packages are reproducible.
pypi=()

case "${1:-build}" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  format) wanted=("${format[@]}") ;;
  fuzz) wanted=("${build[@]}" "${fuzz[@]}") ;;
  clang) wanted=("${build[@]}" "${test[@]}" "${clang[@]}") ;;
  arm64) wanted=("${build[@]}" "${arm64[@]}") ;;
  packages) wanted=("${build[@]}" "${arm64[@]}" "${packages[@]}"); pypi=(ziglang==0.15.2 pyproject-metadata==0.12.1) ;;
  roots) wanted=("${roots[@]}") ;;
  tidy) wanted=("${build[@]}" "${python[@]}"); pypi=(clang-tidy==20.1.0) ;;
  site) wanted=("${python[@]}"); pypi=(mkdocs-material==9.6.14) ;;
  *) echo "usage: tools/setup.sh build|test|format|fuzz|clang|arm64|packages|roots|tidy|site" >&2; exit 2 ;;
esac

install_from_debian() {
  if ! command -v dpkg-query >/dev/null; then
    echo "Not a Debian-like system: please install the equivalents of: ${wanted[*]}" >&2
    return
  fi
  local missing=() package status as_root=()
  for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    [[ "$status" == "install ok installed" ]] || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  echo "Installing: ${missing[*]}"
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_from_pypi() {
  local folder=build-tools/$1 wanted_now="${pypi[*]}"
  [[ ${#pypi[@]} -gt 0 && "$(cat "$folder/installed" 2>/dev/null)" != "$wanted_now" ]] || return 0
  echo "Installing from PyPI: $wanted_now"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "${pypi[@]}"
  echo "$wanted_now" >"$folder/installed"
}

cd "$(dirname "$0")/.."
install_from_debian
install_from_pypi "${1:-build}"
