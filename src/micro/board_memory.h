// SPDX-License-Identifier: Apache-2.0
// Compares what a model takes of a board's memory with what the board has.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "micro/assess.h"

namespace reef::micro {

struct MemoryNeed {
  MemoryUse use;
  std::string remedy;  // where it is too much

  bool fits() const { return use.bytes <= use.limit; }
};

// For kMicro the memory of Coral's Dev Board Micro (board.h), for kTflm what `options` says. `arena` is nothing where
// it could not be predicted.
std::vector<MemoryNeed> memory_needs(const ir::Model& model, const AssessOptions& options,
                                     std::optional<std::int64_t> arena);

}  // namespace reef::micro
