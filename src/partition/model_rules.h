// SPDX-License-Identifier: Apache-2.0
// The rules that hold for every op, by name. The checker decides them; see check.cpp.
#pragma once

#include <cstdint>

#include "ops/chip_support.h"

namespace reef::partition {

// In the order in which they are checked: the first one broken is the one that Google's compiler names.
enum class ModelRule : std::uint8_t {
  kType,
  kKnownOp,
  kOperands,
  kCustomOp,
  kControlFlow,
  kSupportedOp,
  kRuntime,
  kVersion,
  kStaticShape,
  kConstant,
  kRank,
  kBatch,
  kQuantization,
};

const ops::ChipRule& model_rule(ModelRule rule);

}  // namespace reef::partition
