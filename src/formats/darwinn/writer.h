// SPDX-License-Identifier: Apache-2.0
// CustomOptions (package.h) -> an Edge TPU custom op's options. Same structure, same bytes.
//
// Tables, lists and texts are laid out in the order Google's compilers of all generations use, so that what was read
// from one of their files is written as the same bytes. Nothing about the order is recorded: it follows from the
// content. A file whose bytes lie in another order is written with the same content in this order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::darwinn {

Result<std::vector<std::uint8_t>> write_custom_options(const CustomOptions& options);

// The pieces.
Result<std::vector<std::uint8_t>> write_package(const Package& package);
Result<std::vector<std::uint8_t>> write_executable(const Executable& executable);

}  // namespace reef::darwinn
