// SPDX-License-Identifier: Apache-2.0
// An Edge TPU custom op's options -> CustomOptions (package.h).
//
// The bytes are never trusted. Checked: the FlexBuffers map, the package's identifier, every offset, size and alignment
// of the FlatBuffers in it, that enums and union codes are known, that sizes, dimensions and offsets are not negative,
// that every field offset lies inside its instructions and every instruction hint names a chunk that exists, that the
// program is for the chip that Reef knows, and that allocation stays within a small multiple of the input. Messages
// name the table, the field and the byte of the custom options. Not checked: whether the instructions make sense, and
// whether layers, layouts and hints agree with each other and with them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "formats/darwinn/package.h"
#include "ir/model.h"

namespace reef::darwinn {

// The custom code of the TFLite operator.
inline constexpr char kCustomOpName[] = "edgetpu-custom-op";
inline bool is_edge_tpu_op(const ir::Operator& op) { return op.is_custom() && op.type == kCustomOpName; }

// Instructions and parameters in the result are slices of `bytes`, which stay alive with them.
// `notes`, if given, receives a sentence for each thing in the bytes that writing would not give back.
Result<CustomOptions> read_custom_options(const Bytes& bytes, std::vector<std::string>* notes = nullptr);

// The pieces. `base` is added to the byte positions in messages.
Result<Package> read_package(const Bytes& bytes, std::size_t base = 0, std::vector<std::string>* notes = nullptr);
Result<Executable> read_executable(const Bytes& bytes, std::size_t base = 0, std::vector<std::string>* notes = nullptr);

}  // namespace reef::darwinn
