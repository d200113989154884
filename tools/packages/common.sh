# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder, which source it from the repository's root: names of CPUs, the version, dates, staging.
# shellcheck shell=bash disable=SC2034
version=$(sed -n 's/^project(reef VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
oldest_glibc=2.28
dist=dist
# Files in packages are as old as the commit: two builds of it give the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
umask 022

# x86_64 or aarch64, as the kernel calls them -> Debian's name, and its folder for libraries.
debian_name() { case "$1" in x86_64) echo amd64 ;; aarch64) echo arm64 ;; esac; }
library_folder() { echo "lib/$1-linux-gnu"; }
build_folder() { echo "build-portable-$1"; }
check_cpu() {
  [[ "$1" == x86_64 || "$1" == aarch64 ]] || { echo "packages are made for x86_64 and aarch64, not for '$1'; 32-bit systems are not supported" >&2; exit 2; }
}

# stage CPU LIBDIR FOLDER: what `make install` would put under / with the prefix /usr. Changing LIBDIR compiles nothing anew: the program
# finds its parts in every layout.
stage() {
  local build
  build=$(build_folder "$1")
  cmake -B "$build" -DCMAKE_INSTALL_LIBDIR="$2" -DCMAKE_INSTALL_PREFIX=/usr >/dev/null
  rm -rf "$3"
  DESTDIR=$(realpath -m "$3") cmake --install "$build" --component library --strip >/dev/null
  mkdir -p "$3/usr/share/doc/reef"
  build-tools/packages/bin/python tools/packages/bill_of_materials.py "$build" "$3/usr/share/doc/reef"
}
