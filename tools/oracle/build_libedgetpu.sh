#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds Google's runtime for the Edge TPU from its public source, to try it on virtual devices (check_libedgetpu.py).
# Nothing of it becomes part of Reef.
#
#   git clone https://github.com/google-coral/libedgetpu
#   git clone https://github.com/tensorflow/tflite-micro        # for TFLite's C headers
#   apt-get install libabsl-dev libflatbuffers-dev flatbuffers-compiler libusb-1.0-0-dev xxd g++ make pkg-config
#   tools/oracle/build_libedgetpu.sh libedgetpu tflite-micro OUT    # makes OUT/libedgetpu.so.1
#
# The repository's own Makefile wants a TensorFlow source tree of a certain age and old compilers. Here its list of
# sources is taken from that Makefile, and the two TensorFlow headers that it wants besides the C interface are made.
set -euo pipefail
if [ $# -ne 3 ]; then
  sed -n '3,10p' "$0" >&2
  exit 2
fi
source=$(realpath "$1")
tflite=$(realpath "$2")
mkdir -p "$3/include/api" "$3/include/executable" "$3/include/driver/usb" "$3/include/tensorflow/lite" "$3/objects"
cd "$3"

for schema in executable/executable api/driver_options; do
  flatc --cpp --gen-object-api --force-empty --gen-mutable -o "include/$(dirname $schema)" "$source/$schema.fbs"
done
{
  echo "namespace {"
  for image in apex_latest_single_ep apex_latest_multi_ep; do
    echo "const unsigned char $image[] = {"
    xxd -i < "$source/driver/usb/$image.bin"
    echo "};"
    echo "constexpr unsigned int ${image}_len = sizeof($image);"
  done
  echo "}"
} > include/driver/usb/usb_latest_firmware.h
cat > include/tensorflow/lite/context.h <<'X'
#pragma once
#include "tensorflow/lite/core/c/common.h"
X
cat > include/tensorflow/lite/util.h <<'X'
#pragma once
#include <vector>
#include "tensorflow/lite/core/c/common.h"
namespace tflite {
inline TfLiteIntArray* ConvertVectorToTfLiteIntArray(const std::vector<int>& values) {
  TfLiteIntArray* array = TfLiteIntArrayCreate(static_cast<int>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) array->data[i] = values[i];
  return array;
}
}
X

sources=$(sed -n '/^LIBEDGETPU_CCSRCS/,/^LIBEDGETPU_CCOBJS/p;/^LIBEDGETPU_MAX_CCSRCS/,/^LIBEDGETPU_MAX_CCOBJS/p' \
              "$source/makefile_build/Makefile" | grep -oE '\$\(BUILDROOT\)/[^ ]*\.cc' | sed 's#$(BUILDROOT)/##' | sort -u)
libraries=$(pkg-config --libs absl_flags absl_flags_parse absl_hash absl_raw_hash_set absl_str_format absl_strings absl_status \
                absl_statusor absl_synchronization absl_time)
{
  echo "FLAGS = -fPIC -w -O1 -std=c++17 -DDARWINN_PORT_DEFAULT -include cstdint -I$source -Iinclude -I$tflite"
  objects=""
  for file in $sources; do
    object=objects/$(echo "$file" | tr / _).o
    objects="$objects $object"
    printf '%s: %s\n\tg++ $(FLAGS) -c $< -o $@\n' "$object" "$source/$file"
  done
  objects="$objects objects/tflite_common.o"
  printf 'objects/tflite_common.o: %s\n\tg++ $(FLAGS) -c $< -o $@\n' "$tflite/tensorflow/lite/core/c/common.cc"
  printf 'libedgetpu.so.1:%s\n\tg++ -shared -Wl,--soname,libedgetpu.so.1 -Wl,--version-script=%s -o $@ $^ -lflatbuffers %s -lusb-1.0 -lpthread\n' \
         "$objects" "$source/tflite/public/libedgetpu.lds" "$libraries"
} > Makefile
make -j"${JOBS:-2}" libedgetpu.so.1
echo "$(pwd)/libedgetpu.so.1"
