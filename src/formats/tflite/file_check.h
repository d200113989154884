// SPDX-License-Identifier: Apache-2.0
// Is this a TFLite file, and is its FlatBuffers structure sound?
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace reef::tflite {

// After an ok result the generated accessors may be used on `file`: every table, vector and string they reach lies
// inside, and fields (though not elements of vectors) are aligned relative to the file's start. Members of unions with
// type codes that the schema does not know are not checked. `file` must start at an address divisible by 8.
Status check_file(const Bytes& file);

// Only the mark at its start. What has none is recognized if possible, with advice on what to do with it; `path` is
// what commands in that advice are told to read.
Status check_identifier(const Bytes& file, const std::string& path);

}  // namespace reef::tflite
