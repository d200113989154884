// SPDX-License-Identifier: Apache-2.0
// .tflite bytes -> ir::Model.
//
// Everything the file says is kept (see ir/model.h). The bytes are never trusted: the FlatBuffers structure is verified
// first, ranges of offset buffers are checked, and allocation is bounded by a small multiple of the file's size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::tflite {

// FlatBuffers offsets are 32 bits wide, and signed in places.
inline constexpr std::uint64_t kMaxFileBytes = (std::uint64_t{1} << 31) - 1;

// Weights in the result are slices of `file`, which stays alive with them. The result is structurally complete but not
// yet verified: see ir/verify.h.
// `notes`, if given, receives a sentence for each thing in the file that saving the model would not give back.
Result<ir::Model> read_model(const Bytes& file, std::vector<std::string>* notes = nullptr);

// Reads the file, then read_model, then ir::verify.
Result<ir::Model> load_model(const std::string& path, std::vector<std::string>* notes = nullptr);

}  // namespace reef::tflite
