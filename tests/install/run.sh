#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Reef's libraries into a fresh folder, then builds a C and a C++ program against them: with find_package, with
# pkg-config, and as strict C99; and runs both. Usage: run.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --component library --prefix "$folder/prefix" >"$folder/install.log" || { cat "$folder/install.log"; exit 1; }
model="$source/models/reef_creatures_int8.tflite"

# CMake: find_package(reef), C++17.
cmake -S "$source/tests/install" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/prefix" >"$folder/cmake.log" || { cat "$folder/cmake.log"; exit 1; }
cmake --build "$folder/build" >"$folder/make.log" || { cat "$folder/make.log"; exit 1; }
"$folder/build/user" "$model" | grep -q '8 scores' || { echo "the C++ program does not work"; exit 1; }

# pkg-config, C99.
command -v pkg-config >/dev/null || { echo "skipped: pkg-config is missing"; exit 77; }
libraries=$(dirname "$(find "$folder/prefix" -name reef.pc)")
export PKG_CONFIG_PATH=$libraries
flags=$(pkg-config --define-variable=prefix="$folder/prefix" --cflags --libs reef)
# shellcheck disable=SC2086
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$source/tests/install/user.c" -o "$folder/user_c" $flags -Wl,-rpath,"$libraries/.."
"$folder/user_c" "$model" | grep -q '8 scores' || { echo "the C program does not work"; exit 1; }

# Nothing but the public symbols.
for library in libreef.so libreef_delegate.so; do
  strange=$(nm -D --defined-only "$libraries/../$library" | awk '{print $3}' | grep -Ev '^(reef_|tflite_plugin_|edgetpu_|_ZNK?7edgetpu|REEF_0|VER_1.0)' || true)
  [[ -z "$strange" ]] || { echo "$library exports $strange"; exit 1; }
done
"$folder/prefix/bin/reef" --version
readlink "$libraries/../coral/libedgetpu.so.1"
for name in libedgetpu.so.1 libedgetpu.so.1.0 libedgetpu.so; do
  [[ -e "$libraries/../coral/$name" ]] || { echo "$name leads nowhere"; exit 1; }
done

# What people use: man pages, completions, the models, and Coral's modules, all from the installed folder.
for file in share/man/man1/reef.1 share/man/man1/reef-compile.1 share/bash-completion/completions/reef share/zsh/site-functions/_reef \
            share/fish/vendor_completions.d/reef.fish share/reef/models/models.json; do
  [[ -s "$folder/prefix/$file" ]] || { echo "$file is not installed"; exit 1; }
done
"$folder/prefix/bin/reef" models | grep -q '^yolo ' || { echo "the installed program does not find its models"; exit 1; }
"$folder/prefix/bin/reef" exec --show | grep -q "PYTHONPATH=$folder/prefix.*as_coral" || { echo "reef exec does not find its modules"; exit 1; }

# The same program in a Python environment, where pip puts a wheel's: parts are found in the package.
for packages in lib/python3.12/site-packages lib64/python3.9/site-packages; do
  environment="$folder/environment_${packages//\//_}"
  mkdir -p "$environment/bin" "$environment/$packages/reef/_lib/models" "$environment/$packages/reef/_lib/coral"
  cp "$folder/prefix/bin/reef" "$environment/bin/"
  cp "$source/bindings/python/edgetpu_compiler" "$environment/bin/"
  cp "$source/models/models.json" "$environment/$packages/reef/_lib/models/"
  touch "$environment/$packages/reef/__init__.py" "$environment/$packages/reef/_lib/libreef.so.0" "$environment/$packages/reef/_lib/coral/libedgetpu.so.1"
  "$environment/bin/reef" exec --show | grep -q "^REEF_LIBRARY=$environment/$packages/reef/_lib/libreef.so.0" || { echo "reef exec does not find the libraries in $packages"; exit 1; }
  "$environment/bin/reef" exec --show | grep -q "^PYTHONPATH=$environment/$packages/reef/as_coral" || { echo "reef exec does not find the modules in $packages"; exit 1; }
  "$environment/bin/edgetpu_compiler" --version | grep -q '^Edge TPU Compiler version' || { echo "a wheel's edgetpu_compiler does not work"; exit 1; }
done
rm -r "$environment/$packages"
! "$environment/bin/reef" models 2>"$folder/error" || { echo "models were found nowhere"; exit 1; }
grep -q "models.json is neither in" "$folder/error" || { echo "reef models does not say where it looked: $(cat "$folder/error")"; exit 1; }

# Edge TPUs: the udev rule lies where udev looks, and is the one that the page quotes; virtual sticks need two libraries.
rule="$folder/prefix/lib/udev/rules.d/60-reef-edgetpu.rules"
[[ -s "$rule" ]] || { echo "the udev rule is not installed"; exit 1; }
grep -v '^#' "$rule" | while IFS= read -r line; do
  grep -qF -- "$line" "$source/docs/driver.md" || { echo "docs/driver.md does not have: $line"; exit 1; }
done
if udevadm verify --help >/dev/null 2>&1; then  # since systemd 254
  udevadm verify "$rule" || { echo "udev does not take the rule"; exit 1; }
fi
"$folder/prefix/bin/reef" virtual-usb --ready -- "$folder/prefix/bin/reef" devices | grep -q '^:0 *usb:0 *USB 3 *running' ||
  { echo "reef virtual-usb does not work where it is installed"; exit 1; }
