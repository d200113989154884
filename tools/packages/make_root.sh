#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A root file system of another release, in which packages are tried: Debian or Ubuntu with Python and NumPy, and no compiler.
#   tools/packages/make_root.sh bookworm|trixie|bullseye|jammy|noble [amd64|arm64]     -> build-roots/RELEASE-ARCHITECTURE
# arm64 is unpacked and not configured: programs in it are run by qemu-user from outside. Ubuntu's archive is not authenticated here
# (Debian has no keyring of it): the root is for trying things, not for keeping. Needs root's rights.
set -euo pipefail
cd "$(dirname "$0")/../.."
release=$1 architecture=${2:-amd64}
folder=build-roots/$release-$architecture
[[ ! -e "$folder/made" ]] || exit 0
options=(--variant=minbase --include=python3,python3-numpy,python3-pip,python3-venv,xz-utils,ca-certificates --arch="$architecture")
case "$release" in
  focal | jammy | noble) options+=(--no-check-gpg --components=main,universe); mirror=http://archive.ubuntu.com/ubuntu ;;
  *) mirror=http://deb.debian.org/debian ;;
esac
[[ "$architecture" == "$(dpkg --print-architecture)" ]] || options+=(--foreign)
rm -rf "$folder"
mkdir -p "$folder"
script=/usr/share/debootstrap/scripts/$release
[[ -e "$script" ]] || script=/usr/share/debootstrap/scripts/gutsy  # what all Ubuntus use; this debootstrap is older than the release
debootstrap "${options[@]}" "$release" "$folder" "$mirror" "$script" >"$folder.log" 2>&1 || { tail -20 "$folder.log"; exit 1; }
if [[ -e "$folder/debootstrap" ]]; then  # foreign: its packages are unpacked without running anything
  for package in "$folder"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
fi
touch "$folder/made"
echo "$folder"
