#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dist/reef-VERSION-linux-CPU.tar.xz: runs where it is unpacked, on any Linux from glibc 2.28 on. Needs tools/packages/build.sh CPU.
#   tools/packages/tarball.sh x86_64|aarch64
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/packages/common.sh
source tools/packages/common.sh
check_cpu "${1:-}"
name="reef-$version-linux-$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage "$1" lib "$work/stage"
mv "$work/stage/usr" "$work/$name"
cp LICENSE CHANGELOG.md README.md "$work/$name/"
mkdir -p "$dist"
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | xz -6 -T1 >"$work/tar.xz"
mv "$work/tar.xz" "$dist/$name.tar.xz"
echo "$dist/$name.tar.xz"
