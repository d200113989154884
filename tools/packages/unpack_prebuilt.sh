#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts the program of dist/reef-VERSION-linux-CPU.tar.xz where `make demo` looks for it, if that tarball is there, is of this version and no
# program was built yet. Exit code 1: there is none, so it has to be compiled.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/packages/common.sh
source tools/packages/common.sh
[[ ! -e build/CMakeCache.txt ]] || exit 1  # a build folder knows best what is stale
tarball="$dist/reef-$version-linux-$(uname -m).tar.xz"
[[ -f "$tarball" ]] || exit 1
echo "Using $tarball, of this version ($version); \`make\` compiles instead"
rm -rf build-prebuilt
mkdir build-prebuilt
tar -C build-prebuilt --strip-components=1 -xf "$tarball"
build-prebuilt/bin/reef --version >/dev/null || { echo "it does not run here" >&2; exit 1; }
