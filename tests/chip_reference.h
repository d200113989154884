// SPDX-License-Identifier: Apache-2.0
// The chip reference (execute/reference/chip_reference.h) by its short names.
#pragma once

#include "execute/reference/chip_reference.h"

namespace reef::testing {

using reference::ChipReferenceOptions;
using reference::evaluate_as_chip;
using reference::kVariableOutputSuffix;
using reference::NamedBytes;

}  // namespace reef::testing
