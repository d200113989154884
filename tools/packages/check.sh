#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make check-packages: are the packages in dist/ small, portable and complete, and do they work on other systems?
#   tools/packages/check.sh [CPU...]
# For every CPU: sizes, glibc's symbol versions, lintian. For this machine's CPU: the tarball, the .deb packages and the wheel are each
# installed into fresh copies of root file systems without a compiler (ROOTS, made by debootstrap), and README's blocks run there. Other
# CPUs: the same blocks with the tarball and the wheel, by qemu-user in Debian 12. REBUILD=1 also packs twice and compares bytes.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tools/packages/common.sh
source tools/packages/common.sh
most_megabytes=15
work=$(realpath -m build-check-packages)
rm -rf "$work"
mkdir -p "$work"
fail() { echo "FAILED: $*" >&2; exit 1; }

check_files() {  # CPU
  local cpu=$1 tarball="$dist/reef-$version-linux-$1.tar.xz" wheel="$dist/reef_tpu-$version-py3-none-manylinux_2_28_$1.whl" file
  for file in "$tarball" "$wheel"; do
    [[ $(stat -c %s "$file") -le $((most_megabytes * 1000000)) ]] || fail "$file has more than $most_megabytes MB"
    echo "$file: $(stat -c %s "$file") bytes"
  done
  mkdir -p "$work/$cpu/tarball" "$work/$cpu/wheel" "$work/$cpu/deb"
  tar -C "$work/$cpu/tarball" --strip-components=1 -xf "$tarball"
  python3 -m zipfile -e "$wheel" "$work/$cpu/wheel"
  for file in "$dist"/*_"$version"_{"$(debian_name "$cpu")",all}.deb; do dpkg-deb -x "$file" "$work/$cpu/deb"; done
  python3 tools/packages/check_portable.py --glibc "$oldest_glibc" "$work/$cpu"/{tarball,wheel,deb} || fail "something is not portable"
  lintian --fail-on error --no-tag-display-limit "$dist"/*_"$version"_{"$(debian_name "$cpu")",all}.deb
}

check_repeated() {  # CPU: packing once more gives the same bytes
  local before="$work/before" file
  mkdir -p "$before"
  cp "$dist"/*"$1"*.tar.xz "$dist"/*"$1"*.whl "$dist"/*_"$(debian_name "$1")".deb "$before/"
  tools/packages/tarball.sh "$1" && tools/packages/deb.sh "$1" && build-tools/packages/bin/python tools/packages/wheel.py "$1"
  for file in "$before"/*; do cmp "$file" "$dist/$(basename "$file")" || fail "$file comes out differently the second time"; done
  echo "$(find "$before" -type f | wc -l) packages of $1 come out the same a second time"
}

# README's blocks with an installed Reef: in ROOT, where INSTALL was run.
try_in_root() {  # ROOT, KIND, INSTALL
  local root="$work/root"
  rm -rf "$root"
  cp -a "$1" "$root"
  mkdir -p "$root/source/tools" "$root/dist"
  cp -r README.md models "$root/source/" && cp tools/run_documents.py "$root/source/tools/"
  cp "$dist"/* "$root/dist/"
  mount --bind /proc "$root/proc" && mount --bind /dev "$root/dev"
  local code=0
  chroot "$root" /bin/bash -ec "cd /; $3
    reef --version && edgetpu_compiler --version
    cd /source && python3 tools/run_documents.py \"\$(command -v reef)\" /source README.md
    sed -n '/^\`\`\`python/,/^\`\`\`/p' README.md | grep -v '^\`' >/tmp/block.py && python3 /tmp/block.py | grep 'Class(id=1'
    reef exec --only-libraries --show >/dev/null && reef exec -- python3 -c 'import pycoral.utils.edgetpu, tflite_runtime.interpreter'" >"$work/log" 2>&1 || code=$?
  umount "$root/proc" "$root/dev"
  [[ $code -eq 0 ]] || { tail -30 "$work/log"; fail "$2 on $(basename "$1")"; }
  echo "$2 on $(basename "$1"): installed, README's blocks run"
}

try_here() {  # CPU
  local release root
  for release in ${ROOTS:-bookworm trixie jammy noble}; do
    tools/packages/make_root.sh "$release"
    root=build-roots/$release-amd64
    try_in_root "$root" tarball "tar -C /usr/local --strip-components=1 -xf dist/reef-$version-linux-$1.tar.xz; ldconfig; export PYTHONPATH=/usr/local/lib/reef/python"
    try_in_root "$root" deb "dpkg -i dist/*_$(debian_name "$1").deb dist/*_all.deb"
    try_in_root "$root" wheel "python3 -m venv --system-site-packages /venv; /venv/bin/pip install --no-index --no-deps dist/reef_tpu-*_$1.whl; export PATH=/venv/bin:\$PATH"
  done
}

try_emulated() {  # CPU
  local root
  tools/packages/make_root.sh bookworm "$(debian_name "$1")"
  root=$(realpath "build-roots/bookworm-$(debian_name "$1")")
  printf '#!/bin/sh\nexec qemu-%s -L %q %q "$@"\n' "$1" "$root" "$work/$1/tarball/bin/reef" >"$work/reef"
  chmod +x "$work/reef"
  python3 tools/run_documents.py "$work/reef" . README.md || fail "README's blocks on $1"
  echo "import reef; print(reef.__version__, reef.compile('models/reef_creatures_int8.tflite', out_dir='$work').files)" >"$work/try.py"
  # The root is not configured, so nothing points to NumPy's libraries yet.
  local libraries=/usr/lib/$1-linux-gnu
  PYTHONPATH="$work/$1/wheel:$root/usr/lib/python3/dist-packages" qemu-"$1" -L "$root" -E LD_LIBRARY_PATH="$libraries/blas:$libraries/lapack" \
    "$root/usr/bin/python3" "$work/try.py" || fail "the wheel on $1"
  echo "tarball and wheel on $1: README's blocks and Python's module run in an emulator"
}

for cpu in ${*:-x86_64 aarch64}; do
  check_files "$cpu"
  [[ -z "${REBUILD:-}" ]] || check_repeated "$cpu"
  if [[ "$cpu" == "$(uname -m)" ]]; then try_here "$cpu"; else try_emulated "$cpu"; fi
done
