#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make packages: every package for every CPU, in dist/. On two cores some 7 minutes a CPU, nearly all of it compiling.
#   tools/packages/all.sh [CPU...]        x86_64 aarch64 unless named; JOBS=N compiles N files at a time
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/packages/common.sh
source tools/packages/common.sh
for cpu in ${*:-x86_64 aarch64}; do
  tools/packages/build.sh "$cpu" "${JOBS:-$(nproc)}"
  build-tools/packages/bin/python tools/packages/check_portable.py "build-portable-$cpu"/{reef,libreef.so.*.*.*,libreef_delegate.so,virtual_usb}
  tools/packages/tarball.sh "$cpu"
  tools/packages/deb.sh "$cpu"
  build-tools/packages/bin/python tools/packages/wheel.py "$cpu"
done
(cd dist && sha256sum -- *.tar.xz *.deb *.whl >SHA256SUMS)
