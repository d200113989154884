// SPDX-License-Identifier: Apache-2.0
// The text form of a model: print, edit, parse. parse(print(m)) == m for every verified model when constants are
// printed whole. The grammar is described in docs/formats/ir_text.md.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/model.h"

namespace reef::ir {

struct TextOptions {
  // Constants above this many bytes are cut short ("..."): readable, but such a text cannot be parsed back.
  std::size_t max_constant_bytes = SIZE_MAX;
};

std::string print(const Model& model, const TextOptions& options = {});

// Errors name line and column.
Result<Model> parse(std::string_view text);

}  // namespace reef::ir
