#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dist/*.deb for Debian 10, Ubuntu 20.04 and everything newer: reef, libreef0, libreef-dev, python3-reef. They hold the portable program
# and libraries (tools/packages/build.sh CPU); debian/rules without REEF_STAGE makes packages of one release.
#   tools/packages/deb.sh x86_64|aarch64
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/packages/common.sh
source tools/packages/common.sh
check_cpu "${1:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage "$1" "$(library_folder "$1")" "$work/stage"
mkdir "$work/reef"
cp -a debian CHANGELOG.md "$work/reef/"
build-tools/packages/bin/python tools/packages/bill_of_materials.py --debian-copyright "$(build_folder "$1")" >>"$work/reef/debian/copyright"
# The date of the packages is that of the commit.
sed -i "s/^\( -- .*>  \).*/\1$(date -uR -d "@$SOURCE_DATE_EPOCH")/" "$work/reef/debian/changelog"
(cd "$work/reef" && REEF_STAGE="$work/stage" DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -d -us -uc -a "$(debian_name "$1")" >"$work/log" 2>&1) ||
  { cat "$work/log"; exit 1; }
mkdir -p "$dist"
mv "$work"/*.deb "$dist/"
ls "$dist"/*_"$version"_*.deb
