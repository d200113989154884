// SPDX-License-Identifier: Apache-2.0
// Short descriptions of model parts, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/model.h"

namespace reef::ir {

std::string describe_bytes(std::int64_t bytes);  // "512 B", "1.5 KiB", "3.4 MiB"

// A name from a file, fit for a message: at most 60 characters, control characters replaced.
std::string describe_name(std::string_view name);

// "op 12 CONV_2D 'features/conv'": the name is that of its first result. `number` is the one to show, if it is not `op`
// itself; below 0 it is "new op CONV_2D ...".
std::string describe_op(const Subgraph& graph, std::int32_t op);
std::string describe_op(const Subgraph& graph, std::int32_t op, std::int32_t number);

// "scale 0.0078125, zero point 128", "96 scales along dimension 0", "" when not quantized.
std::string describe_quantization(const Quantization& quantization);

// Bytes of all constants, each shared buffer counted once. The model must be verified.
std::int64_t constant_bytes(const Model& model);

}  // namespace reef::ir
